//! Two call sites whose kinds are off, for `cargo xtask models`, which counts their instructions.

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

fn main() {
    black_box(off_instant as fn())();
    black_box(off_span as fn())();
}
