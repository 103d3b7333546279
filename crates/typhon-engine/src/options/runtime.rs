//! Options of the tick loop.

use super::fault::OptionFault;
use std::fmt::Display;

/// Workers that run the systems of a tick; the thread that drives the tick is one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorkerCount {
    /// All processors up to eight of them, above that all but four.
    #[default]
    Auto,
    /// This many, at least 1. With one, systems run one after the other on the driving thread.
    Fixed(u8),
}

impl WorkerCount {
    /// The number of workers on a machine with this many processors, 1 to 255.
    pub fn resolve(self, processors: usize) -> u8 {
        match self {
            Self::Fixed(count) => count.max(1),
            Self::Auto if processors <= 8 => processors.max(1) as u8,
            Self::Auto => u8::try_from(processors - 4).unwrap_or(u8::MAX),
        }
    }
}

/// Where the delta time of a tick comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimeStep {
    /// Measured: what passed since the previous tick started, up to a limit.
    #[default]
    Measured,
    /// Always one interval of the base rate. When ticks are stretched, the world slows down.
    Fixed,
}

/// What a failing system does to the rest of its tick, and to the runtime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// What depends on it is left out; everything else goes on, and so do later ticks.
    #[default]
    Isolate,
    /// Nothing of the tick starts any more, and the runtime stops for good after it.
    AbortTickAndStop,
}

/// Options of the tick loop (brief 04 §5).
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeOptions {
    /// Ticks per second, 1 to 1000. Default 60.
    pub base_tick_rate_hz: u32,
    /// Workers. Default [`WorkerCount::Auto`].
    pub worker_count: WorkerCount,
    /// Ticks that the telemetry ring keeps, a power of two up to 2²⁰. Default 1024.
    pub telemetry_ring_capacity: u32,
    /// What a failing system does. Default [`FailurePolicy::Isolate`].
    pub failure_policy: FailurePolicy,
    /// Where delta times come from. Default [`TimeStep::Measured`].
    pub time_step: TimeStep,
    /// The most that a measured delta time can be, in seconds, unless two steps are more. Default 0.25.
    pub max_delta_time_seconds: f64,
    /// Ticks that are made up for after a delay; more are skipped and counted. Default 4.
    pub max_catch_up_ticks: u32,
    /// Time without any completed system after which a tick counts as stalled, in milliseconds, at least 1.
    /// Default 1000.
    pub stall_warn_ms: u32,
    /// Time without any completed system after which a shutdown stops waiting, in milliseconds, at least 1.
    /// Default 250.
    pub shutdown_stall_grace_ms: u32,
    /// Are systems that declare nothing refused? Default false.
    pub require_access_declarations: bool,
    /// Does each worker stay on a processor of its own? Default false.
    pub pin_workers: bool,
    /// What happens when ticks take too long.
    pub overload: OverloadOptions,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            base_tick_rate_hz: 60,
            worker_count: WorkerCount::default(),
            telemetry_ring_capacity: 1024,
            failure_policy: FailurePolicy::default(),
            time_step: TimeStep::default(),
            max_delta_time_seconds: 0.25,
            max_catch_up_ticks: 4,
            stall_warn_ms: 1000,
            shutdown_stall_grace_ms: 250,
            require_access_declarations: false,
            pin_workers: false,
            overload: OverloadOptions::default(),
        }
    }
}

/// When ticks take too long, and what is done about it (brief 04 §2.12).
#[derive(Debug, Clone, PartialEq)]
pub struct OverloadOptions {
    /// Above this part of the time it may take, a tick is an overrun. More than `deescalation_ratio`. Default 1.2.
    pub overrun_threshold: f32,
    /// Below this part of the time it may take, a tick is an underrun. Above 0. Default 0.6.
    pub deescalation_ratio: f32,
    /// Overruns that escalate, at least 1. Default 5.
    pub escalation_ticks: u16,
    /// Underruns that de-escalate, at least 1. Default 20.
    pub deescalation_ticks: u16,
    /// Ticks are never stretched below this rate. From 1 to the base rate. Default 10.
    pub min_tick_rate_hz: u32,
    /// Ticks in a row in which queues grow that count as an overrun; 0 for never. Default 5.
    pub queue_growth_ticks: u16,
}

impl Default for OverloadOptions {
    fn default() -> Self {
        Self {
            overrun_threshold: 1.2,
            deescalation_ratio: 0.6,
            escalation_ticks: 5,
            deescalation_ticks: 20,
            min_tick_rate_hz: 10,
            queue_growth_ticks: 5,
        }
    }
}

/// Gathers broken rules.
struct Rules<'a>(&'a mut Vec<OptionFault>);

impl Rules<'_> {
    fn hold(&mut self, option: &'static str, value: impl Display, holds: bool, rule: impl Display) {
        if !holds {
            self.0.push(OptionFault { option, value: value.to_string(), rule: rule.to_string() });
        }
    }
}

impl RuntimeOptions {
    pub(super) fn check(&self, faults: &mut Vec<OptionFault>) {
        let mut rules = Rules(faults);
        let rate_hz = self.base_tick_rate_hz;
        rules.hold("runtime.base_tick_rate_hz", rate_hz, (1..=1000).contains(&rate_hz), "from 1 to 1000");
        let has_workers = self.worker_count != WorkerCount::Fixed(0);
        rules.hold("runtime.worker_count", 0, has_workers, "from 1 to 255, or Auto");
        let capacity = self.telemetry_ring_capacity;
        let is_capacity = capacity.is_power_of_two() && capacity <= 1 << 20;
        rules.hold(
            "runtime.telemetry_ring_capacity",
            capacity,
            is_capacity,
            format_args!("a power of two up to {}, as {}", 1 << 20, nearest_power_of_two(capacity)),
        );
        let delta = self.max_delta_time_seconds;
        let is_delta = delta.is_finite() && delta > 0.0;
        rules.hold("runtime.max_delta_time_seconds", delta, is_delta, "a finite number above 0");
        rules.hold("runtime.stall_warn_ms", self.stall_warn_ms, self.stall_warn_ms > 0, "at least 1");
        let grace_ms = self.shutdown_stall_grace_ms;
        rules.hold("runtime.shutdown_stall_grace_ms", grace_ms, grace_ms > 0, "at least 1");
        self.overload.check(&mut rules, rate_hz);
    }
}

impl OverloadOptions {
    fn check(&self, rules: &mut Rules<'_>, base_tick_rate_hz: u32) {
        let (overrun, underrun) = (self.overrun_threshold, self.deescalation_ratio);
        let is_underrun = underrun.is_finite() && underrun > 0.0;
        rules.hold("runtime.overload.deescalation_ratio", underrun, is_underrun, "a finite number above 0");
        rules.hold(
            "runtime.overload.overrun_threshold",
            overrun,
            overrun.is_finite() && (overrun > underrun || !is_underrun),
            format_args!("a finite number above runtime.overload.deescalation_ratio, {underrun}"),
        );
        let escalation = self.escalation_ticks;
        rules.hold("runtime.overload.escalation_ticks", escalation, escalation > 0, "at least 1");
        let deescalation = self.deescalation_ticks;
        rules.hold("runtime.overload.deescalation_ticks", deescalation, deescalation > 0, "at least 1");
        let min_hz = self.min_tick_rate_hz;
        rules.hold(
            "runtime.overload.min_tick_rate_hz",
            min_hz,
            min_hz >= 1 && (min_hz <= base_tick_rate_hz || base_tick_rate_hz == 0),
            format_args!("from 1 to runtime.base_tick_rate_hz, {base_tick_rate_hz}"),
        );
    }
}

fn nearest_power_of_two(value: u32) -> u32 {
    value.clamp(1, 1 << 20).next_power_of_two()
}
