//! Stable numbers of what nodes are, and the nodes that are always there.

/// A node, unique for the life of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u64);

impl NodeId {
    pub(super) const ROOT: Self = Self(0);
}

macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $variant = $number,)*
        }

        impl $name {
            /// All of them, by number.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The number in traces.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// The name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)*
                }
            }
        }
    };
}

numbered! {
    /// What a node is (brief 04 B-62).
    NodeType {
        /// Nothing in particular.
        None = 0,
        /// A group of nodes, or a part without a type of its own.
        Node = 1,
        /// A long-lived service.
        Service = 10,
        /// An engine.
        Engine = 11,
        /// The transactions of an engine.
        TransactionPool = 20,
        /// One long transaction.
        Transaction = 21,
        /// A set of changes.
        ChangeSet = 22,
        /// The table of a component.
        ComponentTable = 30,
        /// A segment of a store.
        Segment = 31,
        /// An index.
        Index = 32,
        /// A cache.
        Cache = 33,
        /// A file.
        File = 40,
        /// Memory.
        Memory = 41,
        /// A bitmap.
        Bitmap = 42,
        /// A schema.
        Schema = 50,
        /// An allocator.
        Allocator = 60,
        /// Locks and epochs.
        Synchronization = 65,
        /// A write-ahead log.
        Wal = 70,
        /// A checkpoint.
        Checkpoint = 71,
        /// A backup.
        Backup = 72,
    }
}

numbered! {
    /// What happens when a resource is used up (brief 04 B-67).
    ExhaustionPolicy {
        /// It cannot be used up.
        None = 0,
        /// The call that wants more fails.
        FailFast = 1,
        /// The call that wants more waits, and fails with a timeout.
        Wait = 2,
        /// Something else is given up.
        Evict = 3,
        /// It goes on with less.
        Degrade = 4,
    }
}

/// The parts of the engine that have a node from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Subsystem {
    /// Pages and files.
    Storage = 1,
    /// Components, transactions, indexes.
    DataEngine,
    /// The log and checkpoints.
    Durability,
    /// Memory.
    Allocation,
    /// Locks and epochs.
    Synchronization,
    /// Timers that share a thread.
    Timer,
    /// Timers with a thread of their own, below [`Subsystem::Timer`].
    DedicatedTimer,
    /// Tick loops.
    Runtime,
    /// The recording.
    Profiler,
}

impl Subsystem {
    /// All of them, by node id; a parent comes before its children.
    pub const ALL: [Self; 9] = [
        Self::Storage,
        Self::DataEngine,
        Self::Durability,
        Self::Allocation,
        Self::Synchronization,
        Self::Timer,
        Self::DedicatedTimer,
        Self::Runtime,
        Self::Profiler,
    ];

    /// Its path.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Storage => "Storage",
            Self::DataEngine => "DataEngine",
            Self::Durability => "Durability",
            Self::Allocation => "Allocation",
            Self::Synchronization => "Synchronization",
            Self::Timer => "Timer",
            Self::DedicatedTimer => "Timer/Dedicated",
            Self::Runtime => "Runtime",
            Self::Profiler => "Profiler",
        }
    }

    pub(super) const fn parent(self) -> NodeId {
        match self {
            Self::DedicatedTimer => Self::Timer.id(),
            _ => NodeId::ROOT,
        }
    }

    pub(super) const fn id(self) -> NodeId {
        NodeId(self as u64)
    }
}

impl From<Subsystem> for NodeId {
    fn from(subsystem: Subsystem) -> Self {
        subsystem.id()
    }
}
