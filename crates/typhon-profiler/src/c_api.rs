//! The profiler for programs in other languages: `include/typhon_profiler.h` (feature `c-api`, brief 03 B-10).
//!
//! Any dynamic library that this crate is linked into exports these functions, so a .NET application that loads an
//! engine as a native library calls them with `DllImport`. Only numbers cross the border: no pointer, no memory that
//! belongs to one of the sides.
// Exporting a name is what counts as unsafe here: no other library of the process may define the same one.
#![allow(unsafe_code)]

use crate::gc::{
    Bridge, BridgeError, Collection, CollectionStart, GcReason, GcType, HeapSizes, SuspendReason,
};
use crate::{Status, init, shutdown};
use std::panic::{UnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bridge of the process.
static BRIDGE: Mutex<Option<Bridge>> = Mutex::new(None);

fn bridge() -> MutexGuard<'static, Option<Bridge>> {
    BRIDGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A panic must not leave Rust; it has been reported by then.
fn guarded(or: i32, work: impl FnOnce() -> i32 + UnwindSafe) -> i32 {
    catch_unwind(work).unwrap_or(or)
}

fn with_bridge(put: impl FnOnce(&Bridge) -> bool + UnwindSafe) -> i32 {
    guarded(0, || bridge().as_ref().is_some_and(put).into())
}

/// [`init`]: 1 if a recording runs now, 0 if none is configured, -1 if it could not start.
#[unsafe(no_mangle)]
pub extern "C" fn typhon_init() -> i32 {
    guarded(-1, || match init() {
        Status::Recording => 1,
        Status::Off => 0,
        Status::Failed => -1,
    })
}

/// [`shutdown`]: 1 if a recording ran, 0 if not.
#[unsafe(no_mangle)]
pub extern "C" fn typhon_shutdown() -> i32 {
    guarded(0, || shutdown().is_some().into())
}

/// The clock of all times below, in ns.
#[unsafe(no_mangle)]
pub extern "C" fn typhon_now_ns() -> u64 {
    typhon_clr::session::monotonic_ns()
}

/// [`Bridge::open`]: 1 if collections may be pushed now, 0 if none are recorded, -1 if a bridge is open already.
#[unsafe(no_mangle)]
pub extern "C" fn typhon_gc_open() -> i32 {
    guarded(-1, || {
        let mut bridge = bridge();
        if bridge.as_ref().is_some_and(Bridge::is_open) {
            return -1;
        }
        *bridge = None;
        match Bridge::open() {
            Ok(open) => {
                *bridge = Some(open);
                1
            }
            Err(BridgeError::NotTraced) => 0,
            Err(_) => -1,
        }
    })
}

/// Ends pushing; the reader of the configured target goes on.
#[unsafe(no_mangle)]
pub extern "C" fn typhon_gc_close() {
    guarded(0, || bridge().take().is_some().into());
}

/// [`Bridge::start`]: 1 if it was accepted, 0 if it was dropped.
#[unsafe(no_mangle)]
pub extern "C" fn typhon_gc_start(
    time_ns: u64,
    count: u32,
    generation: u32,
    reason: u32,
    gc_type: u32,
) -> i32 {
    with_bridge(|bridge| {
        let (reason, kind) = (GcReason(reason), GcType(gc_type));
        bridge.start(CollectionStart { timestamp: time_ns, count, generation, reason, kind })
    })
}

/// [`Bridge::end`]: 1 if it was accepted, 0 if it was dropped. Committed bytes of 0 are unknown ones.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a structure would have to be laid out alike on both sides")]
pub extern "C" fn typhon_gc_end(
    time_ns: u64,
    count: u32,
    generation: u32,
    pause_ns: u64,
    promoted_bytes: u64,
    gen0_bytes: u64,
    gen1_bytes: u64,
    gen2_bytes: u64,
    loh_bytes: u64,
    poh_bytes: u64,
    committed_bytes: u64,
) -> i32 {
    with_bridge(|bridge| {
        let heap = HeapSizes {
            size_bytes: [gen0_bytes, gen1_bytes, gen2_bytes, loh_bytes, poh_bytes],
            promoted_bytes,
            promoted_is_complete: true,
            size_before_bytes: None,
        };
        bridge.end(Collection {
            timestamp: time_ns,
            count,
            generation,
            start: None,
            pause_ticks: pause_ns,
            heap: Some(heap),
            committed_bytes: (committed_bytes != 0).then_some(committed_bytes),
        })
    })
}

/// [`Bridge::suspend_begin`]: 1 if it was accepted, 0 if it was dropped.
#[unsafe(no_mangle)]
pub extern "C" fn typhon_gc_suspend_begin(time_ns: u64, thread: u64, reason: u32) -> i32 {
    with_bridge(|bridge| bridge.suspend_begin(time_ns, thread, SuspendReason(reason)))
}

/// [`Bridge::suspend_end`]: 1 if it was accepted, 0 if it was dropped.
#[unsafe(no_mangle)]
pub extern "C" fn typhon_gc_suspend_end(time_ns: u64, thread: u64) -> i32 {
    with_bridge(|bridge| bridge.suspend_end(time_ns, thread))
}
