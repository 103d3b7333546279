//! The futex of Linux.
#![forbid(unsafe_code)]

use super::WaitEnd;
use crate::Deadline;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};
use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;

const NANOSECONDS: i64 = 1_000_000_000;

/// The bit set form takes the deadline itself, on the monotonic clock: nothing is converted, and a signal does not
/// prolong the wait.
pub(super) fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> WaitEnd {
    let ns = deadline.as_ns().max(0);
    let until = Timespec { tv_sec: ns / NANOSECONDS, tv_nsec: ns % NANOSECONDS };
    let until = (!deadline.is_infinite()).then_some(&until);
    match futex::wait_bitset(word, Flags::PRIVATE, expected, until, NonZeroU32::MAX) {
        Err(Errno::TIMEDOUT) => WaitEnd::Expired,
        _ => WaitEnd::Woken,
    }
}

pub(super) fn wake_one(word: &AtomicU32) {
    wake(word, 1);
}

pub(super) fn wake_all(word: &AtomicU32) {
    wake(word, i32::MAX as u32);
}

fn wake(word: &AtomicU32, count: u32) {
    let woken = futex::wake(word, Flags::PRIVATE, count);
    debug_assert!(woken.is_ok(), "a reference is a valid address");
}
