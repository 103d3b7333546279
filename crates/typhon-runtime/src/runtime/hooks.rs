//! Code of the program that the driver runs between the systems' turns.

use super::shared::say;
use crate::scheduler::failure::{error_message, panic_message};
use crate::system::{IntoOutcome, SystemError, TickInfo};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typhon_sync::panics::drop_guarded;

type Hook = Box<dyn FnMut(&TickInfo) -> Result<(), SystemError> + Send>;

/// All hooks of a runtime, each list in the order of registration.
#[derive(Default)]
pub(crate) struct Hooks {
    first_tick: HookList,
    output: HookList,
    tick_aborted: HookList,
    critical_overload: HookList,
    shutdown: HookList,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum HookKind {
    FirstTick,
    Output,
    TickAborted,
    CriticalOverload,
    Shutdown,
}

#[derive(Default)]
pub(crate) struct HookList(Vec<Hook>);

impl fmt::Debug for HookList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hooks", self.0.len())
    }
}

impl Hooks {
    fn list(&mut self, kind: HookKind) -> &mut HookList {
        match kind {
            HookKind::FirstTick => &mut self.first_tick,
            HookKind::Output => &mut self.output,
            HookKind::TickAborted => &mut self.tick_aborted,
            HookKind::CriticalOverload => &mut self.critical_overload,
            HookKind::Shutdown => &mut self.shutdown,
        }
    }

    pub(crate) fn add<R: IntoOutcome<()>>(
        &mut self,
        kind: HookKind,
        mut hook: impl FnMut(&TickInfo) -> R + Send + 'static,
    ) {
        self.list(kind).0.push(Box::new(move |tick| hook(tick).into_outcome()));
    }

    pub(crate) fn has(&self, kind: HookKind) -> bool {
        match kind {
            HookKind::FirstTick => !self.first_tick.0.is_empty(),
            HookKind::Output => !self.output.0.is_empty(),
            HookKind::TickAborted => !self.tick_aborted.0.is_empty(),
            HookKind::CriticalOverload => !self.critical_overload.0.is_empty(),
            HookKind::Shutdown => !self.shutdown.0.is_empty(),
        }
    }

    /// Runs the hooks of a kind, all of them, whatever becomes of the others. A failure is said and goes no further.
    pub(crate) fn run(&mut self, kind: HookKind, tick: &TickInfo) {
        for hook in &mut self.list(kind).0 {
            let message = match catch_unwind(AssertUnwindSafe(|| hook(tick))) {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error_message(error),
                Err(payload) => format!("panic: {}", panic_message(payload)),
            };
            say(format_args!("{} failed in tick {}: {message}", kind.name(), tick.number));
        }
    }

    /// Those of the first tick are used up, even if one of them failed.
    pub(crate) fn forget_first_tick(&mut self) {
        self.first_tick.0.drain(..).for_each(drop_guarded);
    }
}

impl HookKind {
    pub(crate) const ALL: [Self; 5] =
        [Self::FirstTick, Self::Output, Self::TickAborted, Self::CriticalOverload, Self::Shutdown];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::FirstTick => "on_first_tick",
            Self::Output => "on_output",
            Self::TickAborted => "on_tick_aborted",
            Self::CriticalOverload => "on_critical_overload",
            Self::Shutdown => "on_shutdown",
        }
    }
}
