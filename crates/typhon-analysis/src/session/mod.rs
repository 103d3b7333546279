//! One opened trace: everything that a viewer asks of it (brief 11 §2, §3).
//!
//! [`Session::open`] returns at once and indexes the file in the background; [`Session::state`] tells how far it is.
//! Answers come from the index ([`crate::index`]); only single records, for the inspector and for filters, are read
//! from the file again. All methods take `&self` and may be called from any number of threads; long ones take a
//! [`Cancel`].
//!
//! **Invariants**
//! - The session keeps its answers: what happens to the path after opening does not change them, unless the file
//!   itself is cut or overwritten in place, which is an error of the call that meets it and never a wrong answer about
//!   the index.
//! - A tile's bytes depend on the file and the request only.
//! - No call returns everything: lists are paged or limited.

mod build;
mod cut;
mod error;
mod event;
mod filter;
mod first;
mod links;
mod matching;
pub(crate) mod memory;
mod meta;
mod resting;
mod select;
mod tiles;

pub use error::SessionError;
pub use event::{EventDetail, FieldValue, FieldView, Place, RelatedSpan, Siblings};
pub use filter::{Direction, FilterInfo, MAX_FILTERS};
pub use links::{Link, LinkReason, Links};
pub use memory::Memory;
use memory::Ticket;
pub use meta::{Axis, LaneInfo, Meta, TickRange};
pub use select::{SelectionStats, SpanOrder, TopSpan};

use crate::beside::{open_regular, trace_of};
use crate::facts::{MarkNames, TraceContext};
use crate::index::Index;
use crate::pipeline::PipelineOptions;
use resting::{Ready, Resting, Sidecar};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use typhon_trace::header::{FileHeader, HEADER_BYTES};
use typhon_trace::reader::{ReadAt, TraceFile};

/// A switch that stops a long call. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A switch that is not thrown.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops whoever looks at this switch.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Was it thrown?
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn check(&self) -> Result<(), SessionError> {
        if self.is_cancelled() { Err(SessionError::Cancelled) } else { Ok(()) }
    }
}

/// How a session is opened.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// How blocks are read and decoded.
    pub pipeline: PipelineOptions,
    /// Memory that all sessions with clones of these options share.
    pub memory: Memory,
    /// Keep the index in a file, and use one that is there.
    pub index_files: bool,
    /// Files smaller than this are indexed each time: it takes less time than it is worth a file.
    pub index_min_bytes: u64,
    /// Directory for indexes that cannot be written beside their trace. It is created when needed.
    pub cache_dir: Option<PathBuf>,
    /// Bytes that indexes in the cache directory may take; the oldest are removed beyond that.
    pub cache_bytes: u64,
    /// Time between two previews while indexing.
    pub preview_pause: Duration,
    /// Time for the answer to one request for tiles; tiles that are not begun by then are sent empty and say that they
    /// are capped (brief 11 §3.3).
    pub answer_time: Duration,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            pipeline: PipelineOptions::default(),
            memory: Memory::new(512 << 20),
            index_files: true,
            index_min_bytes: 16 << 20,
            cache_dir: None,
            cache_bytes: 10 << 30,
            preview_pause: Duration::from_millis(150),
            answer_time: Duration::from_millis(250),
        }
    }
}

/// How far a session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The file is being indexed.
    Opening {
        /// Bytes of the file that are read.
        bytes_done: u64,
        /// Bytes of the file when it was opened.
        bytes_total: u64,
    },
    /// The index is complete.
    Ready,
    /// It will not be completed: the reason, with what to do.
    Failed(String),
    /// [`Session::cancel`] was called.
    Cancelled,
}

/// How the file at a session's path compares with the one that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnDisk {
    /// Nothing has happened to it.
    Same,
    /// It is longer: a recorder goes on writing.
    Grown,
    /// It is as long as before, but was written to.
    Changed,
    /// It is shorter.
    Truncated,
    /// Another file has its name. The session still reads the first one.
    Replaced,
    /// Another recording was written into it, over the one that was opened.
    Overwritten,
    /// There is no file of this name any more. The session still reads what it opened.
    Gone,
}

/// Are these of one file? Where the system has no numbers for files, they pass as one.
fn is_same_file(a: &std::fs::Metadata, b: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = (a, b);
        true
    }
}

/// One opened trace. Dropping it stops indexing, and leaves no thread behind.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    path: PathBuf,
    trace: TraceFile<File>,
    file_bytes: u64,
    opened_modified: Option<std::time::SystemTime>,
    answer_time: Duration,
    memory: Memory,
    last_used: Mutex<Instant>,
    cancel: Cancel,
    bytes_done: AtomicU64,
    generation: AtomicU32,
    outcome: Mutex<Outcome>,
    changed: Condvar,
    is_idle: AtomicBool,
    /// When it is indexed, and the thread that does it.
    turn: Ticket,
    filters: Mutex<filter::Filters>,
    /// Names of marks, once anybody has asked for a record.
    mark_names: OnceLock<MarkNames>,
    /// Where the index is kept.
    sidecar: Mutex<Option<Sidecar>>,
    remarks: Mutex<Vec<String>>,
}

#[derive(Debug)]
enum Outcome {
    /// With what can be shown so far.
    Opening(Option<Arc<Index>>),
    Ready(Ready),
    /// Ready, but the index is in its file only.
    Resting(Resting),
    Failed(String),
    Cancelled,
}

impl Session {
    /// Opens a trace file and starts to index it.
    ///
    /// # Errors
    /// When the file cannot be opened or is not a trace; what is wrong behind the header shows in the state and in the
    /// notices.
    pub fn open(path: &Path, options: SessionOptions) -> Result<Self, SessionError> {
        let in_path = |source| SessionError::Open { path: path.to_owned(), source };
        let file = open_regular(path).map_err(in_path)?;
        let data = file.metadata().map_err(in_path)?;
        let opened_modified = data.modified().ok();
        let trace = trace_of(file, path)?;
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            file_bytes: trace.data().size().map_err(in_path)?,
            trace,
            opened_modified,
            answer_time: options.answer_time,
            memory: options.memory.clone(),
            last_used: Mutex::new(Instant::now()),
            cancel: Cancel::new(),
            bytes_done: AtomicU64::new(0),
            generation: AtomicU32::new(1),
            outcome: Mutex::new(Outcome::Opening(None)),
            changed: Condvar::new(),
            is_idle: AtomicBool::new(false),
            turn: Ticket::default(),
            filters: Mutex::default(),
            sidecar: Mutex::default(),
            mark_names: OnceLock::new(),
            remarks: Mutex::default(),
        });
        let building = shared.clone();
        let jobs = options.memory.jobs.clone();
        jobs.start(&shared.turn, move || building.build(&options)).map_err(in_path)?;
        Ok(Self { shared })
    }

    /// How far indexing is.
    pub fn state(&self) -> State {
        match &*self.shared.lock() {
            Outcome::Opening(_) => State::Opening {
                bytes_done: self.shared.bytes_done.load(Ordering::Relaxed),
                bytes_total: self.shared.file_bytes,
            },
            Outcome::Ready(_) | Outcome::Resting(_) => State::Ready,
            Outcome::Failed(reason) => State::Failed(reason.clone()),
            Outcome::Cancelled => State::Cancelled,
        }
    }

    /// Waits until indexing has ended, well or not.
    pub fn wait(&self) -> State {
        let mut outcome = self.shared.lock();
        while matches!(*outcome, Outcome::Opening(_)) {
            outcome = self.shared.changed.wait(outcome).unwrap_or_else(PoisonError::into_inner);
        }
        drop(outcome);
        self.state()
    }

    /// Waits until nothing runs in the background any more: the index is complete and, if it is to be, kept in a file.
    pub fn wait_until_idle(&self) -> State {
        let mut outcome = self.shared.lock();
        while !self.shared.is_idle.load(Ordering::Acquire) {
            outcome = self.shared.changed.wait(outcome).unwrap_or_else(PoisonError::into_inner);
        }
        drop(outcome);
        self.state()
    }

    /// Stops indexing.
    pub fn cancel(&self) {
        self.shared.cancel.cancel();
        // One that waits for its turn need not wait for that.
        if let Some(job) = self.shared.memory.jobs.take_back(&self.shared.turn) {
            drop(job);
            self.shared.publish(Outcome::Cancelled);
            self.shared.end();
        }
    }

    /// Number that changes whenever the answer to a tile request may have changed.
    pub fn generation(&self) -> u32 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// The file that was opened.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Bytes of the file when it was opened.
    pub fn file_bytes(&self) -> u64 {
        self.shared.file_bytes
    }

    /// How what lies at the path compares with what was opened (brief 11 B-6). The session keeps its answers.
    pub fn on_disk(&self) -> OnDisk {
        let Ok(now) = std::fs::metadata(&self.shared.path) else { return OnDisk::Gone };
        let Ok(opened) = self.shared.trace.data().metadata() else { return OnDisk::Gone };
        let is_same_time = now.modified().ok() == self.shared.opened_modified;
        match now.len().cmp(&self.shared.file_bytes) {
            _ if !is_same_file(&now, &opened) => OnDisk::Replaced,
            _ if !is_same_time && self.shared.is_other_recording() => OnDisk::Overwritten,
            std::cmp::Ordering::Less => OnDisk::Truncated,
            std::cmp::Ordering::Greater => OnDisk::Grown,
            std::cmp::Ordering::Equal if is_same_time => OnDisk::Same,
            std::cmp::Ordering::Equal => OnDisk::Changed,
        }
    }

    /// A name for the content of the trace, of hexadecimal digits: copies have the same.
    ///
    /// # Errors
    /// When the file cannot be read any more.
    pub fn content_name(&self) -> Result<String, SessionError> {
        Ok(crate::sidecar::Fingerprint::of(self.shared.trace.data())?.name())
    }

    /// The opened trace: header, tables, sections.
    pub fn trace(&self) -> &TraceFile<File> {
        &self.shared.trace
    }

    /// What went wrong without keeping the session from its work, such as an index that could not be kept.
    pub fn remarks(&self) -> Vec<String> {
        self.shared.remarks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the index is kept, if it is.
    pub fn index_path(&self) -> Option<PathBuf> {
        self.shared.sidecar().map(|kept| kept.path)
    }

    /// Gives up an index that turned out to be damaged, and removes its file: the session has failed then, and the next
    /// one of this trace builds it anew.
    pub fn discard_index(&self) {
        if !matches!(&*self.shared.lock(), Outcome::Ready(_)) {
            return;
        }
        let kept = self.shared.sidecar.lock().unwrap_or_else(PoisonError::into_inner).take();
        let removed = kept.as_ref().map(|kept| std::fs::remove_file(&kept.path));
        let hint = match removed {
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                format!("it cannot be removed ({error}), so open the trace with --no-index")
            }
            _ => "open the trace again to index it anew".to_owned(),
        };
        let which = kept.map(|kept| format!(" {}", kept.path.display())).unwrap_or_default();
        self.shared.publish(Outcome::Failed(format!("its index{which} was damaged; {hint}")));
    }

    /// The index, or what can be shown of it so far; true when it is complete.
    fn visible(&self) -> Result<(Arc<Index>, bool), SessionError> {
        if let Outcome::Opening(Some(preview)) = &*self.shared.lock() {
            return Ok((preview.clone(), false));
        }
        Ok((self.index()?, true))
    }

    fn index(&self) -> Result<Arc<Index>, SessionError> {
        let mut outcome = self.shared.lock();
        if let Outcome::Resting(resting) = &*outcome {
            let woken = self.shared.wake(resting)?;
            *outcome = woken;
        }
        match &*outcome {
            Outcome::Ready(ready) => {
                self.shared.touch();
                Ok(ready.index.clone())
            }
            Outcome::Resting(_) => Err(SessionError::NotReady),
            Outcome::Opening(_) => Err(SessionError::NotReady),
            Outcome::Failed(reason) => Err(SessionError::Failed(reason.clone())),
            Outcome::Cancelled => Err(SessionError::Cancelled),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.cancel();
        self.wait_until_idle();
        self.shared.turn.join();
    }
}

impl Shared {
    /// Does the file begin with the header of another recording? What a recorder writes at the end of its own is left out.
    fn is_other_recording(&self) -> bool {
        let mut head = [0; HEADER_BYTES];
        let read = self.trace.data().read_at(&mut head, 0).unwrap_or(0);
        let opened = self.trace.header();
        FileHeader::parse(&head[..read]).is_ok_and(|now| {
            now.created_utc_ticks != opened.created_utc_ticks || now.database_id != opened.database_id
        })
    }

    /// Nothing runs any more.
    fn end(&self) {
        // Under the lock, so that nobody misses it between looking and waiting.
        let _outcome = self.lock();
        self.is_idle.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// Was the file not cut since it was opened? What reads all of it would take the cut for its end.
    fn check_length(&self) -> Result<(), SessionError> {
        let (bytes, opened_bytes) = (self.trace.data().size()?, self.file_bytes);
        if bytes < opened_bytes { Err(SessionError::Truncated { bytes, opened_bytes }) } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sidecar(&self) -> Option<Sidecar> {
        self.sidecar.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn filters(&self) -> MutexGuard<'_, filter::Filters> {
        self.filters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, outcome: Outcome) {
        *self.lock() = outcome;
        self.generation.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }

    fn context<'s>(&'s self, index: &Index) -> TraceContext<'s> {
        let (tables, sections) = (self.trace.tables(), self.trace.sections());
        let context = TraceContext::new(self.trace.header(), tables, sections, index.survey.origin_ticks);
        // A file that cannot be read any more shows numbers: what needs its records says so.
        let marks = self.mark_names.get_or_init(|| MarkNames::read(&self.trace).unwrap_or_default());
        context.with_mark_names(marks)
    }
}
