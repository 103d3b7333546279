//! The colony, its runtime and its recording, from start to stop.

use crate::cli::Demo;
use crate::failure::{Exit, Failure};
use anthill::{Colony, Report};
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use typhon::prelude::*;
use typhon::profiler::config::Overrides;
use typhon::profiler::session::SessionReport;
use typhon::profiler::{self, Status};
use typhon::runtime::{Terminal, TimerMetrics};
use typhon::telemetry::Telemetry;

/// A colony that is kept ticking.
pub(super) struct World {
    colony: Colony,
    runtime: Arc<Runtime>,
    /// Last, so that the recording outlives everything that records.
    _engine: Engine,
}

/// The colony after its last tick.
pub(super) struct Ended {
    pub(super) report: Report,
    pub(super) hash: u64,
    pub(super) workers: usize,
    pub(super) timer: TimerMetrics,
    pub(super) terminal: Terminal,
}

/// What is left when everything has stopped.
pub(super) struct Stop {
    pub(super) ended: Ended,
    /// `None` if no recording ran to the end.
    pub(super) report: Option<SessionReport>,
}

impl World {
    /// Builds the colony and starts the recording, also of the collections of who connects to the socket `runtimes`;
    /// nothing ticks yet.
    pub(super) fn create(args: &Demo, runtimes: Option<&str>) -> Result<Self, Failure> {
        let path = recordable(&args.output)?;
        let mut recording =
            Overrides::new().enabled(true).trace(&path).gate("Scheduler", true).gate("Gauges", true);
        if let Some(socket) = runtimes {
            let target = format!("listen:{socket}");
            recording = recording.gate("GcTracing", true).set("Profiler:GcTracing:Target", target);
        }
        let engine = Engine::builder()
            .runtime(|runtime| {
                runtime.base_tick_rate_hz = args.hz;
                // Four million ants on a busy machine take their time, and nothing hangs here.
                runtime.shutdown_stall_grace_ms = 10_000;
                runtime.overload.min_tick_rate_hz = runtime.overload.min_tick_rate_hz.min(args.hz);
                if let Some(workers) = args.workers {
                    runtime.worker_count = WorkerCount::Fixed(workers);
                }
            })
            .profiler(|init| init.overrides(recording))
            .build()
            .map_err(|err| Failure::usage("the options do not fit together").caused_by(err))?;
        if engine.recording() == Status::Failed {
            // The profiler has said why, on a line of its own.
            return Err(Failure::new(Exit::CannotCreate, "the recording could not start")
                .in_file(&args.output)
                .hint("choose another place with -o"));
        }
        let colony = Colony::new(args.ants, args.seed);
        let runtime = Runtime::create(&engine, |schedule| {
            colony.declare(schedule);
            if args.overload {
                colony.declare_storm(schedule, Duration::from_secs(1) / args.hz);
            }
        })
        .map_err(|err| Failure::new(Exit::Internal, "the demo world cannot be built").caused_by(err))?;
        let runtime = Arc::new(runtime);
        if let Some(ticks) = args.ticks {
            stop_after(&runtime, ticks);
        }
        Ok(Self { colony, runtime, _engine: engine })
    }

    /// Starts to tick.
    pub(super) fn start(&self) -> Result<(), Failure> {
        self.runtime
            .start()
            .map_err(|err| Failure::new(Exit::Internal, "the demo world cannot start").caused_by(err))
    }

    /// Has it stopped by itself?
    pub(super) fn has_ended(&self) -> bool {
        self.runtime.terminal().is_some()
    }

    pub(super) fn telemetry(&self) -> &Telemetry {
        self.runtime.telemetry()
    }

    pub(super) fn colony(&self) -> &Colony {
        &self.colony
    }

    /// Finishes the tick in flight, then the recording.
    pub(super) fn stop(&self) -> Result<Stop, Failure> {
        let ended = self.runtime.shutdown();
        // Whatever became of the world, its recording is completed.
        let report = profiler::shutdown();
        ended.map_err(|err| Failure::new(Exit::Internal, "the demo world does not stop").caused_by(err))?;
        let ended = Ended {
            report: self.colony.report(),
            hash: self.colony.world().hash(),
            workers: self.runtime.worker_count(),
            timer: self.runtime.timer_metrics(),
            terminal: self.runtime.terminal().unwrap_or(Terminal::ShutDown),
        };
        Ok(Stop { ended, report })
    }
}

/// Stops the runtime after exactly so many ticks: from within the last one, so that no further one begins.
fn stop_after(runtime: &Arc<Runtime>, ticks: u32) {
    let slot: Arc<OnceLock<Weak<Runtime>>> = Arc::default();
    let stopped = Arc::clone(&slot);
    runtime.on_output(move |tick| {
        if tick.number >= i64::from(ticks)
            && let Some(runtime) = stopped.get().and_then(Weak::upgrade)
        {
            return runtime.shutdown();
        }
        Ok(())
    });
    // The slot is filled once, here.
    let _ = slot.set(Arc::downgrade(runtime));
}

/// Settings are text, and so is a path that is one.
fn recordable(path: &Path) -> Result<String, Failure> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Failure::usage("-o: the name of a recording has to be Unicode text").in_file(path))
}
