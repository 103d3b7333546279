//! Requests that somebody else carries out: a queue, a few threads, one completion each.

use crate::buffer::Buffer;
use crate::io::{File, read_exact_at, write_all_at};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// What to do. The buffer travels with the request and comes back with its completion, so nobody can touch it
/// meanwhile.
#[derive(Debug)]
pub enum Op {
    /// Fills the buffer from the offset on.
    Read {
        /// The file.
        file: Arc<dyn File>,
        /// Takes the bytes.
        buffer: Buffer,
        /// Where they begin.
        offset: u64,
    },
    /// Writes the whole buffer.
    Write {
        /// The file.
        file: Arc<dyn File>,
        /// The bytes.
        buffer: Buffer,
        /// Where they go.
        offset: u64,
    },
    /// [`File::sync_data`].
    SyncData {
        /// The file.
        file: Arc<dyn File>,
    },
}

/// How a request ended.
#[derive(Debug)]
pub struct Completion {
    /// The request's buffer, if it had one.
    pub buffer: Option<Buffer>,
    /// Success, or why not.
    pub result: io::Result<()>,
}

impl Op {
    /// Carries out the request on the calling thread.
    pub(crate) fn run(self) -> Completion {
        match self {
            Self::Read { file, mut buffer, offset } => {
                let result = read_exact_at(&*file, &mut buffer, offset);
                Completion { buffer: Some(buffer), result }
            }
            Self::Write { file, buffer, offset } => {
                let result = write_all_at(&*file, &buffer, offset, false);
                Completion { buffer: Some(buffer), result }
            }
            Self::SyncData { file } => Completion { buffer: None, result: file.sync_data() },
        }
    }
}

/// A request in flight. Dropping it loses the answer, not the request.
#[derive(Debug)]
pub struct Pending(Arc<Slot>);

#[derive(Debug, Default)]
struct Slot {
    completion: Mutex<Option<Completion>>,
    done: Condvar,
}

impl Pending {
    /// A request that is already complete.
    pub(crate) fn done(completion: Completion) -> Self {
        let slot = Slot { completion: Mutex::new(Some(completion)), done: Condvar::new() };
        Self(Arc::new(slot))
    }

    /// Waits for the answer.
    pub fn wait(self) -> Completion {
        let mut completion = lock(&self.0.completion);
        loop {
            if let Some(completion) = completion.take() {
                return completion;
            }
            completion = self.0.done.wait(completion).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the answer until a deadline; then the request, still in flight, is handed back.
    ///
    /// # Errors
    /// The request, if the deadline passed first.
    pub fn wait_until(self, deadline: Instant) -> Result<Completion, Self> {
        let mut completion = lock(&self.0.completion);
        loop {
            if let Some(completion) = completion.take() {
                return Ok(completion);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            completion = self.0.done.wait_timeout(completion, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(completion);
        Err(self)
    }
}

/// Threads that carry out requests, in the order of submission but beside each other.
#[derive(Debug)]
pub(crate) struct Pool {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<Requests>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Requests {
    waiting: VecDeque<(Op, Arc<Slot>)>,
    closed: bool,
}

impl Pool {
    pub(crate) fn start(threads: usize) -> io::Result<Self> {
        let mut pool = Self { queue: Arc::default(), threads: Vec::new() };
        for number in 0..threads.max(1) {
            let queue = Arc::clone(&pool.queue);
            let thread = std::thread::Builder::new().name(format!("Typhon-IO-{number}"));
            pool.threads.push(thread.spawn(move || queue.work())?);
        }
        Ok(pool)
    }

    pub(crate) fn submit(&self, op: Op) -> Pending {
        let slot = Arc::new(Slot::default());
        lock(&self.queue.state).waiting.push_back((op, Arc::clone(&slot)));
        self.queue.changed.notify_one();
        Pending(slot)
    }
}

impl Queue {
    fn work(&self) {
        while let Some((op, slot)) = self.next() {
            let completion = op.run();
            *lock(&slot.completion) = Some(completion);
            slot.done.notify_all();
        }
    }

    /// The next request; none once the pool is closed and all are done.
    fn next(&self) -> Option<(Op, Arc<Slot>)> {
        let mut state = lock(&self.state);
        loop {
            if let Some(request) = state.waiting.pop_front() {
                return Some(request);
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.queue.state).closed = true;
        self.queue.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has told so on standard error; there is nobody left to tell here.
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
