//! The open log: reserve, append, wait.

use crate::anchor::Anchor;
use crate::append::{Appended, Draft};
use crate::drive::{Driven, NotDurable, Step};
use crate::error::LogError;
use crate::gauges;
use crate::group::GroupTimer;
use crate::options::Options;
use crate::segments::Place;
use crate::spares::Spares;
use crate::stream::Class;
use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering, lock};
use crate::writer::{Told, Writer};
use crate::{Lsn, Tsn};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use typhon_profiler::events::{DurabilityWalBackpressure, DurabilityWalGroupCommit, WalWait};
use typhon_profiler::gauges::Registration;
use typhon_profiler::{emit, span, thread};
use typhon_sync::clock::monotonic_ns;
use typhon_sync::wait;
use typhon_sync::{Deadline, wait::WaitEnd};

/// An open log. Shared by reference between threads; dropping it writes what was appended and stops the thread.
#[derive(Debug)]
pub struct Log {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    _gauges: GaugesGuard,
}

struct GaugesGuard(#[expect(dead_code, reason = "registered while it lives")] Registration);

impl std::fmt::Debug for GaugesGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GaugesGuard")
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) driven: Driven<Writer>,
    pub(crate) told: Arc<Told>,
    options: Options,
    anchor: Anchor,
    /// Counts calls for the background thread.
    bell: AtomicU32,
    flush_wanted: AtomicBool,
    group: GroupTimer,
    is_closing: AtomicBool,
    has_thread: bool,
    /// Where the background thread puts files that are ready, and where it makes them.
    spares: Arc<Spares>,
    place: Place,
    /// Positions from which segments are kept, by pin.
    pins: Mutex<BTreeMap<u64, Lsn>>,
}

/// How far the log is. `durable <= appended`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    /// End of what was appended.
    pub appended: Lsn,
    /// End of what is durable.
    pub durable: Lsn,
    /// The sequence number that comes next.
    pub next_tsn: Tsn,
}

/// Space in the ring that nobody else can have. Whatever is not spent goes back when this is dropped.
#[derive(Debug)]
pub struct Credits<'a> {
    shared: &'a Shared,
    bytes: u64,
}

impl Credits<'_> {
    /// Appends a frame: a claim of position and sequence number in one step, and a copy. It cannot fail, and it waits
    /// for nothing.
    ///
    /// # Panics
    /// If the frame is larger than the space left here, which is a mistake of the caller.
    pub fn append(&mut self, draft: &Draft<'_>) -> Appended {
        let span = draft.span_bytes();
        assert!(span <= self.bytes, "a frame of {span} bytes in space for {}", self.bytes);
        self.bytes -= span;
        let appended = draft.put(&self.shared.driven.stream);
        self.shared.after_append();
        appended
    }

    /// Space left.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Credits<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.shared.driven.stream.unreserve(self.bytes);
        }
    }
}

/// Keeps segments from being reclaimed; dropping it lets them go.
#[derive(Debug)]
pub struct Pin<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        lock(&self.shared.pins).remove(&self.number);
    }
}

impl Log {
    pub(crate) fn start(
        driven: Driven<Writer>,
        told: Arc<Told>,
        anchor: Anchor,
        options: Options,
    ) -> Result<Self, LogError> {
        let has_thread = options.writer_thread;
        let (spares, place) = {
            let writer = driven.hold();
            let maker = &writer.segments.maker;
            (Arc::clone(&maker.spares), maker.place.clone())
        };
        let shared = Arc::new(Shared {
            driven,
            told,
            options,
            anchor,
            bell: AtomicU32::new(0),
            flush_wanted: AtomicBool::new(false),
            group: GroupTimer::new(),
            is_closing: AtomicBool::new(false),
            has_thread,
            spares,
            place,
            pins: Mutex::new(BTreeMap::new()),
        });
        let thread = if has_thread { Some(Shared::spawn(&shared)?) } else { None };
        let gauges = GaugesGuard(gauges::register(&shared));
        Ok(Self { shared, thread, _gauges: gauges })
    }

    /// What the log's owner made durable when it was opened.
    pub fn anchor(&self) -> &Anchor {
        &self.shared.anchor
    }

    /// How far the log is.
    pub fn watermarks(&self) -> Watermarks {
        self.shared.watermarks()
    }

    /// The largest frame that can be appended, in bytes of stream ([`Draft::span_bytes`]).
    pub fn frame_bytes_max(&self) -> u64 {
        self.shared.driven.stream.capacity() / 2
    }

    /// Reserves space for frames, waiting for it if need be. All callers together hold at most half of the ring
    /// unspent, so that whoever appends while others wait ([`Log::reserve_fence`]) finds room.
    ///
    /// # Errors
    /// [`LogError::TooLarge`] for more than half the ring, [`LogError::BackPressure`] at the deadline,
    /// [`LogError::Full`] while there is no room for another segment, [`LogError::Failed`] after a failure.
    pub fn reserve(&self, bytes: u64, deadline: Deadline) -> Result<Credits<'_>, LogError> {
        self.shared.reserve(bytes, Class::Commit, deadline)
    }

    /// Reserves space for parts of a fence, which are appended at once. It waits for the writer only, never for other
    /// holders of space.
    ///
    /// # Errors
    /// As [`Log::reserve`].
    pub fn reserve_fence(&self, bytes: u64, deadline: Deadline) -> Result<Credits<'_>, LogError> {
        self.shared.reserve(bytes, Class::Fence, deadline)
    }

    /// Reserves space for one frame and appends it.
    ///
    /// # Errors
    /// As [`Log::reserve`].
    pub fn append(&self, draft: &Draft<'_>, deadline: Deadline) -> Result<Appended, LogError> {
        Ok(self.reserve(draft.span_bytes(), deadline)?.append(draft))
    }

    /// Waits until everything up to a position is durable. The calling thread may write the group itself
    /// ([`Options::waiters_write`]).
    ///
    /// # Errors
    /// [`LogError::Uncertain`] at the deadline: what was appended stays appended. [`LogError::Failed`] if it can not
    /// become durable in this process any more; after reopening it may turn out to be.
    pub fn wait_durable(&self, lsn: Lsn, deadline: Deadline) -> Result<(), LogError> {
        if self.shared.driven.stream.durable() >= lsn.0 {
            return Ok(());
        }
        self.shared.wait_durable(lsn, deadline)
    }

    /// Appends a frame and waits until it is durable.
    ///
    /// # Errors
    /// As [`Log::append`], then as [`Log::wait_durable`].
    pub fn commit(&self, draft: &Draft<'_>, deadline: Deadline) -> Result<Appended, LogError> {
        let appended = self.append(draft, deadline)?;
        self.wait_durable(appended.lsn, deadline)?;
        Ok(appended)
    }

    /// Asks for everything appended so far to become durable soon, and does not wait. Without the writer thread this
    /// writes at once.
    pub fn request_flush(&self) {
        self.shared.request_flush();
    }

    /// Asks for what the calling thread has just appended to be durable within [`Options::group_interval`], and does
    /// not wait. Without the writer thread this writes at once.
    pub fn group(&self) {
        self.shared.group();
    }

    /// Reuses or deletes segments all of whose frames end at or before a position, which must be covered by a durable
    /// anchor. Pinned segments stay, and so does the newest one. Returns how many were given up.
    ///
    /// # Errors
    /// [`LogError::Storage`] if a file cannot be removed.
    pub fn reclaim(&self, lsn: Lsn) -> Result<usize, LogError> {
        let driven = &self.shared.driven;
        let mut writer = driven.hold();
        // Until it is done: whoever had to wait for the writer may not have seen the latest pin.
        let pins = lock(&self.shared.pins);
        let pinned = pins.values().copied().min().unwrap_or(lsn);
        let result = writer.segments.reclaim(lsn.min(pinned), driven.stream.durable());
        // Before anybody can find out that it was not enough.
        if !matches!(result, Ok(0)) {
            self.shared.told.set_full(None);
        }
        result
    }

    /// Keeps all segments with frames behind a position, until the pin is dropped.
    pub fn pin(&self, from: Lsn) -> Pin<'_> {
        let mut pins = lock(&self.shared.pins);
        let number = pins.last_key_value().map_or(0, |(number, _)| number + 1);
        pins.insert(number, from);
        Pin { shared: &self.shared, number }
    }

    /// Bytes of all files of the log.
    pub fn size_bytes(&self) -> u64 {
        self.shared.driven.hold().segments.total_bytes()
    }

    /// Groups written and bytes of blocks written (with headers and padding) since the log was opened.
    pub fn written(&self) -> (u64, u64) {
        let told = &self.shared.told;
        (told.groups.load(Ordering::Relaxed), told.bytes.load(Ordering::Relaxed))
    }

    /// The error of everything after a failure, if the log has failed.
    pub fn failure(&self) -> Option<LogError> {
        self.shared.driven.stream.failed().then(|| self.shared.told.failed())
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Writes what was appended and stops.
    ///
    /// # Errors
    /// As [`Log::wait_durable`]: what could not be made durable until the deadline.
    pub fn close(self, deadline: Deadline) -> Result<Watermarks, LogError> {
        let appended = self.watermarks().appended;
        self.wait_durable(appended, deadline)?;
        Ok(self.watermarks())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::Release);
        self.shared.ring();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported where it happened.
            let _ = thread.join();
        } else if !std::thread::panicking() {
            self.shared.driven.write_appended();
        }
    }
}

impl Shared {
    pub(crate) fn watermarks(&self) -> Watermarks {
        let stream = &self.driven.stream;
        // In this order, so that the one cannot overtake the other.
        let durable = Lsn(stream.durable());
        let next = stream.next();
        Watermarks { appended: Lsn(next.position), durable, next_tsn: Tsn(next.tsn) }
    }

    fn reserve(&self, bytes: u64, class: Class, deadline: Deadline) -> Result<Credits<'_>, LogError> {
        let stream = &self.driven.stream;
        let limit = stream.capacity() / 2;
        if bytes > limit {
            return Err(LogError::TooLarge { bytes, limit });
        }
        if !self.has_thread && self.told.full().is_some() {
            // Nobody else would find out that there is room again.
            self.driven.write_appended();
        }
        self.refusal()?;
        let bytes = bytes.next_multiple_of(8);
        if !stream.try_reserve(bytes, class) {
            self.wait_for_space(bytes, class, deadline)?;
        }
        Ok(Credits { shared: self, bytes })
    }

    /// Why nothing can be appended now.
    fn refusal(&self) -> Result<(), LogError> {
        if self.driven.stream.failed() {
            return Err(self.told.failed());
        }
        self.told.full().map_or(Ok(()), Err)
    }

    #[cold]
    fn wait_for_space(&self, bytes: u64, class: Class, deadline: Deadline) -> Result<(), LogError> {
        let (start, mut attempts) = (Instant::now(), 0_u16);
        let producer_thread = i32::from(thread::current_id());
        let mut span = span!(DurabilityWalBackpressure { wait_us: 0, producer_thread, retries: 0 });
        let result = self.driven.stream.wait_for_room(deadline, || {
            attempts = attempts.saturating_add(1);
            if let Err(refused) = self.refusal() {
                return Some(Err(refused));
            }
            // Whoever needs the room may as well make it.
            let has_room = self.driven.stream.try_reserve(bytes, class)
                || (self.driven.try_step() == Some(Step::Wrote)
                    && self.driven.stream.try_reserve(bytes, class));
            if self.options.waiters_write {
                self.ring();
            } else if !has_room {
                self.ask_for_flush();
            }
            has_room.then_some(Ok(()))
        });
        let waited = start.elapsed();
        span.set(|event| {
            event.wait_us = waited.as_micros().try_into().unwrap_or(u32::MAX);
            event.retries = attempts;
        });
        result.unwrap_or(Err(LogError::BackPressure { waited }))
    }

    fn wait_durable(&self, lsn: Lsn, deadline: Deadline) -> Result<(), LogError> {
        let start = Instant::now();
        let _span = span!(WalWait { target_lsn: lsn.0 as i64 });
        let result = self.driven.wait_durable(lsn.0, deadline, || self.ask_for_flush());
        self.after_wait();
        result.map_err(|reason| match reason {
            NotDurable::Failed => self.told.failed(),
            NotDurable::Expired => LogError::Uncertain { lsn, waited: start.elapsed() },
            NotDurable::NotAppended => LogError::Beyond { lsn, limit: self.watermarks().appended },
            NotDurable::Full => {
                self.told.full().unwrap_or(LogError::Uncertain { lsn, waited: start.elapsed() })
            }
        })
    }

    /// Half a ring is enough for a group (06 B-24 c).
    fn after_append(&self) {
        let stream = &self.driven.stream;
        if self.has_thread && stream.claimed_bytes() >= stream.capacity() / 2 {
            self.ask_for_flush();
        }
    }

    /// Threads that wait take files that are ready, and leave it to the background thread to make new ones: filling one
    /// takes as long as many syncs.
    fn after_wait(&self) {
        let wants_spare = &self.told.wants_spare;
        if wants_spare.load(Ordering::Relaxed) && wants_spare.swap(false, Ordering::Relaxed) {
            self.ring();
        }
    }

    fn request_flush(&self) {
        if self.has_thread {
            self.ask_for_flush();
        } else {
            self.driven.write_appended();
        }
    }

    fn ask_for_flush(&self) {
        if self.has_thread && !self.flush_wanted.swap(true, Ordering::AcqRel) {
            self.ring();
        }
    }

    fn group(&self) {
        if !self.has_thread {
            // Nobody would write it when its time has come.
            return self.driven.write_appended();
        }
        // At most a day, as `Options` have it.
        let interval_ns = self.options.group_interval.as_nanos() as i64;
        if self.group.join(|| monotonic_ns().saturating_add(interval_ns)) {
            self.ring();
        }
    }

    /// Has the background thread look.
    fn ring(&self) {
        if self.has_thread {
            self.bell.fetch_add(1, Ordering::Release);
            wait::wake_one(&self.bell);
        }
    }
}

/// How often the thread tries again to find room for another segment.
const FULL_RETRY_NS: i64 = 50_000_000;
/// How long it leaves the disk alone when one file is ready and there was no room for a further one: each attempt takes
/// for a moment all the space that is left.
const SPARE_RETRY_NS: i64 = 1_000_000_000;

/// Ends the log when its background thread panics: nobody else writes what nobody waits for.
struct Watch<'a>(&'a Shared);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.driven.stream.fail();
        }
    }
}

/// The thread `Typhon-WAL-Writer`.
impl Shared {
    fn spawn(shared: &Arc<Self>) -> Result<JoinHandle<()>, LogError> {
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("Typhon-WAL-Writer".to_owned());
        let spawned = thread.spawn(move || {
            thread::set_current_kind(thread::ThreadKind::Pool);
            let _watch = Watch(&shared);
            shared.work();
        });
        spawned.map_err(LogError::storage("start the writer thread of", ""))
    }

    fn work(&self) {
        let mut next_spare_ns = 0;
        loop {
            let seen = self.bell.load(Ordering::Acquire);
            let is_closing = self.is_closing.load(Ordering::Acquire);
            let wants_flush = self.flush_wanted.swap(false, Ordering::AcqRel);
            if is_closing || wants_flush || self.group_is_due() {
                self.driven.write_appended();
            }
            if is_closing {
                return;
            }
            let is_time = monotonic_ns() >= next_spare_ns || !self.spares.has_one();
            if is_time && self.prepare_spare(&mut next_spare_ns) {
                continue;
            }
            let mut due = self.group.due_ns();
            let is_full = self.told.full().is_some();
            if is_full {
                due = due.min(monotonic_ns() + FULL_RETRY_NS);
            }
            if wait::wait(&self.bell, seen, Deadline::at_ns(due)) == WaitEnd::Expired && is_full {
                // A reservation that was refused for lack of room must not be the only one to notice that there is.
                self.told.set_full(None);
                self.flush_wanted.store(true, Ordering::Release);
            }
        }
    }

    /// Is the oldest frame of the open group old enough? Frames from now on begin a new one.
    fn group_is_due(&self) -> bool {
        if !self.group.close(monotonic_ns()) {
            return false;
        }
        emit(|| DurabilityWalGroupCommit {
            trigger_ms: self.options.group_interval.as_millis().try_into().unwrap_or(u16::MAX),
            producer_thread: 0,
        });
        true
    }

    /// Keeps files ready to become segments; that there is no room for the next one is found out while the current
    /// segment still has some. One file at a time, so that flushes do not wait for all; says whether there may be more
    /// to do, and, if there was no room, when to try again.
    fn prepare_spare(&self, next_ns: &mut i64) -> bool {
        // What else may be wrong with the directory shows when the next segment is made, where it matters.
        match self.spares.prepare(&self.place) {
            Err(LogError::Full { .. }) if self.spares.has_one() => {
                *next_ns = monotonic_ns() + SPARE_RETRY_NS;
                false
            }
            Err(LogError::Full { reason, remedy }) => {
                self.told.set_full(Some((reason, remedy)));
                false
            }
            result => result.unwrap_or(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Draft, Lsn, Options, Store};
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;
    use typhon_store::sim::SimIo;
    use typhon_sync::Deadline;

    /// Segments are to be reclaimed while somebody writes; when it comes to that, there is a pin.
    #[test]
    fn a_pin_holds_against_a_reclaim_that_waits() {
        let options = Options { segment_bytes: 8 << 10, ..Options::small() };
        let opening = Store::open(Arc::new(SimIo::new(1)), Path::new("/db"), options, b"");
        let log = opening.expect("opens").start(b"").expect("starts");
        for _ in 0..4 {
            log.commit(&Draft::commit(&[1; 3000]), Deadline::INFINITE).expect("durable");
        }
        let durable = log.watermarks().durable;
        std::thread::scope(|scope| {
            let writer = log.shared().driven.hold();
            let reclaim = scope.spawn(|| log.reclaim(durable).expect("reclaims"));
            std::thread::sleep(Duration::from_millis(50));
            let _pin = log.pin(Lsn::START);
            drop(writer);
            assert_eq!(reclaim.join().expect("no panic"), 0, "pinned");
        });
        assert!(log.reclaim(durable).expect("reclaims") > 0);
    }
}
