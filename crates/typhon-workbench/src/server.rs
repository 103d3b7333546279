//! The server as a whole: bound, filled with files, run until somebody ends it.

use crate::answers::Answers;
use crate::app::App;
use crate::assets::Assets;
use crate::paths::Paths;
use crate::sessions::{OpenFault, Sessions};
use crate::token::Token;
use crate::work::{Pool, pool_threads};
use crate::{api, assets, guard, handover, net};
use axum::{Router, middleware};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::sync::watch;
use typhon_analysis::session::{Memory, SessionError, SessionOptions};

/// Threads that talk to browsers; they do no work that takes time.
const NETWORK_THREADS: usize = 2;
/// Time between two looks at sessions and at whether to end (brief 11 §3.4: ≤ 10 Hz).
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Looks between two looks at the files.
const FILES_EVERY: u32 = 10;
/// Time for work that is under way when the server ends.
const LAST_WORK: Duration = Duration::from_millis(500);

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// The port, and no other; `None` for the first free one.
    pub port: Option<u16>,
    /// First port to try without `port`.
    pub first_port: u16,
    /// Folder below which pages may open and list files.
    pub root: PathBuf,
    /// Folders below which source files may be shown.
    pub source_roots: Vec<PathBuf>,
    /// Memory to keep to, bytes.
    pub memory_bytes: usize,
    /// Keep indexes in files.
    pub index_files: bool,
    /// A development build of the page, instead of the embedded one.
    pub ui_folder: Option<PathBuf>,
    /// Where bookmarks and indexes are kept that have no place beside their trace.
    pub cache_folder: Option<PathBuf>,
    /// The file of the settings.
    pub settings_file: Option<PathBuf>,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No port could be had.
    #[error("port {port} of this machine cannot be listened on")]
    Port {
        /// The port asked for, or the first one tried.
        port: u16,
        /// What the system says.
        source: io::Error,
    },
    /// A folder is not there.
    #[error("{} is no folder", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    /// Too many files.
    #[error("at most 64 files can be open at a time")]
    TooManyFiles,
    /// The files that are open take all memory.
    #[error("the files that are open take all memory; open fewer, or allow more with --memory")]
    NoRoom,
    /// A file cannot be opened.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// A server that is bound and does not answer yet.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listeners: Vec<TcpListener>,
}

impl Server {
    /// Binds to loopback.
    ///
    /// # Errors
    /// When no port can be had or a folder does not exist.
    pub fn bind(options: Options) -> Result<Self, ServerError> {
        let root = folder(&options.root)?;
        let assets = match &options.ui_folder {
            Some(path) => Assets::Folder(folder(path)?),
            None => Assets::Embedded,
        };
        let token = Token::random().map_err(ServerError::Random)?;
        let port = options.port.unwrap_or(options.first_port);
        let (port, listeners) = net::listen(options.port, options.first_port)
            .map_err(|source| ServerError::Port { port, source })?;
        let sessions = SessionOptions {
            memory: Memory::new(options.memory_bytes),
            index_files: options.index_files,
            cache_dir: options.cache_folder.as_ref().map(|folder| folder.join("indexes")),
            ..SessionOptions::default()
        };
        let app = App {
            token,
            port,
            pool: Pool::new(),
            answers: Answers::new(options.memory_bytes),
            sessions: Sessions::new(sessions),
            paths: Paths::new(root, &options.source_roots),
            assets,
            cache_folder: options.cache_folder,
            settings_file: options.settings_file,
            settings_lock: Mutex::new(()),
            stop: watch::channel(false).0,
        };
        Ok(Self { app: Arc::new(app), listeners })
    }

    /// Opens a file, which pages may open again later.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(&self, path: &Path) -> Result<(), ServerError> {
        let path =
            path.canonicalize().map_err(|source| SessionError::Open { path: path.to_owned(), source })?;
        self.app.paths.allow(&path);
        match self.app.sessions.open(&path) {
            Ok(_) => Ok(()),
            Err(OpenFault::TooMany) => Err(ServerError::TooManyFiles),
            Err(OpenFault::NoRoom) => Err(ServerError::NoRoom),
            Err(OpenFault::Session(error)) => Err(error.into()),
        }
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.app.port
    }

    /// The address of the page, with the token; `at` is a view as permalinks have it, with or without `#`.
    pub fn url(&self, at: Option<&str>) -> String {
        let view = at.map(|at| at.trim_start_matches('#')).filter(|at| !at.is_empty());
        let view = view.map(|view| format!("&{view}")).unwrap_or_default();
        format!("http://127.0.0.1:{}/#token={}{view}", self.app.port, self.app.token.to_text())
    }

    /// Opens the page in a browser. What it returns is to be kept while the browser may read it.
    ///
    /// # Errors
    /// When there is no browser to start.
    pub fn open_browser(&self, at: Option<&str>, browser: Option<OsString>) -> io::Result<impl Drop + use<>> {
        let page: NamedTempFile = handover::forwarding_page(&self.url(at), self.app.cache_folder.as_deref())?;
        handover::open(page.path(), browser)?;
        Ok(page.into_temp_path())
    }

    /// Answers until `ends` says so; it is asked ten times a second.
    ///
    /// # Errors
    /// When the threads or sockets cannot be had.
    pub fn run(self, ends: impl Fn() -> bool) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(NETWORK_THREADS)
            .max_blocking_threads(pool_threads() + 1)
            .thread_name("typhon-ui")
            .enable_all()
            .build()?;
        let router = router(&self.app);
        let connections = net::connections();
        let answering: Vec<_> = self
            .listeners
            .into_iter()
            .map(|listener| {
                let stop = self.app.stop.subscribe();
                let (router, connections) = (router.clone(), connections.clone());
                runtime.spawn(net::accept(listener, router, connections, net::HEADER_TIMEOUT, stop))
            })
            .collect();
        runtime.block_on(look(&self.app, &ends));
        self.app.stop.send_replace(true);
        for listening in answering {
            // A panic in there would have ended nothing but the listening.
            runtime.block_on(listening).map_err(io::Error::other)??;
        }
        self.app.sessions.all().iter().for_each(|opened| opened.session.cancel());
        runtime.block_on(net::all_closed(&connections));
        runtime.shutdown_timeout(LAST_WORK);
        Ok(())
    }
}

fn folder(path: &Path) -> Result<PathBuf, ServerError> {
    let found = path.canonicalize().and_then(|found| match found.is_dir() {
        true => Ok(found),
        false => Err(io::ErrorKind::NotADirectory.into()),
    });
    found.map_err(|source| ServerError::Folder { path: path.to_owned(), source })
}

fn router(app: &Arc<App>) -> Router {
    api::routes()
        .fallback(assets::serve)
        .method_not_allowed_fallback(assets::method_not_allowed)
        .layer(middleware::from_fn_with_state(app.clone(), guard::check))
        .with_state(app.clone())
}

/// Tells pages what changes, until the end.
async fn look(app: &Arc<App>, ends: &impl Fn() -> bool) {
    let mut told = BTreeMap::new();
    for round in 0u32.. {
        if ends() {
            return;
        }
        app.sessions.tell_changes(&mut told, round % FILES_EVERY == 0);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
