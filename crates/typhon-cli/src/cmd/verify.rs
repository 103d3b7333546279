//! `typhon trace verify`: is a trace whole, and what is wrong with it?

use super::input::{Input, shown, suggested};
use super::notices;
use crate::cli::Verify;
use crate::failure::Failure;
use crate::output::escape::printable;
use crate::output::progress::Progress;
use crate::output::stream::{Style, print};
use crate::output::{json, units};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::Path;
use typhon_analysis::pipeline::{PipelineOptions, map_blocks};
use typhon_trace::reader::{
    BlockBuffer, BlockCheck, BlockFeed, FileVerdict, ReadOptions, Sequenced, Source, Verifier, VerifyOptions,
    VerifyReport,
};
use typhon_trace::{NoticeCode, TraceError};

/// Exit code of a file that is no trace, or none that can be opened.
const UNOPENABLE: u8 = 4;

pub(crate) fn run(args: &Verify, style: &Style) -> Result<u8, Failure> {
    let path = shown(&args.file);
    let options = VerifyOptions { deep: args.deep };
    let input = Input::open(&args.file)?;
    let progress = Progress::new(style, "verifying", input.bytes());
    let report = match &input {
        Input::File(file) => {
            BlockFeed::from_file(file, ReadOptions::default()).and_then(|feed| check(feed, options, progress))
        }
        Input::Pipe(pipe) => BlockFeed::from_reader(pipe, ReadOptions::default())
            .and_then(|feed| check(feed, options, progress)),
    };
    match report {
        Ok(report) if style.json => {
            print(&json::document(&document(&path, &report)))?;
            Ok(exit_code(report.verdict))
        }
        Ok(report) => {
            print(text(&path, &report).as_bytes())?;
            Ok(exit_code(report.verdict))
        }
        Err(err @ TraceError::Io { .. }) => Err(Failure::trace(&path, err)),
        Err(err) => unopenable(&path, &err, style),
    }
}

fn check<S: Source + Send>(
    feed: BlockFeed<S>,
    options: VerifyOptions,
    mut progress: Progress,
) -> Result<VerifyReport, TraceError> {
    let preamble = feed.preamble().clone();
    let mut verifier = Verifier::new();
    let outcome = map_blocks(
        feed,
        PipelineOptions::default(),
        || move |buffer: &BlockBuffer| BlockCheck::of(buffer, options),
        |block: Sequenced<BlockCheck>| {
            verifier.add(&block);
            progress.update(block.summary.entry.end());
            Ok::<_, TraceError>(ControlFlow::Continue(()))
        },
    )?;
    // The delivery never breaks off, so there is an outcome.
    match outcome {
        Some(outcome) => Ok(verifier.finish(&preamble, outcome)),
        None => unreachable!("reading was not broken off"),
    }
}

fn exit_code(verdict: FileVerdict) -> u8 {
    match verdict {
        FileVerdict::Sound => 0,
        FileVerdict::SoundWithNotices => 1,
        FileVerdict::Divergent => 2,
        FileVerdict::DataLoss => 3,
    }
}

fn document(path: &Path, report: &VerifyReport) -> Value {
    json!({
        "schema": "typhon.verify/1",
        "path": path.to_string_lossy(),
        "verdict": report.verdict.as_str(),
        "blocks": report.totals.blocks,
        "sound": report.totals.whole_blocks,
        "proven": report.totals.proven_blocks,
        "records": report.totals.events,
        "withheld": report.totals.withheld_events,
        "findings": notices::to_json(&report.findings),
    })
}

fn text(path: &Path, report: &VerifyReport) -> String {
    let verdict = match report.verdict {
        FileVerdict::Sound => "SOUND",
        FileVerdict::SoundWithNotices => "SOUND, WITH NOTICES",
        FileVerdict::Divergent => "DIVERGENT",
        FileVerdict::DataLoss => "DATA LOSS",
    };
    let shown = printable(&path.to_string_lossy()).into_owned();
    let mut text = format!("{verdict}  {shown}\n");
    for finding in &report.findings {
        text.push_str(&format!("  {}\n", notices::line(finding)));
    }
    let totals = &report.totals;
    let counts = match (totals.whole_blocks, totals.blocks) {
        (1, 1) => "1 block sound".to_owned(),
        (whole, all) if whole == all => format!("all {} sound", units::plural(all, "block")),
        (whole, all) => format!("{} of {} sound", units::count(whole), units::plural(all, "block")),
    };
    text.push_str(&format!("  {counts}, {}.", units::plural(totals.events, "record")));
    if let Some(remedy) = remedy(report) {
        let file = suggested(path);
        text.push_str(&format!("  -> typhon trace {} {file} -o OUT{}", remedy.0, remedy.1));
    }
    text.push('\n');
    text
}

/// The command that helps, and its option.
fn remedy(report: &VerifyReport) -> Option<(&'static str, &'static str)> {
    let found = |code: NoticeCode| report.findings.iter().any(|finding| finding.code == code);
    if report.verdict == FileVerdict::DataLoss {
        return Some(("repair", notices::repair_option(&report.findings, report.totals.withheld_events)));
    }
    found(NoticeCode::NotClosedCleanly).then_some(("repair", ""))
}

/// No verdict on the contents is possible.
fn unopenable(path: &Path, err: &TraceError, style: &Style) -> Result<u8, Failure> {
    if style.json {
        let document = json!({
            "schema": "typhon.verify/1",
            "path": path.to_string_lossy(),
            "verdict": "unopenable",
            "blocks": 0,
            "sound": 0,
            "proven": 0,
            "records": 0,
            "withheld": 0,
            "findings": [],
            "error": err.to_string(),
        });
        print(&json::document(&document))?;
    } else {
        print(format!("UNOPENABLE  {}\n  {err}\n", printable(&path.to_string_lossy())).as_bytes())?;
    }
    Ok(UNOPENABLE)
}
