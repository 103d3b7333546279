//! One thread's side of the capture: from "this happened" to a published or counted record.
#![forbid(unsafe_code)]

use super::Capture;
use super::chunk::{Encode, RecordContext};
use super::exclusive::Exclusive;
use super::open_spans::{MAX_OPEN, OpenSpans, Position};
use super::slot::Owner;
use super::thread_info::ThreadLabel;
use crate::sync::{Fault, planted};

/// What a thread knows of its slot.
enum Claim<'c> {
    /// No slot yet. The number is [`Capture::freed`] at the last claim that failed, 0 when none was tried.
    None { failed_at: u32 },
    /// The owner of a slot.
    Owner(Owner<'c>),
    /// The thread is ending; it never claims again.
    Released,
}

struct State<'c> {
    claim: Claim<'c>,
    open: OpenSpans,
    host: Option<HostSpan>,
    /// The slot after it was released, which is a mistake.
    #[cfg(loom)]
    kept: Option<Owner<'c>>,
    /// Trace ids of the open spans that have one, by position; beside the spans, which have to be small.
    trace_ids: [[u8; 16]; MAX_OPEN],
}

/// The span of another program, in whose distributed trace this thread works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostSpan {
    pub(crate) trace_id: [u8; 16],
    pub(crate) span_id: u64,
}

/// A span that has begun: what its record needs besides the payload. Whole words without padding, which stay in
/// registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenSpan {
    pub(crate) id: u64,
    pub(crate) parent: u64,
    position: Position,
    traced: u64,
}

impl OpenSpan {
    /// Did the span begin in the context of a distributed trace?
    #[inline(always)]
    pub(crate) fn is_traced(self) -> bool {
        self.traced != 0
    }
}

/// The state of one thread. `Exclusive`, so that a record inside a record is refused (brief 02 B-10).
pub(crate) struct Producer<'c>(Exclusive<State<'c>>);

/// How a thread that has no slot gets one: the capture to claim in, and who the thread is. `None` from `label` refuses
/// the claim for good (the thread is ending).
pub(crate) trait Identity<'c>: Copy {
    fn capture(self) -> &'c Capture;
    fn label(self) -> Option<ThreadLabel>;
    fn now_ticks(self) -> u64;
}

impl<'c> Producer<'c> {
    pub(crate) const fn new() -> Self {
        Self(Exclusive::new(State {
            claim: Claim::None { failed_at: 0 },
            open: OpenSpans::new(),
            host: None,
            #[cfg(loom)]
            kept: None,
            trace_ids: [[0; 16]; MAX_OPEN],
        }))
    }

    /// Writes one record of `size` bytes, or counts it.
    #[inline(always)]
    pub(crate) fn emit(&self, identity: impl Identity<'c>, kind: u8, size: usize, record: impl Encode) {
        let Some(mut state) = self.0.begin() else { return count_no_slot(identity, true) };
        let parent = state.open.innermost();
        let has_slot = if let Some(owner) = state.owner(identity) {
            let context = RecordContext { slot: owner.index(), span_id: 0, parent };
            owner.append(kind, size, context, record);
            true
        } else {
            false
        };
        state.end();
        if !has_slot {
            count_no_slot(identity, false);
        }
    }

    /// Writes one span record that was never open: a fresh id, and the innermost open span as parent.
    #[inline(always)]
    pub(crate) fn emit_span(&self, identity: impl Identity<'c>, kind: u8, size: usize, record: impl Encode) {
        let Some(mut state) = self.0.begin() else { return count_no_slot(identity, true) };
        let parent = state.open.innermost();
        let has_slot = if let Some(owner) = state.owner(identity) {
            let context = RecordContext { slot: owner.index(), span_id: owner.next_span_id(), parent };
            owner.append(kind, size, context, record);
            true
        } else {
            false
        };
        state.end();
        if !has_slot {
            count_no_slot(identity, false);
        }
    }

    /// Begins a span: takes an id and becomes the innermost open span. `None`, counted, without a slot.
    #[inline(always)]
    pub(crate) fn begin_span(&self, identity: impl Identity<'c>) -> Option<OpenSpan> {
        let Some(mut state) = self.0.begin() else {
            count_no_slot(identity, true);
            return None;
        };
        let span = state.begin_span(identity);
        state.end();
        if span.is_none() {
            count_no_slot(identity, false);
        }
        span
    }

    /// Ends a span and writes its record.
    #[inline(always)]
    pub(crate) fn end_span(
        &self,
        identity: impl Identity<'c>,
        kind: u8,
        span: OpenSpan,
        size: usize,
        record: impl Encode,
    ) {
        let Some(mut state) = self.0.begin() else { return count_no_slot(identity, true) };
        state.open.close(span.position, span.id);
        // A span that was begun has an owner, unless the thread gave up its slot meanwhile.
        let has_slot = if let Some(owner) = state.owner_of_open_span() {
            let context = RecordContext { slot: owner.index(), span_id: span.id, parent: span.parent };
            owner.append(kind, size, context, record);
            true
        } else {
            false
        };
        state.end();
        if !has_slot {
            count_no_slot(identity, false);
        }
    }

    /// The trace id of an open span; `None` when it has none, or inside a record.
    #[cold]
    pub(crate) fn trace_id(&self, span: OpenSpan) -> Option<[u8; 16]> {
        self.0
            .enter(|state| {
                span.position.index().filter(|_| span.is_traced()).map(|index| state.trace_ids[index])
            })
            .flatten()
    }

    /// Has the thread tried to get a slot, and there was none?
    #[cfg(all(unix, feature = "gc"))]
    pub(crate) fn lacks_slot(&self) -> bool {
        let is_without = |state: &mut State<'c>| match state.claim {
            Claim::None { failed_at } => failed_at != 0,
            Claim::Owner(_) | Claim::Released => false,
        };
        self.0.enter(is_without).unwrap_or(false)
    }

    /// Sets the span of another program that this thread works for.
    pub(crate) fn set_host_span(&self, host: Option<HostSpan>) {
        // Refused inside a record, where only a signal handler or an allocator hook could be; they have no trace.
        self.0.enter(|state| state.host = host);
    }

    /// Gives up the slot for good, from the thread's destructor.
    pub(crate) fn retire(&self) {
        self.0.enter(|state| {
            if planted(Fault::RetireEarly) {
                if let Claim::Owner(owner) = &state.claim {
                    owner.retire_early();
                }
                return;
            }
            if let Claim::Owner(owner) = std::mem::replace(&mut state.claim, Claim::Released) {
                #[cfg(loom)]
                if planted(Fault::GuardSlot) {
                    owner.retire_early();
                    state.kept = Some(owner);
                    return;
                }
                owner.retire();
            }
        });
    }

    /// Forgets the slot without retiring it: the copy of this thread in a forked child has no right to it.
    pub(crate) fn abandon(&self) {
        self.0.enter(|state| state.claim = Claim::Released);
    }
}

impl<'c> State<'c> {
    #[inline(always)]
    fn begin_span(&mut self, identity: impl Identity<'c>) -> Option<OpenSpan> {
        let parent = self.open.innermost();
        let id = self.owner(identity)?.next_span_id();
        let position = self.open.open(id);
        let (parent, traced) = if self.host.is_none() { (parent, 0) } else { self.trace(parent, position) };
        Some(OpenSpan { id, parent, position, traced })
    }

    /// Notes the distributed trace in whose context a span begins; returns its parent and whether it is traced. Spans
    /// too deep to be parents are not. Two words, for the sake of registers.
    #[cold]
    #[inline(never)]
    fn trace(&mut self, parent: u64, position: Position) -> (u64, u64) {
        let (Some(host), Some(index)) = (self.host, position.index()) else { return (parent, 0) };
        self.trace_ids[index] = host.trace_id;
        (if parent == 0 { host.span_id } else { parent }, 1)
    }

    /// The slot, without a claim.
    #[inline(always)]
    fn owner_of_open_span(&mut self) -> Option<&mut Owner<'c>> {
        match &mut self.claim {
            Claim::Owner(owner) => Some(owner),
            #[cfg(loom)]
            Claim::Released => self.kept.as_mut(),
            _ => None,
        }
    }

    #[inline(always)]
    fn owner(&mut self, identity: impl Identity<'c>) -> Option<&mut Owner<'c>> {
        if !matches!(self.claim, Claim::Owner(_)) {
            self.try_claim(identity);
        }
        match &mut self.claim {
            Claim::Owner(owner) => Some(owner),
            _ => None,
        }
    }

    /// Claims a slot, unless the thread is ending or nothing was freed since the last claim failed.
    #[cold]
    #[inline(never)]
    fn try_claim(&mut self, identity: impl Identity<'c>) {
        let Claim::None { failed_at } = self.claim else { return };
        let freed = identity.capture().freed();
        if freed == failed_at {
            return;
        }
        let Some(label) = identity.label() else {
            self.claim = Claim::Released;
            return;
        };
        self.claim = match identity.capture().claim(label, identity.now_ticks()) {
            Some(owner) => Claim::Owner(owner),
            None => Claim::None { failed_at: freed },
        };
    }
}

#[cold]
#[inline(never)]
fn count_no_slot<'c>(identity: impl Identity<'c>, reentered: bool) {
    let silent = if reentered { Fault::ReentrySilent } else { Fault::ExitSilent };
    if !planted(silent) {
        identity.capture().count_no_slot();
    }
}
