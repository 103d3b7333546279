//! Threads as the trace knows them: a small number per live thread, and a label.
#![forbid(unsafe_code)]

pub use crate::capture::thread_info::ThreadKind;
use crate::capture::thread_info::ThreadLabel;
use crate::liveness;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Largest thread id.
const MAX_THREAD_ID: u16 = 32_766;
/// Names that make a thread a worker of the scheduler.
const WORKER_PREFIX: &str = "Typhon.Worker-";

/// Ids in use, one bit each; bit 0 of word 0 stands for "none" and is always set.
static IN_USE: [AtomicU64; 512] = {
    let mut words = [const { AtomicU64::new(0) }; 512];
    words[0] = AtomicU64::new(1);
    words
};

/// The thread that started the profiler first, by its id at the operating system; 0 before. Where a record did, the
/// thread that `main` runs on.
static MAIN: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static KIND: Cell<Option<ThreadKind>> = const { Cell::new(None) };
    static ID: ThreadId = ThreadId(claim_id());
}

struct ThreadId(u16);

impl Drop for ThreadId {
    fn drop(&mut self) {
        if self.0 != 0 {
            IN_USE[usize::from(self.0 / 64)].fetch_and(!(1 << (self.0 % 64)), Ordering::Release);
        }
    }
}

fn claim_id() -> u16 {
    for (word, bits) in (0..).zip(&IN_USE) {
        let mut seen = bits.load(Ordering::Relaxed);
        while seen != u64::MAX {
            let bit = seen.trailing_ones();
            let id = word * 64 + bit as u16;
            if id > MAX_THREAD_ID {
                return 0;
            }
            match bits.compare_exchange_weak(seen, seen | 1 << bit, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return id,
                Err(now) => seen = now,
            }
        }
    }
    0
}

/// The calling thread's id in this process: the lowest free one when first asked, free again when the thread ends.
/// 1..=32,766; 0 when all are in use or the thread is ending. Events about locks carry it, and `ThreadInfo` gives its
/// name.
pub fn current_id() -> u16 {
    ID.try_with(|id| id.0).unwrap_or(0)
}

/// Says what the calling thread is for. Takes effect when the thread records its first event, so call it first.
pub fn set_current_kind(kind: ThreadKind) {
    KIND.set(Some(kind));
}

/// Makes the calling thread the main one, if none is.
pub(crate) fn set_main() {
    let _ = MAIN.compare_exchange(0, os_id(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Makes the process's first thread the main one, where it has a known id: any thread may be the first to record.
pub(crate) fn set_initial_main() {
    if cfg!(target_os = "linux") {
        MAIN.store(std::process::id(), Ordering::Relaxed);
    }
}

/// Is the calling thread the main one?
pub(crate) fn is_main() -> bool {
    os_id() == MAIN.load(Ordering::Relaxed)
}

/// The calling thread's label.
pub(crate) fn label() -> ThreadLabel {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let os_thread_id = os_id();
    let kind = KIND.get().unwrap_or_else(|| kind_of(os_thread_id, &name));
    ThreadLabel { os_thread_id, thread_id: current_id(), name, kind }
}

fn kind_of(os_thread_id: u32, name: &str) -> ThreadKind {
    if os_thread_id == MAIN.load(Ordering::Relaxed) {
        ThreadKind::Main
    } else if name.starts_with(WORKER_PREFIX) {
        ThreadKind::Worker
    } else {
        ThreadKind::Other
    }
}

/// The calling thread's id at the operating system; where that takes more than a system call, [`current_id`].
#[cfg(target_os = "linux")]
pub fn os_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The calling thread's id at the operating system; where that takes more than a system call, [`current_id`].
#[cfg(not(target_os = "linux"))]
pub fn os_id() -> u32 {
    u32::from(current_id())
}

/// Does no thread of this process have this [`os_id`]? `false` where there is no way to know.
pub fn is_gone(os_thread_id: u32) -> bool {
    liveness::is_gone(os_thread_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_small_distinct_and_free_again() {
        let here = current_id();
        assert_ne!(here, 0);
        let barrier = std::sync::Barrier::new(8);
        let one = || {
            let id = current_id();
            barrier.wait();
            id
        };
        let ids: std::collections::HashSet<u16> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(ids.len(), 8);
        assert!(!ids.contains(&here) && !ids.contains(&0));
    }

    #[test]
    fn b13_kind_from_name_or_from_the_thread_itself() {
        let worker =
            std::thread::Builder::new().name("Typhon.Worker-3".into()).spawn(label).unwrap().join().unwrap();
        assert_eq!((worker.kind, worker.name.as_str()), (ThreadKind::Worker, "Typhon.Worker-3"));
        let pool = std::thread::spawn(|| {
            set_current_kind(ThreadKind::Pool);
            label()
        });
        assert_eq!(pool.join().unwrap().kind, ThreadKind::Pool);
        assert!(!is_gone(label().os_thread_id));
        if cfg!(target_os = "linux") {
            assert!(is_gone(worker.os_thread_id));
        }
    }
}
