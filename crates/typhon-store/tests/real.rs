//! The real disk, as far as a test can tell without pulling the plug.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};
use typhon_store::{
    Access, BLOCK_BYTES, Buffer, EntryKind, Io, Op, Open, PoolIo, read_exact_at, write_all_at,
};

#[test]
fn bytes_written_past_the_cache_or_through_it_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let io = PoolIo::new();
    for (name, direct, durable) in
        [("a", false, false), ("b", true, false), ("c", true, true), ("d", false, true)]
    {
        let how = Open { access: Access::Create, direct };
        let file = io.open(&folder.path().join(name), how).unwrap();
        let mut buffer = Buffer::zeroed(2 * BLOCK_BYTES);
        buffer.fill(7);
        write_all_at(&*file, &buffer, BLOCK_BYTES as u64, durable).unwrap();
        file.sync_data().unwrap();
        file.drop_cache().unwrap();
        assert_eq!(file.length().unwrap(), 3 * BLOCK_BYTES as u64);
        let mut read = Buffer::zeroed(3 * BLOCK_BYTES);
        read_exact_at(&*file, &mut read, 0).unwrap();
        assert!(read[..BLOCK_BYTES].iter().all(|byte| *byte == 0));
        assert!(read[BLOCK_BYTES..].iter().all(|byte| *byte == 7));
    }
    io.sync_dir(folder.path()).unwrap();
}

#[test]
fn creating_what_exists_and_opening_what_does_not_name_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let (io, path) = (PoolIo::new(), folder.path().join("file"));
    for how in [Open::cached(Access::Write), Open::direct(Access::Read)] {
        let error = io.open(&path, how).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
    io.open(&path, Open::direct(Access::Create)).unwrap();
    for how in [Open::cached(Access::Create), Open::direct(Access::Create)] {
        assert_eq!(io.open(&path, how).unwrap_err().kind(), ErrorKind::AlreadyExists);
    }
}

#[test]
fn names_are_listed_renamed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let io = PoolIo::new();
    let inside = folder.path().join("wal");
    io.create_dir(&inside).unwrap();
    io.create_dir(&inside).unwrap();
    for name in ["b", "a"] {
        io.open(&inside.join(name), Open::cached(Access::Create)).unwrap().set_length(5).unwrap();
    }
    io.create_dir(&inside.join("c")).unwrap();
    let listed = io.list(&inside).unwrap();
    let names: Vec<_> = listed.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
    assert_eq!(names, [("a", EntryKind::File), ("b", EntryKind::File), ("c", EntryKind::Directory)]);
    assert_eq!(listed[0].length_bytes, 5);
    io.rename(&inside.join("a"), &inside.join("b")).unwrap();
    io.remove(&inside.join("b")).unwrap();
    assert_eq!(io.remove(&inside.join("b")).unwrap_err().kind(), ErrorKind::NotFound);
    io.open(&folder.path().join("file"), Open::cached(Access::Create)).unwrap();
    assert_eq!(io.create_dir(&folder.path().join("file")).unwrap_err().kind(), ErrorKind::NotADirectory);
}

/// Opening a pipe would wait for whoever opens its other end, which may be nobody.
#[test]
fn what_is_no_file_is_told_and_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let io = PoolIo::new();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("directory")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    assert!(made.success(), "{made}");
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    std::os::unix::fs::symlink(at("pipe"), at("link")).unwrap();
    let kinds: Vec<_> = io.list(folder.path()).unwrap().into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::Directory, EntryKind::Link, EntryKind::Other, EntryKind::Other]);
    for (name, kind) in [
        ("directory", ErrorKind::IsADirectory),
        ("pipe", ErrorKind::NotSeekable),
        ("link", ErrorKind::NotSeekable),
        ("socket", ErrorKind::NotSeekable),
    ] {
        for access in [Access::Read, Access::Write] {
            let error = io.open(&at(name), Open::direct(access)).unwrap_err();
            assert!(error.kind() == kind && error.to_string().contains("not a file"), "{name}: {error}");
        }
        assert_eq!(io.lock(&at(name)).unwrap_err().kind(), kind, "{name}");
        let taken = io.open(&at(name), Open::cached(Access::Create)).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AlreadyExists, "{name}");
    }
}

#[test]
fn a_lock_has_one_holder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.lock");
    let held = PoolIo::new().lock(&path).unwrap();
    assert_eq!(PoolIo::new().lock(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(held);
    PoolIo::new().lock(&path).unwrap();
}

#[test]
fn every_submitted_request_completes_once_also_when_the_pool_ends() {
    let folder = tempfile::tempdir().unwrap();
    let io = PoolIo::new();
    let file = io.open(&folder.path().join("file"), Open::cached(Access::Create)).unwrap();
    let writes: Vec<_> = (0..64)
        .map(|index: u64| {
            let mut buffer = Buffer::zeroed(BLOCK_BYTES);
            buffer.fill(index as u8);
            io.submit(Op::Write { file: Arc::clone(&file), buffer, offset: index * BLOCK_BYTES as u64 })
        })
        .collect();
    let synced = io.submit(Op::SyncData { file: Arc::clone(&file) });
    drop(io);
    for (index, write) in writes.into_iter().enumerate() {
        let soon = Instant::now() + Duration::from_secs(60);
        let done = write.wait_until(soon).unwrap();
        done.result.unwrap();
        assert_eq!(done.buffer.unwrap()[0], index as u8);
    }
    synced.wait().result.unwrap();
    let mut last = [0; 1];
    read_exact_at(&*file, &mut last, 63 * BLOCK_BYTES as u64).unwrap();
    assert_eq!(last, [63]);
}
