//! What all requests share.

use crate::answers::Answers;
use crate::assets::Assets;
use crate::paths::Paths;
use crate::problem::Problem;
use crate::sessions::{Opened, Sessions};
use crate::token::Token;
use crate::work::Pool;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) token: Token,
    pub(crate) port: u16,
    pub(crate) pool: Pool,
    pub(crate) answers: Answers,
    pub(crate) sessions: Sessions,
    pub(crate) paths: Paths,
    pub(crate) assets: Assets,
    /// Where bookmarks are kept, if anywhere.
    pub(crate) cache_folder: Option<PathBuf>,
    /// The settings, if they are kept.
    pub(crate) settings_file: Option<PathBuf>,
    /// Held while the settings are changed.
    pub(crate) settings_lock: Mutex<()>,
    /// True from when the server is to end.
    pub(crate) stop: watch::Sender<bool>,
}

impl App {
    /// A session by its number in an address.
    pub(crate) fn session(&self, id: &str) -> Result<Arc<Opened>, Problem> {
        let found = id.parse().ok().and_then(|id| self.sessions.get(id));
        found.ok_or_else(|| Problem::unknown(format!("session {id}")))
    }
}
