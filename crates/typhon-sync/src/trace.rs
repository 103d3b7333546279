//! Recording, as far as there is any: models record nothing.
#![forbid(unsafe_code)]

use typhon_profiler::events::InstantEvent;
#[cfg(not(loom))]
pub(crate) use typhon_profiler::is_on;

/// Records an instant now, if its kind is on.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn emit<E: InstantEvent>(event: impl FnOnce() -> E) {
    if is_on(E::KIND) {
        record(typhon_profiler::Ticks::now(), event);
    }
}

/// Apart from the code that it is called from: these kinds are off as a rule, and a lock is a handful of instructions.
#[cfg(not(loom))]
#[cold]
#[inline(never)]
fn record<E: InstantEvent>(at: typhon_profiler::Ticks, event: impl FnOnce() -> E) {
    typhon_profiler::emit_at(at, event);
}

/// When something was about to happen, if its kind is recorded: a release is recorded with the moment before it, so that
/// it never stands behind the acquisition that follows it.
#[cfg(not(loom))]
pub(crate) struct Moment(Option<typhon_profiler::Ticks>);

#[cfg(not(loom))]
impl Moment {
    /// Now, if this kind is on.
    #[inline(always)]
    pub(crate) fn of<E: InstantEvent>() -> Self {
        Self(is_on(E::KIND).then(typhon_profiler::Ticks::now))
    }

    /// Records that it has happened.
    #[inline(always)]
    pub(crate) fn record<E: InstantEvent>(self, event: impl FnOnce() -> E) {
        if let Some(at) = self.0 {
            record(at, event);
        }
    }
}

#[cfg(loom)]
pub(crate) struct Moment;

#[cfg(loom)]
impl Moment {
    pub(crate) fn of<E: InstantEvent>() -> Self {
        Self
    }

    pub(crate) fn record<E: InstantEvent>(self, _: impl FnOnce() -> E) {}
}

#[cfg(loom)]
pub(crate) fn emit<E: InstantEvent>(_: impl FnOnce() -> E) {}

#[cfg(loom)]
pub(crate) fn is_on(_: u8) -> bool {
    false
}
