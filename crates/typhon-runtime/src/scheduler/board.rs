//! What the workers share: which systems wait, which are ready, which are through, and where to sleep.

use super::claim::{ChunkClaims, Epoch};
use super::countdown::Countdown;
use super::ready::ReadySet;
use super::sync::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Fault, Ordering, planted};
use super::topology::Topology;
use super::wake::{Wake, WakeWord};

/// Keeps words that different workers write on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Outcome of a system that is through without anything to say.
pub(crate) const SUCCEEDED: u8 = 0;
/// Did the chunks of a system start? Nobody has decided yet.
const UNDECIDED: u8 = 0;
const STARTED: u8 = 1;
const ABORTED: u8 = 2;

/// One system in the current tick.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct SystemState {
    pub(crate) claims: ChunkClaims,
    /// Predecessors that are not through.
    pub(crate) waits: Countdown,
    /// Place in the ready set.
    rank: AtomicU16,
    /// 0, or the skip reason that says what became of it.
    outcome: AtomicU8,
    start: AtomicU8,
    /// Last tick in which it was released, and in which it was through.
    released_in: AtomicU64,
    completed_in: AtomicU64,
}

impl SystemState {
    /// 0, or why the system did not succeed in this tick.
    pub(crate) fn outcome(&self) -> u8 {
        self.outcome.load(Ordering::Relaxed)
    }

    pub(crate) fn set_outcome(&self, outcome: u8) {
        self.outcome.store(outcome, Ordering::Relaxed);
    }

    /// A new tick's turn for this system; nothing of it is published yet.
    #[inline(always)]
    pub(crate) fn begin(&self, epoch: Epoch, outcome: u8) {
        self.set_outcome(outcome);
        self.start.store(UNDECIDED, Ordering::Relaxed);
        self.released_in.store(epoch.get(), Ordering::Relaxed);
    }

    /// May a chunk run? Asked for every chunk after it was claimed, and the same for all chunks of the tick: what has
    /// started finishes, and what has not when the tick is aborted never does.
    #[inline(always)]
    pub(crate) fn may_run(&self, is_aborted: bool, chunks: u32) -> bool {
        if chunks == 1 {
            return !is_aborted;
        }
        match self.start.load(Ordering::Relaxed) {
            UNDECIDED => {
                let mine = if is_aborted { ABORTED } else { STARTED };
                let decision =
                    self.start.compare_exchange(UNDECIDED, mine, Ordering::Relaxed, Ordering::Relaxed);
                decision.map_or_else(|made| made, |_| mine) == STARTED
            }
            made => made == STARTED,
        }
    }

    #[inline(always)]
    pub(crate) fn set_completed(&self, epoch: Epoch) {
        self.completed_in.store(epoch.get(), Ordering::Relaxed);
    }

    pub(crate) fn is_released(&self, epoch: Epoch) -> bool {
        self.released_in.load(Ordering::Relaxed) == epoch.get()
    }

    pub(crate) fn is_completed(&self, epoch: Epoch) -> bool {
        self.completed_in.load(Ordering::Relaxed) == epoch.get()
    }

    pub(crate) fn rank(&self) -> u16 {
        self.rank.load(Ordering::Relaxed)
    }
}

/// What a worker says about itself, for diagnostics and for noticing that nothing moves.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct WorkerState {
    /// System that it runs, plus one; 0 for none.
    running: AtomicU32,
    /// Systems that it has completed, over all ticks.
    completed: AtomicU64,
}

impl WorkerState {
    pub(crate) fn set_running(&self, system: Option<u16>) {
        self.running.store(system.map_or(0, |system| u32::from(system) + 1), Ordering::Relaxed);
    }

    pub(crate) fn running(&self) -> Option<u16> {
        self.running.load(Ordering::Relaxed).checked_sub(1).map(|system| system as u16)
    }

    /// Only its own worker counts.
    pub(crate) fn add_completed(&self, systems: u32) {
        let before = self.completed.load(Ordering::Relaxed);
        self.completed.store(before + u64::from(systems), Ordering::Relaxed);
    }
}

/// The state of a schedule in execution.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) topology: Topology,
    pub(crate) systems: Box<[SystemState]>,
    pub(crate) workers: Box<[WorkerState]>,
    pub(crate) ready: ReadySet,
    /// System of each rank.
    system_at: Box<[AtomicU16]>,
    /// Systems of the track that are not through.
    left: Padded<AtomicU32>,
    /// The tick that helpers may take part in; 0 for none.
    open: Padded<AtomicU64>,
    /// Where workers sleep inside a tick.
    pub(crate) work: Padded<WakeWord>,
    /// Where helpers sleep between the ticks that need them. Its count is the generation.
    pub(crate) calls: Padded<WakeWord>,
    stopped: AtomicBool,
    aborted: AtomicBool,
    /// A system failed in this tick.
    has_failures: AtomicBool,
    /// Does the first failure abort the tick?
    aborts_on_failure: bool,
}

impl Board {
    pub(crate) fn new(topology: Topology, workers: usize, aborts_on_failure: bool) -> Self {
        let count = topology.systems();
        let system = |index: usize| SystemState {
            claims: ChunkClaims::new(),
            waits: Countdown::new(topology.predecessor_count(index)),
            rank: AtomicU16::new(0),
            outcome: AtomicU8::new(SUCCEEDED),
            start: AtomicU8::new(UNDECIDED),
            released_in: AtomicU64::new(0),
            completed_in: AtomicU64::new(0),
        };
        let worker = |_| WorkerState { running: AtomicU32::new(0), completed: AtomicU64::new(0) };
        let board = Self {
            systems: (0..count).map(system).collect(),
            workers: (0..workers).map(worker).collect(),
            ready: ReadySet::new(count),
            system_at: (0..count).map(|_| AtomicU16::new(0)).collect(),
            left: Padded(AtomicU32::new(0)),
            open: Padded(AtomicU64::new(0)),
            work: Padded::default(),
            calls: Padded::default(),
            stopped: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            has_failures: AtomicBool::new(false),
            aborts_on_failure,
            topology,
        };
        board.set_ranks(board.topology.order());
        board
    }

    /// Gives every system its rank: the first of the list is the most urgent. Only between ticks. A helper that is left
    /// over from an earlier tick may read any mixture of old and new ranks, and then fails to claim.
    pub(crate) fn set_ranks(&self, systems: &[u16]) {
        for (rank, &system) in (0..).zip(systems) {
            self.system_at[usize::from(rank)].store(system, Ordering::Relaxed);
            self.systems[usize::from(system)].rank.store(rank, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub(crate) fn system_at(&self, rank: usize) -> usize {
        usize::from(self.system_at[rank].load(Ordering::Relaxed))
    }

    /// Lets helpers take part in a tick, and calls them.
    pub(crate) fn open(&self, epoch: Epoch, whom: Wake) {
        self.open.0.store(epoch.get(), Ordering::Release);
        if planted(Fault::CallSilent) {
            return;
        }
        self.calls.0.advance(whom);
    }

    /// Sends helpers home. They may take their time.
    pub(crate) fn close(&self) {
        self.open.0.swap(Epoch::NONE.get(), Ordering::AcqRel);
        if !planted(Fault::TickEndSilent) {
            self.work.0.notify(Wake::All);
        }
    }

    /// The tick that is open to helpers.
    #[inline(always)]
    pub(crate) fn open_epoch(&self) -> Epoch {
        Epoch::from_raw(self.open.0.load(Ordering::Acquire))
    }

    /// As [`Self::open_epoch`], for a registered sleeper: whoever closes the tick afterwards sees the registration.
    pub(crate) fn open_epoch_before_sleep(&self) -> Epoch {
        if planted(Fault::LookPlain) {
            return self.open_epoch();
        }
        Epoch::from_raw(self.open.0.fetch_add(0, Ordering::AcqRel))
    }

    /// A track begins. Only while no system is released.
    pub(crate) fn begin_track(&self, systems: u32) {
        self.left.0.store(systems, Ordering::Relaxed);
    }

    /// Systems of the track are through, with everything that follows from it.
    #[inline(always)]
    pub(crate) fn completed(&self, systems: u32) {
        let left = self.left.0.fetch_sub(systems, Ordering::AcqRel) - systems;
        if left == 0 && !planted(Fault::TrackEndSilent) {
            self.work.0.notify(Wake::All);
        }
    }

    /// Is every system of the track through?
    #[inline(always)]
    pub(crate) fn is_track_over(&self) -> bool {
        self.left.0.load(Ordering::Acquire) == 0
    }

    /// As [`Self::is_track_over`], for a registered sleeper.
    pub(crate) fn is_track_over_before_sleep(&self) -> bool {
        self.left.0.fetch_add(0, Ordering::AcqRel) == 0
    }

    /// Ends the helpers' lives. Only between ticks, and final.
    pub(crate) fn stop(&self) {
        if !planted(Fault::StopLate) {
            self.stopped.store(true, Ordering::Release);
        }
        self.calls.0.advance(Wake::All);
        if planted(Fault::StopLate) {
            self.stopped.store(true, Ordering::Release);
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// A system failed. True for the failure that aborts the tick.
    #[cold]
    pub(crate) fn failed(&self, system: usize) -> bool {
        self.has_failures.store(true, Ordering::Relaxed);
        self.aborts_on_failure
            && !self.topology.is_exempt(system)
            && !self.aborted.swap(true, Ordering::AcqRel)
    }

    /// Is the tick aborted, as far as this system is concerned?
    #[inline(always)]
    pub(crate) fn is_aborted(&self, system: usize) -> bool {
        self.aborted.load(Ordering::Acquire) && !self.topology.is_exempt(system)
    }

    /// Did a system fail since the last call? Only between tracks.
    pub(crate) fn take_failures(&self) -> bool {
        self.has_failures.load(Ordering::Relaxed) && self.has_failures.swap(false, Ordering::Relaxed)
    }

    /// Was a tick aborted?
    pub(crate) fn has_aborted(&self) -> bool {
        self.aborted.load(Ordering::Acquire)
    }

    /// Systems completed by all workers so far.
    pub(crate) fn progress(&self) -> u64 {
        self.workers.iter().map(|worker| worker.completed.load(Ordering::Relaxed)).sum()
    }
}
