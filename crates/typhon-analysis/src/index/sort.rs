//! The items of all lanes, sorted in bounded memory.
//!
//! Items are collected by key. When too many wait, those of every key are sorted and written as a *run* to a temporary
//! file, packed like the groups of the index, while others are collected. Reading a key merges its runs. Recordings are
//! nearly in order of time, so runs hardly overlap, and merging them is little more than reading one after the other.

use super::item::{Item, Key};
use super::packed::{Packer, Unpacker, unzigzag, zigzag};
use super::store::{Piece, Pieces, Store, StoreWriter};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Items of a piece of a run.
const PIECE_ITEMS: usize = 1_024;
/// Bytes of an item in memory.
pub(crate) const ITEM_BYTES: usize = size_of::<(Key, Item)>();

/// Collects items in file order.
///
/// There are two lists of every key: one is filled while the other is written. They keep their room from one run to the
/// next: getting it from the system anew costs more than sorting.
#[derive(Debug)]
pub(crate) struct Sorter {
    pending: BTreeMap<Key, Vec<Item>>,
    /// Items in the lists.
    waiting: usize,
    waiting_max: usize,
    /// Items that the lists have room for, at most twice `waiting_max` and what one list grows by.
    room: usize,
    runs: BTreeMap<Key, Vec<Run>>,
    writing: Option<JoinHandle<io::Result<Written>>>,
}

/// A sorted part of the items of a key.
type Run = Vec<(Piece, u32)>;

/// Runs that have been written, with the lists they were in.
#[derive(Debug)]
struct Written {
    spill: StoreWriter,
    runs: BTreeMap<Key, (Run, Vec<Item>)>,
}

impl Sorter {
    /// Keeps about `memory_bytes` in memory, in lists that may have room for twice as much.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        let waiting_max = (memory_bytes / ITEM_BYTES / 2).max(PIECE_ITEMS);
        let (pending, runs) = (BTreeMap::new(), BTreeMap::new());
        Self { pending, waiting: 0, waiting_max, room: 0, runs, writing: None }
    }

    /// Adds items of a key.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub(crate) fn extend(&mut self, key: Key, items: impl ExactSizeIterator<Item = Item>) -> io::Result<()> {
        self.waiting += items.len();
        let list = self.pending.entry(key).or_default();
        let room = list.capacity();
        list.extend(items);
        self.room += list.capacity() - room;
        let is_full = self.waiting >= self.waiting_max || self.room >= 2 * self.waiting_max;
        if is_full { self.spill() } else { Ok(()) }
    }

    /// Hands on what waits, once the runs before are written.
    fn spill(&mut self) -> io::Result<()> {
        let full = std::mem::take(&mut self.pending);
        (self.waiting, self.room) = (0, 0);
        let spill = match self.written()? {
            Some(spill) => spill,
            None => StoreWriter::to_file(tempfile::tempfile()?, 0)?,
        };
        self.writing = Some(thread::Builder::new().spawn(move || write_runs(full, spill))?);
        Ok(())
    }

    /// Waits for the runs that are being written, and takes back their lists.
    fn written(&mut self) -> io::Result<Option<StoreWriter>> {
        let Some(writing) = self.writing.take() else { return Ok(None) };
        let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let Written { spill, runs } = written?;
        for (key, (run, items)) in runs {
            self.runs.entry(key).or_default().push(run);
            self.keep_room(key, items);
        }
        Ok(Some(spill))
    }

    /// Keeps the list of a key if it was used well, and if enough is left for the lists of other keys to grow.
    fn keep_room(&mut self, key: Key, mut items: Vec<Item>) {
        let room = self.room + items.capacity();
        if 2 * items.len() >= items.capacity() && 2 * room <= 3 * self.waiting_max {
            items.clear();
            self.room = room;
            self.pending.insert(key, items);
        }
    }

    /// No more items come.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub(crate) fn finish(mut self) -> io::Result<Sorted> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|_, items| !items.is_empty());
        let spill = self.written()?.map(StoreWriter::finish).transpose()?.map(|(store, _)| store);
        Ok(Sorted { pending, runs: std::mem::take(&mut self.runs), spill })
    }
}

/// Whoever breaks off goes when the memory of the items is free.
impl Drop for Sorter {
    fn drop(&mut self) {
        if let Some(writing) = self.writing.take() {
            let _ = writing.join();
        }
    }
}

/// Sorts and writes the items of every key.
fn write_runs(full: BTreeMap<Key, Vec<Item>>, spill: StoreWriter) -> io::Result<Written> {
    let write_run = |Waiting { mut items, .. }: Waiting| {
        sort(&mut items);
        let pieces = items.chunks(PIECE_ITEMS).map(|part| Ok((write(part, &spill)?, part.len() as u32)));
        Ok((pieces.collect::<io::Result<Run>>()?, items))
    };
    let full = full.into_iter().filter(|(_, items)| !items.is_empty());
    let runs =
        for_each_key(full.map(|(key, items)| Waiting { key, in_runs: 0, items }).collect(), write_run)?;
    Ok(Written { spill, runs })
}

/// Sorts items in the order of nesting. They are nearly sorted already: a thread records its spans when they end, so that
/// only those come late that have others inside, and they have to go back over those only.
pub(super) fn sort(items: &mut [Item]) {
    let mut moves_left = MOVES_PER_ITEM * items.len();
    for at in 1..items.len() {
        let item = items[at];
        if item.compare(&items[at - 1]).is_ge() {
            continue;
        }
        let place = first_after(&items[..at], &item);
        let Some(left) = moves_left.checked_sub(at - place) else {
            return items.sort_by(Item::compare);
        };
        moves_left = left;
        items.copy_within(place..at, place + 1);
        items[place] = item;
    }
}

/// Moves of items, for each of them, after which they count as unsorted.
const MOVES_PER_ITEM: usize = 16;

/// The place of the first of the sorted `items` that comes after `item`, looked for from the end with growing steps.
fn first_after(items: &[Item], item: &Item) -> usize {
    let is_before = |other: &Item| other.compare(item).is_le();
    let (mut end, mut step) = (items.len(), 1);
    while end > 0 {
        let from = end.saturating_sub(step);
        if is_before(&items[from]) {
            return from + items[from..end].partition_point(is_before);
        }
        (end, step) = (from, 2 * step);
    }
    0
}

/// The items of a key that wait in memory.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) key: Key,
    pub(crate) items: Vec<Item>,
    /// How many more are in runs.
    in_runs: u64,
}

/// Works on the items of every key, on as many threads as the machine has.
///
/// # Errors
/// What `work` returns.
pub(crate) fn for_each_key<R: Send>(
    mut keys: Vec<Waiting>,
    work: impl Fn(Waiting) -> io::Result<R> + Sync,
) -> io::Result<BTreeMap<Key, R>> {
    // The largest come first, so that none of them is alone at the end.
    keys.sort_by_key(|waiting| waiting.in_runs + waiting.items.len() as u64);
    let threads = thread::available_parallelism().map_or(1, |count| count.get()).min(keys.len().max(1));
    let queue = Mutex::new(keys);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let run = || {
        let mut done = Vec::new();
        while let Some(waiting) = next() {
            done.push((waiting.key, work(waiting)?));
        }
        Ok::<_, io::Error>(done)
    };
    let results: Vec<io::Result<Vec<(Key, R)>>> = thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let own = run();
        let joined = workers.into_iter().map(|worker| worker.join());
        let others = joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        others.chain([own]).collect()
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
    pub(crate) fn take_pending(&mut self) -> Vec<Waiting> {
        let count = |runs: &Vec<Run>| runs.iter().flatten().map(|(_, count)| u64::from(*count)).sum();
        let runs = self.runs.iter();
        let mut keys: BTreeMap<Key, Waiting> = runs
            .map(|(key, runs)| (*key, Waiting { key: *key, items: Vec::new(), in_runs: count(runs) }))
            .collect();
        for (key, items) in std::mem::take(&mut self.pending) {
            keys.entry(key).or_insert(Waiting { key, items: Vec::new(), in_runs: 0 }).items = items;
        }
        keys.into_values().collect()
    }

    /// The items of a key in order of nesting.
    pub(crate) fn merge(&self, Waiting { key, items: mut held, .. }: Waiting) -> Merge<'_> {
        sort(&mut held);
        let runs = self.runs.get(&key).map_or(&[][..], Vec::as_slice);
        let mut sources: Vec<Source<'_>> =
            runs.iter().map(|run| Source { rest: run, ..Source::default() }).collect();
        sources.push(Source { held, ..Source::default() });
        Merge { spill: self.spill.as_ref(), sources, scratch: Default::default() }
    }
}

/// What is left of a run.
#[derive(Debug, Default)]
struct Source<'s> {
    rest: &'s [(Piece, u32)],
    held: Vec<Item>,
    /// How many of those are gone.
    taken: usize,
}

impl Source<'_> {
    fn first(&self) -> Option<&Item> {
        self.held.get(self.taken)
    }
}

/// Merges runs.
pub(crate) struct Merge<'s> {
    spill: Option<&'s Store>,
    sources: Vec<Source<'s>>,
    scratch: (Vec<u8>, Vec<u64>),
}

impl Merge<'_> {
    /// Makes sure that a source holds an item, if it has any left.
    fn fill(&mut self, source: usize) -> io::Result<()> {
        let Source { rest, held, taken } = &mut self.sources[source];
        if *taken == held.len()
            && let (Some(((piece, count), after)), Some(spill)) = (rest.split_first(), self.spill)
        {
            read(*piece, *count, spill, &mut self.scratch, held)?;
            (*rest, *taken) = (after, 0);
        }
        Ok(())
    }

    /// The source that holds the smallest item, and the smallest item of the others.
    fn choose(&mut self) -> io::Result<(Option<usize>, Option<Item>)> {
        let (mut chosen, mut best, mut next_best): (_, Option<Item>, Option<Item>) = (None, None, None);
        for source in 0..self.sources.len() {
            self.fill(source)?;
            let Some(first) = self.sources[source].first().copied() else { continue };
            if best.is_none_or(|best| first.compare(&best).is_lt()) {
                next_best = best;
                (best, chosen) = (Some(first), Some(source));
            } else if next_best.is_none_or(|next| first.compare(&next).is_lt()) {
                next_best = Some(first);
            }
        }
        Ok((chosen, next_best))
    }

    /// The next item.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub(crate) fn first(&mut self) -> io::Result<Option<Item>> {
        let (chosen, _) = self.choose()?;
        Ok(chosen.and_then(|source| self.sources[source].first().copied()))
    }

    /// The next items, as many as come one after the other, that start before `until`. None at the end.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub(crate) fn next_part(&mut self, until: Option<i64>) -> io::Result<&[Item]> {
        let (Some(chosen), next_best) = self.choose()? else { return Ok(&[]) };
        let Source { held, taken, .. } = &mut self.sources[chosen];
        let from = *taken;
        let belongs = |item: &Item| {
            let is_first = next_best.is_none_or(|other| item.compare(&other).is_lt());
            is_first && until.is_none_or(|until| item.start < until)
        };
        let left = &held[from..];
        let count = if left.last().is_some_and(belongs) { left.len() } else { left.partition_point(belongs) };
        // Equal items come from the same record, so it does not matter which of them is first.
        let is_equal = count == 0 && until.is_none_or(|until| left[0].start < until);
        *taken += count + usize::from(is_equal);
        Ok(&held[from..*taken])
    }
}

fn write(items: &[Item], spill: &StoreWriter) -> io::Result<Piece> {
    let mut columns = Packer::new(items, 16);
    let (mut start, mut ordinal, mut span_id) = (0i64, 0u64, 0u64);
    columns.put(|item| zigzag(item.start.wrapping_sub(std::mem::replace(&mut start, item.start))));
    columns.put(|item| zigzag(item.length));
    columns.put(|item| u64::from(item.name) | u64::from(item.flags) << 16);
    columns
        .put(|item| zigzag(item.ordinal.wrapping_sub(std::mem::replace(&mut ordinal, item.ordinal)) as i64));
    columns
        .put(|item| zigzag(item.span_id.wrapping_sub(std::mem::replace(&mut span_id, item.span_id)) as i64));
    spill.append(&columns.finish())
}

/// Reads a piece of a run.
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
    let mut columns = Unpacker::new(bytes, column);
    let (mut start, mut ordinal, mut span_id) = (0i64, 0u64, 0u64);
    columns.take(items, |item, step| {
        start = start.wrapping_add(unzigzag(step));
        item.start = start;
    })?;
    columns.take(items, |item, length| item.length = unzigzag(length))?;
    columns.take(items, |item, packed| (item.name, item.flags) = (packed as u16, (packed >> 16) as u8))?;
    columns.take(items, |item, step| {
        ordinal = ordinal.wrapping_add(unzigzag(step) as u64);
        item.ordinal = ordinal;
    })?;
    columns.take(items, |item, step| {
        span_id = span_id.wrapping_add(unzigzag(step) as u64);
        item.span_id = span_id;
    })?;
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
        #[test]
        fn items_that_come_late_find_their_place(items in items()) {
            let mut items: Vec<Item> = items.into_iter().map(|(_, item)| item).collect();
            let mut expected = items.clone();
            expected.sort_by(Item::compare);
            sort(&mut items);
            prop_assert_eq!(items, expected);
        }
    }

    /// A sorter that goes on writing to a file that takes nothing, as if the disk were full.
    fn on_a_full_disk() -> Sorter {
        let file = tempfile::NamedTempFile::new().expect("made");
        let read_only = std::fs::File::open(file.path()).expect("opens");
        let spill = StoreWriter::to_file(read_only, 0).expect("begins");
        let writing = thread::spawn(move || Ok(Written { spill, runs: BTreeMap::new() }));
        writing_with(writing)
    }

    fn writing_with(writing: JoinHandle<io::Result<Written>>) -> Sorter {
        let mut sorter = Sorter::new(0);
        sorter.writing = Some(writing);
        sorter
    }

    fn random_items(count: u32) -> impl ExactSizeIterator<Item = Item> {
        let item = |ordinal: u32| {
            let any = u64::from(ordinal).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let (start, length) = (any as i64, (any >> 1) as i64);
            Item { start, length, span_id: any, ordinal: ordinal.into(), name: 0, flags: 0 }
        };
        (0..count).map(item)
    }

    #[test]
    fn a_disk_that_is_full_is_told_at_a_later_run_or_at_the_end() {
        let mut sorter = on_a_full_disk();
        let mut runs = (0..100).map(|_| sorter.extend(Key::Spans(1), random_items(2_000)));
        assert!(runs.any(|written| written.is_err()));
        drop(sorter);
        // Less than what is held back on its way to the file.
        let mut sorter = on_a_full_disk();
        sorter.extend(Key::Spans(1), random_items(2_000)).expect("held back");
        assert!(sorter.finish().is_err());
    }

    #[test]
    #[should_panic(expected = "of a run")]
    fn a_panic_while_a_run_is_written_goes_on_in_the_caller() {
        let _ = writing_with(thread::spawn(|| panic!("of a run"))).finish();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn what_was_spilled_comes_back_in_order(items in items()) {
            for memory_bytes in [0, usize::MAX] {
                let mut sorter = Sorter::new(memory_bytes);
                for (key, item) in &items {
                    sorter.extend(*key, std::iter::once(*item)).expect("writes");
                }
                let mut sorted = sorter.finish().expect("writes");
                for waiting in sorted.take_pending() {
                    let key = waiting.key;
                    let mut expected: Vec<Item> =
                        items.iter().filter(|(of, _)| *of == key).map(|(_, item)| *item).collect();
                    expected.sort_by(Item::compare);
                    let (mut merge, mut merged) = (sorted.merge(waiting), Vec::new());
                    // In two halves, as if the thread of the slot had changed.
                    for until in [Some(25), None] {
                        loop {
                            let part = merge.next_part(until).expect("reads");
                            if part.is_empty() {
                                break;
                            }
                            merged.extend_from_slice(part);
                        }
                        let all_before = merged.iter().all(|item| until.is_none_or(|until| item.start < until));
                        prop_assert!(all_before);
                    }
                    prop_assert_eq!(merged, expected);
                }
            }
        }
    }
}
