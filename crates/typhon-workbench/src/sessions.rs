//! The opened traces, and what is told of them to every page.

use crate::paths::Paths;
use crate::problem::{INDEX_DAMAGED, Problem};
use axum::http::StatusCode;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::broadcast;
use typhon_analysis::session::{OnDisk, Session, SessionError, SessionOptions, State};

const SESSIONS_MAX: usize = 64;
/// Messages that a slow page may be behind; a page that misses some gets all summaries again.
const BACKLOG: usize = 256;

/// One opened trace.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: u32,
    pub(crate) session: Session,
    since: Instant,
    /// Looked up now and then: it asks the file system.
    on_disk: Mutex<OnDisk>,
}

/// All opened traces.
#[derive(Debug)]
pub(crate) struct Sessions {
    options: SessionOptions,
    list: Mutex<List>,
    events: broadcast::Sender<Event>,
}

#[derive(Debug, Default)]
struct List {
    last_id: u32,
    open: BTreeMap<u32, Arc<Opened>>,
}

/// What happened to a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// It is new, or something about it has changed.
    Changed(Summary),
    /// It is closed.
    Closed(u32),
}

/// What every page knows of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) id: String,
    name: String,
    path: String,
    file_bytes: u64,
    generation: u32,
    state: StateView,
    on_disk: &'static str,
    remarks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum StateView {
    Opening { bytes_done: u64, bytes_total: u64, bytes_per_second: Option<u64>, remaining_ms: Option<u64> },
    Ready,
    Failed { detail: String },
    Cancelled,
}

impl Opened {
    pub(crate) fn name(&self) -> String {
        let path = self.session.path();
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }

    /// Passes an answer on. When it failed because the index is damaged, the index is given up.
    pub(crate) fn noticing<T>(&self, answer: Result<T, Problem>) -> Result<T, Problem> {
        if answer.as_ref().is_err_and(|problem| problem.code == INDEX_DAMAGED) {
            self.session.discard_index();
        }
        answer
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary {
            id: self.id.to_string(),
            name: self.name(),
            path: self.session.path().to_string_lossy().into_owned(),
            file_bytes: self.session.file_bytes(),
            generation: self.session.generation(),
            state: self.state(),
            on_disk: match *self.on_disk.lock().unwrap_or_else(PoisonError::into_inner) {
                OnDisk::Same => "same",
                OnDisk::Grown => "grown",
                OnDisk::Changed => "changed",
                OnDisk::Truncated => "truncated",
                OnDisk::Replaced => "replaced",
                OnDisk::Overwritten => "overwritten",
                OnDisk::Gone => "gone",
            },
            remarks: self.session.remarks(),
        }
    }

    fn state(&self) -> StateView {
        match self.session.state() {
            State::Opening { bytes_done, bytes_total } => {
                let ms = self.since.elapsed().as_millis() as u64;
                let rate =
                    (ms >= 200 && bytes_done > 0).then(|| bytes_done.saturating_mul(1_000) / ms.max(1));
                let left = bytes_total.saturating_sub(bytes_done);
                let remaining_ms =
                    rate.filter(|rate| *rate > 0).map(|rate| left.saturating_mul(1_000) / rate);
                StateView::Opening { bytes_done, bytes_total, bytes_per_second: rate, remaining_ms }
            }
            State::Ready => StateView::Ready,
            State::Failed(detail) => StateView::Failed { detail },
            State::Cancelled => StateView::Cancelled,
        }
    }
}

impl Sessions {
    pub(crate) fn new(options: SessionOptions) -> Self {
        Self { options, list: Mutex::default(), events: broadcast::channel(BACKLOG).0 }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file. One that is open and has not changed is not opened again; then the second value is false.
    pub(crate) fn open(&self, path: &Path) -> Result<(Arc<Opened>, bool), OpenFault> {
        self.rest_some();
        let mut list = self.list();
        let known = list.open.values().find(|opened| {
            opened.session.path() == path
                && opened.session.on_disk() == OnDisk::Same
                && matches!(opened.session.state(), State::Ready | State::Opening { .. })
        });
        if let Some(known) = known {
            return Ok((known.clone(), false));
        }
        if list.open.len() >= SESSIONS_MAX {
            return Err(OpenFault::TooMany);
        }
        // What is left now has no file to rest in.
        if self.options.memory.is_overfull() {
            return Err(OpenFault::NoRoom);
        }
        let session = Session::open(path, self.options.clone())?;
        list.last_id += 1;
        let id = list.last_id;
        let opened =
            Arc::new(Opened { id, session, since: Instant::now(), on_disk: Mutex::new(OnDisk::Same) });
        list.open.insert(id, opened.clone());
        drop(list);
        self.tell(Event::Changed(opened.summary()));
        Ok((opened, true))
    }

    /// Closes a session. What runs in it is waited for by whoever drops the last reference, which this returns.
    pub(crate) fn close(&self, id: u32) -> Option<Arc<Opened>> {
        let closed = self.list().open.remove(&id)?;
        closed.session.cancel();
        self.tell(Event::Closed(id));
        Some(closed)
    }

    pub(crate) fn get(&self, id: u32) -> Option<Arc<Opened>> {
        self.list().open.get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Opened>> {
        self.list().open.values().cloned().collect()
    }

    /// While more is kept than there is memory for, sessions rest, those first that nobody has asked for longest.
    fn rest_some(&self) {
        if !self.options.memory.is_overfull() {
            return;
        }
        let mut all = self.all();
        all.sort_by_key(|opened| opened.session.last_used());
        for opened in all {
            if !self.options.memory.is_overfull() {
                return;
            }
            opened.session.rest();
        }
    }

    pub(crate) fn summaries(&self) -> Vec<Summary> {
        self.all().iter().map(|opened| opened.summary()).collect()
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Nobody may be listening.
    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }

    /// Tells what has changed since `told`, by session. Asks the file system when `looks_at_files`.
    pub(crate) fn tell_changes(&self, told: &mut BTreeMap<u32, Summary>, looks_at_files: bool) {
        self.rest_some();
        let all = self.all();
        told.retain(|id, _| all.iter().any(|opened| opened.id == *id));
        for opened in all {
            if looks_at_files {
                let now = opened.session.on_disk();
                *opened.on_disk.lock().unwrap_or_else(PoisonError::into_inner) = now;
            }
            let summary = opened.summary();
            if told.get(&opened.id) != Some(&summary) {
                told.insert(opened.id, summary.clone());
                self.tell(Event::Changed(summary));
            }
        }
    }
}

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenFault {
    #[error("64 files are open already")]
    TooMany,
    #[error("the files that are open take all memory")]
    NoRoom,
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl From<OpenFault> for Problem {
    fn from(fault: OpenFault) -> Self {
        match fault {
            OpenFault::TooMany => {
                Self::new(StatusCode::CONFLICT, "busy", "64 files are open already").hint("close one first")
            }
            OpenFault::NoRoom => {
                Self::new(StatusCode::CONFLICT, "busy", "the files that are open take all memory")
                    .hint("close one first, or allow more with --memory")
            }
            OpenFault::Session(error) => error.into(),
        }
    }
}

impl OpenFault {
    /// For whoever asked for the file: with its name, and what to do about it.
    fn about(self, file: &Path) -> Problem {
        let Self::Session(error) = self else { return self.into() };
        let hint = match &error {
            SessionError::Trace(fault) => fault.unpack_hint(),
            _ => None,
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut problem = Problem::from(error);
        if !problem.detail.contains(&*name) {
            problem.detail = format!("{name}: {}", problem.detail);
        }
        match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

/// Opens what a page asks for, if it may.
pub(crate) fn open_allowed(
    sessions: &Sessions,
    paths: &Paths,
    path: &str,
) -> Result<(Arc<Opened>, bool), Problem> {
    let file = paths.file(path)?;
    sessions.open(&file).map_err(|fault| fault.about(&file))
}
