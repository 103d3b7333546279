use super::{GcReason, GcType, SuspendReason};

/// What the collector did, in the order in which it became certain. All times are ticks of the target's clock.
///
/// Starts, suspensions' ends and losses come in time order; a [`Collection`] and a [`Suspension`] carry the time at
/// which they ended and began, and so may follow younger starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcRecord {
    /// A collection began.
    Start(CollectionStart),
    /// A collection ended, and everything known about it has arrived.
    End(Collection),
    /// The execution engine was suspended for the collector and runs again.
    Suspension(Suspension),
    /// Something is missing from here on.
    Loss(Loss),
}

/// Beginning of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectionStart {
    /// When it began.
    pub timestamp: u64,
    /// Number of the collection in its process; no two starts of a session have the same.
    pub count: u32,
    /// Oldest generation to be collected.
    pub generation: u32,
    /// Why.
    pub reason: GcReason,
    /// Announced type; a background collection may still run blocking.
    pub kind: GcType,
}

/// A finished collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collection {
    /// When it ended.
    pub timestamp: u64,
    /// Number of the collection; no two ends of a session have the same.
    pub count: u32,
    /// Oldest generation that was collected.
    pub generation: u32,
    /// Its beginning, unless that lies before the session or was lost.
    pub start: Option<CollectionStart>,
    /// Total length of the suspensions that belong to it, ticks. One suspension may hold several collections, so the
    /// time a process stood still is the sum over suspensions and never the sum of this field.
    pub pause_ticks: u64,
    /// Sizes right after it, unless they were lost.
    pub heap: Option<HeapSizes>,
    /// Committed bytes as last reported before its end: `None` where no report came (.NET Core 3.1), and possibly
    /// stale for a background collection, whose end the runtime does not report.
    pub committed_bytes: Option<u64>,
}

/// Heap sizes after a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapSizes {
    /// Bytes by generation: 0, 1, 2, 3 = large objects, 4 = pinned objects (0 before .NET 5).
    pub size_bytes: [u64; 5],
    /// Bytes that survived, all generations. For a background collection of server GC the runtime may report before
    /// every heap has filled in its part; survivors of the pinned heap can be missing then.
    pub promoted_bytes: u64,
    /// Whether the per-heap reports came too; without them `promoted_bytes` lacks the pinned objects.
    pub promoted_is_complete: bool,
    /// Bytes of all generations before it, from the per-heap reports; `None` if they were lost.
    pub size_before_bytes: Option<u64>,
}

/// One stop of all managed threads that the collector caused. Belongs to the process, not to a thread's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspension {
    /// When threads were asked to stop.
    pub timestamp: u64,
    /// From there until the last one ran again, ticks.
    pub duration_ticks: u64,
    /// From the request until all stood still, ticks; `None` if that event was lost.
    pub time_to_suspend_ticks: Option<u64>,
    /// From letting threads go until the last one ran again, ticks; `None` if that event was lost. The collector's own
    /// pause figures (`GC.GetTotalPauseDuration`) leave it out.
    pub time_to_restart_ticks: Option<u64>,
    /// [`SuspendReason::GC`] or [`SuspendReason::GC_PREPARATION`], never another.
    pub reason: SuspendReason,
    /// Operating-system id of the thread that suspended the others.
    pub capture_thread: u64,
}

/// Something that should be here and is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// When it was noticed: the time of the next event that did arrive.
    pub timestamp: u64,
    /// Thread on which it is missing.
    pub capture_thread: u64,
    /// What.
    pub kind: LossKind,
    /// How many.
    pub count: u64,
}

/// What a [`Loss`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossKind {
    /// Events that the runtime dropped because its buffer was full; of any kind, not only the collector's.
    Events,
    /// Suspensions whose end or beginning is missing.
    HalfOpenSuspension,
    /// Collections reported with [`Collection::heap`] `None`.
    EndWithoutSizes,
}
