//! The report for people.

use super::Report;
use super::document::magic;
use crate::cmd::input::suggested;
use crate::cmd::notices;
use crate::output::escape::printable;
use crate::output::units::{bytes, count, duration, plural};
use typhon_analysis::clock::Clock;
use typhon_analysis::gc::GcSummary;
use typhon_trace::tables::{EventQueue, Tables};
use typhon_trace::{FORMAT_VERSION, NoticeCode, Severity};

/// Tracks, graphs, phases and queues named before the rest is only counted.
const NAMES_MAX: usize = 12;

/// Notices shown before the rest is only counted.
const NOTICES_MAX: usize = 10;

pub(super) fn of(report: &Report) -> String {
    let header = &report.preamble.header;
    let mut text = format!(
        "{}  {}  format {FORMAT_VERSION}{}{}\n",
        printable(&report.path.to_string_lossy()),
        bytes(report.file_bytes),
        if header.is_typhon_dialect() { "" } else { "  reference dialect" },
        if header.is_closed() { "" } else { "  not closed cleanly" },
    );
    let mut row = |label: &str, parts: &[String]| {
        let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            return;
        }
        text.push_str(&format!("  {label:<10} {}\n", parts.join("   ")));
    };
    row("recorded", &recorded(report));
    row("engine", &engine(report));
    for (index, line) in schedule(&report.preamble.tables).into_iter().enumerate() {
        row(if index == 0 { "schedule" } else { "" }, &[line]);
    }
    row("queues", &queues(&report.preamble.tables));
    row("records", &records(report));
    row("sections", &sections(report));
    row("checksums", &[checksums(report)]);
    text.push_str(&notices_text(report));
    text
}

fn recorded(report: &Report) -> Vec<String> {
    let header = &report.preamble.header;
    let clock = Clock::new(header.timestamp_frequency);
    // Whole seconds are enough for people: 2026-10-12 09:31:04Z.
    let created = match header.created_utc_text() {
        Some(text) => format!("{}Z", text.chars().take(19).collect::<String>().replace('T', " ")),
        None => "at an unknown time".to_owned(),
    };
    let length = match report.duration_ticks() {
        Some(ticks) => duration(clock.to_ns(ticks)),
        None => "unknown (--scan)".to_owned(),
    };
    let ticks = report.ticks().map_or("unknown (--scan)".to_owned(), count);
    let target = match report.preamble.tables.base_tick_rate_hz(header) {
        Some(rate_hz) => format!(" ({rate_hz} Hz target)"),
        None => String::new(),
    };
    vec![created, format!("duration {length}"), format!("ticks {ticks}{target}")]
}

fn engine(report: &Report) -> Vec<String> {
    let (header, tables) = (&report.preamble.header, &report.preamble.tables);
    let name = match header.database_name.as_str() {
        "" => "(no database)".to_owned(),
        name => printable(name).into_owned(),
    };
    vec![
        name,
        format!("workers {}", workers(report)),
        format!("systems {}", tables.systems.len()),
        format!("archetypes {}", tables.archetypes.len()),
    ]
}

/// Of a program that was described after its recording began, only the tables know.
fn workers(report: &Report) -> i64 {
    let configured =
        report.preamble.tables.runtime_config.as_ref().map(|config| i64::from(config.worker_count));
    match i64::from(report.preamble.header.worker_count) {
        0 => configured.unwrap_or(0),
        stated => stated,
    }
}

/// The tracks in the order in which they run, then a line for each graph of systems.
fn schedule(tables: &Tables) -> Vec<String> {
    let mut tracks: Vec<_> = tables.tracks.iter().collect();
    tracks.sort_by_key(|track| track.order_index);
    let names = tracks.iter().map(|track| printable(&track.name).into_owned());
    let mut lines = Vec::new();
    if !tracks.is_empty() {
        lines.push(format!("{}: {}", plural(tracks.len() as u64, "track"), listed(names, ", ")));
    }
    for dag in tables.dags.iter().take(NAMES_MAX) {
        let track = usize::try_from(dag.track_index).ok().and_then(|index| tables.tracks.get(index));
        let track = track.map(|track| format!(" in {}", printable(&track.name))).unwrap_or_default();
        let systems = tables.systems.iter().filter(|system| i32::from(system.dag_id) == dag.id).count();
        let phases = listed(dag.phase_names.iter().map(|phase| printable(phase).into_owned()), " → ");
        let systems = plural(systems as u64, "system");
        lines.push(format!("graph {}{track}: {systems}, {phases}", printable(&dag.name)));
    }
    if tables.dags.len() > NAMES_MAX {
        lines.push(format!("and {} graphs more (--json)", tables.dags.len() - NAMES_MAX));
    }
    lines
}

fn queues(tables: &Tables) -> Vec<String> {
    let queue = |queue: &EventQueue| format!("{} ({} events)", printable(&queue.name), queue.capacity);
    vec![listed(tables.event_queues.iter().map(queue), "   ")]
}

/// Names in one line, of which there may be too many.
fn listed(names: impl ExactSizeIterator<Item = String>, separator: &str) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    let mut shown: Vec<String> = names.take(NAMES_MAX).collect();
    if more > 0 {
        shown.push(format!("and {more} more (--json)"));
    }
    shown.join(separator)
}

fn records(report: &Report) -> Vec<String> {
    let (number, kinds) = match &report.scan {
        Some(scan) => {
            let kinds = scan.derived.kinds.iter().filter(|count| **count > 0).count() as u64;
            (count(scan.totals.events), plural(kinds, "kind"))
        }
        None => (format!("about {}", count(report.stated_records)), String::new()),
    };
    let raw = report.uncompressed_bytes;
    let ratio = raw as f64 / report.file_bytes.max(1) as f64;
    vec![
        format!("{number} in {}", plural(report.blocks, "block")),
        kinds,
        format!("{} raw (ratio {ratio:.1})", bytes(raw)),
    ]
}

fn sections(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = report.sections.places.iter().map(|(_, section)| magic(*section)).collect();
    if report.span_names > 0 {
        names.insert(0, "SPAN".to_owned());
    }
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let scan = report.scan.as_ref();
    let gc = scan.and_then(|scan| scan.gc.as_ref()).map(gc).unwrap_or_default();
    let dropped = scan.map_or(0, |scan| scan.totals.dropped_records);
    let dropped = if dropped > 0 { format!("dropped {}", plural(dropped, "record")) } else { String::new() };
    vec![names, gc, dropped]
}

fn gc(gc: &GcSummary) -> String {
    let collections = gc.collections.values().sum();
    let paused = duration(i64::try_from(gc.pause_total_ns).unwrap_or(i64::MAX));
    format!("gc {}, {paused} paused", plural(collections, "collection"))
}

fn checksums(report: &Report) -> String {
    match &report.scan {
        _ if !report.has_checksums() => "none: changed bytes can go unnoticed".to_owned(),
        None => "present, not checked (--scan)".to_owned(),
        Some(scan) => {
            let totals = &scan.totals;
            format!("{} of {} proven", count(totals.proven_blocks), plural(totals.blocks, "block"))
        }
    }
}

/// What is wrong, and what helps. That there are no checksums has a line of its own already.
fn notices_text(report: &Report) -> String {
    let shown: Vec<_> =
        report.notices.iter().filter(|notice| notice.code != NoticeCode::NoChecksums).collect();
    let mut text = String::new();
    for notice in shown.iter().take(NOTICES_MAX) {
        text.push_str(&format!("  ! {}\n", notices::line(notice)));
    }
    if shown.len() > NOTICES_MAX {
        text.push_str(&format!("  ! {} of {} notices shown; all: --json\n", NOTICES_MAX, shown.len()));
    }
    let is_lossy = shown.iter().any(|notice| notice.severity() == Severity::DataLoss);
    if is_lossy || !report.preamble.header.is_closed() {
        let file = suggested(&report.path);
        let withheld = report.scan.as_ref().map_or(0, |scan| scan.totals.withheld_events);
        let option = notices::repair_option(&report.notices, withheld);
        text.push_str(&format!("    -> typhon trace repair {file} -o fixed.typhon-trace{option}\n"));
    }
    text
}
