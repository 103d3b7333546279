//! What the user sees: a picture or a line a second while it runs, and the result.

use super::Finished;
use super::follow::Ticks;
use super::world::World;
use crate::cli::Demo;
use crate::cmd::stats;
use crate::failure::Failure;
use crate::output::escape::{printable, shell_word};
use crate::output::json;
use crate::output::stream::{Style, print};
use crate::output::units::{bytes, count, duration, plural};
use anthill::Report;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Names of the overload levels, by number.
const LEVELS: [&str; 5] = ["normal", "throttling", "reduced scope", "lower tick rate", "shedding players"];
/// Lines of the picture and what stands below it.
const PICTURE_LINES: usize = 25;

/// Shows a demo that runs.
pub(super) struct View {
    hz: u32,
    mode: Mode,
    next: Instant,
    /// The reader of standard output went away. The demo goes on without it.
    is_alone: bool,
    is_drawn: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing until the end.
    Quiet,
    /// A line a second.
    Lines,
    /// A picture that is drawn over and over, on a terminal that has room for it.
    Picture,
}

impl View {
    pub(super) fn new(style: &Style, args: &Demo) -> Self {
        let mode = match (style.json || style.quiet, style.width(), style.height()) {
            (true, ..) => Mode::Quiet,
            (_, Some(width), Some(height)) if style.progress && width > 100 && height > PICTURE_LINES => {
                Mode::Picture
            }
            _ => Mode::Lines,
        };
        let view = Self { hz: args.hz, mode, next: Instant::now(), is_alone: false, is_drawn: false };
        Self { next: view.next + view.pace(), ..view }
    }

    fn pace(&self) -> Duration {
        match self.mode {
            Mode::Picture => Duration::from_millis(100),
            Mode::Lines | Mode::Quiet => Duration::from_secs(1),
        }
    }

    /// Shows how things stand, when it is time to.
    pub(super) fn show(&mut self, ticks: &Ticks, world: &World) -> Result<(), Failure> {
        let now = Instant::now();
        if now < self.next || self.mode == Mode::Quiet || self.is_alone {
            return Ok(());
        }
        self.next = now + self.pace();
        let line = self.line(ticks, &world.colony().report());
        let text = match self.mode {
            Mode::Picture => self.picture(&world.colony().picture(), &line),
            Mode::Lines | Mode::Quiet => line,
        };
        match print(text.as_bytes()) {
            Err(Failure::ClosedPipe) => {
                self.is_alone = true;
                Ok(())
            }
            other => other,
        }
    }

    /// `tick 240   7.81 ms, p99 9.12 ms of 16.7 ms   normal   ...`, about the last second.
    fn line(&self, ticks: &Ticks, report: &Report) -> String {
        let [median, p99] = ticks.percentiles_ns(self.hz as usize, [0.5, 0.99]);
        let budget = duration(1_000_000_000 / i64::from(self.hz));
        let (level, multiplier) = ticks.latest().map_or((0, 1), |tick| (tick.level.0, tick.multiplier));
        let level = match multiplier {
            0 | 1 => level_name(level).to_owned(),
            steps => format!("{}, every {steps} steps", level_name(level)),
        };
        let tally = report.tally;
        format!(
            "tick {:<6} {} (p99 {}) of {budget}   {level}   {} delivered, {} died\n",
            ticks.count(),
            duration(median),
            duration(p99),
            count(tally.delivered),
            count(tally.died),
        )
    }

    /// The picture in place of the last one.
    fn picture(&mut self, picture: &str, line: &str) -> String {
        let mut text = String::new();
        if self.is_drawn {
            text.push_str(&format!("\x1b[{PICTURE_LINES}A"));
        }
        self.is_drawn = true;
        let lines = picture.lines().chain(std::iter::repeat(""));
        for shown in lines.take(PICTURE_LINES - 1).chain([line.trim_end()]) {
            text.push_str(shown);
            text.push_str("\x1b[K\n");
        }
        text
    }
}

fn level_name(level: u8) -> &'static str {
    LEVELS.get(usize::from(level)).copied().unwrap_or("unknown level")
}

/// Says what happened, what was recorded, and where to look next.
pub(super) fn conclude(finished: &Finished<'_>, style: &Style) -> Result<(), Failure> {
    match style.json {
        true => print(&json::document(&to_json(finished))),
        false => print(to_text(finished).as_bytes()),
    }
}

/// Records that are missing from the trace: a stable code, how many, and why.
type Loss = (&'static str, u64, String);

/// Records of the trace, and those that are missing from it.
fn records(finished: &Finished<'_>) -> (u64, Vec<Loss>) {
    let report = &finished.report;
    let written = report.exporters.first().map_or(0, |exporter| exporter.records);
    let unwritten = report.exporters.iter().map(|exporter| {
        let why = exporter.error.as_deref().unwrap_or("it did not keep up");
        let lost = plural(exporter.dropped_records, "record");
        (
            "unwritten",
            exporter.dropped_records,
            format!("{lost} did not get into the file: {}", printable(why)),
        )
    });
    let lost = plural(report.dropped_records, "record");
    let dropped = ("dropped", report.dropped_records, format!("{lost} found no room in the buffers"));
    (written, unwritten.chain([dropped]).filter(|(_, count, _)| *count > 0).collect())
}

fn to_json(finished: &Finished<'_>) -> Value {
    let (records, losses) = records(finished);
    let dropped: u64 = losses.iter().map(|(_, count, _)| count).sum();
    let losses: Vec<Value> = losses
        .iter()
        .map(|(code, count, message)| json!({ "code": code, "count": count, "message": message }))
        .collect();
    let [p50, p95, p99, max] = finished.ticks.percentiles_ns(usize::MAX, [0.5, 0.95, 0.99, 1.0]);
    let (level, multiplier) = finished.ticks.worst();
    let tally = finished.world.report.tally;
    json!({
        "schema": "typhon.demo/1",
        "output": finished.args.output.to_string_lossy(),
        "bytes": finished.file_bytes,
        "records": records,
        "dropped": dropped,
        "durationNs": i64::try_from(finished.length.as_nanos()).unwrap_or(i64::MAX),
        "losses": losses,
        "workers": finished.world.workers,
        "ticks": {
            "count": finished.ticks.count(),
            "missed": finished.world.timer.missed_ticks,
            "overruns": finished.ticks.overruns,
            "p50Ns": p50, "p95Ns": p95, "p99Ns": p99, "maxNs": max,
            "highestLevel": level,
            "highestMultiplier": multiplier,
        },
        "world": {
            "ants": finished.args.ants,
            "seed": finished.args.seed,
            "hash": format!("{:016x}", finished.world.hash),
            "pickedUp": tally.picked_up, "delivered": tally.delivered, "lost": tally.lost,
            "died": tally.died, "born": tally.born, "grown": tally.grown,
        },
        "gc": finished.collections.as_ref().map(typhon_analysis::documents::gc_summary),
    })
}

fn to_text(finished: &Finished<'_>) -> String {
    let (records, losses) = records(finished);
    let [p50, p99, max] = finished.ticks.percentiles_ns(usize::MAX, [0.5, 0.99, 1.0]);
    let (level, multiplier) = finished.ticks.worst();
    let tally = finished.world.report.tally;
    let path = finished.args.output.to_string_lossy();
    let path = printable(&path);
    let mut text = format!(
        "\nworld   {} ants, seed {}, hash {:016x} after {} ticks on {}\n",
        count(finished.args.ants.into()),
        finished.args.seed,
        finished.world.hash,
        count(finished.ticks.count().unsigned_abs()),
        plural(finished.world.workers as u64, "worker"),
    );
    text.push_str(&format!(
        "food    {} picked up, {} delivered;  {} died, {} born\n",
        count(tally.picked_up),
        count(tally.delivered),
        plural(tally.died, "ant"),
        count(tally.born)
    ));
    text.push_str(&format!(
        "ticks   median {}, p99 {}, longest {}; {} longer than the target, {} skipped; highest level {level} ({}), {multiplier}×\n",
        duration(p50),
        duration(p99),
        duration(max),
        count(finished.ticks.overruns),
        count(finished.world.timer.missed_ticks),
        level_name(level),
    ));
    if let Some(collections) = &finished.collections {
        text.push_str(&stats::text::gc(collections));
        text.push('\n');
    }
    text.push_str(&format!(
        "trace   {path}  {}  {}\n",
        bytes(finished.file_bytes),
        plural(records, "record")
    ));
    losses.iter().for_each(|(_, _, why)| text.push_str(&format!("        ! {why}\n")));
    let file = shell_word(&finished.args.output);
    text.push_str(&format!(
        "\nWhere did the time go?\n  typhon ui {file}\n  typhon trace stats {file} --by system\n  typhon trace stats {file}\n  \
         typhon trace info {file}\n  typhon trace export {file} -o anthill.perfetto-trace --to perfetto\n"
    ));
    text
}
