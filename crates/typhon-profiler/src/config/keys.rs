//! Every option that is not a gate: key, type, default, range, meaning. Validation, the reference page and the
//! suggestions for misspelt keys all read this table, so they cannot disagree.

/// What all keys start with.
pub const ROOT: &str = "Typhon:";
/// What all keys of the profiler start with.
pub const PROFILER: &str = "Typhon:Profiler:";

/// Type of an option's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueType {
    /// `true`, `false`, `1`, `0`, `on`, `off` in any case.
    Flag {
        /// Value when absent; `None` if being absent has a meaning of its own.
        default: Option<bool>,
    },
    /// Decimal whole number.
    Integer {
        /// Value when absent.
        default: u64,
        /// Smallest value accepted.
        min: u64,
        /// Largest value accepted.
        max: u64,
    },
    /// As `Integer`, powers of two only.
    PowerOfTwo {
        /// Value when absent.
        default: u64,
        /// Smallest value accepted.
        min: u64,
        /// Largest value accepted.
        max: u64,
    },
    /// A file path, `none`, or blank for the automatic path.
    TracePath,
    /// A port, `true`/`on` or `false`/`off`.
    LivePort,
    /// An IP address.
    Address {
        /// Value when absent.
        default: &'static str,
    },
    /// Any text.
    Text,
    /// Kind names or numbers, as an array or separated by commas.
    Kinds,
    /// `self`, a process id, or `listen:<socket path>`.
    GcTarget,
    /// Accepted for old files, without effect.
    Obsolete,
    /// The key and everything below it is known, but nothing reads it yet.
    Reserved,
}

/// The part of the profiler an option configures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Capture, gates, file destination, gauges.
    Capture,
    /// Live stream over TCP.
    Live,
    /// CPU sampler.
    CpuSampling,
    /// Host of the .NET garbage-collection tracer.
    GcTracing,
    /// Events of a .NET runtime besides those of its collector.
    GcExtra,
    /// Flight recorder.
    FlightRecorder,
    /// Sampling rates per kind.
    Rates,
    /// Strict checks of the engine.
    Checks,
}

impl Part {
    /// Whether this version acts on the part's options. Configuring another part is reported once, and no more.
    pub const fn is_built(self) -> bool {
        let has_gc = cfg!(all(unix, feature = "gc"));
        matches!(self, Self::Capture) || (has_gc && matches!(self, Self::GcTracing))
    }

    /// The gate that switches the part on, for parts that have one.
    pub const fn gate(self) -> Option<&'static str> {
        match self {
            Self::CpuSampling => Some("CpuSampling"),
            Self::GcTracing => Some("GcTracing"),
            _ => None,
        }
    }

    /// Name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Live => "live stream",
            Self::CpuSampling => "CPU sampler",
            Self::GcTracing => ".NET GC tracing",
            Self::GcExtra => "further .NET events",
            Self::FlightRecorder => "flight recorder",
            Self::Rates => "sampling rates",
            Self::Checks => "engine checks",
        }
    }
}

/// One option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptionInfo {
    /// Key below `Typhon:`.
    pub key: &'static str,
    /// Type, default and range.
    pub value: ValueType,
    /// Effect, in one sentence.
    pub summary: &'static str,
    /// Part that reads it.
    pub part: Part,
}

const fn option(key: &'static str, value: ValueType, part: Part, summary: &'static str) -> OptionInfo {
    OptionInfo { key, value, summary, part }
}

const fn integer(default: u64, min: u64, max: u64) -> ValueType {
    ValueType::Integer { default, min, max }
}

/// All options, in the order of the reference page (brief 02 §5.2, brief 03 §5).
pub const OPTIONS: &[OptionInfo] = &[
    option(
        "Telemetry:Enabled",
        ValueType::Flag { default: Some(true) },
        Part::Capture,
        "`false` switches the whole profiler off, whatever else is configured.",
    ),
    option(
        "Profiler:Enabled",
        ValueType::Flag { default: None },
        Part::Capture,
        "The master switch. When absent, an explicit `Trace` path or a `Live` port turns it on.",
    ),
    option(
        "Profiler:Trace",
        ValueType::TracePath,
        Part::Capture,
        "Capture file. Blank: an automatic name below the database directory, if there is one and no `Live` port. \
         `none`: collect, but write no file; the host program cannot override that.",
    ),
    option("Profiler:Live", ValueType::LivePort, Part::Live, "TCP port for live viewers; `true` means 9100."),
    option(
        "Profiler:LiveWaitMs",
        integer(0, 0, 3_600_000),
        Part::Live,
        "How long start waits for the first live viewer, in milliseconds.",
    ),
    option(
        "Profiler:LiveBind",
        ValueType::Address { default: "127.0.0.1" },
        Part::Live,
        "Address the live port listens on. Anything but a loopback address exposes the trace to the network.",
    ),
    option(
        "Profiler:LiveToken",
        ValueType::Text,
        Part::Live,
        "Secret a viewer must present to send commands; empty: no commands.",
    ),
    option(
        "Profiler:ConsumerCadenceUs",
        integer(1_000, 50, 100_000),
        Part::Capture,
        "Pause between two drains of the capture buffers, in microseconds.",
    ),
    option(
        "Profiler:ExporterQueueDepth",
        integer(64, 1, 4_096),
        Part::Capture,
        "Batches (up to 256 KiB each) an exporter may lag behind before it loses some.",
    ),
    option(
        "Profiler:BufferBudgetMiB",
        integer(160, 1, 65_536),
        Part::Capture,
        "Memory of all capture buffers together, in MiB; when it is used up, records are dropped and counted.",
    ),
    option(
        "Profiler:Gauges:IntervalMs",
        integer(1_000, 1, 3_600_000),
        Part::Capture,
        "Distance of gauge snapshots in programs without ticks, in milliseconds.",
    ),
    option(
        "Profiler:Storage:PageCache:CompletionThresholdMs",
        integer(1, 0, 3_600_000),
        Part::Capture,
        "Shortest page I/O that gets a completion span (kinds 56-58), in milliseconds; 0: all.",
    ),
    option(
        "Profiler:Kinds:Suppress",
        ValueType::Kinds,
        Part::Capture,
        "Kinds to switch off although their gate is on.",
    ),
    option(
        "Profiler:Kinds:Unsuppress",
        ValueType::Kinds,
        Part::Capture,
        "Kinds to take from the deny-list; their gate must be on as well.",
    ),
    option("Profiler:Kinds:Rate", ValueType::Reserved, Part::Rates, "Sampling rate per kind."),
    option(
        "Profiler:CpuSampling:MaxSamples",
        integer(3_000_000, 1, 100_000_000),
        Part::CpuSampling,
        "Most CPU samples kept; beyond it they are thinned out evenly.",
    ),
    option(
        "Profiler:CpuSampling:FrequencyHz",
        integer(997, 1, 10_000),
        Part::CpuSampling,
        "CPU samples per second and thread.",
    ),
    option(
        "Profiler:GcTracing:Target",
        ValueType::GcTarget,
        Part::GcTracing,
        "Process whose .NET runtime is traced: `self`, a process id, or `listen:<socket path>`. As all of \
         `GcTracing`, it needs the crate's feature `gc`.",
    ),
    option(
        "Profiler:GcTracing:BufferMB",
        integer(16, 1, 1_024),
        Part::GcTracing,
        "Event buffer inside the .NET runtime, in MiB.",
    ),
    option(
        "Profiler:GcTracing:QueueCapacity",
        ValueType::PowerOfTwo { default: 1_024, min: 16, max: 1_048_576 },
        Part::GcTracing,
        "Events between the reading and the recording thread.",
    ),
    option(
        "Profiler:GcTracing:ConnectTimeoutMs",
        integer(2_000, 1, 3_600_000),
        Part::GcTracing,
        "Longest wait per connection attempt and per request, in milliseconds.",
    ),
    option(
        "Profiler:GcTracing:OrderDelayMs",
        integer(250, 0, 60_000),
        Part::GcTracing,
        "Silence after which events held back for ordering are released, in milliseconds.",
    ),
    option("Profiler:GcTracing:Extra", ValueType::Reserved, Part::GcExtra, "Further .NET event groups."),
    option("Profiler:FlightRecorder", ValueType::Reserved, Part::FlightRecorder, "Flight recorder."),
    option(
        "Profiler:MergeBufferBytes",
        ValueType::Obsolete,
        Part::Capture,
        "Accepted from older files; every batch, of 256 KiB, is sorted as a whole.",
    ),
    option(
        "Profiler:SpilloverBufferCount",
        ValueType::Obsolete,
        Part::Capture,
        "Accepted from older files; `BufferBudgetMiB` bounds the memory.",
    ),
    option(
        "Profiler:SpilloverBufferSizeBytes",
        ValueType::Obsolete,
        Part::Capture,
        "Accepted from older files; `BufferBudgetMiB` bounds the memory.",
    ),
    option(
        "Checks:Enabled",
        ValueType::Flag { default: Some(false) },
        Part::Checks,
        "Strict mode of the engine; independent of the profiler.",
    ),
    option(
        "Checks:DeclaredAccess",
        ValueType::Flag { default: Some(false) },
        Part::Checks,
        "In strict mode: a write outside a system's declared access is an error.",
    ),
];

/// The option with this key below `Typhon:`.
pub(crate) fn option_info(key: &str) -> Option<&'static OptionInfo> {
    OPTIONS.iter().find(|info| info.key == key)
}

impl ValueType {
    /// The default as the reference page shows it.
    pub fn default_text(&self) -> String {
        match self {
            Self::Flag { default: None } => "absent".to_owned(),
            Self::Flag { default: Some(on) } => on.to_string(),
            Self::Integer { default, .. } | Self::PowerOfTwo { default, .. } => default.to_string(),
            Self::TracePath => "blank".to_owned(),
            Self::LivePort => "off".to_owned(),
            Self::Address { default } => (*default).to_owned(),
            Self::GcTarget => "self".to_owned(),
            Self::Text | Self::Kinds => "empty".to_owned(),
            Self::Obsolete | Self::Reserved => "—".to_owned(),
        }
    }

    /// What a valid value looks like: the remedy of faults and a column of the reference page.
    pub fn expected(&self) -> String {
        match self {
            Self::Flag { .. } => "true or false (also 1, 0, on, off)".to_owned(),
            Self::Integer { min, max, .. } => format!("a whole number from {min} to {max}"),
            Self::PowerOfTwo { min, max, .. } => format!("a power of two from {min} to {max}"),
            Self::TracePath => "a file path, none, or nothing".to_owned(),
            Self::LivePort => "a port from 1 to 65535, true (9100) or false".to_owned(),
            Self::Address { .. } => "an IP address".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Kinds => "names or numbers of kinds".to_owned(),
            Self::GcTarget => "self, a process id, or listen:<socket path>".to_owned(),
            Self::Obsolete => "nothing, it is ignored".to_owned(),
            Self::Reserved => "nothing yet".to_owned(),
        }
    }
}
