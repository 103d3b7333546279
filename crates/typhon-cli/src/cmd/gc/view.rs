//! What the user sees: a line or an object a collection, and the summary at the end.

use super::recording::{Finished, Loss};
use super::trace_file::TraceFile;
use crate::cmd::stats;
use crate::failure::Failure;
use crate::output::escape::printable;
use crate::output::json;
use crate::output::stream::{Style, print};
use crate::output::units::{bytes, duration, plural};
use serde_json::{Value, json};
use std::path::Path;
use typhon_clr::gc::{Collection, GcReason, GcType, HeapSizes};

/// Shows collections while they come.
pub(super) struct Live<'a> {
    style: &'a Style,
    /// Nobody can be shown anything any more. The recording goes on without it.
    is_alone: bool,
}

impl<'a> Live<'a> {
    pub(super) fn new(style: &'a Style) -> Self {
        Self { style, is_alone: false }
    }

    pub(super) fn style(&self) -> &'a Style {
        self.style
    }

    /// Shows a collection that has ended.
    pub(super) fn show(&mut self, collection: &Collection, trace: &TraceFile) {
        if self.is_alone {
            return;
        }
        let shown = match self.style.json {
            true => print(&json::line(&to_json(collection, trace))),
            false => print(to_text(collection, trace.length_ns(collection.pause_ticks)).as_bytes()),
        };
        // Why comes up again with the summary.
        self.is_alone = shown.is_err();
    }
}

/// `#212 gen1 blocking alloc-SOH  pause 3.2 ms  heap 84→61 MiB`.
fn to_text(collection: &Collection, pause_ns: i64) -> String {
    let (kind, reason) = match &collection.start {
        Some(start) => (kind_name(start.kind), reason_name(start.reason)),
        None => ("began".to_owned(), "earlier".to_owned()),
    };
    let heap = match &collection.heap {
        Some(heap) => change(heap.size_before_bytes, total(heap)),
        None => "unknown".to_owned(),
    };
    format!(
        "#{} gen{} {kind} {reason}  pause {}  heap {heap}\n",
        collection.count,
        collection.generation,
        duration(pause_ns)
    )
}

/// `84→61 MiB`, `84 MiB→900 KiB`.
fn change(before: Option<u64>, after: u64) -> String {
    let after = bytes(after);
    let Some(before) = before.map(bytes) else { return after };
    match (before.split_once(' '), after.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}→{after}"),
        _ => format!("{before}→{after}"),
    }
}

fn total(heap: &HeapSizes) -> u64 {
    heap.size_bytes.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes))
}

fn to_json(collection: &Collection, trace: &TraceFile) -> Value {
    let start = collection.start.as_ref();
    let heap = collection.heap.as_ref();
    json!({
        "schema": "typhon.gc-collection/1",
        "count": collection.count,
        "generation": collection.generation,
        "type": start.map(|start| kind_name(start.kind)),
        "reason": start.map(|start| reason_name(start.reason)),
        "startNs": start.map(|start| trace.since_start_ns(start.timestamp)),
        "endNs": trace.since_start_ns(collection.timestamp),
        "pauseNs": trace.length_ns(collection.pause_ticks),
        "promotedBytes": heap.map(|heap| heap.promoted_bytes),
        "sizeBeforeBytes": heap.and_then(|heap| heap.size_before_bytes),
        "sizeAfterBytes": heap.map(|heap| heap.size_bytes),
        "committedBytes": collection.committed_bytes,
    })
}

fn kind_name(kind: GcType) -> String {
    match kind {
        GcType::BLOCKING => "blocking".to_owned(),
        GcType::BACKGROUND => "background".to_owned(),
        GcType::FOREGROUND => "foreground".to_owned(),
        other => other.to_string(),
    }
}

fn reason_name(reason: GcReason) -> String {
    let name = match reason {
        GcReason::ALLOC_SMALL => "alloc-SOH",
        GcReason::INDUCED => "induced",
        GcReason::LOW_MEMORY => "low-memory",
        GcReason::EMPTY => "empty",
        GcReason::ALLOC_LARGE => "alloc-LOH",
        GcReason::OUT_OF_SPACE_SMALL => "out-of-space-SOH",
        GcReason::OUT_OF_SPACE_LARGE => "out-of-space-LOH",
        GcReason::INDUCED_NOT_FORCED => "induced-not-forced",
        GcReason::INTERNAL => "internal",
        GcReason::INDUCED_LOW_MEMORY => "induced-low-memory",
        GcReason::INDUCED_COMPACTING => "induced-compacting",
        GcReason::LOW_MEMORY_HOST => "low-memory-host",
        GcReason::PAUSE_MODE_FULL => "pause-mode-full",
        GcReason::LOW_MEMORY_HOST_BLOCKING => "low-memory-host-blocking",
        other => return other.to_string(),
    };
    name.to_owned()
}

/// Says what was recorded and what was not.
pub(super) fn conclude(finished: &Finished, path: &Path, style: &Style) -> Result<(), Failure> {
    match style.json {
        true => print(&json::line(&conclusion_json(finished, path))),
        false => print(conclusion_text(finished, path, style).as_bytes()),
    }
}

fn conclusion_json(finished: &Finished, path: &Path) -> Value {
    let losses = finished.losses.list();
    let losses: Vec<Value> = losses
        .iter()
        .map(|Loss { code, count, message }| json!({ "code": code, "count": count, "message": message }))
        .collect();
    let bins = finished.pauses_ns.octaves();
    let bins: Vec<Value> =
        bins.iter().map(|(from, to, n)| json!({ "fromNs": from, "toNs": to, "count": n })).collect();
    json!({
        "schema": "typhon.gc/1",
        "output": path.to_string_lossy(),
        "bytes": finished.bytes,
        "records": finished.written.records,
        "dropped": finished.losses.dropped_events(),
        "durationNs": finished.duration_ns,
        "losses": losses,
        "gc": finished.summary.as_ref().map(typhon_analysis::documents::gc_summary),
        "pauseBins": bins,
    })
}

fn conclusion_text(finished: &Finished, path: &Path, style: &Style) -> String {
    let mut text = String::new();
    if let Some(summary) = &finished.summary {
        text.push_str(&stats::text::gc(summary));
        text.push('\n');
        text.push_str(&stats::histogram::bars(&finished.pauses_ns, style));
    } else {
        text.push_str("gc      no collection in this time\n");
    }
    if let Some(heap) = finished.last.and_then(|last| last.heap) {
        let [gen0, gen1, gen2, large, pinned] = heap.size_bytes.map(bytes);
        text.push_str(&format!(
            "heap    {}   gen0 {gen0}   gen1 {gen1}   gen2 {gen2}   large objects {large}   pinned {pinned}",
            bytes(total(&heap))
        ));
        if let Some(committed) = finished.last.and_then(|last| last.committed_bytes) {
            text.push_str(&format!("   committed {}", bytes(committed)));
        }
        text.push('\n');
    }
    text.push_str(&format!(
        "{}  {}  {}  {}\n",
        printable(&path.to_string_lossy()),
        bytes(finished.bytes),
        plural(finished.written.records, "record"),
        duration(finished.duration_ns)
    ));
    for loss in finished.losses.list() {
        text.push_str(&format!("  lost: {}\n", printable(&loss.message)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use typhon_clr::gc::CollectionStart;

    fn collection() -> Collection {
        let start = CollectionStart {
            timestamp: 1,
            count: 212,
            generation: 1,
            reason: GcReason::ALLOC_SMALL,
            kind: GcType::BLOCKING,
        };
        let heap = HeapSizes {
            size_bytes: [1 << 20, 0, 60 << 20, 0, 0],
            promoted_bytes: 0,
            promoted_is_complete: true,
            size_before_bytes: Some(84 << 20),
        };
        Collection {
            timestamp: 2,
            count: 212,
            generation: 1,
            start: Some(start),
            pause_ticks: 3,
            heap: Some(heap),
            committed_bytes: None,
        }
    }

    #[test]
    fn a_collection_is_one_line() {
        let line = to_text(&collection(), 3_200_000);
        assert_eq!(line, "#212 gen1 blocking alloc-SOH  pause 3.2 ms  heap 84→61 MiB\n");
    }

    #[test]
    fn what_is_unknown_is_said_to_be() {
        let unknown = Collection { start: None, heap: None, ..collection() };
        let line = to_text(&unknown, 0);
        assert_eq!(line, "#212 gen1 began earlier  pause 0 ns  heap unknown\n");
        assert_eq!(change(None, 2048), "2 KiB");
        assert_eq!(change(Some(3 << 20), 2048), "3 MiB→2 KiB");
    }

    #[test]
    fn numbers_of_newer_runtimes_pass_through() {
        assert_eq!((kind_name(GcType(9)), reason_name(GcReason(77))), ("9".to_owned(), "77".to_owned()));
    }
}
