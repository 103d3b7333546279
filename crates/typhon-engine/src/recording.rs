//! The recording of a process that has engines.

use std::sync::{Mutex, PoisonError};
use typhon_profiler::{Init, Status, session};

/// Engines of this process, and whether one of them started the recording that runs.
struct Engines {
    count: usize,
    have_started: bool,
}

static ENGINES: Mutex<Engines> = Mutex::new(Engines { count: 0, have_started: false });

/// Keeps the recording going. It is finished when the last one is dropped, if an engine started it: a program that
/// records on its own account does so for as long as it likes.
#[derive(Debug)]
pub(crate) struct Recording {
    status: Status,
}

impl Recording {
    /// Starts what the configuration asks for, unless a recording runs.
    pub(crate) fn begin(init: Init) -> Self {
        let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
        let did_run = session::is_running();
        let status = init.start();
        engines.count += 1;
        engines.have_started |= !did_run && status == Status::Recording;
        Self { status }
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
        engines.count -= 1;
        if engines.count == 0 && std::mem::take(&mut engines.have_started) {
            typhon_profiler::shutdown();
        }
    }
}
