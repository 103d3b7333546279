//! Recording: spans with a guard, instants, and spans that somebody else has timed.
//!
//! Every function takes a closure that makes the event, and calls it only if the event's kind is recorded.
#![forbid(unsafe_code)]

/// The methods that set one field each.
macro_rules! setters {
    ($($event:ident { $($first:ident $second:ident $($third:ident)?: $ty:ty,)* })*) => {
        $(impl Span<$event> {
            $(setters!(@$event $first $second $($third)?: $ty);)*
        })*
    };
    (@$event:ident optional $setter:ident $field:ident: $ty:ty) => {
        #[doc = concat!("Sets [`", stringify!($event), "::", stringify!($field), "`]; nothing when the kind is off.")]
        #[inline]
        pub fn $setter(&mut self, value: $ty) -> &mut Self {
            self.set(|event| event.$field = Some(value));
            self
        }
    };
    (@$event:ident $setter:ident $field:ident: $ty:ty) => {
        #[doc = concat!("Sets [`", stringify!($event), "::", stringify!($field), "`]; nothing when the kind is off.")]
        #[inline]
        pub fn $setter(&mut self, value: $ty) -> &mut Self {
            self.set(|event| event.$field = value);
            self
        }
    };
}

mod setters;

use crate::capture::chunk::{Encode, RecordContext};
use crate::capture::producer::{HostSpan, OpenSpan};
use crate::capture::thread_info::THREAD_INFO;
use crate::clock::Ticks;
use crate::lifecycle::first_use;
use crate::local::{self, ThisThread};
use crate::mask::GATE;
use crate::names::NameId;
use crate::program::SYSTEM_SITES;
use crate::site::Site;
use std::marker::PhantomData;
use typhon_trace::event::{Event, Instant, InstantEvent, SpanEvent, SpanFields};

/// The distributed trace that a thread works for, as W3C `traceparent` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// Trace id, in the order of its text form.
    pub trace_id: [u8; 16],
    /// Span id of the caller, in the order of its text form.
    pub span_id: [u8; 8],
}

/// Sets the distributed trace that the calling thread works for, until it is set again. Spans that begin meanwhile
/// carry its id, and those without an open span around them have the caller's span as their parent (brief 02 B-6).
pub fn set_trace_context(context: Option<TraceContext>) {
    let host = context
        .map(|context| HostSpan { trace_id: context.trace_id, span_id: u64::from_le_bytes(context.span_id) });
    local::producer().set_host_span(host);
}

/// Is this kind recorded now? Of use before work that only an event needs. As with every record, the first question
/// in a process starts the profiler if it is configured.
#[inline(always)]
pub fn is_on(kind: u8) -> bool {
    GATE.mask.contains(kind) && (GATE.is_decided() || first_use::begin(kind))
}

/// As [`is_on`], for a kind that is known where this is compiled: three instructions when it is off.
#[inline(always)]
pub fn is_recorded<E: Event>() -> bool {
    GATE.contains::<E>() && (GATE.is_decided() || first_use::begin(E::KIND))
}

/// A span that has begun; it ends, and is recorded, when the guard is dropped. Made by [`span!`](crate::span).
///
/// The guard belongs to the thread that made it and cannot leave it:
///
/// ```compile_fail,E0277
/// let span = typhon_profiler::span!(typhon_profiler::events::CheckpointCycle::default());
/// std::thread::spawn(move || drop(span));
/// ```
///
/// It may be kept in a struct and dropped in another function of the thread. Dropping guards in any order is correct.
#[must_use = "a span ends when its guard is dropped"]
pub struct Span<E: SpanEvent> {
    open: Option<Open<E>>,
    not_send: PhantomData<*mut ()>,
}

struct Open<E> {
    event: E,
    start: Ticks,
    span: OpenSpan,
    /// Number of the call site, as a whole word like the rest.
    site: u64,
}

impl<E: SpanEvent> Span<E> {
    /// Begins a span; for a call site without the macro.
    ///
    /// Each way out makes a guard of its own, in the caller's frame: were the two put together first, a call site whose
    /// kind is off would copy a whole guard of nothing.
    #[inline(always)]
    pub fn begin(site: &'static Site, event: impl FnOnce() -> E) -> Self {
        if is_recorded::<E>() {
            let event = event();
            if let Some(span) = local::producer().begin_span(ThisThread) {
                return Self::of(Open { event, span, site: site.id().into(), start: Ticks::now() });
            }
        }
        Self { open: None, not_send: PhantomData }
    }

    #[inline(always)]
    fn of(open: Open<E>) -> Self {
        Self { open: Some(open), not_send: PhantomData }
    }

    /// Begins the work of a system at a moment that the caller has taken; the record names the code of the system, as
    /// with [`emit_system_span`]. For schedulers, which need the moments of their systems themselves.
    #[inline(always)]
    pub fn begin_system(system: u16, start: Ticks, event: impl FnOnce() -> E) -> Self {
        if is_recorded::<E>()
            && let Some(span) = local::producer().begin_span(ThisThread)
        {
            return Self::of(Open {
                event: event(),
                span,
                site: system_site(system).unwrap_or(0).into(),
                start,
            });
        }
        Self { open: None, not_send: PhantomData }
    }

    /// Ends the span at a moment that the caller has taken, not before its start.
    #[inline(always)]
    pub fn end_at(mut self, end: Ticks) {
        if let Some(open) = &self.open {
            open.end(end);
            self.open = None;
        }
    }

    /// Changes the event's fields before it is recorded; does nothing when the kind is off. For one field there are
    /// methods, such as `set_tsn` of `Span<TransactionCommit>`.
    #[inline]
    pub fn set(&mut self, change: impl FnOnce(&mut E)) {
        if let Some(open) = &mut self.open {
            change(&mut open.event);
        }
    }

    /// Is the span going to be recorded?
    pub fn is_recorded(&self) -> bool {
        self.open.is_some()
    }

    /// The span's id, 0 when it is not recorded. A later completion may repeat it ([`emit_completion`]).
    pub fn id(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.span.id)
    }
}

impl<E: SpanEvent> Drop for Span<E> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(open) = &self.open {
            open.end(Ticks::now());
        }
    }
}

impl<E: SpanEvent> Open<E> {
    /// Out of line: what stays at a call site, twice where the work inside may panic, is one test.
    /// By reference, since copies of what was just written in smaller pieces wait for it.
    #[inline(never)]
    fn end(&self, end: Ticks) {
        if self.span.is_traced() { self.end_in_trace(end) } else { self.end_with(end, None) }
    }

    #[cold]
    #[inline(never)]
    fn end_in_trace(&self, end: Ticks) {
        let trace_id = local::producer().trace_id(self.span);
        self.end_with(end, trace_id);
    }

    #[inline(always)]
    fn end_with(&self, end: Ticks, trace_id: Option<[u8; 16]>) {
        let record = SpanRecord {
            event: &self.event,
            start: self.start,
            duration: end.raw().wrapping_sub(self.start.raw()) as i64,
            link: Link::Inside,
            trace_id,
            site: (self.site != 0).then_some(self.site as u16),
        };
        let size = record.bytes();
        local::producer().end_span(ThisThread, E::KIND, self.span, size, record);
    }
}

/// A span as it is written.
struct SpanRecord<'e, E> {
    event: &'e E,
    start: Ticks,
    duration: i64,
    link: Link,
    trace_id: Option<[u8; 16]>,
    site: Option<u16>,
}

impl<E: SpanEvent> SpanRecord<'_, E> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.event.record_bytes(&self.fields(0, 0))
    }

    #[inline(always)]
    fn fields(&self, span_id: u64, parent_span_id: u64) -> SpanFields {
        let Self { duration, trace_id, site, .. } = *self;
        SpanFields { duration, span_id, parent_span_id, trace_id, site }
    }
}

impl<E: SpanEvent> Encode for SpanRecord<'_, E> {
    #[inline(always)]
    fn encode(self, context: RecordContext, bytes: &mut [u8]) {
        let (span_id, parent) = match self.link {
            Link::Inside => (context.span_id, context.parent),
            Link::Root => (context.span_id, 0),
            Link::Completion(span_id) => (span_id, 0),
        };
        let fields = self.fields(span_id, parent);
        let written = self.event.encode(context.slot, self.start.raw() as i64, &fields, bytes);
        debug_assert!(written.is_ok());
    }
}

/// Records an instant now. `ThreadInfo` and `Instant` are refused at compile time: the first is the profiler's own, the
/// second is made by [`mark`].
#[inline(always)]
pub fn emit<E: InstantEvent>(event: impl FnOnce() -> E) {
    const { assert!(E::KIND != THREAD_INFO && E::KIND != Instant::KIND) }
    if is_recorded::<E>() {
        put_instant(Ticks::now(), &event());
    }
}

/// Records an instant at a given moment; otherwise as [`emit`].
#[inline(always)]
pub fn emit_at<E: InstantEvent>(at: Ticks, event: impl FnOnce() -> E) {
    const { assert!(E::KIND != THREAD_INFO && E::KIND != Instant::KIND) }
    if is_recorded::<E>() {
        put_instant(at, &event());
    }
}

/// Records an instant; false if it was lost, and counted.
#[inline]
pub(crate) fn put_instant<E: InstantEvent>(at: Ticks, event: &E) -> bool {
    let mut is_written = false;
    let record = InstantRecord { event, at, is_written: &mut is_written };
    local::producer().emit(ThisThread, E::KIND, event.record_bytes(), record);
    is_written
}

/// An instant as it is written.
struct InstantRecord<'e, E> {
    event: &'e E,
    at: Ticks,
    is_written: &'e mut bool,
}

impl<E: InstantEvent> Encode for InstantRecord<'_, E> {
    #[inline(always)]
    fn encode(self, context: RecordContext, bytes: &mut [u8]) {
        let written = self.event.encode(context.slot, self.at.raw() as i64, bytes);
        debug_assert!(written.is_ok());
        *self.is_written = true;
    }
}

/// Records the application's own instant: a name and a number.
#[inline(always)]
pub fn mark(name: NameId, value: i32) {
    if is_recorded::<Instant>() {
        put_instant(Ticks::now(), &Instant { name_id: i32::from(name.value()), payload: value });
    }
}

/// Records a span that has already ended: a fresh id, and the thread's innermost open span as its parent.
#[inline]
pub fn emit_span<E: SpanEvent>(start: Ticks, end: Ticks, event: impl FnOnce() -> E) {
    put_timed(start, end, Link::Inside, None, event);
}

/// As [`emit_span`], for the work of a system: the record names the code of the system with this index (see
/// [`Program::with_system_source`](crate::Program::with_system_source)). Indexes above 32,767 have no code.
#[inline]
pub fn emit_system_span<E: SpanEvent>(system: u16, start: Ticks, end: Ticks, event: impl FnOnce() -> E) {
    put_timed(start, end, Link::Inside, system_site(system), event);
}

/// The call site that means the code of a system.
#[inline(always)]
fn system_site(system: u16) -> Option<u16> {
    (system < SYSTEM_SITES).then_some(SYSTEM_SITES | system)
}

/// As [`emit_span`] without a parent: for work that belongs to the process and not to the thread that reports it.
#[inline]
pub fn emit_root_span<E: SpanEvent>(start: Ticks, end: Ticks, event: impl FnOnce() -> E) {
    put_timed(start, end, Link::Root, None, event);
}

/// Records the end of asynchronous work under the id of the span that began it, from whichever thread sees the end.
/// Nothing is recorded for the id 0, the id of a span that was not recorded.
#[inline]
pub fn emit_completion<E: SpanEvent>(span_id: u64, start: Ticks, end: Ticks, event: impl FnOnce() -> E) {
    if span_id != 0 {
        put_timed(start, end, Link::Completion(span_id), None, event);
    }
}

/// How an externally timed span hangs together with others.
enum Link {
    Inside,
    Root,
    Completion(u64),
}

#[inline]
fn put_timed<E: SpanEvent>(
    start: Ticks,
    end: Ticks,
    link: Link,
    site: Option<u16>,
    event: impl FnOnce() -> E,
) {
    if !is_recorded::<E>() {
        return;
    }
    let event = event();
    let duration = end.raw().wrapping_sub(start.raw()) as i64;
    let record = SpanRecord { event: &event, start, duration, link, trace_id: None, site };
    local::producer().emit_span(ThisThread, E::KIND, record.bytes(), record);
}

/// Begins a span: `span!(TransactionCommit { tsn, ..Default::default() })`. The event is made only if its kind is
/// recorded. Bind the guard to a name: it ends the span when it is dropped.
///
/// ```
/// use typhon_profiler::{events::CheckpointCycle, span};
///
/// fn checkpoint(lsn: i64) {
///     let mut span = span!(CheckpointCycle { target_lsn: lsn, ..Default::default() });
///     // … the work …
///     span.set_dirty_page_count(3);
/// }
/// checkpoint(7);
/// ```
///
/// For work that no kind describes, a name is enough: a literal, or any text after `name:`, of which a record holds what
/// fits. It becomes a span of the kind `NamedSpan`.
///
/// ```
/// use typhon_profiler::span;
///
/// fn load(level: &str) {
///     let _span = span!("load level");
///     let _part = span!(name: level);
///     // … the work …
/// }
/// load("harbour");
/// ```
#[macro_export]
macro_rules! span {
    ($name:literal) => {
        $crate::span!(name: $name)
    };
    (name: $name:expr) => {
        $crate::Span::begin($crate::__site!(), || $crate::events::NamedSpan { name: $name })
    };
    ($event:expr) => {
        $crate::Span::begin($crate::__site!(), || $event)
    };
}
