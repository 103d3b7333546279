//! Work that takes time: on a small pool, with a deadline, and given up when nobody waits for it any more.

use crate::problem::Problem;
use axum::http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use typhon_analysis::session::Cancel;

/// Time for a request, waiting included (brief 11 F-7).
const DEADLINE: Duration = Duration::from_secs(30);

/// How much a piece of work asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Milliseconds.
    Light,
    /// It may go over the whole index or file. Only half of the pool does such at a time, so that tiles go on.
    Heavy,
}

/// Who may work at a time.
#[derive(Debug)]
pub(crate) struct Pool {
    all: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
}

/// Threads of the pool.
pub(crate) fn pool_threads() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get()).clamp(2, 8)
}

/// Cancels work when it goes before the work has ended: nobody waits for the answer any more.
struct Waiting(Option<Cancel>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel();
        }
    }
}

impl Pool {
    pub(crate) fn new() -> Self {
        let threads = pool_threads();
        Self { all: Arc::new(Semaphore::new(threads)), heavy: Arc::new(Semaphore::new((threads / 2).max(1))) }
    }

    /// Waits for room. The permits are held for as long as the work takes.
    async fn room(&self, weight: Weight) -> Vec<OwnedSemaphorePermit> {
        let mut permits = Vec::with_capacity(2);
        if weight == Weight::Heavy {
            permits.extend(self.heavy.clone().acquire_owned().await);
        }
        permits.extend(self.all.clone().acquire_owned().await);
        permits
    }

    /// Runs a piece of work. When the future is dropped or too late, the work is cancelled; a panic in it is an answer
    /// like any other (brief 11 F-8).
    ///
    /// # Errors
    /// What the work returns, and `timeout`.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        weight: Weight,
        work: impl FnOnce(&Cancel) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let cancel = Cancel::new();
        match timeout(DEADLINE, self.run_with(weight, cancel, work)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let detail = "this took more than 30 s and was given up";
                let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", detail);
                Err(problem.hint("choose a shorter range of time"))
            }
        }
    }

    /// The same without a deadline and with a switch that others may throw.
    pub(crate) async fn run_with<T: Send + 'static>(
        &self,
        weight: Weight,
        cancel: Cancel,
        work: impl FnOnce(&Cancel) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let mut waiting = Waiting(Some(cancel.clone()));
        let permits = self.room(weight).await;
        let done = spawn_blocking(move || {
            let _permits = permits;
            if cancel.is_cancelled() { Err(Problem::cancelled()) } else { work(&cancel) }
        });
        let outcome = done.await.unwrap_or_else(|_| Err(Problem::internal()));
        // What has ended well is not cancelled: the switch may stand for more than this piece of work.
        waiting.0 = None;
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap()
    }

    #[test]
    fn a_panic_is_an_answer_and_the_pool_goes_on() {
        let (pool, runtime) = (Pool::new(), runtime());
        for _ in 0..3 * pool_threads() {
            let outcome: Result<(), Problem> = runtime.block_on(
                pool.run(Weight::Heavy, |_| panic!("a panic on purpose, which is to be seen here")),
            );
            assert_eq!(outcome, Err(Problem::internal()));
        }
        assert_eq!(runtime.block_on(pool.run(Weight::Light, |_| Ok(7))), Ok(7));
    }

    #[test]
    fn work_that_nobody_waits_for_is_cancelled() {
        let (pool, runtime) = (Pool::new(), runtime());
        let (sender, receiver) = mpsc::channel();
        runtime.block_on(async {
            let work = pool.run(Weight::Light, move |cancel| {
                sender.send("started").unwrap();
                while !cancel.is_cancelled() {
                    std::thread::yield_now();
                }
                sender.send("cancelled").unwrap();
                Ok(())
            });
            // Longer than it takes to start, shorter than the work, which never ends by itself.
            while timeout(Duration::from_millis(50), std::future::pending::<()>()).await.is_ok() {}
            let started = async {
                while receiver.try_recv().is_err() {
                    tokio::task::yield_now().await
                }
            };
            tokio::select! { _ = work => panic!("the work cannot end"), () = started => {} }
        });
        assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok("cancelled"));
    }

    #[test]
    fn heavy_work_leaves_room_for_light_work() {
        let (pool, runtime) = (Arc::new(Pool::new()), runtime());
        let stop = Cancel::new();
        let heavy: Vec<_> = (0..4 * pool_threads())
            .map(|_| {
                let (pool, stop) = (pool.clone(), stop.clone());
                runtime.spawn(async move {
                    pool.run(Weight::Heavy, move |_| {
                        while !stop.is_cancelled() {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        Ok(())
                    })
                    .await
                })
            })
            .collect();
        assert_eq!(runtime.block_on(pool.run(Weight::Light, |_| Ok("light"))), Ok("light"));
        stop.cancel();
        for work in heavy {
            assert_eq!(runtime.block_on(work).unwrap(), Ok(()));
        }
    }
}
