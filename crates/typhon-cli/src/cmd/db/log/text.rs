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
        text.push_str(&format!("  {}\n", line(finding)));
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

/// `torn-tail  0000000000000001.wal @ 0x00003000: …`.
fn line(finding: &Finding) -> String {
    let mut place = finding.path.as_deref().map(name).unwrap_or_default();
    if let Some(offset) = finding.offset {
        place.push_str(&format!(" @ 0x{offset:08x}"));
    }
    if !place.is_empty() {
        place.push_str(": ");
    }
    format!("{}  {place}{}", finding.code, printable(&finding.message))
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
    for (file, frames) in log.found.files.iter().zip(&log.frames) {
        let header = |show: fn(&FileView) -> Option<String>| show(file).unwrap_or_else(|| "-".to_owned());
        let is_segment = |file: &FileView| file.header.filter(|header| !header.is_spare());
        table.push(vec![
            name(&file.path),
            file.state.as_str().to_owned(),
            header(|file| file.header.map(|header| header.open_epoch.to_string())),
            is_segment(file).map_or("-".to_owned(), |header| header.first_lsn.to_string()),
            bytes(file.bytes),
            count(file.blocks as u64),
            count(*frames),
        ]);
    }
    table
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
