//! One budget for all opened traces (brief 11 §8: at most 512 MiB, whatever the files).
//!
//! | Part | For |
//! |---|---|
//! | 24 MiB, or a quarter of less than 96 MiB | the program itself |
//! | half of the rest | items that wait to be sorted while files are indexed. A file waits for its turn when others have taken it |
//! | a quarter of the rest | what stays: pieces of indexes that have no file, matches of filters, the heads of every index |
//! | a quarter of the rest | blocks being decoded, answers; and heads of indexes beyond their share, until sessions rest |
//!
//! What finds no room goes to a temporary file, takes the place of something older, or is refused by name. The heads of
//! indexes may take more than the share of what stays for a while: whoever holds the sessions lets go of some then
//! ([`super::Session::rest`]). Beyond the half, a file is refused.
//!
//! Few files are indexed at a time: each has threads of its own, and an allocator keeps what a thread has once taken.

use super::{Cancel, SessionError};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Part of the memory, as a divisor, for indexing.
const INDEXING_SHARE: usize = 2;
/// Part of the memory, as a divisor, for what stays.
const KEPT_SHARE: usize = 4;
/// Memory of the program itself.
const PROGRAM_BYTES: usize = 24 << 20;
/// The same of little memory, as a divisor.
const PROGRAM_SHARE: usize = 4;
/// Heads of indexes may take so many times what stays is given.
const HEADS_FACTOR: usize = 2;
/// The least that they may take: some tests give no memory at all.
const HEADS_LEAST_BYTES: usize = 16 << 20;
/// Time for other sessions to let go of theirs.
const ROOM_WAIT: Duration = Duration::from_secs(3);
/// Time between two looks at whether waiting was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Memory that sessions share. Clones are of the same memory.
#[derive(Debug, Clone)]
pub struct Memory {
    pub(crate) indexing: Pool,
    pub(crate) kept: Pool,
    pub(crate) jobs: JobQueue,
}

impl Memory {
    /// For so many bytes in all.
    pub fn new(total_bytes: usize) -> Self {
        let shared_bytes = total_bytes - PROGRAM_BYTES.min(total_bytes / PROGRAM_SHARE);
        Self {
            indexing: Pool::new(shared_bytes / INDEXING_SHARE),
            kept: Pool::new(shared_bytes / KEPT_SHARE),
            jobs: JobQueue::default(),
        }
    }

    /// Most that the heads of all indexes may take, and so those of one.
    pub(crate) fn heads_max(&self) -> usize {
        (HEADS_FACTOR * self.kept.limit()).max(HEADS_LEAST_BYTES)
    }

    /// Refuses a file of which blocks, ticks and heads of groups take more than there is for those of all files.
    ///
    /// # Errors
    /// [`SessionError::TooLarge`].
    pub(crate) fn check_heads(&self, bytes: usize) -> Result<(), SessionError> {
        let most_bytes = self.heads_max();
        if bytes <= most_bytes { Ok(()) } else { Err(SessionError::TooLarge { bytes, most_bytes }) }
    }

    /// Takes memory for the heads of an index, if there is so much.
    ///
    /// # Errors
    /// [`SessionError::NoRoom`].
    pub(crate) fn heads(&self, bytes: usize) -> Result<Held, SessionError> {
        let mut held = self.kept.held();
        if held.grow(bytes, self.heads_max()) { Ok(held) } else { Err(SessionError::NoRoom) }
    }

    /// The same, after others had time to let go of theirs.
    ///
    /// # Errors
    /// As [`Memory::check_heads`] and [`Memory::heads`], or cancelled.
    pub(crate) fn heads_in_time(&self, bytes: usize, cancel: &Cancel) -> Result<Held, SessionError> {
        self.check_heads(bytes)?;
        let started = Instant::now();
        loop {
            match self.heads(bytes) {
                Err(SessionError::NoRoom) if started.elapsed() < ROOM_WAIT => {}
                outcome => return outcome,
            }
            cancel.check()?;
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Is more kept than there is room for? Then sessions that can should [rest](super::Session::rest).
    pub fn is_overfull(&self) -> bool {
        self.kept.used() > self.kept.limit()
    }
}

/// A number of bytes that several take from.
#[derive(Debug, Clone)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: usize,
    used: Mutex<usize>,
    freed: Condvar,
}

impl Pool {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Shared { limit, used: Mutex::new(0), freed: Condvar::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        // The number is right after every statement that changes it.
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }

    pub(crate) fn used(&self) -> usize {
        *self.lock()
    }

    /// Takes nothing yet.
    pub(crate) fn held(&self) -> Held {
        Held { pool: self.clone(), bytes: 0 }
    }

    /// Takes bytes if there are so many.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Held> {
        let mut held = self.held();
        held.grow(bytes, self.limit()).then_some(held)
    }

    /// Takes up to `most` bytes, and waits while there are fewer than `least`.
    ///
    /// # Errors
    /// [`SessionError::Cancelled`].
    pub(crate) fn take(&self, least: usize, most: usize, cancel: &Cancel) -> Result<Held, SessionError> {
        let least = least.min(self.limit());
        let mut used = self.lock();
        loop {
            cancel.check()?;
            let free = self.limit().saturating_sub(*used);
            if free >= least {
                let bytes = free.min(most.max(least));
                *used += bytes;
                return Ok(Held { pool: self.clone(), bytes });
            }
            let waited = self.0.freed.wait_timeout(used, LOOK_EVERY);
            used = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Bytes taken from a pool. Dropping gives them back.
#[derive(Debug)]
pub(crate) struct Held {
    pool: Pool,
    bytes: usize,
}

impl Held {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes more bytes, if then no more than `limit` are taken from the pool in all.
    pub(crate) fn grow(&mut self, bytes: usize, limit: usize) -> bool {
        let mut used = self.pool.lock();
        let fits = used.checked_add(bytes).is_some_and(|after| after <= limit);
        if fits {
            *used += bytes;
            self.bytes += bytes;
        }
        fits
    }

    /// Gives back all but `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let freed = self.bytes.saturating_sub(bytes);
        self.bytes -= freed;
        *self.pool.lock() -= freed;
        self.pool.0.freed.notify_all();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Work of which only a few pieces run at a time, in order of arrival, each on a thread of its own.
#[derive(Clone, Default)]
pub(crate) struct JobQueue(Arc<Mutex<Line>>);

#[derive(Default)]
struct Line {
    threads: usize,
    waiting: VecDeque<(Ticket, Job)>,
}

/// One's place in the line, and later the thread of one's job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ticket(Arc<Mutex<Option<JoinHandle<()>>>>);

impl Ticket {
    /// Waits until the thread of a job that began is gone.
    pub(crate) fn join(&self) {
        let thread = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Jobs tell of their panics themselves.
            let _ = thread.join();
        }
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for JobQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = self.lock();
        f.debug_struct("JobQueue")
            .field("threads", &line.threads)
            .field("waiting", &line.waiting.len())
            .finish()
    }
}

impl JobQueue {
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a job on a thread, now or when others have ended.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(crate) fn start(&self, ticket: &Ticket, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let most = thread::available_parallelism().map_or(2, |cores| cores.get()).clamp(2, 8);
        let mut line = self.lock();
        if line.threads >= most {
            line.waiting.push_back((ticket.clone(), Box::new(job)));
            return Ok(());
        }
        self.spawn(ticket, Box::new(job)).map_err(|(_, err)| err)?;
        line.threads += 1;
        Ok(())
    }

    /// Runs a job on a new thread, which then hands its turn on; gives the job back when there is no thread to be had.
    fn spawn(&self, ticket: &Ticket, job: Job) -> Result<(), (Job, io::Error)> {
        let kept = Arc::new(Mutex::new(Some(job)));
        let (taken, jobs) = (kept.clone(), self.clone());
        let take = |job: &Mutex<Option<Job>>| job.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = move || {
            let mut job = take(&taken);
            while let Some(one) = job {
                // Jobs tell of their panics themselves.
                let _ = catch_unwind(AssertUnwindSafe(one));
                job = jobs.hand_on();
            }
        };
        // Held, so that nobody finds a job begun and its thread not yet there.
        let mut thread = ticket.0.lock().unwrap_or_else(PoisonError::into_inner);
        match thread::Builder::new().name("typhon-index".to_owned()).spawn(work) {
            Ok(handle) => *thread = Some(handle),
            Err(err) => {
                if let Some(job) = take(&kept) {
                    return Err((job, err));
                }
            }
        }
        Ok(())
    }

    /// Begins the next job in line in place of one that has ended, on a thread of its own; it is given back when the
    /// system has no thread for it.
    fn hand_on(&self) -> Option<Job> {
        let mut line = self.lock();
        let next = line.waiting.pop_front();
        line.threads -= usize::from(next.is_none());
        let (ticket, job) = next?;
        self.spawn(&ticket, job).err().map(|(job, _)| job)
    }

    /// Takes a job back that has not begun.
    pub(crate) fn take_back(&self, ticket: &Ticket) -> Option<Job> {
        let mut line = self.lock();
        let at = line.waiting.iter().position(|(of, _)| of.is(ticket))?;
        line.waiting.remove(at).map(|(_, job)| job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_is_taken_is_given_back() {
        let pool = Pool::new(100);
        let mut first = pool.try_take(60).expect("there is room");
        assert!(pool.try_take(41).is_none());
        let second = pool.try_take(40).expect("there is room");
        assert!(!first.grow(1, 100));
        first.shrink_to(10);
        assert_eq!((first.bytes(), pool.used()), (10, 50));
        assert!(first.grow(50, 100));
        drop((first, second));
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn who_finds_no_room_waits_for_it() {
        let pool = Pool::new(100);
        let all = pool.take(10, 500, &Cancel::new()).expect("not cancelled");
        assert_eq!(all.bytes(), 100);
        let waiting = thread::spawn({
            let pool = pool.clone();
            move || pool.take(25, 50, &Cancel::new()).map(|held| held.bytes())
        });
        drop(all);
        assert_eq!(waiting.join().expect("no panic").expect("not cancelled"), 50);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn waiting_can_be_cancelled() {
        let pool = Pool::new(100);
        let _all = pool.try_take(100);
        let cancel = Cancel::new();
        let waiting = thread::spawn({
            let (pool, cancel) = (pool.clone(), cancel.clone());
            move || pool.take(1, 1, &cancel).map(|held| held.bytes())
        });
        cancel.cancel();
        assert!(matches!(waiting.join().expect("no panic"), Err(SessionError::Cancelled)));
    }

    #[test]
    fn the_parts_are_no_more_than_the_whole() {
        for total in [0, 1, 64 << 20, 96 << 20, 512 << 20, usize::MAX] {
            let memory = Memory::new(total);
            let parts = memory.indexing.limit() + HEADS_FACTOR * memory.kept.limit();
            assert!(parts + PROGRAM_BYTES.min(total / PROGRAM_SHARE) <= total, "{total}");
        }
    }

    #[test]
    fn a_file_with_too_many_blocks_is_refused_by_name() {
        let memory = Memory::new(64 << 20);
        let error = memory.heads_in_time(memory.heads_max() + 1, &Cancel::new()).map(|_| ());
        let error = error.expect_err("it is too much").to_string();
        assert!(error.contains("24 MiB") && error.contains("--memory"), "{error}");
        let all = memory.heads(memory.heads_max()).expect("there is room");
        assert!(memory.is_overfull());
        assert!(matches!(memory.heads(1), Err(SessionError::NoRoom)));
        drop(all);
        assert!(memory.heads(1).is_ok());
    }

    #[test]
    fn sessions_wait_in_line_and_leave_it_at_once() {
        let memory = Memory::new(64 << 20);
        let trace =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/anthill.typhon-trace");
        let open = || {
            let options = super::super::SessionOptions { memory: memory.clone(), ..Default::default() };
            super::super::Session::open(&trace, options).expect("opens")
        };
        // Whoever has the turn waits for memory that is taken.
        let all = memory.indexing.try_take(memory.indexing.limit()).expect("there is room");
        let sessions: Vec<_> = (0..12).map(|_| open()).collect();
        let in_line = || memory.jobs.lock().waiting.len();
        assert!(in_line() >= 4, "at most eight at a time");
        let before = in_line();
        let (last, others) = sessions.split_last().expect("some");
        last.cancel();
        assert_eq!(last.wait_until_idle(), super::super::State::Cancelled);
        assert_eq!(in_line(), before - 1);
        let dropped = open();
        drop(dropped);
        assert_eq!(in_line(), before - 1);
        drop(all);
        for session in others {
            assert_eq!(session.wait(), super::super::State::Ready);
        }
    }

    #[test]
    fn whoever_joins_finds_nothing_left_of_the_thread() {
        struct OnExit(Arc<Mutex<u32>>);
        impl Drop for OnExit {
            fn drop(&mut self) {
                thread::sleep(Duration::from_millis(5));
                *self.0.lock().expect("no panic") += 1;
            }
        }
        thread_local!(static KEPT: std::cell::RefCell<Option<OnExit>> = const { std::cell::RefCell::new(None) });
        let (jobs, ended) = (JobQueue::default(), Arc::new(Mutex::new(0)));
        let tickets: Vec<Ticket> = (0..20).map(|_| Ticket::default()).collect();
        for ticket in &tickets {
            let on_exit = OnExit(ended.clone());
            jobs.start(ticket, move || KEPT.set(Some(on_exit))).expect("a thread");
        }
        // Those in line have their threads later.
        while !jobs.lock().waiting.is_empty() || jobs.lock().threads > 0 {
            thread::yield_now();
        }
        tickets.iter().for_each(Ticket::join);
        assert_eq!(*ended.lock().expect("no panic"), 20);
    }

    #[test]
    fn a_panic_gives_the_turn_to_the_next() {
        let jobs = JobQueue::default();
        let (sender, receiver) = std::sync::mpsc::channel();
        for at in 0..30 {
            let sender = sender.clone();
            let job = move || {
                sender.send(at).expect("somebody listens");
                panic!("a panic on purpose, which is to be seen here");
            };
            jobs.start(&Ticket::default(), job).expect("a thread");
        }
        let mut done: Vec<usize> = (0..30)
            .map(|_| receiver.recv_timeout(Duration::from_secs(60)).expect("it had its turn"))
            .collect();
        done.sort_unstable();
        assert_eq!(done, (0..30).collect::<Vec<_>>());
    }

    #[test]
    fn a_pool_without_bytes_keeps_nobody_waiting() {
        let held = Pool::new(0).take(1 << 20, 1 << 30, &Cancel::new()).expect("not cancelled");
        assert_eq!(held.bytes(), 0);
    }

    #[test]
    fn filters_without_room_take_the_place_of_older_ones_or_are_refused() {
        let memory = Memory::new(1 << 30);
        let trace =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/anthill.typhon-trace");
        let options = super::super::SessionOptions { memory: memory.clone(), ..Default::default() };
        let session = super::super::Session::open(&trace, options).expect("opens");
        session.wait_until_idle();
        let add = || session.add_filter("kind=TickStart", &Cancel::new(), |_| {}).map(|filter| filter.id);
        let bits = (session.meta().expect("ready").totals.events as usize).div_ceil(64) * 8;
        let free = memory.kept.limit() - memory.kept.used();
        let others = memory.kept.try_take(free - bits - bits / 2).expect("there is room");
        let first = add().expect("there is room for one");
        assert!(session.match_count(first).is_ok());
        let second = add().expect("the first gives way");
        assert!(session.match_count(first).is_err());
        session.remove_filter(second);
        let rest = memory.kept.try_take(bits).expect("there is room");
        assert!(matches!(add(), Err(SessionError::NoRoom)));
        drop((others, rest));
        assert!(add().is_ok());
    }
}
