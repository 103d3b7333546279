//! `typhon demo`: a world that ticks, what it looks like while it does, and a recording to look into.
//!
//! [`world`] runs the colony and ends it, [`follow`] collects what every tick took, [`view`] shows it; [`managed`] runs a
//! program beside the colony whose memory is collected, and [`collections`] sums up how. The recording is the profiler's own: it lies under its final name from the first tick on, so that even a killed demo leaves one.

mod collections;
mod follow;
mod managed;
mod view;
mod world;

use super::ui;
use crate::cli::Demo;
use crate::failure::{Exit, Failure};
use crate::output::signals;
use crate::output::stream::Style;
use follow::Ticks;
use managed::Managed;
use std::time::{Duration, Instant};
use typhon::profiler::session::SessionReport;
use typhon::runtime::Terminal;
use typhon_analysis::gc::GcSummary;
use view::View;
use world::{Stop, World};

/// Added to a signal's number for the exit code.
const SIGNAL_EXIT: u8 = 128;
/// Time between two looks at the runtime. At 1000 Hz the telemetry ring holds a second.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A demo that has ended.
struct Finished<'a> {
    args: &'a Demo,
    ticks: Ticks,
    length: Duration,
    world: world::Ended,
    report: SessionReport,
    file_bytes: u64,
    /// Of the program beside the colony, if one was wanted and found.
    collections: Option<GcSummary>,
}

pub(crate) fn run(args: &Demo, style: &Style) -> Result<u8, Failure> {
    check_output(args)?;
    signals::keep_first();
    let mut managed = None;
    if args.gc {
        match Managed::prepare() {
            Ok(prepared) => managed = Some(prepared),
            Err(why) => without(style, &why),
        }
    }
    let socket = managed.as_ref().map(|managed: &Managed| managed.socket().to_owned());
    let world = World::create(args, socket.as_deref())?;
    let mut view = View::new(style, args);
    let mut ticks = Ticks::default();
    let started = Instant::now();
    world.start()?;
    check(&mut managed, style, Managed::start);
    while !is_over(args, &world, started) {
        std::thread::sleep(LOOK_EVERY);
        ticks.follow(world.telemetry());
        view.show(&ticks, &world)?;
        check(&mut managed, style, Managed::look);
    }
    let stop = world.stop()?;
    ticks.follow(world.telemetry());
    let length = started.elapsed();
    let Stop { ended, report } = stop;
    let report = report.ok_or_else(|| Failure::new(Exit::Internal, "the recording ended before the demo"))?;
    let file_bytes = std::fs::metadata(&args.output).map_or(0, |data| data.len());
    drop(managed);
    let collections = socket.and_then(|_| collections::of(&args.output));
    let finished = Finished { args, ticks, length, world: ended, report, file_bytes, collections };
    let shown = view::conclude(&finished, style);
    // A recording that is not complete is said also to who has stopped reading.
    let code = verdict(&finished)?;
    shown?;
    if !args.ui {
        return Ok(code);
    }
    // A signal ended the demo; the next one is for the Workbench.
    signals::forget();
    ui::show(&args.output, style)
}

/// Does something with the managed program, which is not needed for the demo to go on.
fn check(managed: &mut Option<Managed>, style: &Style, act: impl FnOnce(&mut Managed) -> Result<(), String>) {
    if let Some(Err(why)) = managed.as_mut().map(act) {
        *managed = None;
        without(style, &why);
    }
}

fn without(style: &Style, why: &str) {
    style.say(&format!("--gc: {why}; the demo goes on without"));
}

fn is_over(args: &Demo, world: &World, started: Instant) -> bool {
    let is_late = args.ticks.is_none() && started.elapsed() >= args.seconds;
    is_late || world.has_ended() || signals::received().is_some()
}

/// The profiler replaces a file that exists; here that has to be asked for.
fn check_output(args: &Demo) -> Result<(), Failure> {
    let cannot = |what: &str| Failure::new(Exit::CannotCreate, what).in_file(&args.output);
    match std::fs::symlink_metadata(&args.output) {
        Ok(found) if !found.is_file() => Err(cannot("the output is no file").hint("choose another name")),
        Ok(_) if !args.force => {
            Err(cannot("the output exists").hint("choose another name with -o, or replace it with --force"))
        }
        _ => Ok(()),
    }
}

/// Losing records or failing systems is not what a demo promises.
fn verdict(finished: &Finished<'_>) -> Result<u8, Failure> {
    if let Some(exporter) = finished.report.exporters.iter().find(|exporter| exporter.error.is_some()) {
        let error = exporter.error.clone().unwrap_or_default();
        return Err(Failure::new(Exit::Io, "the recording is not complete")
            .in_file(&finished.args.output)
            .detail(format!("{} records could not be written: {error}", exporter.dropped_records))
            .hint("make room, or choose another place with -o"));
    }
    match &finished.world.terminal {
        Terminal::ShutDown => Ok(signals::received().map_or(0, |signal| SIGNAL_EXIT | signal)),
        other => Err(Failure::new(Exit::Internal, "the runtime stopped by itself").detail(other.to_string())),
    }
}
