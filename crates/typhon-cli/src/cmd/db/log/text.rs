//! A log for reading.

use super::findings::{Finding, Verdict};
use super::{Log, Row};
use crate::cli::DbLog;
use crate::output::escape::printable;
use crate::output::stream::Style;
use crate::output::table::{Align, Table};
use crate::output::units::{bytes, count, plural};
use std::path::Path;
use typhon_log::Stop;
use typhon_log::format::FrameKind;
use typhon_log::inspect::FileView;

pub(super) fn of(log: &Log, args: &DbLog, style: &Style) -> String {
    let (width, is_colored) = (style.width(), style.is_colored());
    let mut text = format!("{}  {}\n", heading(log.verdict), shown(&args.path));
    for finding in &log.findings {
        text.push_str(&format!("  {}\n", line(finding, &args.path)));
    }
    text.push_str(&anchor(log));
    text.push('\n');
    text.push_str(&files(log).render(width, is_colored));
    if !log.shown.is_empty() {
        text.push('\n');
        text.push_str(&frames(log).render(width, is_colored));
    }
    text.push('\n');
    text.push_str(&end(log));
    text
}

/// No verdict on the contents is possible.
pub(super) fn unopenable(path: &Path, error: &str) -> String {
    format!("{}  {}\n  {}\n", heading(Verdict::Unopenable), shown(path), printable(error))
}

fn heading(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Sound => "SOUND",
        Verdict::SoundWithNotices => "SOUND, WITH NOTICES",
        Verdict::Divergent => "DIVERGENT",
        Verdict::DataLoss => "DATA LOSS",
        Verdict::Unopenable => "UNOPENABLE",
    }
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}

fn name(path: &Path) -> String {
    printable(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()).into_owned()
}

/// `torn-tail  0000000000000001.wal @ 0x00003000: …`; without the name of what the heading names.
fn line(finding: &Finding, shown: &Path) -> String {
    let name = finding.path.as_deref().filter(|path| *path != shown).map(name);
    let offset = finding.offset.map(|offset| format!("@ 0x{offset:08x}"));
    let place: Vec<String> = name.into_iter().chain(offset).collect();
    let separator = if place.is_empty() { "" } else { ": " };
    format!("{}  {}{separator}{}", finding.code, place.join(" "), printable(&finding.message))
}

fn anchor(log: &Log) -> String {
    let Some(view) = log.found.anchor else { return String::new() };
    let anchor = view.anchor;
    format!(
        "  database {}  open {}  anchor written {}\n  base {}  next sequence number {}  state {}\n",
        anchor.store,
        anchor.open_epoch,
        times(view.generation),
        anchor.base,
        log.found.next_tsn.0,
        bytes(view.state_bytes as u64),
    )
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { plural(count, "time") }
}

/// Of more files in a row with the same state than this, only the first and the last are shown.
const ROWS_MAX: usize = 8;
/// So many at each end.
const ROWS_AT_END: usize = 3;

fn files(log: &Log) -> Table {
    let mut table = Table::new(&[
        ("FILE", Align::Left),
        ("STATE", Align::Left),
        ("OPEN", Align::Right),
        ("FIRST LSN", Align::Right),
        ("SIZE", Align::Right),
        ("BLOCKS", Align::Right),
        ("FRAMES", Align::Right),
    ]);
    let rows: Vec<FileRow<'_>> = log.found.files.iter().zip(&log.frames).collect();
    for run in rows.chunk_by(|(a, _), (b, _)| a.state == b.state) {
        if run.len() <= ROWS_MAX {
            run.iter().for_each(|row| table.push(file(row)));
            continue;
        }
        let (first, rest) = run.split_at(ROWS_AT_END);
        let (middle, last) = rest.split_at(rest.len() - ROWS_AT_END);
        first.iter().for_each(|row| table.push(file(row)));
        table.push(left_out(middle));
        last.iter().for_each(|row| table.push(file(row)));
    }
    table
}

/// A file, and how many frames behind the base it has.
type FileRow<'a> = (&'a FileView, &'a u64);

fn file((file, frames): &FileRow<'_>) -> Vec<String> {
    let segment = file.header.filter(|header| !header.is_spare());
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        name(&file.path),
        file.state.as_str().to_owned(),
        or_none(file.header.map(|header| header.open_epoch.to_string())),
        or_none(segment.map(|header| header.first_lsn.to_string())),
        bytes(file.bytes),
        count(file.blocks as u64),
        count(**frames),
    ]
}

/// One row in place of many, with what they have together.
fn left_out(rows: &[FileRow<'_>]) -> Vec<String> {
    let state = rows.first().map_or("", |(file, _)| file.state.as_str());
    vec![
        format!("({} more)", count(rows.len() as u64)),
        state.to_owned(),
        String::new(),
        String::new(),
        bytes(rows.iter().map(|(file, _)| file.bytes).sum()),
        count(rows.iter().map(|(file, _)| file.blocks as u64).sum()),
        count(rows.iter().map(|(_, frames)| **frames).sum()),
    ]
}

fn frames(log: &Log) -> Table {
    let mut table = Table::new(&[
        ("LSN", Align::Right),
        ("KIND", Align::Left),
        ("SEQ", Align::Right),
        ("UOW", Align::Right),
        ("FLAGS", Align::Right),
        ("RECORDS", Align::Right),
        ("BODY", Align::Right),
        ("BLOCK", Align::Left),
    ]);
    for row in &log.shown {
        table.push(vec![
            row.lsn.to_string(),
            kind(row),
            row.seq.to_string(),
            row.uow.to_string(),
            format!("{:#04x}", row.flags),
            count(row.records.into()),
            bytes(row.body_bytes),
            block(log, row),
        ]);
    }
    table
}

fn kind(row: &Row) -> String {
    FrameKind::try_from(row.kind)
        .map_or_else(|unknown| format!("unknown {}", unknown.0), |kind| kind.to_string())
}

fn block(log: &Log, row: &Row) -> String {
    let file = log.found.files.get(row.file).map(|file| name(&file.path)).unwrap_or_default();
    format!("{file} @ 0x{:08x}", row.offset)
}

fn end(log: &Log) -> String {
    let report = log.found.report();
    let total = log.frames_total();
    let mut text = format!(
        "  {} in {} behind the base, {} of bodies",
        plural(total, "frame"),
        plural(report.blocks as u64, "block"),
        bytes(log.body_bytes)
    );
    let hidden = total - log.shown.len() as u64;
    if hidden > 0 {
        text.push_str(&format!(" ({} not shown: --limit, --tail, --from)", count(hidden)));
    }
    let stop = match report.stop {
        Stop::End => "nothing follows",
        Stop::Torn(_) => "a write that is not whole follows",
        Stop::Gap => "a block that does not continue here follows",
    };
    text.push_str(&format!("\n  the log ends at {}: {stop}\n", report.end));
    text
}
