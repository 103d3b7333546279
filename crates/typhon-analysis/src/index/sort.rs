//! The items of all lanes, sorted in bounded memory.
//!
//! Items are collected by key. When too many wait, those of every key are sorted and written as a *run* to a temporary
//! file, packed like the groups of the index. Reading a key merges its runs. Recordings are nearly in order of time, so
//! runs hardly overlap, and merging them is little more than reading one after the other.

use super::item::{Item, Key};
use super::packed::{self, unzigzag, zigzag};
use super::store::{Piece, Pieces, Store, StoreWriter, damaged};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Items of a piece of a run.
const PIECE_ITEMS: usize = 1_024;
/// Bytes of an item in memory.
pub(crate) const ITEM_BYTES: usize = size_of::<(Key, Item)>();

/// Collects items in file order.
#[derive(Debug)]
pub(crate) struct Sorter {
    pending: BTreeMap<Key, Vec<Item>>,
    waiting: usize,
    waiting_max: usize,
    runs: BTreeMap<Key, Vec<Run>>,
    spill: Option<StoreWriter>,
}

/// A sorted part of the items of a key.
type Run = Vec<(Piece, u32)>;

impl Sorter {
    /// Keeps about `memory_bytes` in memory.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        let waiting_max = (memory_bytes / ITEM_BYTES).max(PIECE_ITEMS);
        Self { pending: BTreeMap::new(), waiting: 0, waiting_max, runs: BTreeMap::new(), spill: None }
    }

    /// Adds items of a key.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub(crate) fn extend(&mut self, key: Key, items: Vec<Item>) -> io::Result<()> {
        self.waiting += items.len();
        self.pending.entry(key).or_default().extend_from_slice(&items);
        if self.waiting >= self.waiting_max { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(StoreWriter::to_file(tempfile::tempfile()?, 0)?),
        };
        let write_run = |_: Key, mut items: Vec<Item>| {
            items.sort_by(Item::compare);
            let pieces = items.chunks(PIECE_ITEMS).map(|part| Ok((write(part, spill)?, part.len() as u32)));
            pieces.collect::<io::Result<Run>>()
        };
        for (key, run) in for_each_key(std::mem::take(&mut self.pending).into_iter().collect(), write_run)? {
            self.runs.entry(key).or_default().push(run);
        }
        self.waiting = 0;
        Ok(())
    }

    /// No more items come.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub(crate) fn finish(self) -> io::Result<Sorted> {
        let spill = self.spill.map(StoreWriter::finish).transpose()?.map(|(store, _)| store);
        Ok(Sorted { pending: self.pending, runs: self.runs, spill })
    }
}

/// Works on the items of every key, on as many threads as the machine has.
///
/// # Errors
/// What `work` returns.
pub(crate) fn for_each_key<R: Send>(
    mut keys: Vec<(Key, Vec<Item>)>,
    work: impl Fn(Key, Vec<Item>) -> io::Result<R> + Sync,
) -> io::Result<BTreeMap<Key, R>> {
    // The largest come first, so that none of them is alone at the end; it is a guess for keys with runs.
    keys.sort_by_key(|(_, items)| items.len());
    let threads = thread::available_parallelism().map_or(1, |count| count.get()).min(keys.len().max(1));
    let queue = Mutex::new(keys);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let run = || {
        let mut done = Vec::new();
        while let Some((key, items)) = next() {
            done.push((key, work(key, items)?));
        }
        Ok::<_, io::Error>(done)
    };
    let results: Vec<io::Result<Vec<(Key, R)>>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let mut all = BTreeMap::new();
    for result in results {
        all.extend(result?);
    }
    Ok(all)
}

/// All items, by key.
#[derive(Debug)]
pub(crate) struct Sorted {
    pending: BTreeMap<Key, Vec<Item>>,
    runs: BTreeMap<Key, Vec<Run>>,
    spill: Option<Store>,
}

impl Sorted {
    /// The keys that have items, in order, each with what waits for it in memory.
    pub(crate) fn take_pending(&mut self) -> Vec<(Key, Vec<Item>)> {
        let mut keys: BTreeMap<Key, Vec<Item>> = self.runs.keys().map(|key| (*key, Vec::new())).collect();
        keys.append(&mut self.pending);
        keys.into_iter().collect()
    }

    /// The items of a key in order of nesting.
    pub(crate) fn merge(&self, key: Key, mut pending: Vec<Item>) -> Merge<'_> {
        pending.sort_by(Item::compare);
        let runs = self.runs.get(&key).map_or(&[][..], Vec::as_slice);
        let mut sources: Vec<Source<'_>> =
            runs.iter().map(|run| Source { rest: run, ..Source::default() }).collect();
        pending.reverse();
        sources.push(Source { rest: &[], held: pending });
        Merge {
            spill: self.spill.as_ref(),
            sources,
            current: None,
            next_best: None,
            scratch: Default::default(),
        }
    }
}

/// What is left of a run.
#[derive(Debug, Default)]
struct Source<'s> {
    rest: &'s [(Piece, u32)],
    /// Last first.
    held: Vec<Item>,
}

/// Merges runs.
pub(crate) struct Merge<'s> {
    spill: Option<&'s Store>,
    sources: Vec<Source<'s>>,
    /// The source that is being read: it holds the smallest item.
    current: Option<usize>,
    /// The smallest item of the other sources.
    next_best: Option<Item>,
    scratch: (Vec<u8>, Vec<u64>),
}

impl Merge<'_> {
    /// Makes sure that a source holds an item, if it has any left.
    fn fill(&mut self, source: usize) -> io::Result<()> {
        let Source { rest, held } = &mut self.sources[source];
        if held.is_empty()
            && let (Some(((piece, count), after)), Some(spill)) = (rest.split_first(), self.spill)
        {
            read(*piece, *count, spill, &mut self.scratch, held)?;
            *rest = after;
        }
        Ok(())
    }

    fn choose(&mut self) -> io::Result<()> {
        (self.current, self.next_best) = (None, None);
        let mut best: Option<Item> = None;
        for source in 0..self.sources.len() {
            self.fill(source)?;
            let Some(first) = self.sources[source].held.last().copied() else { continue };
            if best.is_none_or(|best| first.compare(&best).is_lt()) {
                self.next_best = best;
                (best, self.current) = (Some(first), Some(source));
            } else if self.next_best.is_none_or(|next| first.compare(&next).is_lt()) {
                self.next_best = Some(first);
            }
        }
        Ok(())
    }

    fn step(&mut self) -> io::Result<Option<Item>> {
        if self.current.is_none() {
            self.choose()?;
        }
        let Some(current) = self.current else { return Ok(None) };
        let item = self.sources[current].held.pop();
        self.fill(current)?;
        let is_still_best = match (self.sources[current].held.last(), &self.next_best) {
            (Some(next), Some(other)) => next.compare(other).is_lt(),
            (Some(_), None) => true,
            (None, _) => false,
        };
        if !is_still_best {
            self.current = None;
        }
        Ok(item)
    }
}

impl Iterator for Merge<'_> {
    type Item = io::Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

fn write(items: &[Item], spill: &StoreWriter) -> io::Result<Piece> {
    let mut bytes = Vec::with_capacity(items.len() * 16);
    let mut column = Vec::with_capacity(items.len());
    let mut put = |value: &mut dyn FnMut(&Item) -> u64| {
        column.clear();
        column.extend(items.iter().map(value));
        packed::encode(&column, &mut bytes);
    };
    let (mut start, mut ordinal, mut span_id) = (0i64, 0u64, 0u64);
    put(&mut |item| zigzag(item.start.wrapping_sub(std::mem::replace(&mut start, item.start))));
    put(&mut |item| zigzag(item.length));
    put(&mut |item| u64::from(item.name) | u64::from(item.flags) << 16);
    put(&mut |item| zigzag(item.ordinal.wrapping_sub(std::mem::replace(&mut ordinal, item.ordinal)) as i64));
    put(&mut |item| zigzag(item.span_id.wrapping_sub(std::mem::replace(&mut span_id, item.span_id)) as i64));
    spill.append(&bytes)
}

/// Reads a piece of a run, the last item first.
fn read(
    piece: Piece,
    count: u32,
    spill: &Store,
    (bytes, column): &mut (Vec<u8>, Vec<u64>),
    items: &mut Vec<Item>,
) -> io::Result<()> {
    spill.read(piece, bytes)?;
    let empty = Item { start: 0, length: 0, span_id: 0, ordinal: 0, name: 0, flags: 0 };
    items.clear();
    items.resize(count as usize, empty);
    let mut rest = bytes.as_slice();
    let mut take = |set: &mut dyn FnMut(&mut Item, u64)| {
        rest = packed::decode(rest, items.len(), column).map_err(|_| damaged())?;
        items.iter_mut().zip(column.iter()).for_each(|(item, value)| set(item, *value));
        Ok::<_, io::Error>(())
    };
    let (mut start, mut ordinal, mut span_id) = (0i64, 0u64, 0u64);
    take(&mut |item, step| {
        start = start.wrapping_add(unzigzag(step));
        item.start = start;
    })?;
    take(&mut |item, length| item.length = unzigzag(length))?;
    take(&mut |item, packed| (item.name, item.flags) = (packed as u16, (packed >> 16) as u8))?;
    take(&mut |item, step| {
        ordinal = ordinal.wrapping_add(unzigzag(step) as u64);
        item.ordinal = ordinal;
    })?;
    take(&mut |item, step| {
        span_id = span_id.wrapping_add(unzigzag(step) as u64);
        item.span_id = span_id;
    })?;
    items.reverse();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items() -> impl Strategy<Value = Vec<(Key, Item)>> {
        let item = (0u8..3, any::<i64>(), 0i64..9_000, any::<u64>(), any::<u16>(), 0u8..8);
        let nearby = (0u8..3, 0i64..50, 0i64..90, 0u64..5, any::<u16>(), 0u8..8);
        let make = |(slot, start, length, span_id, name, flags)| {
            (Key::Spans(slot), Item { start, length, span_id, ordinal: 0, name, flags })
        };
        prop::collection::vec(prop_oneof![item.prop_map(make), nearby.prop_map(make)], 0..4_000).prop_map(
            |mut items| {
                items.iter_mut().zip(0..).for_each(|((_, item), ordinal)| item.ordinal = ordinal);
                items
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn what_was_spilled_comes_back_in_order(items in items()) {
            for memory_bytes in [0, usize::MAX] {
                let mut sorter = Sorter::new(memory_bytes);
                for (key, item) in &items {
                    sorter.extend(*key, vec![*item]).expect("writes");
                }
                let mut sorted = sorter.finish().expect("writes");
                for (key, pending) in sorted.take_pending() {
                    let mut expected: Vec<Item> =
                        items.iter().filter(|(of, _)| *of == key).map(|(_, item)| *item).collect();
                    expected.sort_by(Item::compare);
                    let merged: io::Result<Vec<Item>> = sorted.merge(key, pending).collect();
                    prop_assert_eq!(merged.expect("reads"), expected);
                }
            }
        }
    }
}
