use crate::nettrace::{Cursor, Event, Metadata, NettraceError};

use super::{GcReason, GcType, SuspendReason};

/// Name of the provider that sends the collector's events.
pub const RUNTIME_PROVIDER: &str = "Microsoft-Windows-DotNETRuntime";

/// Ids of the collector's events within [`RUNTIME_PROVIDER`].
mod id {
    pub(super) const START: u32 = 1;
    pub(super) const END: u32 = 2;
    pub(super) const RESTART_EE_END: u32 = 3;
    pub(super) const HEAP_STATS: u32 = 4;
    pub(super) const CREATE_SEGMENT: u32 = 5;
    pub(super) const FREE_SEGMENT: u32 = 6;
    pub(super) const RESTART_EE_BEGIN: u32 = 7;
    pub(super) const SUSPEND_EE_END: u32 = 8;
    pub(super) const SUSPEND_EE_BEGIN: u32 = 9;
    pub(super) const FINALIZERS_END: u32 = 13;
    pub(super) const FINALIZERS_BEGIN: u32 = 14;
    pub(super) const TRIGGERED: u32 = 35;
    pub(super) const DYNAMIC: u32 = 39;
    pub(super) const MARK_WITH_TYPE: u32 = 202;
    pub(super) const PER_HEAP_HISTORY: u32 = 204;
    pub(super) const GLOBAL_HEAP_HISTORY: u32 = 205;
}

/// One event of the collector, decoded in place.
///
/// Layouts by (id, version); newer versions may append fields, which are ignored. Names are those of the provider's
/// manifest in Rust spelling, "EE" being the execution engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcEvent<'a> {
    /// A collection begins.
    Start(GcStart),
    /// A collection ends.
    End(GcEnd),
    /// Managed threads run again.
    RestartEeEnd,
    /// Sizes after the collection that ended right before on the same capture thread.
    HeapStats(HeapStats),
    /// The collector got a segment or region from the operating system.
    CreateSegment(Segment),
    /// The collector gave a segment or region back; its address.
    FreeSegment(u64),
    /// Managed threads are about to be let go.
    RestartEeBegin,
    /// All managed threads stand still.
    SuspendEeEnd,
    /// Managed threads are asked to stop.
    SuspendEeBegin(SuspendEeBegin),
    /// The finaliser thread ran this many finalisers.
    FinalizersEnd(u32),
    /// The finaliser thread starts on its queue.
    FinalizersBegin,
    /// A collection was asked for.
    Triggered(GcReason),
    /// Committed memory by use. Sent as a dynamic event by .NET 8 and newer.
    CommittedUsage(CommittedUsage),
    /// Another dynamic event of the collector.
    Dynamic(DynamicEvent<'a>),
    /// Bytes found alive from one kind of root.
    MarkWithType(MarkWithType),
    /// What one heap went through in a collection.
    PerHeapHistory(PerHeapHistory<'a>),
    /// What all heaps went through together.
    GlobalHeapHistory(GlobalHeapHistory<'a>),
}

/// Payload of [`GcEvent::Start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcStart {
    /// Number of the collection in its process, from 1.
    pub count: u32,
    /// Oldest generation collected, 0 to 2. 0 in layout version 0, which lacks it.
    pub generation: u32,
    /// Why it was started.
    pub reason: GcReason,
    /// How it announces itself. Blocking in layout version 0, which lacks it.
    pub kind: GcType,
}

/// Payload of [`GcEvent::End`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcEnd {
    /// Number of the collection.
    pub count: u32,
    /// Oldest generation that was really collected.
    pub generation: u32,
}

/// Payload of [`GcEvent::SuspendEeBegin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspendEeBegin {
    /// Why threads are stopped.
    pub reason: SuspendReason,
    /// The collector's settings index: neither monotonic nor that of the coming collection. `u32::MAX` outside
    /// collections; 0 in layout version 0, which lacks it.
    pub count: u32,
}

/// Payload of [`GcEvent::HeapStats`]. Arrays are indexed by generation: 0, 1, 2, 3 = large objects, 4 = pinned objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapStats {
    /// Size after the collection, bytes. The pinned heap is 0 before .NET 5, which has none.
    pub size_bytes: [u64; 5],
    /// Bytes that survived. Runtimes leave the pinned heap's at 0.
    pub promoted_bytes: [u64; 5],
    /// Bytes kept alive by finalisation.
    pub finalization_promoted_bytes: u64,
    /// Objects kept alive by finalisation.
    pub finalization_promoted_count: u64,
    /// Pinned objects found.
    pub pinned_objects: u32,
    /// Synchronisation blocks in use.
    pub sink_blocks: u32,
    /// Handles in use.
    pub handles: u32,
}

/// Payload of [`GcEvent::CreateSegment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size_bytes: u64,
    /// 0 small objects, 1 large objects, 2 read-only, 3 pinned objects.
    pub kind: u32,
}

/// Payload of [`GcEvent::CommittedUsage`], all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommittedUsage {
    /// Layout version of the data, 1 so far.
    pub version: u16,
    /// Committed and in use.
    pub in_use: u64,
    /// Waiting to be given back.
    pub in_global_decommit: u64,
    /// Committed and free.
    pub in_free: u64,
    /// Committed, free and owned by no heap.
    pub in_global_free: u64,
    /// The collector's own tables.
    pub bookkeeping: u64,
}

impl CommittedUsage {
    /// What `GC.GetGCMemoryInfo().TotalCommittedBytes` shows: used and free memory without the collector's tables.
    pub fn total_bytes(&self) -> u64 {
        self.in_use.saturating_add(self.in_free).saturating_add(self.in_global_free)
    }
}

/// Payload of [`GcEvent::Dynamic`]: named data whose layout belongs to the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DynamicEvent<'a> {
    name_utf16: &'a [u8],
    /// The data itself.
    pub data: &'a [u8],
}

/// Payload of [`GcEvent::MarkWithType`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkWithType {
    /// Heap number.
    pub heap: u32,
    /// Kind of root (0 stack, 1 finaliser queue, 2 handles, 3 older generation, 4 size count, 5 overflow, ...).
    pub root_kind: u32,
    /// Bytes promoted from these roots.
    pub promoted_bytes: u64,
}

/// Payload of [`GcEvent::PerHeapHistory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerHeapHistory<'a> {
    /// Allocated from free lists, bytes.
    pub free_list_allocated: u64,
    /// Free-list items that were passed over, bytes.
    pub free_list_rejected: u64,
    /// Allocated at ends of segments, bytes.
    pub end_of_segment_allocated: u64,
    /// Allocated in condemned generations, bytes.
    pub condemned_allocated: u64,
    /// Allocated for pinned objects, bytes.
    pub pinned_allocated: u64,
    /// Of these, by advancing the allocation pointer, bytes.
    pub pinned_allocated_advance: u64,
    /// Percentage of free-list space that was used.
    pub running_free_list_efficiency: u32,
    /// Two bit sets: why this generation was condemned.
    pub condemn_reasons: [u32; 2],
    /// Bit set: how the heap was compacted.
    pub compact_mechanisms: u32,
    /// Bit set: how the heap was expanded.
    pub expand_mechanisms: u32,
    /// Heap number.
    pub heap_index: u32,
    /// Bytes committed beyond the generation-0 budget.
    pub extra_gen0_commit: u64,
    generations: &'a [u8],
    pointer_bytes: usize,
}

/// One generation in a [`PerHeapHistory`], all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it all
pub struct GenerationHistory {
    pub size_before: u64,
    pub free_list_before: u64,
    pub free_objects_before: u64,
    pub size_after: u64,
    pub free_list_after: u64,
    pub free_objects_after: u64,
    /// Promoted or demoted into this generation.
    pub incoming: u64,
    pub pinned_survived: u64,
    pub non_pinned_survived: u64,
    /// Budget until the next collection.
    pub new_allocation: u64,
}

/// Payload of [`GcEvent::GlobalHeapHistory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalHeapHistory<'a> {
    /// Generation-0 budget after the collection, bytes.
    pub final_youngest_desired_bytes: u64,
    /// Number of heaps, and so of the [`GcEvent::PerHeapHistory`] events that follow on this thread.
    pub heaps: i32,
    /// Generation collected.
    pub condemned_generation: u32,
    /// Times that generation 0 was made smaller.
    pub gen0_reductions: u32,
    /// Why the collection was started.
    pub reason: GcReason,
    /// Bit set; bit 0 = ran in the background, bit 1 = compacted.
    pub mechanisms: u32,
    /// Latency mode of the collector.
    pub pause_mode: u32,
    /// Memory load of the machine, per cent.
    pub memory_pressure: u32,
    /// Two bit sets, layout version 3 and newer.
    pub condemn_reasons: Option<[u32; 2]>,
    times: &'a [u8],
}

impl GlobalHeapHistory<'_> {
    /// Whether this reports a background collection, whatever its start announced.
    pub fn is_background(&self) -> bool {
        self.mechanisms & 1 != 0
    }

    /// Lengths of the collection's phases, µs; empty before layout version 4.
    pub fn phase_times_us(&self) -> impl ExactSizeIterator<Item = u32> {
        self.times.chunks_exact(4).map(|time| u32::from_le_bytes([time[0], time[1], time[2], time[3]]))
    }
}

impl DynamicEvent<'_> {
    /// Name of the dynamic event.
    pub fn name(&self) -> String {
        let units = self.name_utf16.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect()
    }

    fn is_named(&self, name: &str) -> bool {
        name.encode_utf16().flat_map(u16::to_le_bytes).eq(self.name_utf16.iter().copied())
    }
}

impl PerHeapHistory<'_> {
    /// Number of generations reported, 4 before .NET 5 and 5 since.
    pub fn generation_count(&self) -> usize {
        self.generations.len() / (10 * self.pointer_bytes)
    }

    /// One generation (0, 1, 2, 3 = large objects, 4 = pinned objects), if it is reported.
    pub fn generation(&self, index: usize) -> Option<GenerationHistory> {
        let bytes = 10 * self.pointer_bytes;
        let mut words = self.generations.chunks_exact(bytes).nth(index)?.chunks_exact(self.pointer_bytes);
        let mut next = || words.next().map_or(0, word);
        Some(GenerationHistory {
            size_before: next(),
            free_list_before: next(),
            free_objects_before: next(),
            size_after: next(),
            free_list_after: next(),
            free_objects_after: next(),
            incoming: next(),
            pinned_survived: next(),
            non_pinned_survived: next(),
            new_allocation: next(),
        })
    }
}

/// A little-endian integer of 4 or 8 bytes.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Whether this is an event that [`GcEvent::decode`] knows, in a layout version that it knows or a newer one.
pub fn is_gc_event(metadata: &Metadata) -> bool {
    lowest_version(metadata.event_id).is_some_and(|lowest| metadata.version >= lowest)
        && metadata.provider == RUNTIME_PROVIDER
}

/// Oldest layout version of an event that is understood.
fn lowest_version(event_id: u32) -> Option<u32> {
    match event_id {
        id::START | id::END | id::SUSPEND_EE_BEGIN => Some(0),
        id::RESTART_EE_END | id::RESTART_EE_BEGIN | id::SUSPEND_EE_END => Some(0),
        id::TRIGGERED | id::DYNAMIC | id::MARK_WITH_TYPE => Some(0),
        id::FINALIZERS_BEGIN | id::FINALIZERS_END => Some(0),
        id::HEAP_STATS | id::CREATE_SEGMENT | id::FREE_SEGMENT => Some(1),
        id::GLOBAL_HEAP_HISTORY => Some(2),
        id::PER_HEAP_HISTORY => Some(3),
        _ => None,
    }
}

impl<'a> GcEvent<'a> {
    /// Decodes an event of the collector in place; `None` for every other event. `pointer_bytes` is that of the
    /// stream's Trace object.
    ///
    /// # Errors
    /// The payload is shorter than its layout version promises.
    pub fn decode(event: &Event<'a>, pointer_bytes: u32) -> Result<Option<Self>, GcPayloadError> {
        let metadata = event.metadata;
        if !is_gc_event(metadata) {
            return Ok(None);
        }
        let mut cursor = Cursor::new(event.payload, 0, "payload");
        read(&mut cursor, metadata.event_id, metadata.version, pointer_bytes).map(Some).map_err(|_| {
            GcPayloadError {
                event_id: metadata.event_id,
                version: metadata.version,
                payload_bytes: event.payload.len(),
            }
        })
    }
}

/// A payload of the collector that is shorter than its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("GC event {event_id} version {version}: {payload_bytes} payload bytes are too few")]
pub struct GcPayloadError {
    /// Event id within [`RUNTIME_PROVIDER`].
    pub event_id: u32,
    /// Layout version announced by the metadata.
    pub version: u32,
    /// Bytes present.
    pub payload_bytes: usize,
}

fn read<'a>(
    cursor: &mut Cursor<'a>,
    event_id: u32,
    version: u32,
    pointer_bytes: u32,
) -> Result<GcEvent<'a>, NettraceError> {
    let event = match event_id {
        id::START => GcEvent::Start(read_start(cursor, version)?),
        id::END => GcEvent::End(GcEnd {
            count: cursor.u32()?,
            generation: if version == 0 { u32::from(cursor.u16()?) } else { cursor.u32()? },
        }),
        id::RESTART_EE_END => GcEvent::RestartEeEnd,
        id::HEAP_STATS => GcEvent::HeapStats(read_heap_stats(cursor, version)?),
        id::CREATE_SEGMENT => GcEvent::CreateSegment(Segment {
            address: cursor.u64()?,
            size_bytes: cursor.u64()?,
            kind: cursor.u32()?,
        }),
        id::FREE_SEGMENT => GcEvent::FreeSegment(cursor.u64()?),
        id::RESTART_EE_BEGIN => GcEvent::RestartEeBegin,
        id::SUSPEND_EE_END => GcEvent::SuspendEeEnd,
        id::SUSPEND_EE_BEGIN => GcEvent::SuspendEeBegin(read_suspend(cursor, version)?),
        id::FINALIZERS_END => GcEvent::FinalizersEnd(cursor.u32()?),
        id::FINALIZERS_BEGIN => GcEvent::FinalizersBegin,
        id::TRIGGERED => GcEvent::Triggered(GcReason(cursor.u32()?)),
        id::DYNAMIC => read_dynamic(cursor)?,
        id::MARK_WITH_TYPE => {
            let heap = cursor.u32()?;
            cursor.u16()?;
            let (root_kind, promoted_bytes) = (cursor.u32()?, cursor.u64()?);
            GcEvent::MarkWithType(MarkWithType { heap, root_kind, promoted_bytes })
        }
        id::PER_HEAP_HISTORY => GcEvent::PerHeapHistory(read_per_heap(cursor, pointer_bytes as usize)?),
        _ => GcEvent::GlobalHeapHistory(read_global(cursor, version)?),
    };
    if has_trailing_instance_id(event_id, version) {
        cursor.u16()?;
    }
    Ok(event)
}

/// Whether the layout goes on with the CLR instance id (always 0: one runtime per process) after what we keep.
fn has_trailing_instance_id(event_id: u32, version: u32) -> bool {
    match event_id {
        id::START | id::HEAP_STATS | id::MARK_WITH_TYPE | id::PER_HEAP_HISTORY | id::GLOBAL_HEAP_HISTORY => {
            false
        }
        id::END | id::SUSPEND_EE_BEGIN | id::RESTART_EE_END | id::RESTART_EE_BEGIN | id::SUSPEND_EE_END => {
            version >= 1
        }
        id::FINALIZERS_END | id::FINALIZERS_BEGIN => version >= 1,
        _ => true,
    }
}

fn read_start(cursor: &mut Cursor<'_>, version: u32) -> Result<GcStart, NettraceError> {
    let count = cursor.u32()?;
    if version == 0 {
        let reason = GcReason(cursor.u32()?);
        return Ok(GcStart { count, generation: 0, reason, kind: GcType::BLOCKING });
    }
    let start = GcStart {
        count,
        generation: cursor.u32()?,
        reason: GcReason(cursor.u32()?),
        kind: GcType(cursor.u32()?),
    };
    cursor.u16()?;
    if version >= 2 {
        cursor.u64()?;
    }
    Ok(start)
}

fn read_suspend(cursor: &mut Cursor<'_>, version: u32) -> Result<SuspendEeBegin, NettraceError> {
    if version == 0 {
        return Ok(SuspendEeBegin { reason: SuspendReason(u32::from(cursor.u16()?)), count: 0 });
    }
    Ok(SuspendEeBegin { reason: SuspendReason(cursor.u32()?), count: cursor.u32()? })
}

fn read_heap_stats(cursor: &mut Cursor<'_>, version: u32) -> Result<HeapStats, NettraceError> {
    let (mut size_bytes, mut promoted_bytes) = ([0; 5], [0; 5]);
    for generation in 0..4 {
        size_bytes[generation] = cursor.u64()?;
        promoted_bytes[generation] = cursor.u64()?;
    }
    let (finalization_promoted_bytes, finalization_promoted_count) = (cursor.u64()?, cursor.u64()?);
    let (pinned_objects, sink_blocks, handles) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    cursor.u16()?;
    if version >= 2 {
        size_bytes[4] = cursor.u64()?;
        promoted_bytes[4] = cursor.u64()?;
    }
    Ok(HeapStats {
        size_bytes,
        promoted_bytes,
        finalization_promoted_bytes,
        finalization_promoted_count,
        pinned_objects,
        sink_blocks,
        handles,
    })
}

fn read_dynamic<'a>(cursor: &mut Cursor<'a>) -> Result<GcEvent<'a>, NettraceError> {
    let name_utf16 = cursor.utf16z_bytes()?;
    let data_bytes = cursor.length("dynamic event data", cursor.remaining())?;
    let event = DynamicEvent { name_utf16, data: cursor.take(data_bytes)? };
    if event.is_named("CommittedUsage")
        && let Ok(usage) = read_committed(&mut Cursor::new(event.data, 0, "CommittedUsage"))
    {
        return Ok(GcEvent::CommittedUsage(usage));
    }
    Ok(GcEvent::Dynamic(event))
}

fn read_committed(cursor: &mut Cursor<'_>) -> Result<CommittedUsage, NettraceError> {
    Ok(CommittedUsage {
        version: cursor.u16()?,
        in_use: cursor.u64()?,
        in_global_decommit: cursor.u64()?,
        in_free: cursor.u64()?,
        in_global_free: cursor.u64()?,
        bookkeeping: cursor.u64()?,
    })
}

fn read_per_heap<'a>(
    cursor: &mut Cursor<'a>,
    pointer_bytes: usize,
) -> Result<PerHeapHistory<'a>, NettraceError> {
    cursor.u16()?;
    let pointer = |cursor: &mut Cursor<'a>| cursor.take(pointer_bytes).map(word);
    Ok(PerHeapHistory {
        free_list_allocated: pointer(cursor)?,
        free_list_rejected: pointer(cursor)?,
        end_of_segment_allocated: pointer(cursor)?,
        condemned_allocated: pointer(cursor)?,
        pinned_allocated: pointer(cursor)?,
        pinned_allocated_advance: pointer(cursor)?,
        running_free_list_efficiency: cursor.u32()?,
        condemn_reasons: [cursor.u32()?, cursor.u32()?],
        compact_mechanisms: cursor.u32()?,
        expand_mechanisms: cursor.u32()?,
        heap_index: cursor.u32()?,
        extra_gen0_commit: pointer(cursor)?,
        generations: {
            let generation_bytes = 10 * pointer_bytes;
            let limit = cursor.remaining() / generation_bytes;
            let count = cursor.length("generation count", limit)?;
            cursor.take(count * generation_bytes)?
        },
        pointer_bytes,
    })
}

fn read_global<'a>(cursor: &mut Cursor<'a>, version: u32) -> Result<GlobalHeapHistory<'a>, NettraceError> {
    let mut history = GlobalHeapHistory {
        final_youngest_desired_bytes: cursor.u64()?,
        heaps: cursor.i32()?,
        condemned_generation: cursor.u32()?,
        gen0_reductions: cursor.u32()?,
        reason: GcReason(cursor.u32()?),
        mechanisms: cursor.u32()?,
        pause_mode: {
            cursor.u16()?;
            cursor.u32()?
        },
        memory_pressure: cursor.u32()?,
        condemn_reasons: None,
        times: &[],
    };
    if version >= 3 {
        history.condemn_reasons = Some([cursor.u32()?, cursor.u32()?]);
    }
    if version >= 4 {
        let count = cursor.length("phase time count", cursor.remaining() / 4)?;
        history.times = cursor.take(4 * count)?;
    }
    Ok(history)
}
