//! A tiny event store: events are durable one by one through the log, and end up in one plain file.
//!
//! `cargo run -p typhon-log --example event_store -- DIRECTORY append "some text"`
//! `cargo run -p typhon-log --example event_store -- DIRECTORY list`
//!
//! The file `events` holds one line for each event. It is only trusted as far as the log's anchor says: its state is
//! the length of the file at the base. What lies beyond is cut off, and comes again from the log.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use typhon_log::{Draft, Lsn, Options, Store};
use typhon_store::PoolIo;
use typhon_sync::Deadline;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Events that are in the log and not yet in the file, at most.
const PENDING_MAX: usize = 1000;

struct EventStore {
    log: Store,
    file: File,
    /// Bytes of the file that count.
    settled_bytes: u64,
    pending: Vec<String>,
    last: Lsn,
}

impl EventStore {
    fn open(directory: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(directory)?;
        let io = Arc::new(PoolIo::new());
        let opening = Store::open(io, &directory.join("log"), Options::small(), &0_u64.to_le_bytes())?;
        let path = directory.join("events");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        File::open(directory)?.sync_all()?;

        // The file as the anchor knows it, then everything that the log has beyond.
        let known_bytes = u64::from_le_bytes(opening.state().try_into()?);
        if file.metadata()?.len() < known_bytes {
            return Err(
                format!("`events` had {known_bytes} bytes and has fewer: restore it from a backup").into()
            );
        }
        file.set_len(known_bytes)?;
        file.seek(SeekFrom::End(0))?;
        let mut frames = opening.frames();
        while let Some(frame) = frames.next_frame()? {
            file.write_all(frame.body)?;
            file.write_all(b"\n")?;
        }
        drop(frames);
        file.sync_data()?;
        let settled_bytes = file.stream_position()?;
        let log = opening.start(&settled_bytes.to_le_bytes())?;
        let last = log.watermarks().durable;
        Ok(Self { log, file, settled_bytes, pending: Vec::new(), last })
    }

    /// The event is durable when this returns.
    fn append(&mut self, event: &str) -> Outcome<()> {
        if event.contains('\n') {
            return Err("an event is one line".into());
        }
        self.last = self.log.commit(&Draft::commit(event.as_bytes()), Deadline::INFINITE)?.lsn;
        self.pending.push(event.to_owned());
        if self.pending.len() >= PENDING_MAX { self.settle() } else { Ok(()) }
    }

    /// Moves events from the log to the file, and lets the log go. After an error it can be tried again: the same events
    /// go to the same place.
    fn settle(&mut self) -> Outcome<()> {
        self.file.seek(SeekFrom::Start(self.settled_bytes))?;
        let lines: String = self.pending.iter().flat_map(|event| [event.as_str(), "\n"]).collect();
        self.file.write_all(lines.as_bytes())?;
        self.file.sync_data()?;
        let settled_bytes = self.settled_bytes + lines.len() as u64;
        self.log.checkpoint(self.last, &settled_bytes.to_le_bytes())?;
        self.settled_bytes = settled_bytes;
        self.pending.clear();
        Ok(())
    }

    fn list(&mut self) -> Outcome<String> {
        self.settle()?;
        let mut events = String::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_string(&mut events)?;
        Ok(events)
    }
}

fn main() -> ExitCode {
    let Err(error) = run() else { return ExitCode::SUCCESS };
    // Says what is wrong and what to do about it.
    eprintln!("event_store: {error}");
    ExitCode::FAILURE
}

fn run() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [directory, "append", event] => EventStore::open(&PathBuf::from(directory))?.append(event),
        [directory, "list"] => {
            print!("{}", EventStore::open(&PathBuf::from(directory))?.list()?);
            Ok(())
        }
        _ => Err("usage: event_store DIRECTORY append EVENT | event_store DIRECTORY list".into()),
    }
}
