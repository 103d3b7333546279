//! Golden tests: recorded streams of real runtimes decode to exactly what was in them (I-7).

#![allow(clippy::unwrap_used)] // a panic is a report

mod common;

use common::{NAMES, expected, records, stream};
use proptest::prelude::*;
use serde_json::{Value, json};
use typhon_clr::gc::{
    Collection, GcEvent, GcItem, GcRecord, GcStream, GenerationHistory, GlobalHeapHistory, HeapStats,
    PerHeapHistory,
};
use typhon_clr::nettrace::{Continuity, Decoder, Event, Item, Metadata, TraceInfo};

fn for_each_item(bytes: &[u8], mut visit: impl FnMut(Item<'_>)) {
    let mut decoder = Decoder::new();
    decoder.feed(bytes);
    while let Some(item) = decoder.next_item().unwrap() {
        visit(item);
    }
    assert_eq!((decoder.pending_bytes(), decoder.position()), (0, bytes.len() as u64));
}

#[test]
fn i7_trace_object_and_end_tag() {
    for name in NAMES {
        let expected = expected(name);
        let mut trace = None;
        let mut ended = false;
        for_each_item(&stream(name), |item| match item {
            Item::Trace(found) => trace = Some(found),
            Item::End => ended = true,
            _ => {}
        });
        assert_eq!(trace_json(&trace.unwrap()), expected["trace"], "{name}");
        assert_eq!(json!(ended), expected["stream"]["endTagSeen"], "{name}");
    }
}

fn trace_json(trace: &TraceInfo) -> Value {
    let utc = trace.sync_utc;
    json!({
        "objectVersion": trace.version,
        "minReader": trace.min_reader,
        "syncTimeUtc": [utc.year, utc.month, utc.day_of_week, utc.day, utc.hour, utc.minute, utc.second,
            utc.millisecond],
        "syncTimeQpc": trace.sync_ticks,
        "qpcFrequency": trace.ticks_per_second,
        "pointerSize": trace.pointer_bytes,
        "processId": trace.process_id,
        "processors": trace.processors,
        "cpuSamplingRate": trace.cpu_sampling_period_ns,
    })
}

#[test]
fn i7_metadata() {
    for name in NAMES {
        let expected = expected(name);
        let mut found = std::collections::BTreeMap::new();
        for_each_item(&stream(name), |item| {
            if let Item::Event(event) = item {
                found.insert(event.metadata.metadata_id, metadata_json(event.metadata));
            }
        });
        let expected: std::collections::BTreeMap<_, _> = expected["metadata"]
            .as_array()
            .unwrap()
            .iter()
            .map(|record| (record["metadataId"].as_u64().unwrap() as u32, record.clone()))
            .collect();
        // Metadata shows only through the events that refer to it.
        assert!(!found.is_empty());
        for (id, record) in found {
            assert_eq!(record, expected[&id], "{name}");
        }
    }
}

fn metadata_json(metadata: &Metadata) -> Value {
    let fields = metadata.fields.as_ref().unwrap().iter();
    json!({
        "metadataId": metadata.metadata_id,
        "provider": metadata.provider,
        "eventId": metadata.event_id,
        "eventName": metadata.event_name,
        "version": metadata.version,
        "level": metadata.level,
        "keywords": metadata.keywords,
        "fields": fields.map(|field| json!([field.type_code, field.name])).collect::<Vec<_>>(),
    })
}

#[test]
fn i7_events_in_stream_order_with_their_headers() {
    for name in NAMES {
        let expected = expected(name);
        let by_order: std::collections::HashMap<u64, &Value> = expected["gcEvents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| (event["order"].as_u64().unwrap(), event))
            .collect();
        let mut order = 0;
        let mut checked = 0;
        let mut others: std::collections::BTreeMap<String, u64> = Default::default();
        let (mut sorted, mut sequence_points) = (0, Vec::new());
        for_each_item(&stream(name), |item| match item {
            Item::Event(event) => {
                match by_order.get(&order) {
                    Some(expected) => {
                        assert_eq!(header_json(&event), header_of(expected), "{name}");
                        checked += 1;
                    }
                    None => {
                        let key = format!("{}/{}", event.metadata.provider, event.metadata.event_id);
                        *others.entry(key).or_default() += 1;
                    }
                }
                assert_eq!(event.header.continuity, Continuity::Contiguous, "{name}");
                sorted += u64::from(event.header.sorted);
                order += 1;
            }
            Item::SequencePoint(point) => {
                assert!(point.lost.is_empty());
                sequence_points.push(point.timestamp);
            }
            _ => {}
        });
        let about = &expected["stream"];
        assert_eq!(checked, by_order.len(), "{name}");
        assert_eq!(json!(order), about["events"], "{name}");
        assert_eq!(json!(others), about["otherEvents"], "{name}");
        assert_eq!(json!(sorted), about["sortedFlags"], "{name}");
        assert_eq!(about["lostEventsByCaptureThread"], json!({}));
        let expected_points = about["sequencePoints"].as_array().unwrap().iter();
        assert_eq!(
            sequence_points,
            expected_points.map(|point| point["ts"].as_u64().unwrap()).collect::<Vec<_>>()
        );
    }
}

fn header_json(event: &Event<'_>) -> Value {
    json!({
        "id": event.metadata.event_id,
        "version": event.metadata.version,
        "ts": event.header.timestamp,
        "thread": event.header.thread,
        "captureThread": event.header.capture_thread,
        "sequence": event.header.sequence,
        "sorted": event.header.sorted,
        "payloadLength": event.payload.len(),
    })
}

fn header_of(expected: &Value) -> Value {
    let keys = ["id", "version", "ts", "thread", "captureThread", "sequence", "sorted", "payloadLength"];
    keys.iter().map(|&key| (key.to_owned(), expected[key].clone())).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn i7_gc_events_in_time_order_with_their_payloads() {
    for name in NAMES {
        let expected = expected(name);
        let mut remaining = expected["gcEvents"].as_array().unwrap().iter();
        let mut stream_decoder = GcStream::new();
        let mut check = |item: GcItem<'_>| {
            if let GcItem::Event(header, event) = item {
                let expected = remaining.next().unwrap_or_else(|| panic!("{name}: too many events"));
                assert_eq!(header.timestamp, expected["ts"], "{name}");
                let (event_name, mut fields) = event_json(&event);
                assert_eq!(event_name, expected["name"], "{name}");
                // The runtime instance is not decoded: it is 0 in every process.
                assert_eq!(expected["fields"]["ClrInstanceID"], 0);
                fields["ClrInstanceID"] = json!(0);
                if event_name == "GCStart" {
                    assert_eq!(expected["fields"]["ClientSequenceNumber"], 0);
                    fields["ClientSequenceNumber"] = json!(0);
                }
                assert_eq!(fields, expected["fields"], "{name} {event_name}");
            }
        };
        stream_decoder.feed(&stream(name), &mut check).unwrap();
        stream_decoder.finish(&mut check);
        assert!(remaining.next().is_none(), "{name}: events are missing");
        assert_eq!(stream_decoder.counters().late_events, 0);
    }
}

fn event_json(event: &GcEvent<'_>) -> (&'static str, Value) {
    match event {
        GcEvent::Start(start) => (
            "GCStart",
            json!({"Count": start.count, "Depth": start.generation, "Reason": start.reason.0, "Type": start.kind.0}),
        ),
        GcEvent::End(end) => ("GCEnd", json!({"Count": end.count, "Depth": end.generation})),
        GcEvent::RestartEeEnd => ("GCRestartEEEnd", json!({})),
        GcEvent::HeapStats(stats) => ("GCHeapStats", heap_stats_json(stats)),
        GcEvent::CreateSegment(segment) => (
            "GCCreateSegment",
            json!({"Address": segment.address, "Size": segment.size_bytes, "Type": segment.kind}),
        ),
        GcEvent::FreeSegment(address) => ("GCFreeSegment", json!({"Address": address})),
        GcEvent::RestartEeBegin => ("GCRestartEEBegin", json!({})),
        GcEvent::SuspendEeEnd => ("GCSuspendEEEnd", json!({})),
        GcEvent::SuspendEeBegin(begin) => {
            ("GCSuspendEEBegin", json!({"Reason": begin.reason.0, "Count": begin.count}))
        }
        GcEvent::FinalizersEnd(count) => ("GCFinalizersEnd", json!({"Count": count})),
        GcEvent::FinalizersBegin => ("GCFinalizersBegin", json!({})),
        GcEvent::Triggered(reason) => ("GCTriggered", json!({"Reason": reason.0})),
        GcEvent::CommittedUsage(usage) => (
            "GCDynamicEvent",
            json!({
                "Name": "CommittedUsage",
                "DataSize": 42,
                "Version": usage.version,
                "TotalCommittedInUse": usage.in_use,
                "TotalCommittedInGlobalDecommit": usage.in_global_decommit,
                "TotalCommittedInFree": usage.in_free,
                "TotalCommittedInGlobalFree": usage.in_global_free,
                "TotalBookkeepingCommitted": usage.bookkeeping,
            }),
        ),
        GcEvent::Dynamic(event) => panic!("no such event in the corpus: {}", event.name()),
        GcEvent::MarkWithType(mark) => (
            "GCMarkWithType",
            json!({"HeapNum": mark.heap, "Type": mark.root_kind, "Bytes": mark.promoted_bytes}),
        ),
        GcEvent::PerHeapHistory(history) => ("GCPerHeapHistory", per_heap_json(history)),
        GcEvent::GlobalHeapHistory(history) => ("GCGlobalHeapHistory", global_json(history)),
    }
}

fn heap_stats_json(stats: &HeapStats) -> Value {
    let mut fields = json!({
        "FinalizationPromotedSize": stats.finalization_promoted_bytes,
        "FinalizationPromotedCount": stats.finalization_promoted_count,
        "PinnedObjectCount": stats.pinned_objects,
        "SinkBlockCount": stats.sink_blocks,
        "GCHandleCount": stats.handles,
    });
    // Layout version 1 has no pinned heap; its zeros must come from there.
    let generations = if stats.size_bytes[4] == 0 { 4 } else { 5 };
    for generation in 0..generations {
        fields[format!("GenerationSize{generation}")] = json!(stats.size_bytes[generation]);
        fields[format!("TotalPromotedSize{generation}")] = json!(stats.promoted_bytes[generation]);
    }
    fields
}

fn per_heap_json(history: &PerHeapHistory<'_>) -> Value {
    let generations = (0..history.generation_count()).map(|index| history.generation(index).unwrap());
    assert_eq!(history.generation(history.generation_count()), None);
    json!({
        "FreeListAllocated": history.free_list_allocated,
        "FreeListRejected": history.free_list_rejected,
        "EndOfSegAllocated": history.end_of_segment_allocated,
        "CondemnedAllocated": history.condemned_allocated,
        "PinnedAllocated": history.pinned_allocated,
        "PinnedAllocatedAdvance": history.pinned_allocated_advance,
        "RunningFreeListEfficiency": history.running_free_list_efficiency,
        "CondemnReasons0": history.condemn_reasons[0],
        "CondemnReasons1": history.condemn_reasons[1],
        "CompactMechanisms": history.compact_mechanisms,
        "ExpandMechanisms": history.expand_mechanisms,
        "HeapIndex": history.heap_index,
        "ExtraGen0Commit": history.extra_gen0_commit,
        "Count": history.generation_count(),
        "Values": generations.map(|generation| generation_json(&generation)).collect::<Vec<_>>(),
    })
}

fn generation_json(generation: &GenerationHistory) -> Value {
    json!({
        "SizeBefore": generation.size_before,
        "FreeListBefore": generation.free_list_before,
        "FreeObjBefore": generation.free_objects_before,
        "SizeAfter": generation.size_after,
        "FreeListAfter": generation.free_list_after,
        "FreeObjAfter": generation.free_objects_after,
        "In": generation.incoming,
        "PinnedSurv": generation.pinned_survived,
        "NonePinnedSurv": generation.non_pinned_survived,
        "NewAllocation": generation.new_allocation,
    })
}

fn global_json(history: &GlobalHeapHistory<'_>) -> Value {
    let mut fields = json!({
        "FinalYoungestDesired": history.final_youngest_desired_bytes,
        "NumHeaps": history.heaps,
        "CondemnedGeneration": history.condemned_generation,
        "Gen0ReductionCount": history.gen0_reductions,
        "Reason": history.reason.0,
        "GlobalMechanisms": history.mechanisms,
        "PauseMode": history.pause_mode,
        "MemoryPressure": history.memory_pressure,
    });
    if let Some(reasons) = history.condemn_reasons {
        fields["CondemnReasons0"] = json!(reasons[0]);
        fields["CondemnReasons1"] = json!(reasons[1]);
        fields["Count"] = json!(history.phase_times_us().len());
        fields["Times"] = history.phase_times_us().collect::<Vec<_>>().into();
    }
    fields
}

#[test]
fn i7_records_and_counters() {
    for name in NAMES {
        let expected = expected(name);
        let bytes = stream(name);
        let mut stream_decoder = GcStream::new();
        let mut found = Vec::new();
        let mut out = |item: GcItem<'_>| {
            if let GcItem::Record(record) = item {
                found.push(record_json(&record));
            }
        };
        stream_decoder.feed(&bytes, &mut out).unwrap();
        stream_decoder.finish(&mut out);
        let mut expected_records = expected["expectedRecords"].as_array().unwrap().clone();
        for records in [&mut found, &mut expected_records] {
            records.sort_by_key(|record| (record["ts"].as_u64(), record["kind"].as_u64()));
        }
        assert_eq!(found.len(), expected_records.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected_records) {
            assert_eq!(found, expected, "{name}");
        }
        let counters = stream_decoder.tracker_counters();
        let counters = json!({
            "halfOpenWindowsDropped": counters.half_open_suspensions,
            "nonGcSuspensionsFiltered": counters.non_gc_suspensions,
            "restartWithoutGcBegin": counters.unmatched_restarts,
            "gcEndWithoutHeapStats": counters.ends_without_sizes,
        });
        assert_eq!(counters, expected["expectedCounters"], "{name}");
    }
}

/// A record in the form of the corpus: numbered as in a trace file.
fn record_json(record: &GcRecord) -> Value {
    match record {
        GcRecord::Start(start) => json!({
            "kind": 7,
            "ts": start.timestamp,
            "generation": start.generation,
            "reason": start.reason.0,
            "type": start.kind.0,
            "count": start.count,
        }),
        GcRecord::End(Collection {
            timestamp,
            count,
            generation,
            pause_ticks,
            heap,
            committed_bytes,
            ..
        }) => json!({
            "kind": 8,
            "ts": timestamp,
            "generation": generation,
            "count": count,
            "pauseDurationTicks": pause_ticks,
            "promotedBytes": heap.map_or(0, |heap| heap.promoted_bytes),
            "sizeAfter": heap.map_or([0; 5], |heap| heap.size_bytes),
            "totalCommittedBytes": committed_bytes.unwrap_or(0),
            "sizesKnown": heap.is_some(),
            "committedKnown": committed_bytes.is_some(),
        }),
        GcRecord::Suspension(suspension) => json!({
            "kind": 75,
            "ts": suspension.timestamp,
            "durationTicks": suspension.duration_ticks,
            "reason": suspension.reason.0,
        }),
        GcRecord::Loss(loss) => panic!("nothing is lost in the corpus: {loss:?}"),
    }
}

#[test]
fn i6_one_byte_at_a_time_gives_the_same() {
    for name in NAMES {
        let bytes = stream(name);
        assert_eq!(records(bytes.chunks(1)), records([&bytes[..]]), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn i6_random_chunks_give_the_same(
        name in prop::sample::select(&NAMES[..]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let bytes = stream(name);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(records(chunks), records([&bytes[..]]));
    }
}
