use super::control::Control;
use super::{Collection, CollectionStart, GcRecord, Input, SuspendReason};
use crate::fork;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use typhon_clr::gc::{GcEvent, SuspendEeBegin, Tracker};
use typhon_clr::nettrace::{Continuity, EventHeader};
use typhon_clr::session::monotonic_ns;

/// Time for the reader to end its session: what stopping takes at most, and some for a request under way.
const PATIENCE: Duration = Duration::from_secs(10);

/// Collections that the program itself reports, such as a .NET application from a listener of its own (brief 03 B-10).
///
/// Takes the place of the reader of `GcTracing:Target`, which ends its session and waits until the bridge is dropped;
/// so no collection is recorded twice. All times are on `CLOCK_MONOTONIC`, ns. Nothing here waits for the recording:
/// what finds the queue full is dropped and counted.
#[derive(Debug)]
pub struct Bridge {
    control: Arc<Control>,
    /// Pairs the two ends of a suspension.
    suspensions: Mutex<Tracker>,
}

/// Why there is no [`Bridge`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// Nothing to put collections into.
    #[error("no recording with the gate GcTracing runs")]
    NotTraced,
    /// Only one may be open at once.
    #[error("another bridge is open, or the session with the .NET runtime does not end")]
    Busy,
}

impl Bridge {
    /// Takes over from the reader. May wait some tenths of a second for the end of its session.
    ///
    /// # Errors
    /// [`BridgeError`].
    pub fn open() -> Result<Self, BridgeError> {
        if fork::is_child() {
            return Err(BridgeError::NotTraced);
        }
        let control = Control::current().ok_or(BridgeError::NotTraced)?;
        control.with_input(|_| ()).ok_or(BridgeError::NotTraced)?;
        if !control.begin_pushing(PATIENCE) {
            return Err(BridgeError::Busy);
        }
        Ok(Self { control, suspensions: Mutex::new(Tracker::new(1_000_000_000)) })
    }

    /// Whether the recording still runs; a bridge does not outlive its own.
    pub fn is_open(&self) -> bool {
        self.control.with_input(|_| ()).is_some()
    }

    /// A collection began. `false`, as with the other calls: it was dropped, since the queue is full or the recording
    /// has ended.
    pub fn start(&self, start: CollectionStart) -> bool {
        self.push(|input| input.push(GcRecord::Start(start)))
    }

    /// A collection ended.
    pub fn end(&self, end: Collection) -> bool {
        self.push(|input| input.push(GcRecord::End(end)))
    }

    /// A thread begins to suspend all others. Suspensions for other reasons than the collector's are left out.
    pub fn suspend_begin(&self, timestamp: u64, thread: u64, reason: SuspendReason) -> bool {
        self.suspension(timestamp, thread, &GcEvent::SuspendEeBegin(SuspendEeBegin { reason, count: 0 }))
    }

    /// The last thread runs again. Recorded together with the beginning on the same thread; an end without one is
    /// ignored.
    pub fn suspend_end(&self, timestamp: u64, thread: u64) -> bool {
        self.suspension(timestamp, thread, &GcEvent::RestartEeEnd)
    }

    fn suspension(&self, timestamp: u64, thread: u64, event: &GcEvent<'_>) -> bool {
        self.push(|input| {
            let mut accepted = true;
            let mut tracker = self.suspensions.lock().unwrap_or_else(PoisonError::into_inner);
            tracker.on_event(&header(timestamp, thread), event, &mut |record| accepted &= input.push(record));
            accepted
        })
    }

    fn push(&self, put: impl FnOnce(&Input) -> bool) -> bool {
        self.control.with_input(put).unwrap_or(false)
    }
}

impl Drop for Bridge {
    /// Counts suspensions that are open, and lets the reader go on.
    fn drop(&mut self) {
        let tracker = self.suspensions.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.control.with_input(|input| {
            // A full queue is counted there.
            tracker.finish(monotonic_ns(), &mut |record| _ = input.push(record));
        });
        self.control.end_pushing();
    }
}

fn header(timestamp: u64, thread: u64) -> EventHeader {
    EventHeader {
        timestamp,
        capture_thread: thread,
        thread,
        sequence: 0,
        processor: 0,
        stack_id: 0,
        activity_ids: [[0; 16]; 2],
        sorted: false,
        continuity: Continuity::Contiguous,
    }
}
