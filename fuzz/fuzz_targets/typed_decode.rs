//! Typed views against the walk through the registry, and the encoders against both.
//!
//! The kinds below are those with optional fields, older, alternative or variable layouts, and one of each plain shape.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typhon_trace::decode;
use typhon_trace::event::*;
use typhon_trace::record::{Record, RecordWalk};

/// Room for the largest record that is written here.
const RECORD_BYTES_MAX: usize = 65_534;

/// Reads a record as one of the kinds and writes it again, if it holds every required field.
macro_rules! rewrite {
    ($view:expr, $record:expr, $out:expr, spans: $($span:ident)*, instants: $($instant:ident)*) => {
        match $view {
            $(EventView::$span(view) => {
                let span = SpanFields::from($record.span().expect("a view of a span has a span header"));
                view.to_event().map(|event| event.encode($record.slot(), $record.timestamp(), &span, $out))
            })*
            $(EventView::$instant(view) => {
                view.to_event().map(|event| event.encode($record.slot(), $record.timestamp(), $out))
            })*
            _ => None,
        }
    };
}

fuzz_target!(|block: &[u8]| {
    let mut out = vec![0; RECORD_BYTES_MAX];
    for record in RecordWalk::new(block) {
        let Some(view) = EventView::new(&record) else { continue };
        check_variable(view);
        let written = rewrite!(view, record, &mut out,
            spans: SchedulerChunk TransactionCommit TransactionRollback TransactionCommitComponent EcsSpawn EcsDestroy
                EcsQueryAny EcsViewRefresh BTreeInsert PageCacheFetch PageEvicted PageCacheDiskReadCompleted
                PageCacheBackpressure ClusterMigration SpatialRepairUnit GcSuspension CheckpointCycle
                SpatialClusterMigrationDetectScan SpatialClusterAabbRefresh QueryPlan,
            instants: TickStart TickEnd SystemSkipped Instant GcEnd MemoryAllocEvent EcsSpawnBatch
                SpatialArchetypeTelemetry SpatialRealmRates QueueTickEnd ThreadContextSwitch);
        if let Some(size) = written {
            let size = size.expect("the buffer holds any record");
            check_rewritten(&record, &out[..size]);
        }
    }
});

/// The same fields with the same values, in the same order, and nothing to complain about.
fn check_rewritten(original: &Record<'_>, bytes: &[u8]) {
    let written = Record::parse(bytes).expect("our own record is sound");
    assert_eq!(written.size(), bytes.len());
    assert_eq!((written.kind(), written.slot()), (original.kind(), original.slot()));
    assert_eq!(written.timestamp(), original.timestamp());
    assert_eq!(shown(&written), shown(original));
    let layout = decode::check_layout(&written).expect("a known kind");
    assert!(!layout.is_unexpected_length && layout.unknown_mask_bits == 0, "{layout:?}");
}

/// Fields as text, in which not-a-number equals itself.
fn shown(record: &Record<'_>) -> Vec<String> {
    decode::fields(record).map(|field| format!("{} {:?}", field.name, field.value)).collect()
}

/// Lists and names stay inside the record.
fn check_variable(view: EventView<'_>) {
    match view {
        EventView::PerTickSnapshot(view) => assert!(view.gauges().count() <= view.raw().len()),
        EventView::ThreadInfo(view) => {
            assert!(view.name().is_none_or(|name| name.0.len() < view.raw().len()));
        }
        EventView::NamedSpan(view) => assert!(view.name().0.len() <= view.raw().len()),
        EventView::QueryArgs(view) => assert!(view.thresholds().iter().count() * 8 <= view.raw().len()),
        EventView::QueryDefinitionDescribe(view) => {
            assert!(view.evaluators().iter().count() * 4 <= view.raw().len());
        }
        _ => {}
    }
}
