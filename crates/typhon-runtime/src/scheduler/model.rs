//! A small stage for loom: the real board and the real workers, with systems that write to plain memory, so that every
//! scenario ends with the same questions. Did each system complete once per tick, and each chunk run once? Did every
//! system see what its predecessors did, and the driver what all of them did? Does everybody get home?

#![allow(unsafe_code, reason = "loom checks what is claimed here")]

pub use super::sync::{Fault, plant};

use super::board::Board;
use super::claim::{ChunkClaims, Claim, Epoch};
use super::topology::Topology;
use super::wake::Wake;
use super::worker::{Awakening, Chunk, Memory, Told, Turn, Verdict, Work, Worker};
use loom::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a system of a model does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Runs in this many chunks.
    Run(u32),
    /// Is left out.
    Skip,
    /// Runs in two chunks that wait for each other, so that one worker alone would wait for ever.
    Meet,
    /// Runs in this many chunks, of which this one fails.
    FailIn(u32, u32),
}

/// A graph with the systems' deeds, and what became of them. The counters are watched, never steering.
pub struct Model {
    board: Board,
    deeds: Deeds,
}

struct Deeds {
    systems: Vec<Deed>,
    predecessors: Vec<Vec<u16>>,
}

struct Deed {
    does: Does,
    /// What the chunks write, unprotected.
    written: Vec<Written>,
    runs: Vec<AtomicU32>,
    completions: AtomicU32,
    /// Chunks that have come to a [`Does::Meet`], over all ticks.
    met: (loom::sync::Mutex<u32>, loom::sync::Condvar),
}

/// Plain memory, of which loom sees every access.
#[derive(Default)]
struct Written(UnsafeCell<u32>);

// SAFETY: loom reports accesses that are not ordered.
unsafe impl Sync for Written {}

impl Written {
    fn look(&self) {
        self.0.with(|_| ());
    }

    fn change(&self) {
        self.0.with_mut(|_| ());
    }
}

const FAILED: u8 = 6;
const DEPENDENCY_FAILED: u8 = 7;
const ABORTED: u8 = 8;
const LEFT_OUT: u8 = 1;

impl Model {
    /// One track of systems in topological order, with edges from lower numbers to higher ones.
    pub fn new(systems: &[Does], edges: &[(u16, u16)], workers: usize) -> Arc<Self> {
        Self::build(systems, edges, workers, false)
    }

    /// As [`Model::new`], where the first failure aborts the tick.
    pub fn aborting(systems: &[Does], edges: &[(u16, u16)], workers: usize) -> Arc<Self> {
        Self::build(systems, edges, workers, true)
    }

    fn build(systems: &[Does], edges: &[(u16, u16)], workers: usize, aborts: bool) -> Arc<Self> {
        let count = systems.len() as u16;
        let successors = |system| edges.iter().filter(|edge| edge.0 == system).map(|edge| edge.1).collect();
        let topology = Topology::new(
            (0..count).collect(),
            std::iter::once(0..systems.len()),
            successors,
            |_| false,
            |_| true,
        );
        let predecessors = |system| edges.iter().filter(|edge| edge.1 == system).map(|edge| edge.0).collect();
        let deeds = Deeds {
            systems: systems.iter().map(|&does| Deed::new(does)).collect(),
            predecessors: (0..count).map(predecessors).collect(),
        };
        Arc::new(Self { board: Board::new(topology, workers, aborts), deeds })
    }

    /// Runs ticks as the driver, and ends the helpers' lives.
    pub fn drive(&self, ticks: u32) {
        let mut memory = Memory::new(&self.board, 0, ());
        let mut worker = Worker::new(&self.board, &self.deeds, &mut memory);
        let mut epoch = Epoch::NONE;
        for tick in 1..=ticks {
            epoch = epoch.next();
            worker.enter(epoch);
            self.board.open(epoch, Wake::All);
            assert!(worker.run_track(&self.board.topology.tracks()[0]));
            self.board.close();
            self.check(tick);
        }
        self.board.stop();
    }

    /// A helper's life.
    pub fn serve(&self, id: usize) {
        Worker::new(&self.board, &self.deeds, &mut Memory::new(&self.board, id, ())).serve();
    }

    /// Every system is through for the tick that ended.
    fn check(&self, tick: u32) {
        for (number, deed) in self.deeds.systems.iter().enumerate() {
            let completions = deed.completions.load(Ordering::Relaxed);
            assert_eq!(completions, tick, "system {number} completed {completions} times in {tick} ticks");
            let outcome = self.board.systems[number].outcome();
            let is_expected = match deed.does {
                Does::Run(_) | Does::Meet => [0, DEPENDENCY_FAILED, ABORTED].contains(&outcome),
                Does::Skip => [LEFT_OUT, DEPENDENCY_FAILED, ABORTED].contains(&outcome),
                Does::FailIn(..) => [FAILED, DEPENDENCY_FAILED, ABORTED].contains(&outcome),
            };
            assert!(is_expected, "system {number} ended with {outcome}");
            self.check_runs(number, deed, outcome, tick);
        }
    }

    fn check_runs(&self, number: usize, deed: &Deed, outcome: u8, tick: u32) {
        let runs: Vec<_> = deed.runs.iter().map(|runs| runs.load(Ordering::Relaxed)).collect();
        let runs_all = outcome == 0;
        let is_right = |&runs: &u32| if runs_all { runs == tick } else { runs <= tick };
        assert!(runs.iter().all(is_right), "chunks of system {number} ran {runs:?} times in {tick} ticks");
        if let Does::FailIn(_, chunk) = deed.does {
            assert!(outcome != FAILED || runs[chunk as usize] >= 1);
        }
        // The driver sees what all chunks did.
        deed.written.iter().for_each(Written::look);
        let has_failed_predecessor = self.deeds.predecessors[number]
            .iter()
            .any(|&predecessor| Deeds::is_failure(self.board.systems[usize::from(predecessor)].outcome()));
        assert_eq!(
            outcome == DEPENDENCY_FAILED,
            has_failed_predecessor && outcome != ABORTED,
            "system {number}"
        );
    }
}

impl Deed {
    fn new(does: Does) -> Self {
        let chunks = match does {
            Does::Run(chunks) | Does::FailIn(chunks, _) => chunks,
            Does::Meet => 2,
            Does::Skip => 0,
        };
        Self {
            does,
            written: (0..chunks).map(|_| Written::default()).collect(),
            runs: (0..chunks).map(|_| AtomicU32::new(0)).collect(),
            completions: AtomicU32::new(0),
            met: (loom::sync::Mutex::new(0), loom::sync::Condvar::new()),
        }
    }
}

impl Deed {
    /// Waits until both chunks are here.
    fn meet(&self) {
        let (count, changed) = &self.met;
        let mut arrived = count.lock().expect("no panic under the lock");
        *arrived += 1;
        changed.notify_all();
        while *arrived % 2 == 1 {
            arrived = changed.wait(arrived).expect("no panic under the lock");
        }
    }
}

impl Deeds {
    fn look_at_predecessors(&self, system: u16) {
        for &predecessor in &self.predecessors[usize::from(system)] {
            self.systems[usize::from(predecessor)].written.iter().for_each(Written::look);
        }
    }
}

impl Work for Deeds {
    type Local = ();

    fn turn(&self, (): &mut (), system: u16, turn: Turn) -> Verdict {
        self.look_at_predecessors(system);
        let deed = &self.systems[usize::from(system)];
        match deed.does {
            _ if turn.is_aborted => Verdict::Skip(ABORTED),
            _ if turn.predecessor_failed => Verdict::Skip(DEPENDENCY_FAILED),
            Does::Run(chunks) | Does::FailIn(chunks, _) => Verdict::Run(chunks),
            Does::Meet => Verdict::Run(2),
            Does::Skip => Verdict::Skip(LEFT_OUT),
        }
    }

    fn enter(&self, (): &mut (), _epoch: Epoch) {}
    fn track_begins(&self, (): &mut ()) {}
    fn claimed<const ALONE: bool>(&self, (): &mut (), _chunk: Chunk) {}

    fn run(&self, (): &mut (), chunk: Chunk, _is_last_claim: bool) -> bool {
        self.look_at_predecessors(chunk.system);
        let deed = &self.systems[usize::from(chunk.system)];
        let index = chunk.chunk as usize;
        deed.written[index].change();
        deed.runs[index].fetch_add(1, Ordering::Relaxed);
        if deed.does == Does::Meet {
            deed.meet();
        }
        !matches!(deed.does, Does::FailIn(_, failing) if failing == chunk.chunk)
    }

    fn alone(&self, _system: u16, _chunks: u32, run: impl FnOnce()) {
        run();
    }

    fn completed(&self, (): &mut (), system: u16, _outcome: u8) {
        let deed = &self.systems[usize::from(system)];
        deed.written.iter().for_each(Written::look);
        deed.completions.fetch_add(1, Ordering::Relaxed);
    }

    fn told(&self, (): &mut (), _system: u16, _told: Told) {}
    fn idle_begins(&self, (): &mut ()) {}
    fn idle_ends(&self, (): &mut (), _looks: u32) {}
    fn sleep_begins(&self, (): &mut ()) {}
    fn sleep_ends(&self, (): &mut (), _awakening: Awakening) {}

    fn gives_up(&self, (): &mut (), _progress: u64) -> bool {
        false
    }

    fn is_worth_waking(&self, _system: u16) -> bool {
        true
    }

    fn is_failure(outcome: u8) -> bool {
        [FAILED, DEPENDENCY_FAILED, ABORTED].contains(&outcome)
    }

    const FAILED: u8 = FAILED;
    const ABORTED: u8 = ABORTED;
}

/// The claims of one system alone, with what its chunks write.
pub struct Claims {
    claims: ChunkClaims,
    written: Vec<Written>,
    runs: Vec<AtomicU32>,
    /// In the order in which the end of a tick is known to all.
    completions: loom::sync::atomic::AtomicU32,
}

impl Claims {
    /// A system of at most this many chunks.
    pub fn new(chunks: usize) -> Arc<Self> {
        Arc::new(Self {
            claims: ChunkClaims::new(),
            written: (0..chunks).map(|_| Written::default()).collect(),
            runs: (0..chunks).map(|_| AtomicU32::new(0)).collect(),
            completions: loom::sync::atomic::AtomicU32::new(0),
        })
    }

    /// Publishes chunks in the tick of this number.
    pub fn publish(&self, tick: u32, chunks: u32) {
        self.written.iter().for_each(Written::change);
        self.claims.publish(epoch(tick), chunks);
    }

    /// Claims and runs chunks of the tick until none is left; the failing one drains. Returns the claims.
    pub fn work(&self, tick: u32, failing: Option<u32>) -> Vec<u32> {
        std::iter::from_fn(|| self.work_once(tick, failing)).collect()
    }

    /// Claims and runs one chunk.
    pub fn work_once(&self, tick: u32, failing: Option<u32>) -> Option<u32> {
        let Claim { chunk, .. } = self.claims.claim(epoch(tick))?;
        self.written[chunk as usize].change();
        self.runs[chunk as usize].fetch_add(1, Ordering::Relaxed);
        let drained = if failing == Some(chunk) { self.claims.drain(epoch(tick)) } else { 0 };
        if self.claims.finish(1 + drained) {
            self.written.iter().for_each(Written::change);
            self.completions.fetch_add(1, Ordering::AcqRel);
        }
        Some(chunk)
    }

    /// Completions so far.
    pub fn completions(&self) -> u32 {
        self.completions.load(Ordering::Acquire)
    }

    /// How often each chunk ran.
    pub fn runs(&self) -> Vec<u32> {
        self.runs.iter().map(|runs| runs.load(Ordering::Relaxed)).collect()
    }
}

fn epoch(tick: u32) -> Epoch {
    (0..tick).fold(Epoch::NONE, |epoch, _| epoch.next())
}
