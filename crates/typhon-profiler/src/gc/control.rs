use super::Input;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Who may put collections into the queue of a recording: the reader of a runtime's stream, or the program itself.
/// Never both, or every collection would be there twice.
#[derive(Debug)]
pub(super) struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// The queue for the program; gone once the recording ends.
    input: Option<Input>,
    is_reading: bool,
    is_pushed: bool,
}

/// The recording that runs now.
static CURRENT: Mutex<Weak<Control>> = Mutex::new(Weak::new());

impl Control {
    /// A recording begins.
    pub(super) fn start(input: Input) -> Arc<Self> {
        let state = State { input: Some(input), is_reading: false, is_pushed: false };
        let control = Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() });
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&control);
        control
    }

    pub(super) fn current() -> Option<Arc<Self>> {
        CURRENT.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recording ends.
    pub(super) fn stop(&self) {
        self.lock().input = None;
        self.changed.notify_all();
    }

    /// Waits until the program does not push; `None` once the recording ends.
    pub(super) fn begin_reading(self: &Arc<Self>) -> Option<Reading> {
        let state = self.lock();
        let mut state = self
            .changed
            .wait_while(state, |state| state.is_pushed && state.input.is_some())
            .unwrap_or_else(PoisonError::into_inner);
        state.input.as_ref()?;
        state.is_reading = true;
        Some(Reading(Arc::clone(self)))
    }

    /// Waits for the recording's end, `pause` at most.
    pub(super) fn wait(&self, pause: Duration) {
        // Whether it has come is asked again by the caller.
        let _ = self.changed.wait_timeout_while(self.lock(), pause, |state| state.input.is_some());
    }

    /// Lets the program push from now on, once the reader has ended its session. False if that takes longer than
    /// `patience`, if somebody else pushes already, or if the recording has ended.
    pub(super) fn begin_pushing(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        if state.is_pushed || state.input.is_none() {
            return false;
        }
        state.is_pushed = true;
        while state.is_reading {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.is_pushed = false;
                return false;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.input.is_some()
    }

    pub(super) fn end_pushing(&self) {
        self.lock().is_pushed = false;
        self.changed.notify_all();
    }

    /// The queue, for the program that pushes; `None` once the recording has ended.
    pub(super) fn with_input<R>(&self, put: impl FnOnce(&Input) -> R) -> Option<R> {
        self.lock().input.as_ref().map(put)
    }
}

/// The reader's turn.
pub(super) struct Reading(Arc<Control>);

impl Reading {
    /// The recording ends, or the program wants to push.
    pub(super) fn must_end(&self) -> bool {
        let state = self.0.lock();
        state.is_pushed || state.input.is_none()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.lock().is_reading = false;
        self.0.changed.notify_all();
    }
}
