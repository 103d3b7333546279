//! All lanes, made from the sorted items on several threads.

use super::item::Key;
use super::lane::{Lane, LaneKind, LaneWriter, for_each_part, write_instants, write_series};
use super::row::Row;
use super::series::Series;
use super::sort::{Merge, Sorted, Waiting, for_each_key};
use super::store::StoreWriter;
use super::time::TimeBase;
use crate::survey::Survey;
use std::collections::BTreeMap;
use std::io;

/// What lanes are made with.
pub(crate) struct LaneContext<'c> {
    pub(crate) sorted: &'c Sorted,
    pub(crate) survey: &'c Survey,
    pub(crate) time: TimeBase,
    pub(crate) store: &'c StoreWriter,
}

/// Rows, and how many of them nest.
type Rows = (Vec<Row>, usize);

/// What became of the items of a key.
enum Part {
    Spans(Rows),
    Instants(Row),
    Series(Series),
    /// By thread.
    ThreadSpans(Vec<(usize, Rows)>),
    ThreadInstants(Vec<(usize, Row)>),
}

/// Makes the lanes, in the order in which they are drawn.
///
/// # Errors
/// When items cannot be read or pieces written.
pub(crate) fn build_lanes(keys: Vec<Waiting>, context: &LaneContext<'_>) -> io::Result<Vec<Lane>> {
    let parts = for_each_key(keys, |waiting| context.part(waiting))?;
    Ok(assemble(parts, context.survey.threads.all().len()))
}

impl LaneContext<'_> {
    fn part(&self, waiting: Waiting) -> io::Result<Part> {
        let key = waiting.key;
        let mut items = self.sorted.merge(waiting);
        let (time, store) = (self.time, self.store);
        Ok(match key {
            Key::GcSpans | Key::System(_) | Key::Strip(_) => {
                Part::Spans(self.spans(&mut items, None, false)?)
            }
            Key::GcInstants => Part::Instants(write_instants(&mut items, None, time, store)?),
            Key::Gauge(_) | Key::GcSizes(_) => Part::Series(write_series(&mut items, time, store)?),
            Key::Spans(slot) => {
                Part::ThreadSpans(self.by_thread(slot, items, |items, until| self.spans(items, until, true))?)
            }
            Key::Instants(slot) => Part::ThreadInstants(
                self.by_thread(slot, items, |items, until| write_instants(items, until, time, store))?,
            ),
        })
    }

    /// The rows of the spans that start before `until`.
    fn spans(&self, items: &mut Merge<'_>, until: Option<i64>, nests: bool) -> io::Result<Rows> {
        let mut writer = LaneWriter::new(nests, self.time, self.store);
        for_each_part(items, until, |part| part.iter().try_for_each(|item| writer.push(*item)))?;
        writer.finish()
    }

    /// Splits the items of a slot, which are in order of time, among the threads that held it.
    fn by_thread<T>(
        &self,
        slot: u8,
        mut items: Merge<'_>,
        mut write: impl FnMut(&mut Merge<'_>, Option<i64>) -> io::Result<T>,
    ) -> io::Result<Vec<(usize, T)>> {
        let threads = &self.survey.threads;
        let mut parts = Vec::new();
        while let Some(first) = items.first()? {
            let Some(thread) = threads.index_at(slot, first.start) else { break };
            let next = threads.all().get(thread + 1).filter(|next| next.slot == slot);
            parts.push((thread, write(&mut items, next.map(|next| next.from_ticks))?));
        }
        Ok(parts)
    }
}

/// GC, gauges, threads, systems, strips.
fn assemble(parts: BTreeMap<Key, Part>, threads: usize) -> Vec<Lane> {
    let mut gc: Option<Lane> = None;
    let (mut gauges, mut others) = (BTreeMap::new(), Vec::new());
    let mut threads: Vec<Lane> = (0..threads).map(|thread| Lane::new(LaneKind::Thread { thread })).collect();
    for (key, part) in parts {
        match (key, part) {
            (Key::Gauge(id) | Key::GcSizes(id), Part::Series(series)) => drop(gauges.insert(id, series)),
            (_, Part::ThreadSpans(by_thread)) => {
                by_thread.into_iter().for_each(|(thread, (rows, nested_rows))| {
                    (threads[thread].rows, threads[thread].nested_rows) = (rows, nested_rows);
                })
            }
            (_, Part::ThreadInstants(by_thread)) => {
                by_thread.into_iter().for_each(|(thread, instants)| threads[thread].instants = instants);
            }
            (key, Part::Spans((rows, nested_rows))) => {
                let kind = match key {
                    Key::System(index) => LaneKind::System { index },
                    Key::Strip(strip) => LaneKind::Strip(strip),
                    _ => LaneKind::Gc,
                };
                let lane = Lane { rows, nested_rows, ..Lane::new(kind) };
                if kind == LaneKind::Gc { gc = Some(lane) } else { others.push(lane) }
            }
            (_, Part::Instants(instants)) => {
                gc.get_or_insert_with(|| Lane::new(LaneKind::Gc)).instants = instants;
            }
            (_, Part::Series(_)) => {}
        }
    }
    let gauge = |(gauge, series)| Lane { series: Some(series), ..Lane::new(LaneKind::Gauge { gauge }) };
    gc.into_iter().chain(gauges.into_iter().map(gauge)).chain(threads).chain(others).collect()
}
