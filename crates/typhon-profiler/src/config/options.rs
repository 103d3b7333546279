//! All options that are not gates, typed.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::fault::{Fault, FaultCode, printable};
use super::keys::{PROFILER, ValueType};
use super::reader::{Invalid, Reader, invalid_value, parse_flag, parse_number};
use super::source::Origin;

/// Port of `Live = true`.
pub const DEFAULT_LIVE_PORT: u16 = 9100;

/// Where the capture file goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TracePath {
    /// Nothing said: a name made from the time, below the database directory if there is one.
    #[default]
    Automatic,
    /// No file, on purpose.
    None,
    /// This file.
    Explicit(PathBuf),
}

/// The live stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveOptions {
    /// TCP port; `None`: no live stream.
    pub port: Option<u16>,
    /// How long start waits for the first viewer.
    pub wait: Duration,
    /// Address to listen on.
    pub bind: IpAddr,
    /// Secret for commands of a viewer; empty: commands are refused.
    pub token: Secret,
}

/// A text that does not appear in logs.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "empty" } else { "(secret)" })
    }
}

/// The CPU sampler; its gate is `CpuSampling`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuSamplingOptions {
    /// Most samples kept.
    pub samples_max: u64,
    /// Samples per second and thread.
    pub frequency_hz: u64,
}

/// Process whose .NET runtime is traced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum GcTarget {
    /// The runtime inside this process.
    #[default]
    OwnProcess,
    /// Another process.
    Process(u32),
    /// Any runtime that connects to this socket.
    Listen(PathBuf),
}

/// .NET garbage-collection tracing (brief 03 §5); its gate is `GcTracing`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcTracingOptions {
    /// Whom to trace.
    pub target: GcTarget,
    /// Event buffer inside the .NET runtime, in MiB.
    pub buffer_mib: u64,
    /// Events between the reading and the recording thread; a power of two.
    pub queue_capacity: u64,
    /// Per connection attempt and per request.
    pub connect_timeout: Duration,
    /// Silence after which held events are released.
    pub order_delay: Duration,
}

/// Strict checks of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChecksOptions {
    /// Strict mode.
    pub enabled: bool,
    /// Undeclared writes of systems are errors.
    pub declared_access: bool,
}

/// Every option that is not a gate. Options of parts this version does not have are validated and kept, and
/// [`Part::is_built`](super::Part::is_built) says which parts those are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfilerOptions {
    /// The master switch, after all rules.
    pub enabled: bool,
    /// Where the capture goes.
    pub trace: TracePath,
    /// The live stream.
    pub live: LiveOptions,
    /// Pause between two drains.
    pub consumer_cadence: Duration,
    /// Batches an exporter may lag behind.
    pub exporter_queue_batches: usize,
    /// Memory of all capture buffers together.
    pub buffer_budget_bytes: usize,
    /// Distance of gauge snapshots in programs without ticks.
    pub gauges_interval: Duration,
    /// Shortest page I/O that gets a completion span.
    pub page_completion_threshold: Duration,
    /// The CPU sampler.
    pub cpu_sampling: CpuSamplingOptions,
    /// .NET garbage-collection tracing.
    pub gc_tracing: GcTracingOptions,
    /// Strict checks of the engine.
    pub checks: ChecksOptions,
}

impl Default for ProfilerOptions {
    /// What an empty configuration resolves to: everything off.
    fn default() -> Self {
        Reader::new(&super::Settings::default()).options().0
    }
}

/// Who decided about the options that others build on; `None`: nobody.
pub(super) struct DecidedBy<'a> {
    pub(super) master: Option<&'a Origin>,
    pub(super) trace: Option<&'a Origin>,
}

impl<'a> Reader<'a> {
    /// All options.
    pub(super) fn options(&mut self) -> (ProfilerOptions, DecidedBy<'a>) {
        let trace = self.trace();
        let live = self.live_port();
        let (enabled, master) = self.master(&trace, &live);
        let decided_by = DecidedBy { master, trace: trace.1 };
        let options = ProfilerOptions {
            enabled,
            trace: trace.0,
            live: LiveOptions {
                port: live.0,
                wait: Duration::from_millis(self.number("Profiler:LiveWaitMs")),
                bind: self.address(),
                token: self.token(),
            },
            consumer_cadence: Duration::from_micros(self.number("Profiler:ConsumerCadenceUs")),
            exporter_queue_batches: self.size("Profiler:ExporterQueueDepth"),
            buffer_budget_bytes: self.size("Profiler:BufferBudgetMiB").saturating_mul(1 << 20),
            gauges_interval: Duration::from_millis(self.number("Profiler:Gauges:IntervalMs")),
            page_completion_threshold: Duration::from_millis(
                self.number("Profiler:Storage:PageCache:CompletionThresholdMs"),
            ),
            cpu_sampling: CpuSamplingOptions {
                samples_max: self.number("Profiler:CpuSampling:MaxSamples"),
                frequency_hz: self.number("Profiler:CpuSampling:FrequencyHz"),
            },
            gc_tracing: self.gc_tracing(),
            checks: ChecksOptions {
                enabled: self.flag("Checks:Enabled"),
                declared_access: self.flag("Checks:DeclaredAccess"),
            },
        };
        (options, decided_by)
    }

    /// The master switch: `Telemetry:Enabled = false` beats everything, then an explicit `Enabled`, then an explicit
    /// destination (brief 02 §5.2).
    fn master(
        &mut self,
        trace: &(TracePath, Option<&'a Origin>),
        live: &(Option<u16>, Option<&'a Origin>),
    ) -> (bool, Option<&'a Origin>) {
        let flag = |text: &str| parse_flag(text).ok_or(Invalid::Text);
        let telemetry = self.read("Telemetry:Enabled", flag);
        let enabled = self.read("Profiler:Enabled", flag);
        match (telemetry, enabled) {
            (Some((false, origin)), _) | (_, Some((false, origin))) => (false, Some(origin)),
            (_, Some((true, origin))) => (true, Some(origin)),
            (_, None) => match (&trace.0, live.0) {
                (TracePath::Explicit(_), _) => (true, trace.1),
                (_, Some(_)) => (true, live.1),
                _ => (false, None),
            },
        }
    }

    /// `Trace`, where `none` of an operator (command line, environment, file) cannot be lifted by the host's code
    /// (brief 02 B-33).
    fn trace(&mut self) -> (TracePath, Option<&'a Origin>) {
        let of = |value: &str| match value.trim() {
            "" => TracePath::Automatic,
            none if none.eq_ignore_ascii_case("none") => TracePath::None,
            _ => TracePath::Explicit(PathBuf::from(value)),
        };
        let key = format!("{PROFILER}Trace").to_lowercase();
        let (paths, others): (Vec<_>, Vec<_>) =
            self.settings.all(&key).into_iter().partition(|setting| may_be_path(setting.value.trim()));
        let expected = ValueType::TracePath.expected();
        self.faults.extend(others.into_iter().map(|other| invalid_value(other, Invalid::Text, &expected)));
        let mut settings = paths.into_iter().peekable();
        let host = settings.next_if(|setting| setting.origin == Origin::Host);
        let operator = settings.next();
        match (host, operator) {
            (Some(host), Some(operator)) if of(&operator.value) == TracePath::None => {
                if of(&host.value) != TracePath::None {
                    let problem =
                        format!("{} says Trace = none, which the program cannot override", operator.origin);
                    let (code, remedy) = (FaultCode::NoEffect, "remove it there to get a capture file");
                    self.faults.push(Fault::new(code, &host.origin, &host.key, problem, remedy));
                }
                (TracePath::None, Some(&operator.origin))
            }
            (Some(setting), _) | (None, Some(setting)) => (of(&setting.value), Some(&setting.origin)),
            (None, None) => (TracePath::Automatic, None),
        }
    }

    /// `Live`: an invalid value means no live stream, not the value of a weaker source (brief 01 §5).
    fn live_port(&mut self) -> (Option<u16>, Option<&'a Origin>) {
        let key = format!("{PROFILER}Live").to_lowercase();
        let Some(setting) = self.settings.all(&key).into_iter().next() else { return (None, None) };
        let text = setting.value.trim();
        let port = match parse_number(text) {
            Ok(number) => {
                u16::try_from(number).ok().filter(|&port| port != 0).ok_or(FaultCode::OutOfRange).map(Some)
            }
            Err(Invalid::Range) => Err(FaultCode::OutOfRange),
            Err(Invalid::Text) => match parse_flag(text) {
                Some(on) => Ok(on.then_some(DEFAULT_LIVE_PORT)),
                None => Err(FaultCode::InvalidValue),
            },
        };
        let port = port.unwrap_or_else(|code| {
            let problem = format!("\"{}\" is not a port", printable(text));
            let remedy = "write a port from 1 to 65535, true (9100) or false; there is no live stream";
            self.faults.push(Fault::new(code, &setting.origin, &setting.key, problem, remedy));
            None
        });
        (port, Some(&setting.origin))
    }

    fn address(&mut self) -> IpAddr {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let parse = |text: &str| text.parse().map_err(|_| Invalid::Text);
        self.read("Profiler:LiveBind", parse).map_or(loopback, |(address, _)| address)
    }

    fn token(&mut self) -> Secret {
        let token = self.read("Profiler:LiveToken", |text| Ok(text.to_owned()));
        Secret(token.map(|(text, _)| text).unwrap_or_default())
    }

    /// A number that counts things in memory.
    fn size(&mut self, key: &'static str) -> usize {
        usize::try_from(self.number(key)).unwrap_or(usize::MAX)
    }

    fn gc_tracing(&mut self) -> GcTracingOptions {
        let target = self.read("Profiler:GcTracing:Target", parse_gc_target);
        GcTracingOptions {
            target: target.map(|(target, _)| target).unwrap_or_default(),
            buffer_mib: self.number("Profiler:GcTracing:BufferMB"),
            queue_capacity: self.number("Profiler:GcTracing:QueueCapacity"),
            connect_timeout: Duration::from_millis(self.number("Profiler:GcTracing:ConnectTimeoutMs")),
            order_delay: Duration::from_millis(self.number("Profiler:GcTracing:OrderDelayMs")),
        }
    }
}

fn parse_gc_target(text: &str) -> Result<GcTarget, Invalid> {
    if text.eq_ignore_ascii_case("self") {
        return Ok(GcTarget::OwnProcess);
    }
    if let Some(path) = text.strip_prefix("listen:").filter(|path| !path.is_empty()) {
        return Ok(GcTarget::Listen(PathBuf::from(path)));
    }
    let pid = u32::try_from(parse_number(text)?).map_err(|_| Invalid::Range)?;
    if pid == 0 { Err(Invalid::Range) } else { Ok(GcTarget::Process(pid)) }
}

/// A switch or a number is no file that anybody wants: who means one of that name writes `./5`.
fn may_be_path(text: &str) -> bool {
    parse_flag(text).is_none() && serde_json::from_str::<serde_json::Number>(text).is_err()
}
