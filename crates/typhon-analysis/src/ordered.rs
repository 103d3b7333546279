//! Work on many threads, results in the order of submission.
//!
//! ```text
//!  caller ── submit ──▶ worker, worker, worker ── results ──▶ caller, in order
//! ```
//!
//! Unlike [`crate::pipeline`], which reads and decodes, this takes anything that is already in order and can be worked
//! on independently, such as turning decoded records into text.
//!
//! **Invariants**
//! - Results are delivered exactly in the order of submission, on the calling thread.
//! - At most `window` jobs are in work or finished but not delivered, which bounds memory.
//! - A worker that panics ends the whole with that panic.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Submits jobs and delivers their results. Made by [`with_workers`].
pub struct Ordered<J, R, D> {
    jobs: Option<Sender<(u64, J)>>,
    results: Receiver<Message<R>>,
    early: BTreeMap<u64, R>,
    submitted: u64,
    delivered: u64,
    window: u64,
    deliver: D,
}

/// Runs `body`, which submits jobs, with `threads` workers that call `work`; `deliver` gets the results.
///
/// # Errors
/// What `body` or `deliver` returns.
pub fn with_workers<J, R, D, T, E>(
    threads: NonZeroUsize,
    work: impl Fn(J) -> R + Sync,
    deliver: D,
    body: impl FnOnce(&mut Ordered<J, R, D>) -> Result<T, E>,
) -> Result<T, E>
where
    J: Send,
    R: Send,
    D: FnMut(R) -> Result<(), E>,
{
    let (jobs, queue) = channel();
    let (sender, results) = channel();
    let queue = Mutex::new(queue);
    thread::scope(|scope| {
        for _ in 0..threads.get() {
            let (queue, work, sender) = (&queue, &work, sender.clone());
            scope.spawn(move || {
                let sender = TellPanic(sender);
                while let Some((turn, job)) = next_job(queue) {
                    // Nobody listens any more when the caller broke off.
                    if sender.0.send(Message::Done(turn, work(job))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let window = 2 * threads.get() as u64 + 2;
        let mut ordered = Ordered {
            jobs: Some(jobs),
            results,
            early: BTreeMap::new(),
            submitted: 0,
            delivered: 0,
            window,
            deliver,
        };
        let value = body(&mut ordered)?;
        ordered.finish()?;
        Ok(value)
    })
}

/// What workers say.
enum Message<R> {
    Done(u64, R),
    /// A worker is gone, and its job with it.
    Panicked,
}

/// Without word of a panic the caller would wait for the lost result.
struct TellPanic<R>(Sender<Message<R>>);

impl<R> Drop for TellPanic<R> {
    fn drop(&mut self) {
        if thread::panicking() {
            // If nobody listens, nobody waits either.
            let _ = self.0.send(Message::Panicked);
        }
    }
}

fn next_job<J>(queue: &Mutex<Receiver<J>>) -> Option<J> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

impl<J, R, D> Ordered<J, R, D> {
    /// Hands a job to the workers; first waits for and delivers results when too many jobs are under way.
    ///
    /// # Errors
    /// What the delivery of an earlier result returns.
    pub fn submit<E>(&mut self, job: J) -> Result<(), E>
    where
        D: FnMut(R) -> Result<(), E>,
    {
        while self.submitted - self.delivered >= self.window && self.wait()? {}
        if let Some(jobs) = &self.jobs {
            // Sending fails only when all workers are gone; then the join at the end passes on their panic.
            let _ = jobs.send((self.submitted, job));
            self.submitted += 1;
        }
        Ok(())
    }

    fn finish<E>(&mut self) -> Result<(), E>
    where
        D: FnMut(R) -> Result<(), E>,
    {
        self.jobs = None;
        while self.delivered < self.submitted && self.wait()? {}
        Ok(())
    }

    /// Waits for one result and delivers what is in order by then; false when no more can come, because a worker has
    /// panicked. The jobs submitted after that are dropped, and the join at the end passes the panic on.
    fn wait<E>(&mut self) -> Result<bool, E>
    where
        D: FnMut(R) -> Result<(), E>,
    {
        let Ok(Message::Done(turn, result)) = self.results.recv() else {
            self.jobs = None;
            return Ok(false);
        };
        self.early.insert(turn, result);
        while let Some(result) = self.early.remove(&self.delivered) {
            self.delivered += 1;
            (self.deliver)(result)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn threads(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).expect("not zero")
    }

    #[test]
    fn results_keep_the_order_of_submission() {
        for count in [1, 2, 7] {
            let mut seen = Vec::new();
            with_workers(
                threads(count),
                |job: u64| {
                    (0..(job * 37) % 400).fold(job, |sum, n| sum.wrapping_add(n ^ sum)) as u8 as u64
                        + (job << 8)
                },
                |result| {
                    seen.push(result >> 8);
                    Ok::<_, Infallible>(())
                },
                |pool| (0..500).try_for_each(|job| pool.submit(job)),
            )
            .expect("cannot fail");
            assert_eq!(seen, (0..500).collect::<Vec<_>>(), "{count} threads");
        }
    }

    #[test]
    fn an_error_of_the_receiver_ends_it() {
        let mut delivered = 0;
        let result = with_workers(
            threads(2),
            |job: u32| job,
            |job| {
                delivered += 1;
                if job == 5 { Err("full") } else { Ok(()) }
            },
            |pool| (0..1_000_000).try_for_each(|job| pool.submit(job)),
        );
        assert_eq!(result, Err("full"));
        assert_eq!(delivered, 6);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_of_a_worker_is_not_lost() {
        let _ = with_workers(
            threads(2),
            |job: u32| assert_ne!(job, 3, "worker"),
            |()| Ok::<_, Infallible>(()),
            |pool| (0..100).try_for_each(|job| pool.submit(job)),
        );
    }
}
