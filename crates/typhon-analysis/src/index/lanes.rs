//! All lanes, made from the sorted items on several threads.

use super::item::{Item, Key};
use super::lane::{Lane, LaneKind, LaneWriter, write_instants, write_series};
use super::row::Row;
use super::series::Series;
use super::sort::{Sorted, for_each_key};
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
pub(crate) fn build_lanes(keys: Vec<(Key, Vec<Item>)>, context: &LaneContext<'_>) -> io::Result<Vec<Lane>> {
    let parts = for_each_key(keys, |key, pending| context.part(key, pending))?;
    Ok(assemble(parts, context.survey.threads.all().len()))
}

impl LaneContext<'_> {
    fn part(&self, key: Key, pending: Vec<Item>) -> io::Result<Part> {
        let items = self.sorted.merge(key, pending);
        let (time, store) = (self.time, self.store);
        Ok(match key {
            Key::GcSpans | Key::System(_) | Key::Strip(_) => Part::Spans(self.spans(items, false)?),
            Key::GcInstants => Part::Instants(write_instants(items, time, store)?),
            Key::Gauge(_) | Key::GcSizes(_) => Part::Series(write_series(items, time, store)?),
            Key::Spans(slot) => {
                Part::ThreadSpans(self.by_thread(slot, items, |items| self.spans(items, true))?)
            }
            Key::Instants(slot) => {
                Part::ThreadInstants(self.by_thread(slot, items, |items| write_instants(items, time, store))?)
            }
        })
    }

    fn spans(&self, items: impl Iterator<Item = io::Result<Item>>, nests: bool) -> io::Result<Rows> {
        let mut writer = LaneWriter::new(nests, self.time, self.store);
        for item in items {
            writer.push(item?)?;
        }
        writer.finish()
    }

    /// Splits the items of a slot, which are in order of time, among the threads that held it.
    fn by_thread<T>(
        &self,
        slot: u8,
        items: impl Iterator<Item = io::Result<Item>>,
        mut write: impl FnMut(&mut dyn Iterator<Item = io::Result<Item>>) -> io::Result<T>,
    ) -> io::Result<Vec<(usize, T)>> {
        let threads = &self.survey.threads;
        let mut items = items.peekable();
        let mut parts = Vec::new();
        while let Some(Ok(first)) = items.peek() {
            let Some(thread) = threads.index_at(slot, first.start) else { return Ok(parts) };
            let next = threads.all().get(thread + 1).filter(|next| next.slot == slot);
            let until = next.map(|next| next.from_ticks);
            let is_held = |item: &Item| until.is_none_or(|until| item.start < until);
            let mut held = std::iter::from_fn(|| items.next_if(|item| item.as_ref().map_or(true, is_held)));
            parts.push((thread, write(&mut held)?));
        }
        // What stands there now is the failure to read it.
        match items.next() {
            Some(Err(error)) => Err(error),
            _ => Ok(parts),
        }
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
