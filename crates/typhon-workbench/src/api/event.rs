//! Single events, for the inspector.

use super::{PAGE_MAX, Params, from_session};
use crate::app::App;
use crate::problem::Problem;
use crate::sessions::Opened;
use crate::work::Weight;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use typhon_analysis::index::{EventId, Tick};
use typhon_analysis::session::{FieldValue, FieldView, LinkReason, Place, RelatedSpan, Session};
use typhon_trace::event::{Evaluator, Gauge, GaugeValue};
use typhon_trace::registry::{self, FieldType, KindInfo};
use typhon_trace::tables::Tables;

/// A span in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpanRef {
    pub(crate) event: String,
    pub(crate) place: PlaceView,
    pub(crate) name: u16,
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) self_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tick: Option<i64>,
}

/// Where an event is drawn.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct PlaceView {
    lane: u32,
    row: Option<u16>,
    index: u64,
}

impl From<Place> for PlaceView {
    fn from(Place { lane, row, index }: Place) -> Self {
        Self { lane, row, index }
    }
}

impl SpanRef {
    pub(crate) fn of(span: &RelatedSpan) -> Self {
        Self {
            event: event_text(span.id),
            place: span.place.into(),
            name: span.name,
            start_ns: span.start_ns,
            duration_ns: span.duration_ns,
            self_ns: None,
            tick: None,
        }
    }
}

/// Shown number of the tick at a moment; 0 before the first.
pub(crate) fn tick_number(ticks: &[Tick], at_ns: u64) -> i64 {
    let after = ticks.partition_point(|tick| tick.start_ns <= at_ns);
    after.checked_sub(1).map_or(0, |at| ticks[at].number)
}

fn event_text(id: EventId) -> String {
    format!("{}.{}", id.block, id.record)
}

/// `11.204`.
pub(crate) fn event_id(text: &str) -> Result<EventId, Problem> {
    let fault = || Problem::bad_request(format!("{text} names no event; events are named as in 11.204"));
    let (block, record) = text.split_once('.').ok_or_else(fault)?;
    let number = |digits: &str| {
        digits.parse::<u32>().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    Ok(EventId { block: number(block).ok_or_else(fault)?, record: number(record).ok_or_else(fault)? })
}

/// A row by its number, `i` for instants.
fn row_number(text: &str) -> Result<Option<u16>, Problem> {
    match text {
        "i" => Ok(None),
        text => {
            text.parse().map(Some).map_err(|_| Problem::bad_request("a row is a number, or i for instants"))
        }
    }
}

pub(crate) async fn by_id(
    State(app): State<Arc<App>>,
    Path((id, event)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let event = event_id(&event)?;
    let of_work = app.clone();
    from_session(&app, &id, Weight::Light, move |opened, _| document(&of_work, opened, event)).await
}

pub(crate) async fn by_place(
    State(app): State<Arc<App>>,
    Path((id, lane, row, index)): Path<(String, String, String, String)>,
) -> Result<Response, Problem> {
    let place = Place {
        lane: lane.parse().map_err(|_| Problem::bad_request("a lane is a number"))?,
        row: row_number(&row)?,
        index: index.parse().map_err(|_| Problem::bad_request("an index is a number"))?,
    };
    let of_work = app.clone();
    from_session(&app, &id, Weight::Light, move |opened, _| {
        let event = opened.session.event_at(place)?;
        document(&of_work, opened, event)
    })
    .await
}

fn document(app: &App, opened: &Opened, event: EventId) -> Result<Value, Problem> {
    let session = &opened.session;
    let detail = session.event(event)?;
    let info = registry::kind(detail.kind);
    let tables = session.trace().tables();
    let (parents, children) = match detail.place.filter(|place| place.row.is_some()) {
        Some(place) => (session.parents(place)?, session.children(place, 0..0)?.0),
        None => (Vec::new(), 0),
    };
    let tick_start = session.with_ticks(|ticks| {
        let after = ticks.partition_point(|tick| tick.start_ns <= detail.start_ns);
        after.checked_sub(1).map(|at| ticks[at].start_ns)
    })?;
    Ok(json!({
        "schema": "typhon.event/1",
        "event": event_text(event),
        "place": detail.place.map(PlaceView::from),
        "kind": detail.kind,
        "kindName": info.map(|info| info.name),
        "family": info.map(|info| info.family),
        "name": detail.name,
        "slot": detail.slot,
        "thread": detail.thread,
        "system": detail.system,
        "systemName": detail.system.and_then(|system| tables.system_name(system)),
        "tick": detail.tick,
        "tickOffsetNs": tick_start.map(|start| detail.start_ns - start),
        "startNs": detail.start_ns,
        "tsNs": detail.ts_ns,
        "startTicks": detail.start_ticks.to_string(),
        "durationNs": detail.duration_ns,
        "selfNs": detail.self_ns,
        "depth": detail.depth,
        "hasNoEnd": detail.has_no_end,
        "spanId": detail.span_id.map(hex_id),
        "parentSpanId": detail.parent_span_id.map(hex_id),
        "traceId": detail.trace_id.map(|id| hex(&id)),
        "site": detail.site.map(|site| site_view(app, session, site)),
        "fields": detail.fields.iter().map(|field| field_view(field, info, tables)).collect::<Vec<_>>(),
        "parents": parents.iter().map(SpanRef::of).collect::<Vec<_>>(),
        "children": children,
        "bytes": hex(&detail.bytes),
    }))
}

fn hex_id(id: u64) -> String {
    format!("0x{id:016x}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn site_view(app: &App, session: &Session, site: u16) -> Value {
    let sections = session.trace().sections();
    let location = sections.source_manifest.as_ref().and_then(|manifest| manifest.get(site));
    let file = location.and_then(|location| sections.file_table.as_ref()?.path(location.file_id));
    json!({
        "id": site,
        "file": file,
        "line": location.map(|location| location.line),
        "method": location.map(|location| &location.method),
        "hasSource": file.is_some_and(|file| app.paths.has_source(file)),
    })
}

fn field_view(field: &FieldView, kind: Option<&KindInfo>, tables: &Tables) -> Value {
    let info = kind.and_then(|kind| kind.field(field.name));
    // The registry writes what is to be kept in mind behind the unit: "ms, as declared, not enforced".
    let (unit, note) = match field.unit.split_once(", ") {
        Some((unit, note)) => (unit, Some(note)),
        None => (field.unit, None),
    };
    let sentinel = info.map(|info| info.sentinel).filter(|sentinel| !sentinel.is_empty());
    let of_table = || field.value.as_ref().and_then(|value| name_of_id(field.name, value, tables));
    json!({
        "name": field.name,
        "type": info.map(|info| type_name(info.ty)),
        "unit": unit,
        "value": field.value.as_ref().map(|value| value_json(value, info.map(|info| info.ty))),
        "valueName": field.value_name.clone().or_else(of_table),
        "isTableId": table_of(field.name).is_some(),
        "ns": field.ns,
        "note": note.or(sentinel),
    })
}

fn type_name(of: FieldType) -> String {
    format!("{of:?}").to_lowercase()
}

/// What an id stands for in the tables of the trace; `None` also for ids that they do not hold (brief 11 B-24).
fn name_of_id(field: &str, value: &FieldValue, tables: &Tables) -> Option<String> {
    let id = match value {
        FieldValue::Unsigned(id) => i64::try_from(*id).ok()?,
        FieldValue::Signed(id) => *id,
        _ => return None,
    };
    let small = || u16::try_from(id).ok();
    let name = match table_of(field)? {
        Table::Systems => tables.system_name(small()?)?,
        Table::Archetypes => tables.archetype_name(small()?)?,
        Table::ComponentTypes => tables.component_type_name(i32::try_from(id).ok()?)?,
        Table::EventQueues => {
            let queue = small()?;
            tables.event_queues.iter().rfind(|entry| entry.queue_index == queue)?.name.as_str()
        }
    };
    Some(name.to_owned())
}

/// A table of the trace that gives ids a name.
enum Table {
    Systems,
    Archetypes,
    ComponentTypes,
    EventQueues,
}

/// The table that the ids of a field are of.
fn table_of(field: &str) -> Option<Table> {
    Some(match field {
        "systemIdx" | "sysIdx" | "systemIndex" | "ownerSystemIdx" | "fromSysIdx" | "toSysIdx"
        | "completingSysIdx" => Table::Systems,
        "archetypeId" | "archetypeTypeId" => Table::Archetypes,
        "componentTypeId" | "targetComponentType" => Table::ComponentTypes,
        "queueId" => Table::EventQueues,
        _ => return None,
    })
}

/// Numbers that JavaScript cannot hold are strings, by type, so that a field is always of one sort.
fn value_json(value: &FieldValue, of: Option<FieldType>) -> Value {
    let is_wide = matches!(of, None | Some(FieldType::U64 | FieldType::I64));
    match value {
        FieldValue::Unsigned(value) if is_wide => json!(value.to_string()),
        FieldValue::Signed(value) if is_wide => json!(value.to_string()),
        FieldValue::Unsigned(value) => json!(value),
        FieldValue::Signed(value) => json!(value),
        FieldValue::F32(value) => float(value.to_string().parse().unwrap_or(f64::from(*value))),
        FieldValue::F64(value) => float(*value),
        FieldValue::Bool(value) => json!(value),
        FieldValue::Text(text) => json!(text),
        FieldValue::Gauges(gauges) => gauges.iter().map(gauge_json).collect(),
        FieldValue::Evaluators(list) => list.iter().map(evaluator_json).collect(),
        FieldValue::Numbers(list) => list.iter().map(|number| json!(number.to_string())).collect(),
    }
}

/// JSON has no word for what is not finite.
fn float(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

fn gauge_json(gauge: &Gauge) -> Value {
    let value = match gauge.value {
        GaugeValue::U32Count(value) | GaugeValue::U32PercentHundredths(value) => value.to_string(),
        GaugeValue::U64Bytes(value) => value.to_string(),
        GaugeValue::I64Signed(value) => value.to_string(),
    };
    let name = registry::gauge(gauge.id).map(|info| info.name);
    json!({ "gauge": gauge.id, "gaugeName": name, "valueKind": gauge.value.kind().to_wire(), "value": value })
}

fn evaluator_json(evaluator: &Evaluator) -> Value {
    json!({ "fieldIdx": evaluator.field_idx, "op": evaluator.op.0, "opName": evaluator.op.name() })
}

#[derive(Deserialize)]
pub(crate) struct Page {
    #[serde(default)]
    first: u64,
    count: Option<u64>,
}

/// The place of a span; instants have neither children nor siblings.
fn place_of(session: &Session, event: EventId) -> Result<Place, Problem> {
    let place = session.event(event)?.place.filter(|place| place.row.is_some());
    place.ok_or_else(|| Problem::unknown("such span"))
}

pub(crate) async fn children(
    State(app): State<Arc<App>>,
    Path((id, event)): Path<(String, String)>,
    Params(page): Params<Page>,
) -> Result<Response, Problem> {
    let event = event_id(&event)?;
    from_session(&app, &id, Weight::Light, move |opened, _| {
        let place = place_of(&opened.session, event)?;
        let count = page.count.unwrap_or(200).min(PAGE_MAX as u64);
        let (total, spans) = opened.session.children(place, page.first..page.first.saturating_add(count))?;
        let spans: Vec<SpanRef> = spans.iter().map(SpanRef::of).collect();
        Ok(json!({ "schema": "typhon.children/1", "total": total, "first": page.first, "spans": spans }))
    })
    .await
}

pub(crate) async fn siblings(
    State(app): State<Arc<App>>,
    Path((id, event)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let event = event_id(&event)?;
    from_session(&app, &id, Weight::Heavy, move |opened, cancel| {
        let place = place_of(&opened.session, event)?;
        let siblings = opened.session.siblings(place, cancel)?;
        Ok(json!({
            "schema": "typhon.siblings/1",
            "count": siblings.count,
            "shorter": siblings.shorter,
            "equal": siblings.equal,
            "percentile": siblings.percentile(),
        }))
    })
    .await
}

pub(crate) async fn links(
    State(app): State<Arc<App>>,
    Path((id, event)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let event = event_id(&event)?;
    from_session(&app, &id, Weight::Light, move |opened, cancel| {
        let found = opened.session.links(event, cancel)?;
        let links: Vec<Value> = found
            .links
            .iter()
            .map(|link| {
                let reason = match link.reason {
                    LinkReason::Ready => "ready",
                    LinkReason::Dependency => "dependency",
                    LinkReason::Schedule => "schedule",
                    LinkReason::Durability => "durability",
                    LinkReason::Completion => "completion",
                };
                json!({ "reason": reason, "from": SpanRef::of(&link.from), "to": SpanRef::of(&link.to) })
            })
            .collect();
        Ok(json!({ "schema": "typhon.links/1", "isCut": found.is_cut, "links": links }))
    })
    .await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Near {
    lane: u32,
    row: String,
    at_ns: u64,
}

pub(crate) async fn nearest(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Params(near): Params<Near>,
) -> Result<Response, Problem> {
    let row = row_number(&near.row)?;
    from_session(&app, &id, Weight::Light, move |opened, _| {
        let place = opened.session.nearest(near.lane, row, near.at_ns)?;
        let event = place.map(|place| opened.session.event_at(place)).transpose()?;
        Ok(json!({
            "schema": "typhon.nearest/1",
            "place": place.map(PlaceView::from),
            "event": event.map(event_text),
        }))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_named_in_one_way_only() {
        assert_eq!(event_id("11.204"), Ok(EventId { block: 11, record: 204 }));
        for bad in [
            "",
            ".",
            "11",
            "11.",
            ".204",
            "11.204.1",
            "+1.2",
            "1.-2",
            " 1.2",
            "4294967296.0",
            "0x1.2",
            "1.2\0",
        ] {
            assert!(event_id(bad).is_err(), "{bad}");
        }
    }
}
