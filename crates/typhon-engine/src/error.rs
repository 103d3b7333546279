//! Numbers of errors: the same in every version, for logs, dashboards and support. Programs match the error itself.

use std::fmt;

/// The stable number of an error (brief 04 B-71). The thousands say what it is about: 1 transactions, 2 storage,
/// 3 schema, 4 indexes, 5 queries, 6 resources, 7 durability, 8 the runtime, 9 replication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(u16);

/// An error that has a number.
pub trait Coded: std::error::Error {
    /// Its number.
    fn code(&self) -> ErrorCode;

    /// Can the same call succeed later, with nothing changed but the load?
    fn is_transient(&self) -> bool {
        self.code().is_transient()
    }
}

macro_rules! error_codes {
    ($($(#[$meta:meta])* $constant:ident = $number:literal $name:literal $($transient:ident)?;)*) => {
        impl ErrorCode {
            $($(#[$meta])* pub const $constant: Self = Self($number);)*

            /// All numbers that are in use.
            pub const ALL: &[Self] = &[$(Self::$constant,)*];

            /// The name that goes with the number; "Unknown" for numbers of other versions.
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($number => $name,)*
                    _ => "Unknown",
                }
            }

            /// Can the same call succeed later, with nothing changed but the load? True of timeouts and exhausted
            /// resources only.
            pub const fn is_transient(self) -> bool {
                match self.0 {
                    $($number => error_codes!(@transient $($transient)?),)*
                    _ => false,
                }
            }
        }
    };
    (@transient transient) => { true };
    (@transient) => { false };
}

// Append only: a number that was in a release keeps its meaning for ever. `tests/error_codes.txt` remembers them.
error_codes! {
    /// No number of its own.
    UNSPECIFIED = 0 "Unspecified";
    /// Options break a rule.
    INVALID_OPTIONS = 8007 "InvalidOptions";
    /// A system uses what it has not declared.
    INVALID_SYSTEM_ACCESS = 8001 "InvalidSystemAccess";
    /// A schedule breaks a rule.
    SCHEDULE_BUILD = 8002 "ScheduleBuild";
    /// The code of a system panicked.
    SYSTEM_PANICKED = 8003 "SystemPanicked";
    /// The runtime has stopped for good.
    RUNTIME_TERMINAL = 8004 "RuntimeTerminal";
    /// An event queue has no room.
    EVENT_QUEUE_FULL = 8006 "EventQueueFull";
    /// A resource is used up to its limit.
    RESOURCE_EXHAUSTED = 6001 "ResourceExhausted" transient;
    /// A lock was not free in time.
    LOCK_TIMEOUT = 6003 "LockTimeout" transient;
}

impl ErrorCode {
    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// `8006 EventQueueFull`.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.name())
    }
}
