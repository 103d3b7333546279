//! Recovery reads ahead, into buffers that were used before: with a disk that reads less than it was asked for, one that
//! cannot read some places, and files that end anywhere.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use typhon_log::{Draft, LogError, Options, Store};
use typhon_store::sim::SimIo;
use typhon_store::{Access, Entry, File, Io, Lock, Op, Open, Pending};
use typhon_sync::Deadline;

const MIB: u64 = 1 << 20;

/// A disk that reads at most so many bytes at once, and not at all where a file has a bad place.
#[derive(Debug, Clone)]
struct Rough {
    inner: SimIo,
    most: usize,
    bad: Arc<Mutex<Option<(PathBuf, u64)>>>,
}

#[derive(Debug)]
struct RoughFile {
    inner: Arc<dyn File>,
    path: PathBuf,
    io: Rough,
}

impl Io for Rough {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, how)?;
        Ok(Arc::new(RoughFile { inner, path: path.to_owned(), io: self.clone() }))
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        self.inner.list(directory)
    }
    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        self.inner.create_dir(directory)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.inner.sync_dir(directory)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.inner.lock(path)
    }
    fn submit(&self, op: Op) -> Pending {
        self.inner.submit(op)
    }
}

impl File for RoughFile {
    fn read_some_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = bytes.len().min(self.io.most);
        let bad = self.io.bad.lock().unwrap().clone().filter(|(path, _)| *path == self.path);
        // What lies before the bad place arrives, as with a device.
        let until_bad = bad.and_then(|(_, at)| at.checked_sub(offset)).map_or(count, |rest| rest as usize);
        match count.min(until_bad) {
            0 if count > 0 => Err(io::Error::other("a bad place (simulated)")),
            count => self.inner.read_some_at(&mut bytes[..count], offset),
        }
    }
    fn write_some_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.inner.write_some_at(bytes, offset)
    }
    fn write_some_durable_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.inner.write_some_durable_at(bytes, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }
    fn set_length(&self, length_bytes: u64) -> io::Result<()> {
        self.inner.set_length(length_bytes)
    }
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn drop_cache(&self) -> io::Result<()> {
        self.inner.drop_cache()
    }
    fn is_direct(&self) -> bool {
        false
    }
}

fn options() -> Options {
    Options { segment_bytes: 9 * MIB, spare_segments: 0, ..Options::default() }
}

/// A log of two segments, of several requests each, with so many frames.
fn log(commits: u32) -> Rough {
    let io = Rough { inner: SimIo::new(1), most: usize::MAX, bad: Arc::default() };
    io.create_dir(Path::new("/db")).unwrap();
    let log = Store::open(Arc::new(io.clone()), Path::new("/db/wal"), options(), b"").unwrap();
    let log = log.start(b"").unwrap();
    for commit in 0..commits {
        log.append(&Draft::commit(&[commit as u8; 200_000]), Deadline::INFINITE).unwrap();
    }
    log.wait_durable(log.watermarks().appended, Deadline::INFINITE).unwrap();
    drop(log);
    io
}

fn segment(number: u64) -> PathBuf {
    PathBuf::from(format!("/db/wal/{number:016}.wal"))
}

/// The first byte of every frame, and whether its others are the same; a process of its own.
fn recovered(io: &Rough, options: Options) -> Result<Vec<u8>, LogError> {
    let opening = Store::open(Arc::new(io.clone()), Path::new("/db/wal"), options, b"")?;
    let mut frames = opening.frames();
    let mut bodies = Vec::new();
    while let Some(frame) = frames.next_frame()? {
        assert!(frame.body.len() == 200_000 && frame.body.iter().all(|byte| *byte == frame.body[0]));
        bodies.push(frame.body[0]);
    }
    Ok(bodies)
}

#[test]
fn a_disk_that_reads_less_than_it_was_asked_for_gives_the_same_frames() {
    let io = log(60);
    let all: Vec<u8> = (0..60).collect();
    for most in [512, 1000, 70_000, usize::MAX] {
        assert_eq!(recovered(&Rough { most, ..io.clone() }, options()).unwrap(), all, "{most}");
    }
}

/// Where frames are, behind them, and in what was only asked for ahead.
#[test]
fn a_place_that_cannot_be_read_is_an_error_that_names_the_file_and_nothing_is_lost() {
    let io = log(60);
    let all: Vec<u8> = (0..60).collect();
    for number in [1, 2] {
        for at in (4096..9 * MIB).step_by(MIB as usize / 2) {
            let path = segment(number);
            *io.bad.lock().unwrap() = Some((path.clone(), at));
            match recovered(&io, options()) {
                Err(LogError::Storage { doing: "read", path: found, .. }) => assert_eq!(found, path, "{at}"),
                result => panic!("{number} {at}: {result:?}"),
            }
        }
    }
    *io.bad.lock().unwrap() = None;
    assert_eq!(recovered(&io, options()).unwrap(), all);
}

/// No bytes of what was read before appear behind the end of a file.
#[test]
fn a_file_that_ends_inside_of_a_request_has_no_frames_behind_its_end() {
    for left in [4096, 4097, 2 * MIB - 4096, 2 * MIB + 100, 4 * MIB + 512, 9 * MIB - 1] {
        let io = log(60);
        let whole = recovered(&io, options()).unwrap().len();
        let one = io.inner.open(&segment(2), Open::cached(Access::Write)).unwrap();
        one.set_length(left).unwrap();
        let error = recovered(&io, options()).unwrap_err();
        assert!(matches!(error, LogError::SegmentCut { bytes, .. } if bytes == left), "{left}: {error}");
        let bodies = recovered(&io, Options { truncate_damage: true, ..options() }).unwrap();
        assert!(bodies.iter().enumerate().all(|(at, byte)| at == *byte as usize), "{left}: {bodies:?}");
        let (in_first, fits) = (9 * MIB / 200_000, left / 200_000);
        let most = (in_first + fits).min(whole as u64) as usize;
        assert!((most - 3..=most).contains(&bodies.len()), "{left}: {} of {most}", bodies.len());
    }
}
