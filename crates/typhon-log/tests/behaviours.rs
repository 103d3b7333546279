//! What a log promises beside surviving: numbers, rotation, groups, waiting and closing. `xtask/tests/log_guarantees.rs`
//! lists which test holds up which promise.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod slow;

use slow::Slow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use typhon_log::inspect::{FileState, Inspection};
use typhon_log::{Draft, LogError, Lsn, Opening, Options, Store, Tsn};
use typhon_store::ReadOnly;
use typhon_store::sim::SimIo;
use typhon_sync::Deadline;

const DIRECTORY: &str = "/db";

fn open(io: &SimIo, options: Options) -> Opening {
    Store::open(Arc::new(io.process()), Path::new(DIRECTORY), options, b"").unwrap()
}

fn start(io: &SimIo, options: Options) -> Store {
    open(io, options).start(b"").unwrap()
}

fn bodies(opening: &Opening) -> Vec<Vec<u8>> {
    let mut frames = opening.frames();
    let mut bodies = Vec::new();
    while let Some(frame) = frames.next_frame().unwrap() {
        bodies.push(frame.body.to_vec());
    }
    bodies
}

#[test]
fn i1_the_durable_position_is_never_beyond_the_appended_one_and_neither_goes_back() {
    let log = start(&SimIo::new(1), Options::small());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = log.watermarks();
            while !is_done.load(Ordering::Relaxed) {
                let marks = log.watermarks();
                assert!(marks.durable <= marks.appended, "{marks:?}");
                assert!(
                    marks.durable >= last.durable
                        && marks.appended >= last.appended
                        && marks.next_tsn >= last.next_tsn,
                    "{last:?} {marks:?}"
                );
                last = marks;
            }
        });
        for _ in 0..500 {
            log.commit(&Draft::commit(&[1; 100]), Deadline::INFINITE).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn b35_t23_a_frame_larger_than_a_segment_gets_one_of_its_size_and_nothing_lies_beyond_a_declared_size() {
    let io = SimIo::new(1);
    let options = Options { segment_bytes: 8 << 10, block_bytes: 4 << 10, ..Options::small() };
    let log = start(&io, options.clone());
    let sizes = [10, 20_000, 3_000, 30_000, 10];
    for bytes in sizes {
        log.commit(&Draft::commit(&vec![7; bytes]), Deadline::INFINITE).unwrap();
    }
    drop(log);
    let found = Inspection::of_directory(&ReadOnly::new(io.process(), |_| {}), Path::new(DIRECTORY)).unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let segments: Vec<_> = found.files.iter().filter(|file| file.state == FileState::Current).collect();
    assert!(segments.len() >= sizes.len() - 1, "{segments:?}");
    for segment in &segments {
        assert_eq!(segment.header.unwrap().size_bytes, segment.bytes, "{segment:?}");
    }
    assert!(segments.iter().any(|segment| segment.bytes > 30_000));
    assert_eq!(bodies(&open(&io, options)).iter().map(Vec::len).collect::<Vec<_>>(), sizes);
}

/// What the segments of one time between checkpoints were is what those of the next one become: nothing is filled and
/// nothing deleted, which would cost as much as writing the log once more.
#[test]
fn a_log_that_is_checkpointed_again_and_again_makes_no_new_files() {
    const COMMITS: u64 = 9;
    const ROTATIONS: u64 = 3;
    let io = SimIo::new(1);
    // Each commit is a block, and three of them fill a segment.
    let log = start(&io, Options { segment_bytes: 16 << 10, spare_segments: 1, ..Options::small() });
    let calls_of_cycle = || {
        let before = io.calls();
        for _ in 0..COMMITS {
            log.commit(&Draft::commit(&[1; 3000]), Deadline::INFINITE).unwrap();
        }
        log.checkpoint(log.watermarks().durable, b"").unwrap();
        io.calls() - before
    };
    let first = calls_of_cycle();
    calls_of_cycle();
    // A block: write, sync. A new segment: write and sync of the header, new name, sync of the directory. The anchor: write,
    // sync.
    let least = COMMITS * 2 + ROTATIONS * 4 + 2;
    assert!(first > least, "{first}");
    for _ in 0..5 {
        assert_eq!(calls_of_cycle(), least);
    }
}

#[test]
fn b37_t24_t25_numbers_go_on_above_everything_and_the_durable_position_begins_there() {
    let io = SimIo::new(1);
    let mut last = (Lsn(0), Tsn(0), 0);
    for _ in 0..4 {
        let log = start(&io, Options::small());
        let marks = log.watermarks();
        assert_eq!(marks.durable, marks.appended, "seeded before the first append");
        // Closing an unused log does not wait for anything.
        log.wait_durable(marks.durable, Deadline::EXPIRED).unwrap();
        let appended = log.commit(&Draft::commit(b"x"), Deadline::INFINITE).unwrap();
        let id = log.anchor().log_floor;
        assert!(
            appended.lsn > last.0 && appended.tsn.unwrap() > last.1 && id > last.2,
            "{appended:?} {last:?}"
        );
        // A frame that is appended and lost with the process counts as well.
        let lost = log.append(&Draft::commit(b"lost"), Deadline::INFINITE).unwrap();
        last = (lost.lsn, lost.tsn.unwrap(), id);
        io.kill();
        drop(log);
    }
}

#[test]
fn t13_frames_of_a_group_share_one_sync() {
    let options =
        Options { writer_thread: true, group_interval: Duration::from_millis(20), ..Options::small() };
    let log = start(&SimIo::new(1), options);
    let before = log.written().0;
    let mut last = Lsn::START;
    for _ in 0..50 {
        last = log.append(&Draft::commit(b"grouped"), Deadline::INFINITE).unwrap().lsn;
        log.group();
    }
    let deadline = Deadline::from_timeout(Duration::from_secs(60));
    while log.watermarks().durable < last {
        assert!(!deadline.is_expired(), "nobody writes the group");
        std::thread::yield_now();
    }
    // Each group takes its time; a machine that stands still may make two or three of them.
    let groups = log.written().0 - before;
    assert!((1..=10).contains(&groups), "{groups} syncs for 50 frames");
}

/// Nobody is there to write it later.
#[test]
fn a_group_without_the_thread_is_written_at_once() {
    let log = start(&SimIo::new(1), Options { writer_thread: false, ..Options::small() });
    let grouped = log.append(&Draft::commit(b"grouped"), Deadline::INFINITE).unwrap().lsn;
    log.group();
    assert_eq!(log.watermarks().durable, grouped);
}

/// Also one that is opened when the thread has long been asleep.
#[test]
fn every_group_is_written_by_itself() {
    let options =
        Options { writer_thread: true, group_interval: Duration::from_millis(1), ..Options::small() };
    let log = start(&SimIo::new(1), options);
    for _ in 0..20 {
        // Takes some time, and does not wake the thread.
        for _ in 0..50 {
            log.commit(&Draft::commit(b"not grouped"), Deadline::INFINITE).unwrap();
        }
        let grouped = log.append(&Draft::commit(b"grouped"), Deadline::INFINITE).unwrap().lsn;
        log.group();
        let deadline = Deadline::from_timeout(Duration::from_secs(60));
        while log.watermarks().durable < grouped {
            assert!(!deadline.is_expired(), "nobody writes the group");
            std::thread::yield_now();
        }
    }
}

/// Halfway through making a file ready, and not on any other thread.
fn writer_thread_panics() {
    assert!(std::thread::current().name() != Some("Typhon-WAL-Writer"), "planted, in the background thread");
}

/// Nobody else would write, and nobody would find out.
#[test]
fn a_panic_of_the_background_thread_ends_the_log() {
    let options =
        Options { spare_segments: 1, writer_thread: true, waiters_write: false, ..Options::small() };
    let io = Slow { io: SimIo::new(1), sync_time: Duration::ZERO, when_created: writer_thread_panics };
    let log = Store::open(Arc::new(io), Path::new(DIRECTORY), options, b"").unwrap().start(b"").unwrap();
    let deadline = Deadline::from_timeout(Duration::from_secs(20));
    // At first the thread may not have come to it.
    let error = (0..).find_map(|_| log.commit(&Draft::commit(b"who writes it?"), deadline).err()).unwrap();
    assert!(matches!(error, LogError::Failed { .. }) && error.to_string().contains("panicked"), "{error}");
}

/// Less than half the ring is full, nobody waits for that to be durable, and the rest is held: only writing makes room for
/// a fence, which waits for nobody who holds space.
#[test]
fn a_fence_that_needs_room_has_it_made() {
    for (waiters_write, writer_thread) in [(true, false), (true, true), (false, true)] {
        let options = Options { ring_bytes: 4096, waiters_write, writer_thread, ..Options::small() };
        let log = start(&SimIo::new(1), options);
        log.append(&Draft::commit(&[1; 1900]), Deadline::INFINITE).unwrap();
        let _held = log.reserve(2048, Deadline::INFINITE).unwrap();
        let fence = log.reserve_fence(2048, Deadline::from_timeout(Duration::from_secs(10)));
        assert!(fence.is_ok(), "{waiters_write} {writer_thread}: {fence:?}");
    }
}

/// Nobody waits, flushes or groups.
#[test]
fn half_a_full_ring_is_written_by_itself() {
    let options = Options { ring_bytes: 64 << 10, writer_thread: true, ..Options::small() };
    let log = start(&SimIo::new(1), options);
    let before = log.watermarks().durable;
    for _ in 0..9 {
        log.append(&Draft::commit(&[1; 4000]), Deadline::EXPIRED).unwrap();
    }
    let deadline = Deadline::from_timeout(Duration::from_secs(60));
    while log.watermarks().durable == before {
        assert!(!deadline.is_expired(), "nobody writes it");
        std::thread::yield_now();
    }
}

#[test]
fn b33_b34_t12_t18_many_threads_through_a_small_ring_all_get_through_in_one_order() {
    const THREADS: u64 = 8;
    const FRAMES: u64 = 100;
    let io = SimIo::new(1);
    for writer_thread in [false, true] {
        let options = Options { ring_bytes: 4 << 10, writer_thread, ..Options::small() };
        let log = start(&io, options.clone());
        let base = log.anchor().base;
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let log = &log;
                scope.spawn(move || {
                    for number in 0..FRAMES {
                        let mut body = vec![0; 100 + (number * 37 % 900) as usize];
                        body[..8].copy_from_slice(&(thread << 32 | number).to_le_bytes());
                        let draft = Draft::commit(&body);
                        match number % 3 {
                            0 => log.commit(&draft, Deadline::INFINITE).map(drop).unwrap(),
                            _ => log.append(&draft, Deadline::INFINITE).map(drop).unwrap(),
                        }
                    }
                });
            }
        });
        drop(log);
        let opening = open(&io, options);
        assert_eq!(opening.report().base, base);
        let mut next = [0; THREADS as usize];
        let mut frames = opening.frames();
        let mut last_tsn = 0;
        while let Some(frame) = frames.next_frame().unwrap() {
            let word = u64::from_le_bytes(frame.body[..8].try_into().unwrap());
            let thread = (word >> 32) as usize;
            assert_eq!(word & 0xFFFF_FFFF, next[thread]);
            next[thread] += 1;
            assert!(
                last_tsn == 0 || frame.header.seq == last_tsn + 1,
                "dense, and in the order of positions"
            );
            last_tsn = frame.header.seq;
        }
        assert_eq!(next, [FRAMES; THREADS as usize]);
        drop(opening.start(b"").unwrap());
    }
}

#[test]
fn t20_closing_writes_whatever_is_left_however_large() {
    for writer_thread in [false, true] {
        let io = SimIo::new(1);
        let options =
            Options { block_bytes: 4 << 10, segment_bytes: 16 << 10, writer_thread, ..Options::small() };
        let log = start(&io, options.clone());
        let sizes = [30_000, 5_000, 1, 12_000];
        for bytes in sizes {
            log.append(&Draft::commit(&vec![1; bytes]), Deadline::INFINITE).unwrap();
        }
        let marks = log.close(Deadline::INFINITE).unwrap();
        assert_eq!(marks.durable, marks.appended);
        io.cut_power(typhon_store::sim::Survival::Nothing);
        assert_eq!(bodies(&open(&io, options)).iter().map(Vec::len).collect::<Vec<_>>(), sizes);
    }
}
