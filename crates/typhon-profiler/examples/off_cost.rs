//! Call sites whose kinds are off, for `cargo xtask models`, which counts their instructions.

use std::hint::black_box;
use typhon_profiler::events::{SystemReady, TransactionCommit};
use typhon_profiler::{emit, span};

#[inline(never)]
fn off_instant() {
    emit(SystemReady::default);
}

#[inline(never)]
fn off_span() {
    drop(span!(TransactionCommit::default()));
}

/// Spans as nearly all are: around work that is done elsewhere and might panic.
#[inline(never)]
fn off_around_calls(count: i64) {
    for tsn in 0..count {
        let _span = span!(TransactionCommit { tsn, ..Default::default() });
        call(1);
    }
}

#[inline(never)]
fn call(value: u64) {
    assert_ne!(black_box(value), 0);
}

fn main() {
    black_box(off_instant as fn())();
    black_box(off_span as fn())();
    black_box(off_around_calls as fn(i64))(1);
}
