//! Looking at logs: whole, damaged, foreign, open elsewhere; nothing is changed and nothing is hidden.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use typhon_log::inspect::{FileState, Inspection, Stray};
use typhon_log::{Draft, LogError, Lsn, Options, Stop, Store};
use typhon_store::{Io, PoolIo, ReadOnly};
use typhon_sync::Deadline;

fn options() -> Options {
    Options { segment_bytes: 32 << 10, spare_segments: 1, ..Options::small() }
}

/// A log with commits of 3000 bytes, closed.
fn log(folder: &Path, commits: usize) -> PathBuf {
    let directory = folder.join("log");
    let log = start(&directory);
    for commit in 0..commits {
        log.commit(&Draft::commit(&[commit as u8; 3000]), Deadline::INFINITE).unwrap();
    }
    directory
}

fn start(directory: &Path) -> Store {
    Store::open(Arc::new(PoolIo::new()), directory, options(), b"state").unwrap().start(b"state").unwrap()
}

fn read_only() -> impl Io {
    ReadOnly::new(PoolIo::new(), |_| {})
}

fn look(directory: &Path) -> Inspection {
    Inspection::of_directory(&read_only(), directory).unwrap()
}

fn bodies(found: &Inspection) -> Vec<u8> {
    let mut frames = found.frames();
    let mut bodies = Vec::new();
    while let Some(frame) = frames.next_frame().unwrap() {
        bodies.push(frame.body[0]);
    }
    bodies
}

fn states(found: &Inspection) -> Vec<(String, FileState)> {
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().trim_start_matches('0').to_owned();
    found.files.iter().map(|file| (name(&file.path), file.state)).collect()
}

/// Changes bytes of a file.
fn damage(path: &Path, at: usize, bytes: &[u8]) {
    let mut content = fs::read(path).unwrap();
    content[at..at + bytes.len()].copy_from_slice(bytes);
    fs::write(path, content).unwrap();
}

fn segment(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:016}.wal"))
}

#[test]
fn a_whole_log_shows_every_frame_and_no_problem() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(folder.path(), 9);
    let found = look(&directory);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(bodies(&found), (0..9).collect::<Vec<u8>>());
    let view = found.anchor.unwrap();
    assert_eq!((view.anchor.open_epoch, view.anchor.base, view.state_bytes), (1, Lsn::START, 5));
    assert_eq!((found.report().stop, found.report().blocks), (Stop::End, 9));
    assert_eq!(found.next_tsn.0, 10);
    let expected = [("1.wal".to_owned(), FileState::Current), ("2.wal".to_owned(), FileState::Current)];
    assert_eq!(states(&found)[..2], expected);
    // Seven blocks of 4096 bytes fit behind the header of a segment.
    assert_eq!(found.files.iter().map(|file| file.blocks).collect::<Vec<_>>()[..2], [7, 2]);
    assert_eq!(found.tail.unwrap().1, 4096 * 3);
}

#[test]
fn segments_before_the_base_and_of_earlier_opens_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("log");
    let log = start(&directory);
    let pin = log.pin(Lsn::START);
    let mut last = Lsn::START;
    for _ in 0..9 {
        last = log.commit(&Draft::commit(&[7; 3000]), Deadline::INFINITE).unwrap().lsn;
    }
    log.checkpoint(last, b"").unwrap();
    drop(pin);
    let found = look(&directory);
    assert_eq!(
        states(&found)[..2],
        [("1.wal".to_owned(), FileState::Covered), ("2.wal".to_owned(), FileState::Current)]
    );
    assert!(bodies(&found).is_empty());
    drop(log);
    fs::copy(segment(&directory, 1), folder.path().join("old")).unwrap();
    drop(start(&directory));
    fs::copy(folder.path().join("old"), segment(&directory, 1)).unwrap();
    let found = look(&directory);
    assert_eq!(states(&found)[0], ("1.wal".to_owned(), FileState::Past));
    assert!(found.problems.is_empty(), "{:?}", found.problems);
}

#[test]
fn a_torn_tail_is_shown_with_its_place_and_is_no_problem() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(folder.path(), 3);
    // The body of the third frame.
    damage(&segment(&directory, 1), 4096 * 3 + 500, b"x");
    let found = look(&directory);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(bodies(&found), [0, 1]);
    assert!(matches!(found.report().stop, Stop::Torn(_)), "{:?}", found.report());
    assert_eq!(found.tail, Some((0, 4096 * 3)));
}

#[test]
fn damage_before_durable_frames_is_a_problem_and_the_prefix_is_still_shown() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(folder.path(), 5);
    damage(&segment(&directory, 1), 4096 * 2 + 500, b"x");
    let found = look(&directory);
    assert_eq!(bodies(&found), [0]);
    let [LogError::Corruption { beyond: 3, .. }] = &found.problems[..] else {
        panic!("{:?}", found.problems)
    };
}

#[test]
fn everything_that_is_wrong_is_listed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(folder.path(), 9);
    let other = tempfile::tempdir().unwrap();
    fs::copy(segment(&log(other.path(), 1), 1), segment(&directory, 50)).unwrap();
    fs::write(segment(&directory, 60), "%PDF-1.7 a report").unwrap();
    fs::remove_file(segment(&directory, 1)).unwrap();
    let found = look(&directory);
    let kinds: Vec<_> = found.problems.iter().map(|problem| format!("{problem:?}")).collect();
    let kinds: Vec<_> = kinds.iter().map(|kind| kind.split([' ', '{']).next().unwrap()).collect();
    assert_eq!(kinds, ["ForeignStore", "Foreign", "SegmentMissing", "Corruption"]);
    assert_eq!(states(&found).iter().filter(|(_, state)| *state == FileState::Foreign).count(), 2);
}

#[test]
fn without_an_anchor_the_newest_open_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(folder.path(), 2);
    drop(start(&directory));
    let log = start(&directory);
    log.commit(&Draft::commit(b"new"), Deadline::INFINITE).unwrap();
    drop(log);
    fs::remove_file(directory.join("anchor")).unwrap();
    let found = look(&directory);
    assert!(matches!(found.problems[..], [LogError::AnchorMissing { .. }]), "{:?}", found.problems);
    assert_eq!(bodies(&found), [b'n']);
    fs::write(directory.join("anchor"), [0; 8192]).unwrap();
    let found = look(&directory);
    assert!(matches!(found.problems[..], [LogError::AnchorDamaged { .. }]), "{:?}", found.problems);
    assert_eq!(bodies(&found), [b'n']);
}

#[test]
fn a_directory_without_a_log_says_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let error = Inspection::of_directory(&read_only(), folder.path()).unwrap_err();
    assert!(matches!(error, LogError::NotALog { .. }) && error.to_string().contains("no log"), "{error}");
    let error = Inspection::of_directory(&read_only(), &folder.path().join("missing")).unwrap_err();
    assert!(matches!(error, LogError::Storage { .. }), "{error}");
}

#[test]
fn one_segment_is_shown_whatever_is_beside_it_and_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(folder.path(), 9);
    let copy = folder.path().join("copy");
    fs::copy(segment(&directory, 2), &copy).unwrap();
    let found = Inspection::of_segment(&read_only(), &copy).unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(bodies(&found), [7, 8]);
    damage(&copy, 4096 + 100, b"x");
    let found = Inspection::of_segment(&read_only(), &copy).unwrap();
    assert!(bodies(&found).is_empty());
    assert!(matches!(found.problems[..], [LogError::Corruption { .. }]), "{:?}", found.problems);

    let spares = look(&directory).files.into_iter().filter(|file| file.state == FileState::Spare);
    for spare in spares {
        let found = Inspection::of_segment(&read_only(), &spare.path).unwrap();
        assert_eq!((found.files[0].state, found.problems.len()), (FileState::Spare, 0));
    }
    let error = Inspection::of_segment(&read_only(), &directory.join("anchor")).unwrap_err();
    assert!(matches!(error, LogError::Foreign { .. }), "{error}");
}

/// Frames of a block can be there before its padding is, when somebody writes.
#[test]
fn padding_that_arrives_while_somebody_looks_is_no_stray() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(folder.path(), 3);
    let one = segment(&directory, 1);
    damage(&one, 2 * 4096 - 10, b"x");
    assert_eq!(look(&directory).strays, [Stray { file: 0, offset: 2 * 4096 - 10, bytes: 1 }]);
    let late = one.clone();
    // The first reading of blocks; headers and the anchor are read alone.
    let io = ReadOnly::new(PoolIo::new(), move |bytes| {
        if bytes > 8192 {
            damage(&late, 2 * 4096 - 10, b"\0");
        }
    });
    let found = Inspection::of_directory(&io, &directory).unwrap();
    assert_eq!((found.strays, bodies(&look(&directory))), (vec![], vec![0, 1, 2]));
}

/// Whoever looks while the log is written, checkpointed and reopened never sees damage that is none.
#[test]
fn a_log_that_is_being_written_looks_sound() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("log");
    drop(start(&directory));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u32;
            while !is_done.load(Ordering::Relaxed) {
                let log = start(&directory);
                for _ in 0..40 {
                    number += 1;
                    let body = [number as u8; 1200];
                    let last = log.commit(&Draft::commit(&body), Deadline::INFINITE).unwrap();
                    if number.is_multiple_of(13) {
                        log.checkpoint(last.lsn, b"").unwrap();
                    }
                }
            }
        });
        for _ in 0..300 {
            let found = look(&directory);
            assert!(found.problems.is_empty(), "{:?} in {:#?}", found.problems, found.files);
            assert!(found.strays.is_empty(), "{:?} in {:#?}", found.strays, found.files);
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

/// The same for the one segment that is being written.
#[test]
fn a_segment_that_is_being_written_looks_sound() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("log");
    let long = Options { segment_bytes: 16 << 20, block_bytes: 64 << 10, ..Options::default() };
    let is_done = AtomicBool::new(false);
    let log = Store::open(Arc::new(PoolIo::new()), &directory, long, b"").unwrap().start(b"").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                log.commit(&Draft::commit(&[7; 40_000]), Deadline::INFINITE).unwrap();
            }
        });
        let mut newest = 1;
        for _ in 0..100 {
            while segment(&directory, newest + 1).exists() {
                newest += 1;
            }
            let found = Inspection::of_segment(&read_only(), &segment(&directory, newest)).unwrap();
            if !(found.problems.is_empty() && found.strays.is_empty()) {
                is_done.store(true, Ordering::Relaxed);
            }
            assert!(found.problems.is_empty(), "{:?}", found.problems);
            assert!(found.strays.is_empty(), "{:?}", found.strays);
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

/// A log that goes on takes files of its past for new segments.
#[test]
fn a_segment_that_becomes_another_while_somebody_looks_is_shown_as_that() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(folder.path(), 3);
    let of_past = fs::read(segment(&directory, 1)).unwrap();
    let number = {
        let again = start(&directory);
        again.commit(&Draft::commit(&[9; 3000]), Deadline::INFINITE).unwrap();
        let is_current = |file: &&typhon_log::inspect::FileView| file.state == FileState::Current;
        look(&directory).files.iter().find(is_current).unwrap().header.unwrap().id
    };
    let one = folder.path().join("one.wal");
    fs::write(&one, of_past).unwrap();
    let (to, next) = (one.clone(), fs::read(segment(&directory, number)).unwrap());
    let is_first = AtomicBool::new(true);
    let io = ReadOnly::new(PoolIo::new(), move |_| {
        if is_first.swap(false, Ordering::Relaxed) {
            fs::write(&to, &next).unwrap();
        }
    });
    let found = Inspection::of_segment(&io, &one).unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!((found.files[0].state, bodies(&found)), (FileState::Current, vec![9]));
}

#[test]
fn looking_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(folder.path(), 9);
    let state = || {
        let mut files: Vec<_> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.path(), fs::read(entry.path()).unwrap(), entry.metadata().unwrap().modified().unwrap())
            })
            .collect();
        files.sort();
        files
    };
    let before = state();
    look(&directory);
    assert!(state() == before);
}
