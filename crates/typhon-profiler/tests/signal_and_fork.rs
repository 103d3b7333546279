//! Recording in a signal handler, and what a forked child may do.
#![cfg(unix)]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use typhon_profiler::events::{SystemReady, TransactionCommit};
use typhon_profiler::{emit, session, span};

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: libc::c_int) {
    let _span = span!(TransactionCommit::default());
    emit(SystemReady::default);
    HANDLED.fetch_add(2, Ordering::Relaxed);
}

#[test]
fn b10_signal_handlers_may_record() {
    // SAFETY: the handler only records, which is what is tested.
    unsafe { libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t) };
    let (recorded, outcome) = common::session(common::ALL, || {
        // SAFETY: no arguments.
        let target = unsafe { libc::pthread_self() } as usize;
        let done = std::sync::atomic::AtomicBool::new(false);
        let done = &done;
        let mut emitted = 0;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    // SAFETY: the target outlives the scope.
                    unsafe { libc::pthread_kill(target as libc::pthread_t, libc::SIGUSR1) };
                    std::thread::yield_now();
                }
            });
            while HANDLED.load(Ordering::Relaxed) < 400 {
                for tsn in 0..100 {
                    let _span = span!(TransactionCommit { tsn, ..Default::default() });
                    emit(SystemReady::default);
                    emitted += 2;
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        emitted
    });
    // Handlers ran on this thread only, so that all of them are over.
    let emitted = outcome.result + HANDLED.load(Ordering::Relaxed);
    assert_eq!(recorded.events() + recorded.losses(), emitted);
    let ids: std::collections::HashSet<u64> = recorded.spans().iter().map(|span| span.id).collect();
    assert_eq!(ids.len(), recorded.spans().len());
}

#[test]
fn b10_forked_child_is_silent_and_leaves_the_parent_alone() {
    let (recorded, _) = common::session(common::ALL, || {
        let open = span!(TransactionCommit::default());
        // SAFETY: the child only touches atomics, its own thread state, and ends without running exit handlers.
        match unsafe { libc::fork() } {
            0 => {
                emit(SystemReady::default);
                drop(open);
                let silent = !session::is_running()
                    && session::stop().is_none()
                    && !session::set_mask(common::mask(&[4]));
                // SAFETY: ends the child.
                unsafe { libc::_exit(if silent { 0 } else { 1 }) }
            }
            child => {
                let mut status = 0;
                // SAFETY: waits for the child made above.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert_eq!(status, 0);
            }
        }
        emit(SystemReady::default);
    });
    assert_eq!((recorded.of_kind(4).len(), recorded.of_kind(20).len(), recorded.losses()), (1, 1, 0));
}
