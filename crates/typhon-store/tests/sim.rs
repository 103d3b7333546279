//! The simulated disk keeps what was synced, and loses what a cruel disk loses.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use typhon_store::sim::{Failure, Faults, Random, SimIo, Survival};
use typhon_store::{Access, Buffer, File, Io, Op, Open, read_exact_at, write_all_at};

const PATH: &str = "/file";

fn create(io: &SimIo, path: &str) -> Arc<dyn File> {
    io.open(Path::new(path), Open::cached(Access::Create)).unwrap()
}

/// A file of two sectors of ones, durable with its name.
fn disk_with_ones(seed: u64) -> (SimIo, Arc<dyn File>) {
    let io = SimIo::new(seed);
    let file = create(&io, PATH);
    write_all_at(&*file, &[1; 1024], 0, false).unwrap();
    file.sync_data().unwrap();
    io.sync_dir(Path::new("/")).unwrap();
    (io, file)
}

fn content(io: &SimIo, path: &str) -> Option<Vec<u8>> {
    let file = io.open(Path::new(path), Open::cached(Access::Read)).ok()?;
    let mut bytes = vec![0; file.length().unwrap() as usize];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    Some(bytes)
}

/// The first byte of each sector, over many seeds, after two writes of two sectors each and a power cut.
fn survivors(survival: Survival) -> BTreeSet<(u8, u8, u8, u8)> {
    let worlds = (0..400).map(|seed| {
        let (io, file) = disk_with_ones(seed);
        write_all_at(&*file, &[2; 1024], 0, false).unwrap();
        write_all_at(&*file, &[3; 1024], 1024, false).unwrap();
        io.cut_power(survival);
        let bytes = content(&io, PATH).unwrap();
        let sector = |index: usize| bytes.get(index * 512).copied().unwrap_or(9);
        (sector(0), sector(1), sector(2), sector(3))
    });
    worlds.collect()
}

#[test]
fn a_clean_cut_keeps_exactly_what_was_synced() {
    assert_eq!(survivors(Survival::Nothing), [(1, 1, 9, 9)].into());
    assert_eq!(survivors(Survival::Everything), [(2, 2, 3, 3)].into());
}

#[test]
fn a_torn_write_ends_at_any_sector() {
    let found = survivors(Survival::Torn);
    assert!(found.is_superset(&[(1, 1, 9, 9), (2, 1, 9, 9), (2, 2, 0, 0), (2, 2, 3, 0)].into()), "{found:?}");
    assert!(found.iter().all(|sectors| sectors.2 != 3 || sectors.0 == 2), "order kept: {found:?}");
}

#[test]
fn a_reordered_subset_keeps_later_writes_without_earlier_ones() {
    let found = survivors(Survival::Subset);
    assert!(found.contains(&(1, 1, 3, 3)) && found.contains(&(2, 2, 9, 9)), "{found:?}");
    assert!(found.iter().all(|sectors| sectors.0 == sectors.1), "each write is whole: {found:?}");
}

#[test]
fn zero_fill_keeps_lengths_without_bytes() {
    assert_eq!(survivors(Survival::Zeros), [(0, 0, 0, 0)].into());
}

#[test]
fn a_mixed_cut_decides_by_sector() {
    let found = survivors(Survival::Mixed);
    assert!(found.contains(&(1, 2, 3, 0)) && found.contains(&(0, 1, 9, 9)), "{} kinds", found.len());
}

#[test]
fn what_was_synced_survives_every_cut() {
    for survival in Survival::ALL {
        for seed in 0..50 {
            let (io, file) = disk_with_ones(seed);
            write_all_at(&*file, &[2; 512], 512, false).unwrap();
            file.sync_data().unwrap();
            io.cut_power(survival);
            assert_eq!(content(&io, PATH).unwrap(), [[1; 512], [2; 512]].concat(), "{survival:?} {seed}");
        }
    }
}

#[test]
fn a_write_that_is_durable_at_once_is() {
    let (io, file) = disk_with_ones(0);
    write_all_at(&*file, &[2; 512], 512, true).unwrap();
    write_all_at(&*file, &[3; 512], 0, false).unwrap();
    io.cut_power(Survival::Nothing);
    assert_eq!(content(&io, PATH).unwrap(), [[1; 512], [2; 512]].concat());
}

#[test]
fn a_name_without_directory_sync_may_vanish_with_its_synced_bytes() {
    let found: BTreeSet<bool> = (0..50)
        .map(|seed| {
            let io = SimIo::new(seed);
            let file = create(&io, PATH);
            write_all_at(&*file, b"gone", 0, false).unwrap();
            file.sync_data().unwrap();
            io.cut_power(Survival::Mixed);
            content(&io, PATH).is_some()
        })
        .collect();
    assert_eq!(found, [false, true].into());
}

#[test]
fn renames_and_removals_are_undone_unless_synced() {
    let (io, _) = disk_with_ones(0);
    io.rename(Path::new(PATH), Path::new("/other")).unwrap();
    assert_eq!(content(&io, PATH), None);
    io.cut_power(Survival::Nothing);
    assert!(content(&io, PATH).is_some() && content(&io, "/other").is_none());
    io.remove(Path::new(PATH)).unwrap();
    io.sync_dir(Path::new("/")).unwrap();
    io.cut_power(Survival::Nothing);
    assert_eq!(content(&io, PATH), None);
}

#[test]
fn a_directory_that_vanishes_takes_its_files_along() {
    let io = SimIo::new(0);
    io.create_dir(Path::new("/wal")).unwrap();
    let file = create(&io, "/wal/1");
    write_all_at(&*file, b"x", 0, false).unwrap();
    file.sync_data().unwrap();
    io.sync_dir(Path::new("/wal")).unwrap();
    io.cut_power(Survival::Nothing);
    assert!(io.list(Path::new("/wal")).is_err());
    assert_eq!(content(&io, "/wal/1"), None);
}

#[test]
fn killing_the_process_keeps_the_cache_and_makes_nothing_durable() {
    let (io, file) = disk_with_ones(0);
    write_all_at(&*file, &[2; 1024], 0, false).unwrap();
    io.kill();
    assert_eq!(content(&io, PATH).unwrap(), [2; 1024]);
    io.cut_power(Survival::Nothing);
    assert_eq!(content(&io, PATH).unwrap(), [1; 1024]);
}

#[test]
fn a_failed_sync_is_followed_by_a_success_that_lies() {
    let lost = (0..50).filter(|seed| {
        let (io, file) = disk_with_ones(*seed);
        io.set_faults(Faults { sync_error: 1_000_000, ..Faults::default() });
        write_all_at(&*file, &[2; 1024], 0, false).unwrap();
        file.sync_data().unwrap_err();
        io.set_faults(Faults::default());
        file.sync_data().unwrap();
        assert_eq!(content(&io, PATH).unwrap(), [2; 1024], "the cache still shows it");
        io.cut_power(Survival::Everything);
        content(&io, PATH).unwrap() != [2; 1024]
    });
    assert!(lost.count() > 20);
}

#[test]
fn dropping_the_cache_shows_what_the_media_hold() {
    let shown = (0..50).filter(|seed| {
        let (io, file) = disk_with_ones(*seed);
        io.set_faults(Faults { sync_error: 1_000_000, ..Faults::default() });
        write_all_at(&*file, &[2; 1024], 0, false).unwrap();
        file.sync_data().unwrap_err();
        file.drop_cache().unwrap();
        content(&io, PATH).unwrap() != [2; 1024]
    });
    assert!(shown.count() > 20);
}

#[test]
fn a_lying_disk_loses_what_it_promised() {
    let (io, file) = disk_with_ones(0);
    io.set_faults(Faults { lying_sync: true, ..Faults::default() });
    write_all_at(&*file, &[2; 512], 0, true).unwrap();
    write_all_at(&*file, &[2; 512], 512, false).unwrap();
    file.sync_data().unwrap();
    io.cut_power(Survival::Nothing);
    assert_eq!(content(&io, PATH).unwrap(), [1; 1024]);
}

#[test]
fn the_call_at_which_the_machine_stops_does_not_happen() {
    let (io, file) = disk_with_ones(0);
    io.crash_at(Some(io.calls() + 2));
    write_all_at(&*file, &[2; 1024], 0, false).unwrap();
    file.sync_data().unwrap_err();
    assert!(io.is_down());
    io.open(Path::new(PATH), Open::cached(Access::Read)).unwrap_err();
    io.cut_power(Survival::Nothing);
    assert_eq!(content(&io, PATH).unwrap(), [1; 1024]);
    file.sync_data().unwrap_err();
}

#[test]
fn a_chosen_call_goes_wrong_as_chosen_and_no_other_does() {
    let (io, file) = disk_with_ones(0);
    let write = |bytes: usize| file.write_some_at(&vec![2; bytes], 0);
    let next = |failure| io.fail_at(Some((io.calls() + 1, failure)));
    next(Failure::ShortWrite);
    assert!(write(1024).unwrap() < 1024);
    assert_eq!(write(1024).unwrap(), 1024);
    next(Failure::Error);
    write(1024).unwrap_err();
    write(1024).unwrap();
    next(Failure::Error);
    file.sync_data().unwrap_err();
    file.sync_data().unwrap();
    next(Failure::NoSpace);
    assert_eq!(write(1024).unwrap(), 1024, "it does not grow");
    next(Failure::NoSpace);
    assert_eq!(write(2048).unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    next(Failure::Error);
    io.rename(Path::new(PATH), Path::new("/other")).unwrap_err();
    next(Failure::Error);
    io.sync_dir(Path::new("/")).unwrap_err();
    io.rename(Path::new(PATH), Path::new("/other")).unwrap();
    assert!(!io.is_down());
}

#[test]
fn short_writes_are_completed_and_failed_ones_leave_a_part() {
    let (io, file) = disk_with_ones(3);
    io.set_faults(Faults { short_write: 900_000, ..Faults::default() });
    let calls = io.calls();
    write_all_at(&*file, &[2; 1024], 0, false).unwrap();
    assert!(io.calls() - calls > 1);
    assert_eq!(content(&io, PATH).unwrap(), [2; 1024]);

    io.set_faults(Faults { write_error: 1_000_000, ..Faults::default() });
    write_all_at(&*file, &[3; 1024], 0, false).unwrap_err();
    let bytes = content(&io, PATH).unwrap();
    assert!(bytes.contains(&3) && bytes.contains(&2));
}

#[test]
fn a_full_disk_refuses_growth_only() {
    let (io, file) = disk_with_ones(0);
    io.set_faults(Faults { no_space: 1_000_000, ..Faults::default() });
    write_all_at(&*file, &[2; 1024], 0, false).unwrap();
    let full = write_all_at(&*file, &[2; 1024], 512, false).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let full = io.open(Path::new("/new"), Open::cached(Access::Create)).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn a_lock_has_one_holder_until_it_is_dropped_or_the_process_ends() {
    let io = SimIo::new(0);
    let path = Path::new("/lock");
    let held = io.lock(path).unwrap();
    assert_eq!(io.lock(path).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(held);
    let left_behind = io.lock(path).unwrap();
    io.kill();
    let held = io.lock(path).unwrap();
    drop(left_behind);
    io.lock(path).unwrap_err();
    drop(held);
}

#[test]
fn a_file_that_was_cut_and_grew_again_reads_zero_in_between() {
    let (io, file) = disk_with_ones(0);
    file.set_length(100).unwrap();
    write_all_at(&*file, &[2; 24], 1000, false).unwrap();
    file.sync_data().unwrap();
    io.cut_power(Survival::Nothing);
    let bytes = content(&io, PATH).unwrap();
    assert_eq!((bytes[99], bytes[100], bytes[700], bytes[1000]), (1, 0, 0, 2));
}

#[test]
fn the_remains_of_a_killed_process_change_nothing() {
    let (io, _) = disk_with_ones(0);
    let process = io.process();
    create(&process, "/before");
    io.kill();
    process.open(Path::new("/after"), Open::cached(Access::Create)).unwrap_err();
    process.remove(Path::new(PATH)).unwrap_err();
    process.sync_dir(Path::new("/")).unwrap_err();
    assert!(content(&io, PATH).is_some() && content(&io, "/after").is_none());
    create(&io.process(), "/after");
}

/// Every choice of a disk follows from its seed.
#[test]
fn the_same_seed_and_calls_give_the_same_disk() {
    let run = |seed: u64| {
        let (io, file) = disk_with_ones(seed);
        io.set_faults(Faults {
            write_error: 100_000,
            short_write: 300_000,
            sync_error: 100_000,
            ..Faults::default()
        });
        let mut choices = Random::new(7);
        let mut results = Vec::new();
        for _ in 0..200 {
            let (offset, byte) = (choices.below(4000), choices.below(256) as u8);
            results.push(match choices.below(3) {
                0 => file.sync_data().is_ok(),
                _ => write_all_at(&*file, &[byte; 700], offset, false).is_ok(),
            });
        }
        io.cut_power(Survival::Mixed);
        (results, content(&io, PATH))
    };
    assert_eq!(run(11), run(11));
    assert_ne!(run(11), run(12));
}

#[test]
fn a_submitted_request_completes_with_its_buffer() {
    let (io, file) = disk_with_ones(0);
    let done = io.submit(Op::Read { file: Arc::clone(&file), buffer: Buffer::zeroed(600), offset: 0 }).wait();
    done.result.unwrap();
    assert_eq!(done.buffer.unwrap()[..], [1; 600]);
    let past_end = io.submit(Op::Read { file, buffer: Buffer::zeroed(600), offset: 900 }).wait();
    assert_eq!(past_end.result.unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
}
