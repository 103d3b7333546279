//! What a viewer needs before the first tile.

use super::{Session, SessionError};
use crate::facts::TimeWindow;
use crate::gc::GcSummary;
use crate::index::lane::Lane;
use crate::index::{
    Capped, Collection, Index, LaneKind, Loss, Name, PlacedNotice, Stack, Strip, Tick, TimeBase, Totals, gc,
};
use crate::survey::Survey;
use std::collections::BTreeMap;
use std::ops::Range;

/// Facts about the whole trace.
#[derive(Debug, Clone)]
pub struct Meta {
    /// False while the file is being indexed: then everything is about the part that was read.
    pub is_complete: bool,
    /// Number that changes when answers do.
    pub generation: u32,
    /// The session's axis.
    pub time: TimeBase,
    /// Nanoseconds from the first record in the file to 0 on the session's axis, ≤ 0: a time on the axis plus this is
    /// what `typhon trace dump` prints.
    pub zero_ns: i64,
    /// Latest end of a record, ns on the axis.
    pub end_ns: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Blocks in the file.
    pub blocks: usize,
    /// Sums.
    pub totals: Totals,
    /// Events by kind, ascending; kinds without events are left out.
    pub kinds: Vec<(u8, u64)>,
    /// Ticks.
    pub ticks: usize,
    /// 95th percentile of their durations, ns.
    pub tick_p95_ns: Option<u64>,
    /// Largest sum of each stacked area, the scale of its track for the whole session.
    pub stacks: BTreeMap<Stack, u64>,
    /// What the reader had to step over, with the time it concerns.
    pub notices: Vec<PlacedNotice>,
    /// What the recorder reports as lost, in order of time.
    pub losses: Vec<Loss>,
}

/// A lane and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneInfo {
    /// Its number in tile requests.
    pub id: u32,
    /// What it is about.
    pub kind: LaneKind,
    /// What the gutter says. Comes from the trace and may hold anything.
    pub label: String,
    /// Slot and incarnation, of threads.
    pub slot: Option<(u8, u32)>,
    /// Number that the recorder gave the thread.
    pub thread_number: Option<i64>,
    /// Value of ThreadKind.
    pub thread_kind: Option<u8>,
    /// Rows that nest; overflow rows come behind them.
    pub nested_rows: usize,
    /// Rows in all.
    pub rows: usize,
    /// Spans.
    pub spans: u64,
    /// Instants.
    pub instants: u64,
    /// Values of a gauge.
    pub samples: u64,
    /// Smallest and largest value of a gauge: the scale of its track for the whole session.
    pub value_range: Option<(i64, i64)>,
    /// From the first start to the last end, ns; `None` when it is empty.
    pub extent_ns: Option<Range<u64>>,
}

/// How times are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// The session's axis.
    pub time: TimeBase,
    /// Timestamp of the first record of the file: 0 of what the command line prints.
    pub origin_ticks: i64,
}

/// Ticks by their place, from 0.
pub type TickRange = Range<usize>;

impl Session {
    /// Facts about the whole trace.
    ///
    /// # Errors
    /// When nothing can be shown yet.
    pub fn meta(&self) -> Result<Meta, SessionError> {
        let (index, is_complete) = self.visible()?;
        let survey = &index.survey;
        let kinds = (0..=255).zip(index.kinds).filter(|(_, count)| *count > 0).collect();
        let from_first = survey.first_ticks.saturating_sub(survey.origin_ticks);
        Ok(Meta {
            is_complete,
            generation: self.generation(),
            time: index.time,
            zero_ns: index.time.clock().to_ns(from_first),
            end_ns: index.end_ns(),
            file_bytes: self.shared.file_bytes,
            blocks: index.blocks.blocks.len(),
            totals: index.totals,
            kinds,
            ticks: index.ticks.ticks.len(),
            tick_p95_ns: index.ticks.p95_ns,
            stacks: index.stacks.clone(),
            notices: index.notices.clone(),
            losses: index.losses.clone(),
        })
    }

    /// All lanes, in the order in which they are drawn.
    ///
    /// # Errors
    /// When nothing can be shown yet.
    pub fn lanes(&self) -> Result<Vec<LaneInfo>, SessionError> {
        let (index, _) = self.visible()?;
        let info = |(id, lane): (usize, &Lane)| self.lane_info(&index, id as u32, lane);
        Ok(index.lanes.iter().enumerate().map(info).collect())
    }

    fn lane_info(&self, index: &Index, id: u32, lane: &Lane) -> LaneInfo {
        let thread = match lane.kind {
            LaneKind::Thread { thread } => index.survey.threads.all().get(thread),
            _ => None,
        };
        let label = match lane.kind {
            LaneKind::Gc => "GC".to_owned(),
            LaneKind::Gauge { gauge } => typhon_trace::registry::gauge(gauge)
                .map_or_else(|| format!("gauge 0x{gauge:04x}"), |info| info.name.to_owned()),
            LaneKind::Thread { .. } => thread.map_or_else(String::new, |thread| thread.label().into_owned()),
            LaneKind::System { index } => match self.shared.trace.tables().system_name(index) {
                Some(name) => name.to_owned(),
                None => format!("system {index}"),
            },
            LaneKind::Strip(strip) => strip_label(strip).to_owned(),
        };
        LaneInfo {
            id,
            kind: lane.kind,
            label,
            slot: thread.map(|thread| (thread.slot, thread.incarnation)),
            thread_number: thread.and_then(|thread| thread.number),
            thread_kind: thread.and_then(|thread| thread.kind),
            nested_rows: lane.nested_rows,
            rows: lane.rows.len(),
            spans: lane.rows.iter().map(|row| row.count()).sum(),
            instants: lane.instants.count(),
            samples: lane.series.as_ref().map_or(0, |series| series.count()),
            value_range: lane.series.as_ref().map(|series| (series.min, series.max)),
            extent_ns: lane.extent().map(|(first, last)| index.time.ns(first)..index.time.ns(last)),
        }
    }

    /// The names that entries refer to, by id. The id 65,535 has none: it stands for names beyond the limit.
    ///
    /// # Errors
    /// When nothing can be shown yet.
    pub fn names(&self) -> Result<Vec<Name>, SessionError> {
        Ok(self.visible()?.0.names.list().to_vec())
    }

    /// Some of the ticks, in order of time.
    ///
    /// # Errors
    /// When nothing can be shown yet.
    pub fn ticks(&self, range: TickRange) -> Result<Vec<Tick>, SessionError> {
        let (index, _) = self.visible()?;
        let ticks = &index.ticks.ticks;
        let end = range.end.min(ticks.len());
        Ok(ticks[range.start.min(end)..end].to_vec())
    }

    /// Looks at all ticks, in order of time.
    ///
    /// # Errors
    /// When nothing can be shown yet.
    pub fn with_ticks<T>(&self, look: impl FnOnce(&[Tick]) -> T) -> Result<T, SessionError> {
        Ok(look(&self.visible()?.0.ticks.ticks))
    }

    /// What `typhon trace stats` says of the collections in a window, or of the whole trace; `None` when the trace has
    /// none.
    ///
    /// # Errors
    /// When nothing can be shown yet.
    pub fn gc_summary(&self, window: Option<&TimeWindow>) -> Result<Option<GcSummary>, SessionError> {
        let (index, _) = self.visible()?;
        let mut observed = index.survey.first_ticks..index.survey.last_ticks;
        if let Some(extent) = window.map(TimeWindow::extent) {
            observed = observed.start.max(extent.start)..observed.end.min(extent.end);
        }
        Ok(gc::summary(&index.gc, index.time.clock(), window, observed))
    }

    /// Row sets that the engine cut short before they were recorded.
    ///
    /// # Errors
    /// When nothing can be shown yet.
    pub fn capped(&self) -> Result<Vec<Capped>, SessionError> {
        Ok(self.visible()?.0.capped.clone())
    }

    /// The session's axis, and where the command line begins to count.
    ///
    /// # Errors
    /// When nothing can be shown yet.
    pub fn axis(&self) -> Result<Axis, SessionError> {
        let (index, _) = self.visible()?;
        Ok(Axis { time: index.time, origin_ticks: index.survey.origin_ticks })
    }

    /// Some of the collections, in order of time, and how many there are.
    ///
    /// # Errors
    /// When nothing can be shown yet.
    pub fn collections(&self, range: Range<usize>) -> Result<(usize, Vec<Collection>), SessionError> {
        let (index, _) = self.visible()?;
        let all = gc::collections(&index.gc, index.time);
        let end = range.end.min(all.len());
        Ok((all.len(), all[range.start.min(end)..end].to_vec()))
    }

    /// Ticks and threads, as the command line sees them.
    ///
    /// # Errors
    /// When nothing can be shown yet.
    pub fn survey(&self) -> Result<Survey, SessionError> {
        Ok(self.visible()?.0.survey.clone())
    }
}

fn strip_label(strip: Strip) -> &'static str {
    match strip {
        Strip::Phases => "Phases",
        Strip::PageCache => "Page cache",
        Strip::DiskIo => "Disk I/O",
        Strip::Transactions => "Transactions",
        Strip::Wal => "WAL",
        Strip::Checkpoint => "Checkpoint",
    }
}
