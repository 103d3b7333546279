//! What is legal in a schedule and yet probably not meant.

use std::fmt;

/// Something in a schedule that works and is probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleWarning {
    /// Systems without any declared access: nothing keeps them apart from others.
    NoDeclarations {
        /// Their names.
        systems: Vec<String>,
    },
    /// `can_shed` on a system whose priority is not low: it is never left out.
    ShedWithoutLowPriority {
        /// Its name.
        system: String,
    },
    /// A queue that is consumed and that nobody pushes to: its consumers may never run.
    NoProducer {
        /// Its name.
        queue: String,
    },
    /// A queue that is pushed to and that nobody consumes.
    NoConsumer {
        /// Its name.
        queue: String,
    },
}

impl fmt::Display for ScheduleWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDeclarations { systems } => {
                write!(
                    f,
                    "no access is declared by {}; nothing keeps them apart from other systems",
                    systems.join(", ")
                )
            }
            Self::ShedWithoutLowPriority { system } => write!(
                f,
                "system \"{system}\" has can_shed, which does nothing without .priority(Priority::Low)"
            ),
            Self::NoProducer { queue } => {
                write!(f, "queue \"{queue}\" is consumed, and no system declares that it pushes to it")
            }
            Self::NoConsumer { queue } => {
                write!(f, "queue \"{queue}\" is pushed to, and no system declares that it consumes it")
            }
        }
    }
}
