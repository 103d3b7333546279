//! An allocator that records every allocation, also those that the profiler itself makes while a thread gets its slot.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use typhon_profiler::events::{NamedSpan, SystemReady};
use typhon_profiler::{emit, is_on, span};

struct Recording;

static EMITTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Allocations of the thread.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Only the threads of the test record their allocations.
    static RECORDS: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Recording {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        if RECORDS.get() && is_on(4) {
            EMITTED.fetch_add(1, Ordering::Relaxed);
            emit(SystemReady::default);
        }
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Recording = Recording;

#[test]
fn b10_records_inside_records_are_counted() {
    let (recorded, outcome) = common::session(&[4, 77], || {
        for thread in 0..20 {
            let work = move || {
                RECORDS.set(true);
                // The first allocation claims the slot, for which the profiler allocates in turn.
                let text = format!("thread {thread}");
                RECORDS.set(false);
                drop(text);
            };
            std::thread::Builder::new().name(format!("t{thread}")).spawn(work).unwrap().join().unwrap();
        }
    });
    let emitted = EMITTED.load(Ordering::Relaxed);
    assert!(emitted > 20);
    assert!(outcome.report.no_slot_drops > 0, "claiming a slot allocates");
    assert_eq!(recorded.events() + recorded.losses(), emitted);
}

#[test]
fn b9_recording_allocates_nothing_once_a_thread_has_its_slot() {
    let (_, outcome) = common::session(common::ALL, || {
        let work = || {
            let record = || {
                let _span = span!(NamedSpan { name: "frame" });
                emit(SystemReady::default);
            };
            record();
            let before = ALLOCATIONS.get();
            // Some dozens of chunks.
            (0..50_000).for_each(|_| record());
            ALLOCATIONS.get() - before
        };
        std::thread::spawn(work).join().unwrap()
    });
    assert_eq!(outcome.result, 0);
}
