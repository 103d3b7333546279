//! How long a worker that finds nothing looks on before it sleeps (B-35, B-36).

#[cfg(not(loom))]
use std::time::{Duration, Instant};
use typhon_sync::Deadline;

/// Looking without a pause; about what it takes until a neighbour on another core has published something.
#[cfg(not(loom))]
const SPIN: Duration = Duration::from_micros(2);
/// Then letting other threads run in between; after this, falling asleep and waking up costs less.
#[cfg(not(loom))]
const AWAKE: Duration = Duration::from_micros(50);
/// Longest sleep without looking. No wake is lost, so this is for noticing that nothing moves.
#[cfg(not(loom))]
pub(crate) const BACKSTOP: Duration = Duration::from_millis(50);

/// Until when a sleeper sleeps at most.
pub(crate) fn backstop() -> Deadline {
    #[cfg(loom)]
    return Deadline::INFINITE;
    #[cfg(not(loom))]
    Deadline::from_timeout(BACKSTOP)
}

/// Lets the others run: what this thread waits for is about to happen.
pub(crate) fn give_way() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}

/// One spell without work.
#[derive(Debug)]
pub(crate) struct Idle {
    #[cfg(not(loom))]
    since: Instant,
    looks: u32,
}

impl Idle {
    pub(crate) fn begin() -> Self {
        Self {
            #[cfg(not(loom))]
            since: Instant::now(),
            looks: 1,
        }
    }

    /// Lets a moment pass; false if it is time to sleep.
    pub(crate) fn pause(&mut self) -> bool {
        self.looks = self.looks.saturating_add(1);
        #[cfg(loom)]
        return false;
        #[cfg(not(loom))]
        match self.since.elapsed() {
            elapsed if elapsed < SPIN => std::hint::spin_loop(),
            elapsed if elapsed < AWAKE => give_way(),
            _ => return false,
        }
        #[cfg(not(loom))]
        true
    }

    /// How often the worker has looked for work.
    pub(crate) fn looks(&self) -> u32 {
        self.looks
    }
}
