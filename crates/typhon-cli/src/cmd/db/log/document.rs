//! A log as JSON (`docs/schemas/db-log.json`).

use super::findings::{Finding, Verdict};
use super::{Log, Row};
use serde_json::{Value, json};
use std::path::Path;
use typhon_log::Stop;
use typhon_log::format::FrameKind;
use typhon_log::inspect::{AnchorView, FileView};

pub(super) fn of(log: &Log, path: &Path) -> Value {
    let report = log.found.report();
    let files = log.found.files.iter().zip(&log.frames);
    json!({
        "schema": "typhon.db-log/1",
        "path": path.to_string_lossy(),
        "verdict": log.verdict.as_str(),
        "anchor": log.found.anchor.as_ref().map(anchor),
        "base": report.base.0,
        "end": report.end.0,
        "nextTsn": log.found.next_tsn.0,
        "tail": tail(log),
        "files": files.map(|(view, frames)| file(view, *frames)).collect::<Vec<_>>(),
        "blocks": report.blocks,
        "framesTotal": log.frames_total(),
        "bodyBytes": log.body_bytes,
        "frames": log.shown.iter().map(|row| frame(row, log)).collect::<Vec<_>>(),
        "findings": log.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

/// No verdict on the contents is possible.
pub(super) fn unopenable(path: &Path, error: &str) -> Value {
    json!({
        "schema": "typhon.db-log/1",
        "path": path.to_string_lossy(),
        "verdict": Verdict::Unopenable.as_str(),
        "error": error,
        "anchor": null,
        "base": null,
        "end": null,
        "nextTsn": null,
        "tail": null,
        "files": [],
        "blocks": 0,
        "framesTotal": 0,
        "bodyBytes": 0,
        "frames": [],
        "findings": [],
    })
}

fn anchor(view: &AnchorView) -> Value {
    json!({
        "store": view.anchor.store.to_string(),
        "generation": view.generation,
        "openEpoch": view.anchor.open_epoch,
        "logFloor": view.anchor.log_floor,
        "base": view.anchor.base.0,
        "nextTsn": view.anchor.next_tsn.0,
        "stateBytes": view.state_bytes,
    })
}

fn tail(log: &Log) -> Value {
    let (state, reason) = match log.found.report().stop {
        Stop::End => ("end", None),
        Stop::Torn(invalid) => ("torn", Some(invalid.to_string())),
        Stop::Gap => ("gap", None),
    };
    let place = log.found.tail.and_then(|(file, offset)| Some((log.found.files.get(file)?, offset)));
    json!({
        "state": state,
        "reason": reason,
        "file": place.map(|(file, _)| name(&file.path)),
        "offset": place.map(|(_, offset)| offset),
    })
}

fn file(view: &FileView, frames: u64) -> Value {
    json!({
        "name": name(&view.path),
        "state": view.state.as_str(),
        "bytes": view.bytes,
        "header": view.header.map(|header| json!({
            "store": header.store.to_string(),
            "id": header.id,
            "firstLsn": header.first_lsn,
            "openEpoch": header.open_epoch,
            "schemaEpoch": header.schema_epoch,
            "sizeBytes": header.size_bytes,
        })),
        "blocks": view.blocks,
        "frames": frames,
    })
}

fn frame(row: &Row, log: &Log) -> Value {
    json!({
        "lsn": row.lsn,
        "kind": FrameKind::try_from(row.kind).map_or(Value::Null, |kind| json!(kind.to_string())),
        "kindId": row.kind,
        "seq": row.seq,
        "uow": row.uow,
        "flags": row.flags,
        "records": row.records,
        "bodyBytes": row.body_bytes,
        "file": log.found.files.get(row.file).map(|file| name(&file.path)),
        "blockOffset": row.offset,
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "code": finding.code,
        "severity": finding.severity.as_str(),
        "message": finding.message,
        "file": finding.path.as_deref().map(name),
        "offset": finding.offset,
    })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
