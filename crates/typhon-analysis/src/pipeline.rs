//! Decoding blocks on several threads, with the results in file order.
//!
//! ```text
//!  worker ─┐  lock: read the next blocks ─ unlock ─ decode, map ─┐
//!  worker ─┤                                                     ├─▶ caller's thread: order, verdicts, deliver
//!  worker ─┘                                                     ┘
//! ```
//!
//! Workers take turns at reading, so that a pipe and a file are the same to them, and decode in parallel. The calling
//! thread puts the results in order and through the [`Sequencer`], where checksums are judged, and hands each one on.
//!
//! **Invariants**
//! - Results, verdicts, totals and notices do not depend on the number of threads.
//! - Memory is bounded: workers wait while [`PipelineOptions::window`] batches, or 16 MiB of records, are unfinished or not
//!   yet in order. A block of 64 KiB can unpack to 16 MiB.
//! - The calling thread never waits for a worker that is gone: one that panics stops the others, and the panic goes on
//!   in the caller.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use typhon_trace::TraceError;
use typhon_trace::reader::{
    BlockBuffer, BlockFeed, BlockSummary, Outcome, ReadOptions, Sequenced, Sequencer, Source,
};

/// How a pipeline runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipelineOptions {
    /// Threads that decode, besides the calling one.
    pub threads: NonZeroUsize,
    /// Treatment of damage.
    pub read: ReadOptions,
    /// Stored bytes that a worker takes at a time. Recorders that drain often write blocks of a single record; taken
    /// one by one, handing them over would cost more than decoding them. 0 takes single blocks, which keeps the delay
    /// short on a live stream.
    pub batch_bytes: usize,
    /// Batches that may be in work or waiting for their turn.
    pub window: NonZeroUsize,
}

impl PipelineOptions {
    const BATCH_BYTES: usize = 128 * 1024;

    /// For a number of threads, with a batch size that suits files.
    pub fn new(threads: NonZeroUsize) -> Self {
        let window = threads.saturating_mul(NonZeroUsize::MIN.saturating_add(3));
        Self { threads, read: ReadOptions::default(), batch_bytes: Self::BATCH_BYTES, window }
    }
}

impl Default for PipelineOptions {
    /// As many threads as the machine has.
    fn default() -> Self {
        Self::new(thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }
}

/// Most blocks in a batch, however small they are.
const MAX_BATCH_BLOCKS: usize = 256;

/// Maps every block of a trace on several threads and delivers the results in file order on the calling thread.
///
/// `worker` is called once per thread and makes the function that maps blocks, so that a thread can keep buffers of
/// its own. It sees every block that was read, damaged ones included (see [`BlockBuffer::summary`]); `deliver` sees
/// the verdict as well and must not use results with [`Sequenced::delivered`] false.
///
/// `Ok(None)` when `deliver` broke off.
///
/// # Errors
/// What reading the trace or `deliver` returns; blocks before the fault have been delivered.
pub fn map_blocks<S, T, E, W, F>(
    feed: BlockFeed<S>,
    options: PipelineOptions,
    worker: W,
    mut deliver: impl FnMut(Sequenced<T>) -> Result<ControlFlow<()>, E>,
) -> Result<Option<Outcome>, E>
where
    S: Source + Send,
    T: Send,
    E: From<TraceError>,
    W: Fn() -> F + Sync,
    F: FnMut(&BlockBuffer) -> T,
{
    let sequencer = feed.preamble().sequencer(options.read);
    let turns = Turns::new(feed, options);
    let (sender, results) = channel();
    let sequencer = thread::scope(|scope| {
        for _ in 0..options.threads.get() {
            let (sender, turns, worker) = (sender.clone(), &turns, &worker);
            scope.spawn(move || work(turns, worker(), &sender));
        }
        drop(sender);
        let _stop = StopOnDrop(&turns);
        in_order(&results, &turns, sequencer, &mut deliver)
    })?;
    match sequencer {
        Some(sequencer) => Ok(Some(turns.into_feed().finish(sequencer)?)),
        None => Ok(None),
    }
}

/// Unpacked bytes in work or waiting for their turn before no further batch is read.
const MAX_UNPACKED_BYTES: u64 = 16 << 20;

/// One batch of results, or the fault that ended reading.
struct Batch<T> {
    turn: u64,
    unpacked_bytes: u64,
    blocks: Result<Vec<(BlockSummary, T)>, TraceError>,
}

/// Who may read next, and how far ahead.
struct Turns<S> {
    state: Mutex<TurnState<S>>,
    moved: Condvar,
    window: u64,
    batch_bytes: usize,
}

struct TurnState<S> {
    feed: BlockFeed<S>,
    next_turn: u64,
    /// Turns whose results are in order.
    settled: u64,
    /// Size of the records in all other turns.
    unsettled_bytes: u64,
    stop: bool,
}

impl<S: Source> Turns<S> {
    fn new(feed: BlockFeed<S>, options: PipelineOptions) -> Self {
        let state = TurnState { feed, next_turn: 0, settled: 0, unsettled_bytes: 0, stop: false };
        Self {
            state: Mutex::new(state),
            moved: Condvar::new(),
            window: options.window.get() as u64,
            batch_bytes: options.batch_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, TurnState<S>> {
        // A poisoned lock means that a reader panicked; the panic is passed on when the threads are joined.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the next batch into `buffers`; the number of its turn, or `None` when there is nothing left to do.
    fn take(
        &self,
        buffers: &mut Vec<BlockBuffer>,
        used: &mut usize,
    ) -> Option<(u64, Result<(), TraceError>)> {
        let mut state = self.lock();
        let is_full = |state: &TurnState<S>| {
            state.next_turn >= state.settled + self.window || state.unsettled_bytes >= MAX_UNPACKED_BYTES
        };
        while !state.stop && is_full(&state) {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stop {
            return None;
        }
        let turn = state.next_turn;
        state.next_turn += 1;
        let result = fill(&mut state.feed, buffers, used, self.batch_bytes);
        state.unsettled_bytes += unpacked_bytes(&buffers[..*used]);
        // Nothing more to read: the others stop once they are done with what they have.
        state.stop = !matches!(result, Ok(Filled::Full));
        Some((turn, result.map(|_| ())))
    }

    fn settle(&self, unpacked_bytes: u64) {
        let mut state = self.lock();
        state.settled += 1;
        state.unsettled_bytes -= unpacked_bytes;
        drop(state);
        self.moved.notify_all();
    }

    fn stop(&self) {
        self.lock().stop = true;
        self.moved.notify_all();
    }

    fn into_feed(self) -> BlockFeed<S> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).feed
    }
}

/// What a block adds to a batch: its stored bytes, or more when it unpacks to a multiple of the usual.
fn work_bytes(block: &BlockBuffer) -> usize {
    const USUAL_RATIO: usize = 4;
    block.stored().len().max(unpacked_bytes(std::slice::from_ref(block)) as usize / USUAL_RATIO)
}

/// What the records of these blocks take, as their headers state.
fn unpacked_bytes(blocks: &[BlockBuffer]) -> u64 {
    let summaries = blocks.iter().filter_map(BlockBuffer::summary);
    summaries.map(|summary| u64::from(summary.entry.header.uncompressed_bytes)).sum()
}

enum Filled {
    Full,
    End,
}

fn fill<S: Source>(
    feed: &mut BlockFeed<S>,
    buffers: &mut Vec<BlockBuffer>,
    used: &mut usize,
    batch_bytes: usize,
) -> Result<Filled, TraceError> {
    let mut bytes = 0;
    *used = 0;
    loop {
        if *used == buffers.len() {
            buffers.push(BlockBuffer::new());
        }
        if !feed.next_block(&mut buffers[*used])? {
            return Ok(Filled::End);
        }
        bytes += work_bytes(&buffers[*used]);
        *used += 1;
        if bytes >= batch_bytes || *used == MAX_BATCH_BLOCKS {
            return Ok(Filled::Full);
        }
    }
}

/// Stops the other threads however this one ends.
struct StopOnDrop<'a, S: Source>(&'a Turns<S>);

impl<S: Source> Drop for StopOnDrop<'_, S> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Like [`StopOnDrop`], for workers, whose normal end is none of the others' business.
struct StopOnPanic<'a, S: Source>(&'a Turns<S>);

impl<S: Source> Drop for StopOnPanic<'_, S> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

fn work<S: Source, T>(turns: &Turns<S>, mut map: impl FnMut(&BlockBuffer) -> T, results: &Sender<Batch<T>>) {
    let _stop = StopOnPanic(turns);
    let mut buffers = Vec::new();
    let mut used = 0;
    while let Some((turn, read)) = turns.take(&mut buffers, &mut used) {
        let unpacked_bytes = unpacked_bytes(&buffers[..used]);
        let mut blocks = Vec::with_capacity(used);
        for buffer in &mut buffers[..used] {
            buffer.decode();
            let mapped = map(buffer);
            blocks.extend(buffer.summary().cloned().map(|summary| (summary, mapped)));
        }
        // Blocks before a read fault are results like any other.
        let batches = [Ok(blocks)].into_iter().chain(read.err().map(Err));
        for blocks in batches {
            if results.send(Batch { turn, unpacked_bytes, blocks }).is_err() {
                return;
            }
        }
    }
}

/// Delivers in order until everything is delivered (then gives the sequencer back) or `deliver` breaks off.
fn in_order<S: Source, T, E: From<TraceError>>(
    results: &Receiver<Batch<T>>,
    turns: &Turns<S>,
    mut sequencer: Sequencer<T>,
    deliver: &mut impl FnMut(Sequenced<T>) -> Result<ControlFlow<()>, E>,
) -> Result<Option<Sequencer<T>>, E> {
    let mut early = BTreeMap::new();
    let mut next = 0;
    let mut fault = None;
    for Batch { turn, unpacked_bytes, blocks } in results {
        match blocks {
            Ok(blocks) => drop(early.insert(turn, (unpacked_bytes, blocks))),
            // Reading stops at the first fault, so there is at most one, and it is behind every block.
            Err(error) => fault = Some(error),
        }
        while let Some((unpacked_bytes, blocks)) = early.remove(&next) {
            next += 1;
            turns.settle(unpacked_bytes);
            for (summary, payload) in blocks {
                sequencer.push(summary, payload);
            }
            if drain(&mut sequencer, deliver)?.is_break() {
                return Ok(None);
            }
        }
    }
    sequencer.end_of_blocks();
    if drain(&mut sequencer, deliver)?.is_break() {
        return Ok(None);
    }
    fault.map_or(Ok(Some(sequencer)), |error| Err(error.into()))
}

fn drain<T, E>(
    sequencer: &mut Sequencer<T>,
    deliver: &mut impl FnMut(Sequenced<T>) -> Result<ControlFlow<()>, E>,
) -> Result<ControlFlow<()>, E> {
    while let Some(block) = sequencer.pop() {
        if deliver(block)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
