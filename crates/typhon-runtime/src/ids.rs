//! Numbers of the parts of a schedule. Each is a type of its own and never converts silently.

use std::fmt;

macro_rules! index {
    ($(#[$meta:meta])* $name:ident($int:ty)) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($int);

        impl $name {
            /// The thing with this number.
            pub const fn new(value: $int) -> Self {
                Self(value)
            }

            /// The number.
            pub const fn get(self) -> $int {
                self.0
            }

            /// The number as an index of slices.
            pub const fn as_usize(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

index! {
    /// A system: its place in the order of registration, DAG by DAG. `sysIdx` of every event. 0xFFFF is no system.
    SystemIndex(u16)
}

index! {
    /// An event queue, in the order of declaration over the whole schedule. 0xFFFF is no queue.
    QueueId(u16)
}

index! {
    /// A track, in the order in which they run.
    TrackIndex(u16)
}

index! {
    /// A DAG, in the order of their tracks and then of declaration.
    DagIndex(u16)
}

index! {
    /// A phase within its DAG, in the order that the DAG gives them.
    PhaseIndex(u16)
}

index! {
    /// A worker of the pool; 0 is the thread that drives the tick.
    WorkerId(u8)
}

impl SystemIndex {
    /// Systems that one schedule can hold.
    pub const MAX_COUNT: usize = 65_534;
}

impl QueueId {
    /// Queues that one schedule can hold.
    pub const MAX_COUNT: usize = 65_535;
}
