//! What a session holds: facts, lanes, names, gauges, collections, notices.

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
use typhon_analysis::documents;
use typhon_analysis::index::{Collection, LaneKind, Stack, Strip, families};
use typhon_analysis::session::{LaneInfo, Session};
use typhon_trace::event::enums::{GcReason, GcType, ThreadKind};
use typhon_trace::registry::{self, GaugeValueKind};
use typhon_trace::{FORMAT_VERSION, Severity};

pub(crate) async fn meta(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response, Problem> {
    from_session(&app, &id, Weight::Light, |opened, _| document(opened)).await
}

fn document(opened: &Opened) -> Result<Value, Problem> {
    let session = &opened.session;
    let (meta, lanes) = (session.meta()?, session.lanes()?);
    let (header, tables) = (session.trace().header(), session.trace().tables());
    let (first, last) = session
        .with_ticks(|ticks| (ticks.first().map(|tick| tick.number), ticks.last().map(|tick| tick.number)))?;
    let stack = |of: Stack| meta.stacks.get(&of);
    let capped: u64 = session.capped()?.iter().map(|of| of.times).sum();
    Ok(json!({
        "schema": "typhon.meta/1",
        "isComplete": meta.is_complete,
        "generation": meta.generation,
        "file": {
            "name": opened.name(),
            "path": session.path().to_string_lossy(),
            "bytes": meta.file_bytes,
            "blocks": meta.blocks,
            "format": FORMAT_VERSION,
            "dialect": if header.is_typhon_dialect() { "typhon" } else { "reference" },
            "isClosed": header.is_closed(),
        },
        "time": {
            "endNs": meta.end_ns,
            "zeroNs": meta.zero_ns,
            "zeroTicks": meta.time.zero_ticks().to_string(),
            "ticksPerSecond": header.timestamp_frequency.to_string(),
            "startUnixNs": header.created_unix_ns().map(|ns| ns.saturating_add(meta.zero_ns).to_string()),
        },
        "world": {
            "databaseName": header.database_name,
            "baseTickRate": tables.base_tick_rate_hz(header).unwrap_or(0.0),
            "workers": tables.runtime_config.as_ref().map_or(header.worker_count.into(), |config| config.worker_count),
            "systems": tables.systems.len(),
            "archetypes": tables.archetypes.len(),
            "components": tables.component_types.len(),
        },
        "totals": {
            "events": meta.totals.events,
            "withheldEvents": meta.totals.withheld_events,
            "droppedRecords": meta.totals.dropped_records,
            "gcNotKept": meta.totals.gc_not_kept,
            "notices": meta.notices.len(),
            "losses": meta.losses.len(),
            "capped": capped,
        },
        "kinds": meta.kinds.iter().map(|(id, count)| json!({ "id": id, "count": count })).collect::<Vec<_>>(),
        "ticks": { "count": meta.ticks, "first": first, "last": last, "p95Ns": meta.tick_p95_ns },
        "stacks": { "gcHeap": stack(Stack::GcHeap), "pageCache": stack(Stack::PageCache) },
        "families": families(),
        "lanes": lanes.iter().map(lane).collect::<Vec<_>>(),
    }))
}

fn lane(lane: &LaneInfo) -> Value {
    let (kind, gauge, system, strip) = match lane.kind {
        LaneKind::Gc => ("gc", None, None, None),
        LaneKind::Gauge { gauge } => ("gauge", Some(gauge), None, None),
        LaneKind::Thread { .. } => ("thread", None, None, None),
        LaneKind::System { index } => ("system", None, Some(index), None),
        LaneKind::Strip(strip) => ("strip", None, None, Some(strip_name(strip))),
    };
    json!({
        "id": lane.id,
        "kind": kind,
        "label": lane.label,
        "gauge": gauge,
        "system": system,
        "strip": strip,
        "slot": lane.slot.map(|(slot, _)| slot),
        "incarnation": lane.slot.map(|(_, incarnation)| incarnation),
        "threadNumber": lane.thread_number,
        "threadKind": lane.thread_kind,
        "threadKindName": lane.thread_kind.and_then(|kind| ThreadKind(kind).name()),
        "nestedRows": lane.nested_rows,
        "rows": lane.rows,
        "spans": lane.spans,
        "instants": lane.instants,
        "samples": lane.samples,
        "valueRange": lane.value_range.map(|(min, max)| [min, max]),
        "extentNs": lane.extent_ns.as_ref().map(|extent| [extent.start, extent.end]),
    })
}

fn strip_name(strip: Strip) -> &'static str {
    match strip {
        Strip::Phases => "phases",
        Strip::PageCache => "pageCache",
        Strip::DiskIo => "diskIo",
        Strip::Transactions => "transactions",
        Strip::Wal => "wal",
        Strip::Checkpoint => "checkpoint",
    }
}

#[derive(Deserialize)]
pub(crate) struct From {
    #[serde(default)]
    from: usize,
}

/// Columns: there can be 65,535 of them.
#[derive(Serialize)]
struct Names {
    schema: &'static str,
    from: usize,
    texts: Vec<String>,
    kinds: Vec<u8>,
    systems: Vec<Option<u16>>,
    groups: Vec<u16>,
}

pub(crate) async fn names(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Params(From { from }): Params<From>,
) -> Result<Response, Problem> {
    from_session(&app, &id, Weight::Light, move |opened, _| {
        let names = opened.session.names()?;
        let mut columns = Names {
            schema: "typhon.names/1",
            from,
            texts: Vec::new(),
            kinds: Vec::new(),
            systems: Vec::new(),
            groups: Vec::new(),
        };
        for name in names.into_iter().skip(from) {
            columns.texts.push(name.text);
            columns.kinds.push(name.kind);
            columns.systems.push(name.system);
            columns.groups.push(name.group);
        }
        Ok(columns)
    })
    .await
}

pub(crate) async fn gauges(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response, Problem> {
    from_session(&app, &id, Weight::Light, |opened, _| gauge_list(&opened.session)).await
}

fn gauge_list(session: &Session) -> Result<Value, Problem> {
    let (meta, lanes) = (session.meta()?, session.lanes()?);
    let stack_of = |gauge: u16| Stack::ALL.into_iter().find(|stack| stack.gauges().contains(&gauge));
    let gauges: Vec<Value> = lanes
        .iter()
        .filter_map(|lane| {
            let LaneKind::Gauge { gauge } = lane.kind else { return None };
            let info = registry::gauge(gauge);
            Some(json!({
                "lane": lane.id,
                "gauge": gauge,
                "name": lane.label,
                "valueKind": info.map(|info| value_kind(info.value_kind)),
                "isOnce": info.is_some_and(|info| info.once),
                "samples": lane.samples,
                "min": lane.value_range.map(|(min, _)| min.to_string()),
                "max": lane.value_range.map(|(_, max)| max.to_string()),
                "stack": stack_of(gauge).map(stack_name),
            }))
        })
        .collect();
    let stacks: Vec<Value> = meta
        .stacks
        .iter()
        .map(|(stack, max)| json!({ "stack": stack_name(*stack), "max": max, "gauges": stack.gauges() }))
        .collect();
    Ok(json!({ "schema": "typhon.gauges/1", "gauges": gauges, "stacks": stacks }))
}

fn value_kind(kind: GaugeValueKind) -> &'static str {
    match kind {
        GaugeValueKind::U32Count => "U32Count",
        GaugeValueKind::U64Bytes => "U64Bytes",
        GaugeValueKind::I64Signed => "I64Signed",
        GaugeValueKind::U32PercentHundredths => "U32PercentHundredths",
    }
}

fn stack_name(stack: Stack) -> &'static str {
    match stack {
        Stack::GcHeap => "gcHeap",
        Stack::PageCache => "pageCache",
    }
}

#[derive(Deserialize)]
pub(crate) struct Page {
    #[serde(default)]
    first: usize,
    count: Option<usize>,
}

pub(crate) async fn collections(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Params(page): Params<Page>,
) -> Result<Response, Problem> {
    from_session(&app, &id, Weight::Light, move |opened, _| {
        let count = page.count.unwrap_or(1_000).min(PAGE_MAX);
        let (total, found) = opened.session.collections(page.first..page.first.saturating_add(count))?;
        let summary = opened.session.gc_summary(None)?;
        Ok(json!({
            "schema": "typhon.gc/1",
            "total": total,
            "first": page.first,
            "collections": found.iter().map(collection).collect::<Vec<_>>(),
            "summary": summary.as_ref().map(documents::gc_summary),
        }))
    })
    .await
}

fn collection(of: &Collection) -> Value {
    let [gen0, gen1, gen2, large, pinned] = of.sizes.generations;
    json!({
        "count": of.count,
        "generation": of.generation,
        "reason": of.reason,
        "reasonName": of.reason.and_then(|reason| GcReason(reason).name()),
        "gcType": of.gc_type,
        "gcTypeName": of.gc_type.and_then(|kind| GcType(kind).name()),
        "startNs": of.start_ns,
        "endNs": of.end_ns,
        "pauseNs": of.pause_ns,
        "promotedBytes": of.sizes.promoted,
        "gen0Bytes": gen0,
        "gen1Bytes": gen1,
        "gen2Bytes": gen2,
        "lohBytes": large,
        "pohBytes": pinned,
        "committedBytes": of.sizes.committed,
    })
}

pub(crate) async fn notices(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    from_session(&app, &id, Weight::Light, |opened, _| notice_list(&opened.session)).await
}

fn notice_list(session: &Session) -> Result<Value, Problem> {
    let meta = session.meta()?;
    let (missing, places) = session.with_ticks(|ticks| {
        let gaps = ticks.iter().map(|tick| tick.missing_before).filter(|missing| *missing > 0);
        gaps.fold((0i64, 0u64), |(sum, places), missing| (sum.saturating_add(missing), places + 1))
    })?;
    let notices: Vec<Value> = meta
        .notices
        .iter()
        .map(|placed| {
            let notice = &placed.notice;
            json!({
                "code": notice.code.as_str(),
                "severity": match notice.severity() {
                    Severity::Info => "info",
                    Severity::Divergent => "divergent",
                    Severity::DataLoss => "data-loss",
                },
                "offset": notice.offset,
                "block": notice.block,
                "record": notice.record,
                "count": notice.count,
                "message": notice.message,
                "hint": notice.code.hint(),
                "rangeNs": placed.range_ns.as_ref().map(|range| [range.start, range.end]),
            })
        })
        .collect();
    let losses: Vec<Value> = meta
        .losses
        .iter()
        .map(|loss| json!({ "atNs": loss.at_ns, "records": loss.records, "marker": loss.marker }))
        .collect();
    let capped: Vec<Value> = session
        .capped()?
        .iter()
        .map(|of| {
            json!({ "what": of.what.name(), "kind": of.what.kind(), "shown": of.shown, "total": of.total, "atNs": of.at_ns, "times": of.times })
        })
        .collect();
    Ok(json!({
        "schema": "typhon.notices/1",
        "notices": notices,
        "losses": losses,
        "missingTicks": { "count": missing, "places": places },
        "capped": capped,
        "damagedEvents": meta.totals.withheld_events,
    }))
}
