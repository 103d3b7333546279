//! Wrong files, foreign versions, locks, missing files, missing rights, a full disk: said clearly, changing nothing,
//! with a way out.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use typhon_log::format::StoreId;
use typhon_log::{Anchor, Draft, LogError, Lsn, Opening, Options, Recovered, Store};
use typhon_store::sim::{Faults, SimIo};
use typhon_store::{Io, PoolIo};
use typhon_sync::Deadline;

fn open(directory: &Path) -> Result<Opening, LogError> {
    Store::open(Arc::new(PoolIo::new()), directory, Options::small(), b"")
}

/// A log with one durable frame, closed.
fn log(folder: &tempfile::TempDir) -> PathBuf {
    let directory = folder.path().join("log");
    let log = open(&directory).unwrap().start(b"").unwrap();
    log.commit(&Draft::commit(b"kept"), Deadline::INFINITE).unwrap();
    directory
}

/// Names and bytes of everything in a directory.
fn everything(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// The error of opening, which names the path and a remedy and changes nothing.
fn refused(directory: &Path, names: &[&str]) -> LogError {
    let before = everything(directory);
    let error = open(directory).unwrap_err();
    let text = error.to_string();
    for name in names {
        assert!(text.contains(name), "{name} is not in: {text}");
    }
    assert_eq!(everything(directory), before, "{text}");
    error
}

#[test]
fn a_second_open_is_told_that_the_log_is_locked() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(&folder);
    let held = open(&directory).unwrap();
    assert!(matches!(refused(&directory, &["lock", "open elsewhere"]), LogError::Locked { .. }));
    drop(held);
    open(&directory).unwrap();
}

#[test]
fn files_that_are_not_ours_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(&folder);
    fs::write(directory.join("notes.txt"), "mine").unwrap();
    fs::write(directory.join("7.wal"), "of another program").unwrap();
    drop(open(&directory).unwrap().start(b"").unwrap());
    assert_eq!(fs::read(directory.join("notes.txt")).unwrap(), b"mine");
    assert_eq!(fs::read(directory.join("7.wal")).unwrap(), b"of another program");

    fs::write(directory.join("0000000000000099.wal"), "%PDF-1.7 a report").unwrap();
    assert!(matches!(refused(&directory, &["99.wal", "move it"]), LogError::Foreign { .. }));
}

#[test]
fn a_foreign_anchor_a_short_one_and_a_missing_one_are_three_things() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(&folder);
    let anchor = directory.join("anchor");
    fs::write(&anchor, [b'x'; 8192]).unwrap();
    assert!(matches!(refused(&directory, &["anchor", "move it"]), LogError::Foreign { .. }));
    fs::write(&anchor, [0; 100]).unwrap();
    assert!(matches!(refused(&directory, &["too short", "backup"]), LogError::AnchorDamaged { .. }));
    fs::write(&anchor, [0; 8192]).unwrap();
    assert!(matches!(refused(&directory, &["both slots", "backup"]), LogError::AnchorDamaged { .. }));
    fs::remove_file(&anchor).unwrap();
    assert!(matches!(refused(&directory, &["missing", "restore"]), LogError::AnchorMissing { .. }));
}

/// Rewrites a checksummed header with another version.
fn set_version(path: &Path, at: usize, covered: usize, crc_at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at + 4] = 9;
    let crc = crc32c::crc32c(&bytes[at..at + covered]);
    bytes[at + crc_at..at + crc_at + 4].copy_from_slice(&crc.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn other_versions_are_refused_with_both_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(&folder);
    set_version(&directory.join("0000000000000001.wal"), 0, 60, 60);
    assert!(matches!(refused(&directory, &["version 9", "version 1"]), LogError::Version { found: 9, .. }));

    let folder = tempfile::tempdir().unwrap();
    let directory = log(&folder);
    set_version(&directory.join("anchor"), 4096, 4092, 4092);
    assert!(matches!(refused(&directory, &["anchor", "version 9"]), LogError::Version { found: 9, .. }));
}

#[test]
fn a_segment_of_another_database_is_refused() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (directory, foreign) = (log(&folder), log(&other));
    let name = "0000000000000009.wal";
    fs::copy(foreign.join("0000000000000001.wal"), directory.join(name)).unwrap();
    assert!(matches!(refused(&directory, &[name, "belongs"]), LogError::ForeignStore { .. }));
}

#[test]
fn a_missing_segment_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(&folder);
    fs::remove_file(directory.join("0000000000000001.wal")).unwrap();
    assert!(matches!(refused(&directory, &["missing", "4096"]), LogError::SegmentMissing { .. }));
}

#[test]
fn a_file_in_place_of_the_directory_and_a_missing_parent_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    let error = open(&file).unwrap_err().to_string();
    assert!(error.contains("file") && error.contains("create"), "{error}");
    let error = open(&folder.path().join("no/such")).unwrap_err().to_string();
    assert!(error.contains("no/such"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

#[test]
fn options_are_refused_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { ring_bytes: 5, segment_bytes: 1, waiters_write: false, ..Options::small() };
    let error = Store::open(Arc::new(PoolIo::new()), &folder.path().join("log"), options, b"").unwrap_err();
    let LogError::Options(faults) = &error else { panic!("{error}") };
    assert_eq!(faults.len(), 3, "{error}");
    assert!(!folder.path().join("log").exists());
}

// ---- while it is open

/// For what ends at once, so that a mistake is a failure and not a test that hangs.
fn within_a_minute() -> Deadline {
    Deadline::from_timeout(Duration::from_secs(60))
}

fn simulated(options: Options) -> (SimIo, Store) {
    let io = SimIo::new(1);
    let store = Store::open(Arc::new(io.process()), Path::new("/db"), options, b"").unwrap();
    (io, store.start(b"").unwrap())
}

#[test]
fn b34_a_frame_larger_than_half_the_ring_is_refused_at_once() {
    let (_, log) = simulated(Options::small());
    let body = vec![0; 40_000];
    let error = log.append(&Draft::commit(&body), Deadline::INFINITE).unwrap_err();
    assert!(matches!(error, LogError::TooLarge { limit: 32_768, .. }), "{error}");
    assert_eq!(error.code(), Some(7002));
}

#[test]
fn t19_back_pressure_says_how_long_it_waited() {
    // Space that somebody holds and does not spend: no writing makes room.
    let (_, log) = simulated(Options::small());
    let held = log.reserve(32_000, Deadline::EXPIRED).unwrap();
    let error = log.reserve(1000, Deadline::from_timeout(Duration::from_millis(3))).unwrap_err();
    let LogError::BackPressure { waited } = error else { panic!("{error}") };
    assert!(waited >= Duration::from_millis(3));
    // Whoever spends at once has the other half.
    log.reserve_fence(32_000, Deadline::EXPIRED).unwrap();
    drop(held);
    log.reserve(32_000, Deadline::EXPIRED).unwrap();
}

#[test]
fn t15_after_a_failed_write_nothing_is_accepted_and_what_was_acknowledged_stays() {
    let (io, log) = simulated(Options::small());
    let kept = log.commit(&Draft::commit(b"kept"), Deadline::EXPIRED).unwrap();
    io.set_faults(Faults { sync_error: 1_000_000, ..Faults::default() });
    let error = log.commit(&Draft::commit(b"lost"), Deadline::INFINITE).unwrap_err();
    assert!(matches!(error, LogError::Failed { .. }) && error.to_string().contains("sync"), "{error}");
    io.set_faults(Faults::default());
    let error = log.append(&Draft::commit(b"more"), Deadline::INFINITE).unwrap_err();
    assert_eq!(error.code(), Some(7003));
    assert_eq!(log.watermarks().durable, kept.lsn);
    log.wait_durable(kept.lsn, Deadline::EXPIRED).unwrap();
    assert!(log.failure().is_some());
}

#[test]
fn a_full_disk_stops_appends_until_there_is_room_and_fails_nothing() {
    let options = Options { segment_bytes: 8 << 10, ring_bytes: 16 << 10, ..Options::small() };
    let (io, log) = simulated(options);
    log.commit(&Draft::commit(&[1; 3000]), Deadline::EXPIRED).unwrap();
    io.set_faults(Faults { no_space: 1_000_000, ..Faults::default() });
    let waiting = log.append(&Draft::commit(&[2; 3000]), Deadline::EXPIRED).unwrap();
    let error = log.wait_durable(waiting.lsn, within_a_minute()).unwrap_err();
    assert!(
        matches!(error, LogError::Full { .. }) && error.to_string().contains("free some space"),
        "{error}"
    );
    assert_eq!(error.code(), Some(2004));
    assert!(log.failure().is_none());
    io.set_faults(Faults::default());
    log.wait_durable(waiting.lsn, Deadline::INFINITE).unwrap();
    log.commit(&Draft::commit(&[3; 3000]), Deadline::EXPIRED).unwrap();
}

#[test]
fn a_log_that_has_reached_its_size_asks_for_a_checkpoint() {
    let options =
        Options { ring_bytes: 8 << 10, segment_bytes: 8 << 10, max_bytes: 24 << 10, ..Options::small() };
    let (_, log) = simulated(options);
    let commit = |byte: u8| log.commit(&Draft::commit(&[byte; 3000]), within_a_minute());
    let error = (0..4).find_map(|byte| commit(byte).err()).unwrap();
    assert!(error.to_string().contains("checkpoint"), "{error}");
    let pin = log.pin(Lsn::START);
    assert_eq!(log.checkpoint(log.watermarks().durable, b"").unwrap(), 0, "pinned");
    drop(pin);
    assert!(log.checkpoint(log.watermarks().durable, b"").unwrap() > 0);
    log.wait_durable(log.watermarks().appended, Deadline::INFINITE).unwrap();
    commit(9).unwrap();
}

/// The segment of a large frame is longer than others. It must neither be more than the log may have, nor take so much that
/// no checkpoint makes room for another.
#[test]
fn large_frames_keep_to_the_size_of_the_log_and_do_not_end_it() {
    let large = 32_768 - 32;
    let least = 2 * (4096 + 36_864);
    let options = Options { segment_bytes: 8 << 10, max_bytes: least, ..Options::small() };
    let (_, log) = simulated(options.clone());
    for bytes in [large, 100, large, large, 100, 3000, large] {
        let draft = vec![1; bytes];
        let appended = log.append(&Draft::commit(&draft), within_a_minute()).unwrap();
        while let Err(error) = log.wait_durable(appended.lsn, within_a_minute()) {
            assert!(matches!(error, LogError::Full { .. }), "{error}");
            assert!(log.checkpoint(log.watermarks().durable, b"").unwrap() > 0, "{error}");
        }
        // And one file that is kept to become a segment.
        assert!(log.size_bytes() <= least + (8 << 10), "{} bytes", log.size_bytes());
    }
    let one = Options { max_bytes: least - 1, ..options };
    let error =
        Store::open(Arc::new(SimIo::new(1)), Path::new("/db"), one, b"").expect_err("less than two segments");
    assert!(error.to_string().contains("81920"), "{error}");
}

#[test]
fn a_segment_that_cannot_be_removed_is_named_and_the_room_of_others_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("log");
    let options = Options {
        ring_bytes: 32 << 10,
        segment_bytes: 8 << 10,
        max_bytes: 48 << 10,
        writer_thread: true,
        ..Options::small()
    };
    let log = Store::open(Arc::new(PoolIo::new()), &directory, options, b"").unwrap().start(b"").unwrap();
    let is_durable = |bytes: &usize| {
        let timeout = Deadline::from_timeout(Duration::from_millis(200));
        log.commit(&Draft::commit(&vec![1; *bytes]), timeout).is_ok()
    };
    // The second one has a segment of its own size, which nothing else can use.
    assert_eq!(
        [3000, 10_000, 3000, 3000, 3000, 3000].iter().take_while(|bytes| is_durable(bytes)).count(),
        5
    );
    fs::remove_file(directory.join("0000000000000002.wal")).unwrap();
    let error = log.checkpoint(log.watermarks().durable, b"").unwrap_err().to_string();
    assert!(error.contains("remove") && error.contains("0000000000000002.wal"), "{error}");
    let appended = log.append(&Draft::commit(b"goes on"), Deadline::EXPIRED).unwrap();
    log.wait_durable(appended.lsn, Deadline::INFINITE).unwrap();
}

#[test]
fn a_position_beyond_the_end_is_an_error_and_not_a_wait() {
    let (_, log) = simulated(Options::small());
    let beyond = Lsn(log.watermarks().appended.0 + 8);
    assert!(matches!(log.wait_durable(beyond, Deadline::INFINITE), Err(LogError::Beyond { .. })));
    assert!(matches!(log.checkpoint(log.watermarks().durable, &[0; 3000]), Err(LogError::UserBytes { .. })));
}

#[test]
fn a_first_state_that_does_not_fit_is_refused_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("log");
    let open = |bytes| Store::open(Arc::new(PoolIo::new()), &directory, Options::small(), &vec![7; bytes]);
    for bytes in [2049, 5000] {
        let error = open(bytes).unwrap_err();
        assert!(matches!(error, LogError::UserBytes { limit: 2048, .. }), "{error}");
    }
    assert!(!directory.exists());
    assert_eq!(open(2048).unwrap().state(), [7; 2048]);
}

#[test]
fn a_state_that_does_not_fit_is_refused_before_a_segment_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(&folder);
    let before = everything(&directory);
    let error = open(&directory).unwrap().start(&[7; 2049]).unwrap_err();
    assert!(matches!(error, LogError::UserBytes { bytes: 2049, limit: 2048 }), "{error}");
    assert!(everything(&directory) == before, "something was written");
    open(&directory).unwrap().start(&[7; 2048]).unwrap();
    assert_eq!(open(&directory).unwrap().state(), [7; 2048]);
}

/// Positions on disk are multiples of eight, or the next open takes the anchor for damaged.
#[test]
fn a_checkpoint_between_positions_of_frames_covers_the_frames_before() {
    let (io, log) = simulated(Options::small());
    let mut commit = |byte| log.commit(&Draft::commit(&[byte; 100]), Deadline::INFINITE).unwrap().lsn;
    let ends: Vec<Lsn> = [1, 2, 3].map(&mut commit).to_vec();
    // Both slots of the anchor, and a start.
    for end in &ends[1..] {
        log.checkpoint(Lsn(end.0 - 3), b"").unwrap();
    }
    assert!(matches!(log.checkpoint(Lsn(ends[0].0 + 1), b""), Err(LogError::Covered { .. })));
    drop(log);
    let opening = Store::open(Arc::new(io.process()), Path::new("/db"), Options::small(), b"").unwrap();
    assert_eq!(opening.report().base, Lsn(ends[2].0 - 8));
    let mut frames = opening.frames();
    assert_eq!(frames.next_frame().unwrap().unwrap().body[0], 3);
    assert!(frames.next_frame().unwrap().is_none());
}

/// An engine keeps the anchor itself.
#[test]
fn a_base_between_positions_of_frames_is_the_one_before() {
    let io = Arc::new(SimIo::new(1));
    io.create_dir(Path::new("/db")).unwrap();
    let open = |anchor| Recovered::open(io.clone(), Path::new("/db"), anchor, Options::small()).unwrap();
    let keep = std::cell::Cell::new(Anchor { base: Lsn(4099), ..Anchor::new(StoreId([1; 16])) });
    let persist = |next: &Anchor| -> Result<(), LogError> {
        keep.set(*next);
        Ok(())
    };
    open(keep.get()).start(persist).unwrap().commit(&Draft::commit(b"kept"), Deadline::INFINITE).unwrap();
    let opening = open(keep.get());
    assert_eq!(opening.frames().next_frame().unwrap().unwrap().body, b"kept");
}

#[test]
fn a_checkpoint_is_of_what_is_durable_and_not_covered_yet() {
    let (_, log) = simulated(Options::small());
    let appended = log.append(&Draft::commit(b"later"), Deadline::EXPIRED).unwrap();
    let error = log.checkpoint(appended.lsn, b"").unwrap_err();
    assert!(matches!(error, LogError::NotDurable { .. }) && error.to_string().contains("wait"), "{error}");
    log.wait_durable(appended.lsn, Deadline::INFINITE).unwrap();
    log.checkpoint(appended.lsn, b"").unwrap();
    let error = log.checkpoint(Lsn(1), b"").unwrap_err();
    let base = appended.lsn.to_string();
    assert!(matches!(error, LogError::Covered { .. }) && error.to_string().contains(&base), "{error}");
}

#[test]
fn a_log_that_must_exist_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { must_exist: true, ..Options::small() };
    let open = |directory: &Path| Store::open(Arc::new(PoolIo::new()), directory, options.clone(), b"");
    let mistyped = folder.path().join("lgo");
    let error = open(&mistyped).unwrap_err();
    assert!(matches!(error, LogError::NotALog { .. }) && error.to_string().contains("lgo"), "{error}");
    assert!(!mistyped.exists());
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    assert!(matches!(open(folder.path()).unwrap_err(), LogError::NotALog { .. }));
    assert_eq!(everything(folder.path()).len(), 1);

    let directory = log(&folder);
    open(&directory).unwrap();
    // Without its anchor it is a log that lost something, not none.
    fs::remove_file(directory.join("anchor")).unwrap();
    assert!(matches!(open(&directory).unwrap_err(), LogError::AnchorMissing { .. }));
}

#[test]
fn t7_the_log_stays_bounded_when_it_is_checkpointed() {
    let options = Options { segment_bytes: 16 << 10, spare_segments: 1, ..Options::small() };
    let (io, log) = simulated(options);
    for _ in 0..200 {
        log.commit(&Draft::commit(&[5; 2000]), Deadline::EXPIRED).unwrap();
        log.checkpoint(log.watermarks().durable, b"").unwrap();
    }
    let files = io.list(Path::new("/db")).unwrap();
    assert!(files.len() <= 6, "{files:?}");
    assert!(log.size_bytes() <= 4 * (16 << 10));
}

/// Options with segments for a few frames of [`filled`].
fn few() -> Options {
    Options { segment_bytes: 16 << 10, ..Options::small() }
}

/// A closed log with three segments and more, each full.
fn filled(folder: &tempfile::TempDir) -> PathBuf {
    let directory = folder.path().join("log");
    let log = Store::open(Arc::new(PoolIo::new()), &directory, few(), b"").unwrap().start(b"").unwrap();
    for byte in 0..12 {
        log.commit(&Draft::commit(&[byte; 3000]), Deadline::INFINITE).unwrap();
    }
    directory
}

/// What an open finds that accepts the loss: how many frames.
fn accepting(directory: &Path) -> usize {
    let options = Options { truncate_damage: true, ..few() };
    let opening = Store::open(Arc::new(PoolIo::new()), directory, options, b"").unwrap();
    let mut frames = opening.frames();
    std::iter::from_fn(|| frames.next_frame().unwrap().map(|_| ())).count()
}

#[test]
fn a_segment_that_was_cut_off_is_refused_even_if_it_is_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let directory = filled(&folder);
    // The end of a whole block: nothing in what is left shows that there was more.
    fs::OpenOptions::new()
        .write(true)
        .open(directory.join("0000000000000004.wal"))
        .unwrap()
        .set_len(8 << 10)
        .unwrap();
    let error = refused(&directory, &["0000000000000004.wal", "8192 of its 16384", "truncate_damage"]);
    assert!(matches!(error, LogError::SegmentCut { .. }), "{error}");
    assert_eq!(accepting(&directory), 10);
}

#[test]
fn a_segment_that_is_missing_between_others_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let directory = filled(&folder);
    fs::remove_file(directory.join("0000000000000002.wal")).unwrap();
    let error = refused(&directory, &["missing", "put it back"]);
    assert!(matches!(error, LogError::SegmentMissing { base, .. } if base > Lsn(4096)), "{error}");
    assert_eq!(accepting(&directory), 3);
}

#[test]
fn a_log_without_a_thread_goes_on_by_itself_when_there_is_room_again() {
    let options = Options { segment_bytes: 8 << 10, ring_bytes: 16 << 10, ..Options::small() };
    let (io, log) = simulated(options);
    log.commit(&Draft::commit(&[1; 3000]), Deadline::EXPIRED).unwrap();
    io.set_faults(Faults { no_space: 1_000_000, ..Faults::default() });
    let commit = || log.commit(&Draft::commit(&[2; 3000]), within_a_minute());
    for _ in 0..3 {
        let error = commit().unwrap_err();
        assert!(matches!(error, LogError::Full { .. }), "{error}");
    }
    io.set_faults(Faults::default());
    commit().unwrap();
    let marks = log.watermarks();
    assert_eq!(marks.durable, marks.appended);
}

#[test]
fn no_room_for_more_files_than_one_that_is_ready_refuses_nothing() {
    let options = Options { segment_bytes: 512 << 10, spare_segments: 3, ..Options::default() };
    let io = SimIo::new(1);
    let opening = |options| Store::open(Arc::new(io.process()), Path::new("/db"), options, b"").unwrap();
    // Without a thread nothing is made ready; a segment of the past is kept as the only spare.
    let quiet = Options { writer_thread: false, ..options.clone() };
    for _ in 0..2 {
        let log = opening(quiet.clone()).start(b"").unwrap();
        log.commit(&Draft::commit(b"past"), Deadline::INFINITE).unwrap();
    }
    let opened = opening(options);
    io.set_faults(Faults { no_space: 1_000_000, ..Faults::default() });
    let log = opened.start(b"").unwrap();
    for _ in 0..50 {
        log.commit(&Draft::commit(b"goes on"), Deadline::INFINITE).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Commits when it is dropped.
struct Last<'a>(&'a Store);

impl Drop for Last<'_> {
    fn drop(&mut self) {
        self.0.commit(&Draft::commit(b"last"), Deadline::INFINITE).unwrap();
    }
}

#[test]
fn a_commit_while_a_panic_of_something_else_unwinds_does_not_end_the_log() {
    let (_, log) = simulated(Options::small());
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _last = Last(&log);
        panic!("of something else");
    }));
    assert!(result.is_err());
    assert!(log.failure().is_none());
    log.commit(&Draft::commit(b"goes on"), Deadline::INFINITE).unwrap();
}
