//! From bytes through the typed view and the owned form back to bytes, for whatever kind a record has.

use typhon_trace::{
    event::*,
    for_each_fixed_event,
    record::Record,
    registry::{self, Variable},
};

/// Encodes one event of fixed layout like the record it came from.
macro_rules! encode_like {
    (instant $event:ident $record:ident $out:ident) => {
        $event.encode($record.slot(), $record.timestamp(), &mut $out)
    };
    (span $event:ident $record:ident $out:ident) => {{
        let span = SpanFields::from($record.span().expect("not a short span"));
        $event.encode($record.slot(), $record.timestamp(), &span, &mut $out)
    }};
}

macro_rules! reencode_fixed {
    ($($shape:ident $name:ident $view:ident,)*) => {
        fn reencode_fixed(record: &Record<'_>) -> Option<Vec<u8>> {
            // Poisoned, so that a byte that the encoder forgets shows up.
            let mut out = vec![0xAA; 512];
            let size = match EventView::new(record)? {
                $(EventView::$name(view) => {
                    let event: $name = view.to_event()?;
                    encode_like!($shape event record out)
                })*
                _ => return None,
            };
            out.truncate(size.expect("room for every fixed layout"));
            Some(out)
        }
    };
}

for_each_fixed_event!(reencode_fixed);

/// The record as the typed encoder writes it after the typed view has read it; `None` when a required field is
/// absent or the kind is only read.
pub(crate) fn reencode(record: &Record<'_>) -> Option<Vec<u8>> {
    let kind = registry::kind(record.kind())?;
    if kind.variable == Variable::None {
        return reencode_fixed(record);
    }
    let (slot, timestamp) = (record.slot(), record.timestamp());
    let mut out = vec![0xAA; 65_534];
    let size = match EventView::new(record)? {
        EventView::PerTickSnapshot(view) => {
            let gauges: Vec<Gauge> = view.gauges().collect();
            let event = PerTickSnapshot { tick_number: view.tick_number()?, gauges: &gauges };
            event.encode(slot, timestamp, &mut out)
        }
        EventView::ThreadInfo(view) => {
            let name = view.name()?.to_str_lossy();
            let (managed_thread_id, thread_kind) = (view.managed_thread_id()?, view.thread_kind()?);
            ThreadInfo { managed_thread_id, name: &name, thread_kind }.encode(slot, timestamp, &mut out)
        }
        EventView::NamedSpan(view) => {
            let span = SpanFields::from(record.span()?);
            NamedSpan { name: view.name().as_str()? }.encode(slot, timestamp, &span, &mut out)
        }
        EventView::QueryDefinitionDescribe(view) => {
            let head = QueryDefinitionHead {
                kind: view.kind()?,
                local_id: view.local_id()?,
                target_component_type: view.target_component_type()?,
                primary_index_field_idx: view.primary_index_field_idx()?,
                sort_field_idx: view.sort_field_idx()?,
                sort_descending: view.sort_descending()? != 0,
                definition_source_file_id: view.definition_source_file_id()?,
                definition_source_line: view.definition_source_line()?,
                definition_source_method_id: view.definition_source_method_id()?,
            };
            let evaluators: Vec<Evaluator> = view.evaluators().iter().collect();
            let dependencies: Vec<u16> = view.field_dependencies()?.iter().collect();
            let event =
                QueryDefinitionDescribe { head, evaluators: &evaluators, field_dependencies: &dependencies };
            event.encode(slot, timestamp, &mut out)
        }
        EventView::QueryArgs(view) => {
            let thresholds: Vec<i64> = view.thresholds().iter().collect();
            QueryArgs { thresholds: &thresholds }.encode(slot, timestamp, &mut out)
        }
        _ => return None,
    };
    out.truncate(size.expect("room for any record"));
    Some(out)
}
