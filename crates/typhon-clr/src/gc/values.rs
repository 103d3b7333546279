//! Enumerations of the runtime's events. Values that newer runtimes add pass through unchanged.

use std::fmt;

macro_rules! named_values {
    ($(#[$doc:meta])* $name:ident { $($value:literal $constant:ident $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(pub u32);

        impl $name {
            $(#[doc = concat!("The value ", $value, ": ", $text, ".")] pub const $constant: Self = Self($value);)*

            /// What the value stands for, or `None` for one that this crate does not know.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }
    };
}

named_values! {
    /// Why a collection was started.
    GcReason {
        0 ALLOC_SMALL "small-object allocation",
        1 INDUCED "induced",
        2 LOW_MEMORY "low memory",
        3 EMPTY "empty",
        4 ALLOC_LARGE "large-object allocation",
        5 OUT_OF_SPACE_SMALL "out of small-object space",
        6 OUT_OF_SPACE_LARGE "out of large-object space",
        7 INDUCED_NOT_FORCED "induced, not forced",
        8 INTERNAL "internal",
        9 INDUCED_LOW_MEMORY "induced by low memory",
        10 INDUCED_COMPACTING "induced, compacting",
        11 LOW_MEMORY_HOST "low memory of the host",
        12 PAUSE_MODE_FULL "full collection by pause mode",
        13 LOW_MEMORY_HOST_BLOCKING "low memory of the host, blocking",
    }
}

named_values! {
    /// How a collection announces itself. A background collection may still run blocking.
    GcType {
        0 BLOCKING "blocking",
        1 BACKGROUND "background",
        2 FOREGROUND "blocking during a background collection",
    }
}

named_values! {
    /// Why the execution engine stops all managed threads.
    SuspendReason {
        0 OTHER "other",
        1 GC "garbage collection",
        2 APP_DOMAIN_SHUTDOWN "app-domain shutdown",
        3 CODE_PITCHING "code pitching",
        4 SHUTDOWN "shutdown",
        5 DEBUGGER "debugger",
        6 GC_PREPARATION "preparation of a garbage collection",
        7 DEBUGGER_SWEEP "debugger sweep",
    }
}

impl SuspendReason {
    /// Whether the collector caused the suspension. Samplers, debuggers and shutdown suspend too.
    pub fn is_gc(self) -> bool {
        matches!(self, Self::GC | Self::GC_PREPARATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g6_only_reasons_1_and_6_are_gc_caused() {
        for value in 0..256 {
            assert_eq!(SuspendReason(value).is_gc(), value == 1 || value == 6, "reason {value}");
        }
        // A wide value must not be cut down to a byte before the comparison.
        assert!(!SuspendReason(0x101).is_gc());
        assert!(!SuspendReason(u32::MAX).is_gc());
    }

    #[test]
    fn unknown_values_pass_through_as_numbers() {
        assert_eq!((GcReason(14).name(), GcReason(14).to_string()), (None, "14".to_owned()));
        assert_eq!(SuspendReason(8).to_string(), "8");
        assert_eq!(GcType::BACKGROUND.to_string(), "background");
    }
}
