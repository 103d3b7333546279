//! Notices for people and as JSON.

use super::input::suggested;
use crate::output::escape::printable;
use crate::output::stream::Style;
use crate::output::units;
use serde_json::{Value, json};
use std::path::Path;
use typhon_analysis::placing::PlaceFaults;
use typhon_trace::{Notice, NoticeCode, Severity};

/// `[{code,severity,offset,block,record,count,message,hint}]`.
pub(crate) fn to_json(notices: &[Notice]) -> Value {
    let entry = |notice: &Notice| {
        json!({
            "code": notice.code.as_str(),
            "severity": severity_name(notice.severity()),
            "offset": notice.offset,
            "block": notice.block,
            "record": notice.record,
            "count": notice.count,
            "message": notice.message,
            "hint": notice.code.hint(),
        })
    };
    notices.iter().map(entry).collect()
}

/// Stable name of a severity.
pub(crate) fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Divergent => "divergent",
        Severity::DataLoss => "data-loss",
    }
}

/// `block 17 @ 0x003f2a10  record 311: …`.
pub(crate) fn line(notice: &Notice) -> String {
    let mut place = Vec::new();
    if let Some(block) = notice.block {
        place.push(format!("block {block}"));
    }
    if let Some(offset) = notice.offset {
        place.push(format!("@ 0x{offset:08x}"));
    }
    let record = notice.record.map(|record| format!("record {record}: ")).unwrap_or_default();
    let message = printable(&notice.message);
    if place.is_empty() {
        format!("{record}{message}")
    } else {
        format!("{}  {record}{message}", place.join(" "))
    }
}

/// The option with which `repair` keeps most of a trace, with a space before it.
pub(crate) fn repair_option(notices: &[Notice], withheld_events: u64) -> &'static str {
    let needs_search = notices.iter().any(|notice| notice.code == NoticeCode::BadBlockHeader);
    if needs_search || withheld_events > 0 { " --salvage" } else { "" }
}

/// One line on standard error when records were lost.
pub(crate) fn warn(style: &Style, path: &Path, notices: &[Notice]) {
    let losses = notices.iter().filter(|notice| notice.severity() == Severity::DataLoss).count() as u64;
    if losses > 0 {
        let found = units::plural(losses, "place");
        style.say(&format!(
            "warning: the trace is damaged in {found}\n  -> typhon trace verify {}",
            suggested(path)
        ));
    }
}

/// Says which places of spans may be off, of a filter or a column that is about them.
pub(crate) fn say_place_faults(style: &Style, faults: PlaceFaults) {
    if faults.inexact > 0 {
        style.say(&format!(
            "note: {} may be too large, as spans came far out of order",
            units::plural(faults.inexact, "self time")
        ));
    }
    if faults.too_shallow > 0 {
        style.say(&format!(
            "note: {} and those of the spans inside are too small: what is around them ended too late",
            units::plural(faults.too_shallow, "depth")
        ));
    }
}
