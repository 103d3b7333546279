//! What a worker does with the board: finds a chunk, runs it, and tells the successors.
//!
//! Two ways through a track share every rule. [`Worker::run_track`] works with helpers. [`Worker::run_track_alone`] goes
//! through the topological order by itself, without any locked instruction: the only way of a pool of one, and the
//! better one of any pool when a track is over before a helper would be awake.

use super::board::{Board, SUCCEEDED};
use super::claim::{Claim, Epoch};
use super::countdown::Released;
use super::idle::{self, Idle};
use super::sync::{Fault, planted};
use super::topology::Track;
use super::wake::Wake;
use typhon_sync::wait::WaitEnd;

/// What becomes of a system that may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It runs, in this many chunks, at least one.
    Run(u32),
    /// It is left out, and is through with this outcome.
    Skip(u8),
}

/// What the last predecessor hands to a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The predecessor; `None` at the start of the track.
    pub(crate) from: Option<u16>,
    /// A predecessor failed.
    pub(crate) predecessor_failed: bool,
    /// The tick was aborted.
    pub(crate) is_aborted: bool,
}

/// One chunk to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) system: u16,
    pub(crate) chunk: u32,
    pub(crate) total: u32,
}

/// What is done for the schedule on behalf of the protocol: gates, the code of systems, and what is said about both.
/// Nothing in here may panic.
pub(crate) trait Work: Sync {
    /// What one worker needs for it.
    type Local;

    /// The worker takes part in a tick from now on.
    fn enter(&self, local: &mut Self::Local, epoch: Epoch);
    /// A track begins.
    fn track_begins(&self, local: &mut Self::Local);
    /// All predecessors are through: decides what becomes of the system.
    fn turn(&self, local: &mut Self::Local, system: u16, turn: Turn) -> Verdict;
    /// A chunk was claimed. `ALONE`: by a worker that does nothing but run one after the other.
    fn claimed<const ALONE: bool>(&self, local: &mut Self::Local, chunk: Chunk);
    /// Runs a claimed chunk; false if it failed. `is_last_claim`: nothing of the system is left to claim.
    fn run(&self, local: &mut Self::Local, chunk: Chunk, is_last_claim: bool) -> bool;
    /// Runs all chunks of a system on a worker that is alone.
    fn alone(&self, system: u16, chunks: u32, run: impl FnOnce());
    /// The system is through; its successors do not know yet.
    fn completed(&self, local: &mut Self::Local, system: u16, outcome: u8);
    /// Its successors know.
    fn told(&self, local: &mut Self::Local, system: u16, told: Told);
    /// The worker finds nothing to do inside a tick, or finds something again after it looked this often.
    fn idle_begins(&self, local: &mut Self::Local);
    fn idle_ends(&self, local: &mut Self::Local, looks: u32);
    /// A helper falls asleep between ticks, and wakes.
    fn sleep_begins(&self, local: &mut Self::Local);
    fn sleep_ends(&self, local: &mut Self::Local, end: Awakening);
    /// The driver has slept inside a tick; so many systems are completed since the beginning. Does it give up?
    fn gives_up(&self, local: &mut Self::Local, progress: u64) -> bool;
    /// Is the way from this system to the end of the tick so long that it pays to wake somebody?
    fn is_worth_waking(&self, system: u16) -> bool;
    /// Does an outcome fail the successors too?
    fn is_failure(outcome: u8) -> bool;
    /// Outcomes that the protocol itself decides on.
    const FAILED: u8;
    const ABORTED: u8;
}

/// How a helper's sleep between ticks ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Awakening {
    pub(crate) end: WaitEnd,
    /// There is a new call.
    pub(crate) is_called: bool,
    /// Helpers are to leave.
    pub(crate) is_stopped: bool,
}

/// What telling the successors of a system came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Told {
    /// Outcome of the system.
    pub(crate) outcome: u8,
    /// Its successors.
    pub(crate) successors: u16,
    /// Those that could go now.
    pub(crate) released: u16,
    /// Those of them that are left out.
    pub(crate) skipped: u16,
}

/// What one worker keeps from tick to tick.
#[derive(Debug)]
pub(crate) struct Memory<L> {
    pub(crate) local: L,
    id: usize,
    /// Systems that are through and whose successors do not know yet.
    through: Vec<u16>,
    /// A ready system of one chunk that nobody else knows of: run next, without a detour over the ready set.
    kept: Option<u16>,
    /// Chunks to run, by system, of the way through a track alone.
    due: Vec<u32>,
}

impl<L> Memory<L> {
    /// For the worker of this number; 0 is the driver.
    pub(crate) fn new(board: &Board, id: usize, local: L) -> Self {
        let systems = board.topology.systems();
        let due = if id == 0 { vec![0; systems] } else { Vec::new() };
        Self { local, id, through: Vec::with_capacity(systems), kept: None, due }
    }
}

/// One worker at work.
pub(crate) struct Worker<'b, W: Work> {
    board: &'b Board,
    work: &'b W,
    memory: &'b mut Memory<W::Local>,
    epoch: Epoch,
}

impl<'b, W: Work> Worker<'b, W> {
    pub(crate) fn new(board: &'b Board, work: &'b W, memory: &'b mut Memory<W::Local>) -> Self {
        Self { board, work, memory, epoch: Epoch::NONE }
    }

    /// Takes part in this tick from now on.
    pub(crate) fn enter(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        self.work.enter(&mut self.memory.local, epoch);
    }

    /// Runs a track by itself, in topological order. Only while no helper takes part.
    pub(crate) fn run_track_alone(&mut self, track: &Track) {
        self.begin_roots::<true>(track);
        let board = self.board;
        for &system in &board.topology.order()[track.order.clone()] {
            let chunks = std::mem::take(&mut self.memory.due[usize::from(system)]);
            // Without chunks it was left out, and is through already.
            if chunks > 0 {
                self.run_alone(system, chunks);
            }
        }
    }

    #[inline(always)]
    fn run_alone(&mut self, system: u16, chunks: u32) {
        let work = self.work;
        work.alone(system, chunks, || {
            for chunk in 0..chunks {
                if !self.run_chunk_alone(Chunk { system, chunk, total: chunks }) {
                    break;
                }
            }
        });
        self.tell_successors::<true>(system);
    }

    /// False if the system is through with it: failed, or aborted before it started.
    #[inline(always)]
    fn run_chunk_alone(&mut self, chunk: Chunk) -> bool {
        self.work.claimed::<true>(&mut self.memory.local, chunk);
        let system = usize::from(chunk.system);
        if chunk.chunk == 0 && self.board.is_aborted(system) {
            self.board.systems[system].set_outcome(W::ABORTED);
            return false;
        }
        self.run(chunk, chunk.chunk + 1 == chunk.total)
    }

    /// Runs a track together with the helpers that take part. False if the track was given up: then something still
    /// runs, and there must be no further tick.
    pub(crate) fn run_track(&mut self, track: &Track) -> bool {
        self.board.begin_track(track.order.len() as u32);
        self.begin_roots::<false>(track);
        self.work_until(Until::TrackIsOver)
    }

    /// A helper's life: takes part in every tick that it is called for, until the board is stopped.
    pub(crate) fn serve(&mut self) {
        let mut calls = 0;
        loop {
            calls = self.await_call(calls);
            if self.board.is_stopped() {
                return;
            }
            let epoch = self.board.open_epoch();
            if epoch != Epoch::NONE {
                self.enter(epoch);
                self.work_until(Until::TickIsClosed);
            }
        }
    }

    /// Sleeps until the count of calls is another; returns it.
    fn await_call(&mut self, seen: u32) -> u32 {
        let calls = &self.board.calls.0;
        while calls.count() == seen {
            let sleeper = calls.register();
            if sleeper.count() == seen {
                self.work.sleep_begins(&mut self.memory.local);
                let end = sleeper.sleep(seen, idle::backstop());
                sleeper.leave();
                let is_called = calls.count() != seen;
                let is_stopped = self.board.is_stopped();
                self.work.sleep_ends(&mut self.memory.local, Awakening { end, is_called, is_stopped });
            } else {
                sleeper.leave();
            }
        }
        calls.count()
    }

    fn work_until(&mut self, until: Until) -> bool {
        let mut idle = None;
        let board = self.board;
        while !until.is_reached(board, self.epoch) {
            if let Some(found) = self.find() {
                self.end_idle(idle.take());
                self.step(found);
            } else if idle.is_none() {
                idle = Some(Idle::begin());
                self.work.idle_begins(&mut self.memory.local);
            } else if !self.wait(idle.get_or_insert_with(Idle::begin), until) {
                return false;
            }
        }
        self.end_idle(idle);
        true
    }

    fn end_idle(&mut self, idle: Option<Idle>) {
        if let Some(idle) = idle {
            self.work.idle_ends(&mut self.memory.local, idle.looks());
        }
    }

    /// Lets a little time pass inside a tick: spins at first, then lets other threads run, then sleeps until something
    /// happens. False if the tick is given up.
    fn wait(&mut self, idle: &mut Idle, until: Until) -> bool {
        if idle.pause() {
            return true;
        }
        let board = self.board;
        let sleeper = board.work.0.register();
        let count = sleeper.count();
        let is_due = board.ready.any_before_sleep() || until.is_reached_before_sleep(board, self.epoch);
        if is_due && !planted(Fault::SleepUnchecked) {
            sleeper.leave();
            idle::give_way();
            return true;
        }
        let end = sleeper.sleep(count, idle::backstop());
        sleeper.leave();
        end == WaitEnd::Woken
            || until == Until::TickIsClosed
            || !self.work.gives_up(&mut self.memory.local, board.progress())
    }

    fn begin_roots<const ALONE: bool>(&mut self, track: &Track) {
        self.work.track_begins(&mut self.memory.local);
        let mut published = Published::default();
        for &system in &track.roots {
            let released = Released { predecessor_failed: false };
            if !self.release::<ALONE>(system, None, released, &mut published) {
                self.memory.through.push(system);
            }
        }
        self.announce(published);
        if let Some(system) = self.memory.through.pop() {
            self.tell_successors::<ALONE>(system);
        }
    }

    /// Runs a claimed chunk, and what follows from it.
    #[inline(always)]
    fn step(&mut self, (system, claim): (u16, Claim)) {
        let chunk = Chunk { system, chunk: claim.chunk, total: claim.total };
        self.work.claimed::<false>(&mut self.memory.local, chunk);
        let board = self.board;
        let state = &board.systems[usize::from(system)];
        let mut done = 1;
        if !state.may_run(board.is_aborted(usize::from(system)), claim.total) {
            state.set_outcome(W::ABORTED);
            done += self.drain(system);
        } else if !self.run(chunk, claim.is_last()) {
            done += self.drain(system);
        }
        if claim.total == 1 || state.claims.finish(done) {
            self.tell_successors::<false>(system);
        }
    }

    fn find(&mut self) -> Option<(u16, Claim)> {
        let board = self.board;
        if let Some(system) = self.memory.kept.take() {
            return Some((system, board.systems[usize::from(system)].claims.publish_claimed(self.epoch)));
        }
        for rank in board.ready.iter() {
            let system = board.system_at(rank);
            if let Some(claim) = board.systems[system].claims.claim(self.epoch) {
                if claim.is_last() {
                    board.ready.clear(rank);
                }
                return Some((system as u16, claim));
            }
        }
        None
    }

    /// Takes the chunks that nobody has claimed, so that nobody runs them.
    #[cold]
    fn drain(&self, system: u16) -> u32 {
        let state = &self.board.systems[usize::from(system)];
        let drained = state.claims.drain(self.epoch);
        if drained > 0 {
            self.board.ready.clear(usize::from(state.rank()));
        }
        if planted(Fault::DrainUncounted) { 0 } else { drained }
    }

    #[inline(always)]
    fn run(&mut self, chunk: Chunk, is_last_claim: bool) -> bool {
        let worker = &self.board.workers[self.memory.id];
        worker.set_running(Some(chunk.system));
        let succeeded = self.work.run(&mut self.memory.local, chunk, is_last_claim);
        worker.set_running(None);
        if !succeeded {
            self.board.systems[usize::from(chunk.system)].set_outcome(W::FAILED);
            self.board.failed(usize::from(chunk.system));
        }
        succeeded
    }

    /// A system is through: tells its successors, theirs if they are left out, and so on.
    #[inline(always)]
    fn tell_successors<const ALONE: bool>(&mut self, system: u16) {
        let (mut published, mut completed) = (Published::default(), 1);
        self.tell::<ALONE>(system, &mut published);
        while let Some(left_out) = self.memory.through.pop() {
            self.tell::<ALONE>(left_out, &mut published);
            completed += 1;
        }
        self.board.workers[self.memory.id].add_completed(completed);
        if !ALONE {
            self.announce(published);
            self.board.completed(completed);
        }
    }

    #[inline(always)]
    fn tell<const ALONE: bool>(&mut self, system: u16, published: &mut Published) {
        let board = self.board;
        let state = &board.systems[usize::from(system)];
        let outcome = state.outcome();
        let has_failed = W::is_failure(outcome);
        state.set_completed(self.epoch);
        self.work.completed(&mut self.memory.local, system, outcome);
        let successors = board.topology.successors(usize::from(system));
        let mut told = Told { outcome, successors: successors.len() as u16, ..Told::default() };
        for &successor in successors {
            let waits = &board.systems[usize::from(successor)].waits;
            let predecessors = board.topology.predecessor_count(usize::from(successor));
            let released = if ALONE {
                waits.release_alone(has_failed, predecessors)
            } else {
                waits.release(has_failed, predecessors)
            };
            let Some(released) = released else { continue };
            told.released += 1;
            if !self.release::<ALONE>(successor, Some(system), released, published) {
                told.skipped += 1;
                self.memory.through.push(successor);
            }
        }
        self.work.told(&mut self.memory.local, system, told);
    }

    /// A system may go; false if it is left out.
    #[inline(always)]
    fn release<const ALONE: bool>(
        &mut self,
        system: u16,
        from: Option<u16>,
        released: Released,
        published: &mut Published,
    ) -> bool {
        let board = self.board;
        let is_aborted = board.is_aborted(usize::from(system));
        let turn = Turn { from, predecessor_failed: released.predecessor_failed, is_aborted };
        let state = &board.systems[usize::from(system)];
        // Gates are code of the program, and may hang.
        let worker = &board.workers[self.memory.id];
        worker.set_running(Some(system));
        let verdict = self.work.turn(&mut self.memory.local, system, turn);
        worker.set_running(None);
        match verdict {
            Verdict::Run(chunks) => {
                state.begin(self.epoch, SUCCEEDED);
                if ALONE {
                    self.memory.due[usize::from(system)] = chunks;
                } else {
                    self.offer(system, chunks, published);
                }
                true
            }
            Verdict::Skip(outcome) => {
                state.begin(self.epoch, outcome);
                if outcome == W::FAILED {
                    board.failed(usize::from(system));
                }
                false
            }
        }
    }

    /// Makes a system's chunks known, or keeps it to itself: the more urgent of it and what was kept before.
    fn offer(&mut self, system: u16, chunks: u32, published: &mut Published) {
        let rank_of = |system: u16| self.board.systems[usize::from(system)].rank();
        let to_publish = match self.memory.kept {
            _ if chunks > 1 => Some((system, chunks)),
            Some(kept) if rank_of(system) < rank_of(kept) => {
                Some((self.memory.kept.replace(system).unwrap_or(kept), 1))
            }
            Some(_) => Some((system, 1)),
            None => {
                self.memory.kept = Some(system);
                None
            }
        };
        if let Some((system, chunks)) = to_publish {
            self.publish(system, chunks, published);
        }
    }

    fn publish(&self, system: u16, chunks: u32, published: &mut Published) {
        let state = &self.board.systems[usize::from(system)];
        state.claims.publish(self.epoch, chunks);
        self.board.ready.set(usize::from(state.rank()));
        if self.work.is_worth_waking(system) {
            published.chunks += chunks;
        }
    }

    /// Wakes workers for what was published. One system of one chunk is for the first who comes.
    fn announce(&self, published: Published) {
        if published.chunks > 0 && !planted(Fault::PublishSilent) {
            self.board.work.0.notify(if published.chunks == 1 { Wake::One } else { Wake::All });
        }
    }
}

/// What a worker works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    TrackIsOver,
    TickIsClosed,
}

impl Until {
    #[inline(always)]
    fn is_reached(self, board: &Board, epoch: Epoch) -> bool {
        match self {
            Self::TrackIsOver => board.is_track_over(),
            Self::TickIsClosed => board.open_epoch() != epoch,
        }
    }

    fn is_reached_before_sleep(self, board: &Board, epoch: Epoch) -> bool {
        match self {
            Self::TrackIsOver => board.is_track_over_before_sleep(),
            Self::TickIsClosed => board.open_epoch_before_sleep() != epoch,
        }
    }
}

/// What was published since sleepers were last told, as far as it is worth waking for.
#[derive(Debug, Clone, Copy, Default)]
struct Published {
    chunks: u32,
}
