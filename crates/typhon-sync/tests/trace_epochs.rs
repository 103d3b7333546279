//! What epochs record: kinds 106 to 111, field by field. Apart from the other tests of epochs, which would be recorded too.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "common/trace.rs"]
mod trace;

use std::sync::OnceLock;
use trace::recorded;
use typhon_profiler::thread::{is_gone, os_id};
use typhon_sync::epoch::EpochManager;

fn me() -> u16 {
    typhon_profiler::thread::current_id()
}

#[test]
fn k106_to_k110_tell_every_scope() {
    let epochs = EpochManager::new();
    let rows = recorded(&[106, 107, 108, 109, 110, 111], || {
        let mut outer = epochs.pin().unwrap();
        epochs.advance();
        outer.refresh().unwrap();
        let inner = epochs.pin_unordered().unwrap();
        drop(inner);
        drop(outer);
        (0..31).for_each(|_| drop(epochs.pin().unwrap()));
    });
    let kinds: Vec<u8> = rows.iter().map(|row| row.kind).collect();
    assert_eq!(kinds[..7], [110, 106, 108, 109, 106, 107, 107]);
    assert_eq!((rows[0].u16(0), rows[0].u16(2), rows[0].u16(4)), (0, me(), 1));
    let enter = |n: usize| (rows[n].u32(0), rows[n].u8(4), rows[n].u8(5));
    assert_eq!((enter(1), enter(4)), ((1, 0, 1), (2, 1, 0)));
    assert_eq!(rows[2].u32(0), 2);
    assert_eq!((rows[3].u32(0), rows[3].u32(4)), (1, 2));
    let exit = |n: usize| (rows[n].u32(0), rows[n].u8(4));
    assert_eq!((exit(5), exit(6)), ((2, 0), (2, 1)));
    // The 32nd exit advances the epoch, and says so before it says that it has left.
    assert_eq!(kinds[kinds.len() - 3..], [106, 108, 107]);
    assert_eq!(exit(rows.len() - 1), (3, 1));
    let count = |kind| kinds.iter().filter(|other| **other == kind).count();
    assert_eq!((count(106), count(107), count(108)), (33, 33, 2));
}

#[test]
#[cfg(target_os = "linux")]
fn k111_tells_whose_slot_was_taken_over() {
    static EPOCHS: OnceLock<EpochManager> = OnceLock::new();
    let epochs = EPOCHS.get_or_init(EpochManager::new);
    let mut owners = (0, 0);
    let rows = recorded(&[110, 111], || {
        // The guard is never dropped, so that the thread ends with its slot.
        let forget = || {
            std::mem::forget(epochs.pin_unordered().unwrap());
            (me(), os_id())
        };
        let (old_owner, thread) = std::thread::spawn(forget).join().unwrap();
        while !is_gone(thread) {
            std::thread::yield_now();
        }
        assert_eq!(epochs.min_active_epoch(), 1);
        let new_owner = || {
            drop(epochs.pin().unwrap());
            assert_eq!(epochs.threads(), 1);
            me()
        };
        owners = (old_owner, std::thread::spawn(new_owner).join().unwrap());
    });
    let kinds: Vec<u8> = rows.iter().map(|row| row.kind).collect();
    assert_eq!(kinds, [110, 111, 110]);
    assert_eq!((rows[1].u16(0), rows[1].u16(2), rows[1].u16(4)), (0, owners.0, owners.1));
    epochs.advance();
    assert_eq!(epochs.min_active_epoch(), 2, "the pin of the dead thread has ended");
}
