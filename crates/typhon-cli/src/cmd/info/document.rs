//! The report as JSON, schema `typhon.info/1`.

use super::Report;
use crate::cmd::notices;
use serde_json::{Map, Value, json};
use typhon_analysis::clock::Clock;
use typhon_analysis::gc::{GcSummary, PauseSource};
use typhon_trace::header::{FileHeader, MAGIC};
use typhon_trace::trailer::Section;
use typhon_trace::{FORMAT_VERSION, registry};

pub(super) fn of(report: &Report) -> Value {
    let header = &report.preamble.header;
    let clock = Clock::new(header.timestamp_frequency);
    let scan = report.scan.as_ref();
    let mut document = json!({
        "schema": "typhon.info/1",
        "file": {
            "path": report.path.to_string_lossy(),
            "size": report.file_bytes,
            "format": FORMAT_VERSION,
            "dialect": if header.is_typhon_dialect() { "typhon" } else { "reference" },
            "closed": header.is_closed(),
            "checksums": report.has_checksums(),
            "scanned": scan.is_some(),
        },
        "clock": { "frequency": header.timestamp_frequency },
        "time": {
            "createdUtc": created(header),
            "durationNs": report.duration_ticks().map(|ticks| clock.to_ns(ticks)),
        },
        "counts": {
            "records": scan.map(|scan| scan.totals.events),
            "blocks": report.blocks,
            "ticks": report.ticks(),
            "perKind": scan.map(|scan| per_kind(&scan.derived.kinds)),
            "statedRecords": report.stated_records,
            "uncompressedBytes": report.uncompressed_bytes,
        },
        "header": header_fields(header),
    });
    if let (Some(object), Ok(Value::Object(tables))) =
        (document.as_object_mut(), serde_json::to_value(&report.preamble.tables))
    {
        object.extend(tables);
    }
    document["sections"] = sections(report);
    document["gc"] = scan.and_then(|scan| scan.gc.as_ref()).map_or(Value::Null, gc);
    document["drops"] = json!({ "records": scan.map(|scan| scan.totals.dropped_records) });
    document["notices"] = notices::to_json(&report.notices);
    document
}

/// All header fields, section offsets among them.
fn header_fields(header: &FileHeader) -> Value {
    let mut fields = Map::new();
    fields.insert("magic".into(), json!(u32::from_le_bytes(MAGIC)));
    fields.insert("version".into(), json!(FORMAT_VERSION));
    if let Ok(Value::Object(stored)) = serde_json::to_value(header) {
        for (name, value) in stored {
            match value {
                Value::Object(offsets) => {
                    fields
                        .extend(offsets.into_iter().map(|(name, offset)| (format!("{name}Offset"), offset)));
                }
                plain => drop(fields.insert(name, plain)),
            }
        }
    }
    fields.insert("createdUtc".into(), json!(created(header)));
    Value::Object(fields)
}

/// RFC 3339; the fraction of a second is left out when it is zero.
fn created(header: &FileHeader) -> Option<String> {
    header.created_utc_text().map(|text| text.replace(".000000Z", "Z"))
}

/// `{"TickStart": 30, …}`; kinds without a name by their id.
fn per_kind(counts: &[u64; 256]) -> Value {
    let present = (0u8..=255).zip(counts).filter(|(_, count)| **count > 0);
    let named = present.map(|(id, count)| {
        let name = registry::kind(id).map_or_else(|| id.to_string(), |kind| kind.name.to_owned());
        (name, json!(count))
    });
    Value::Object(named.collect())
}

fn sections(report: &Report) -> Value {
    let sections = &report.sections;
    let entries = |section: Section| match section {
        Section::SpanNames => Some(report.span_names as usize),
        Section::FileTable => sections.file_table.as_ref().map(|table| table.files.len()),
        Section::SourceManifest => sections.source_manifest.as_ref().map(|manifest| manifest.entries.len()),
        Section::Tables => None,
        Section::QueryStrings => sections.query_strings.as_ref().map(|strings| strings.texts.len()),
        Section::QueryDefinitions => sections.query_definitions.as_ref().map(|found| found.records.len()),
        Section::CpuSamples => sections.cpu_samples.as_ref().map(|cpu| cpu.samples.len()),
    };
    let entry = |(offset, section): &(u64, Section)| json!({ "name": magic(*section), "offset": offset, "entries": entries(*section) });
    let names = (report.span_names > 0)
        .then(|| json!({ "name": magic(Section::SpanNames), "offset": null, "entries": report.span_names }));
    names.into_iter().chain(sections.places.iter().map(entry)).collect()
}

/// The four letters that mark a section in the file.
pub(super) fn magic(section: Section) -> String {
    String::from_utf8_lossy(&section.magic()).into_owned()
}

fn gc(gc: &GcSummary) -> Value {
    let generations = gc.collections.iter().map(|(generation, n)| (generation.to_string(), json!(n)));
    json!({
        "collections": Value::Object(generations.collect()),
        "halfRecorded": gc.half_recorded,
        "pauses": {
            "source": match gc.pause_source {
                PauseSource::Suspensions => "suspensions",
                PauseSource::Collections => "collections",
            },
            "count": gc.pause_count,
            "totalNs": gc.pause_total_ns,
            "maxNs": gc.pause_max_ns,
            "p99Ns": gc.pause_p99_ns,
        },
        "suspendedShare": gc.suspended_share,
    })
}
