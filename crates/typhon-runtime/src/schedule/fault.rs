//! What can be wrong with a schedule, and what to write instead.

use std::fmt;
use typhon_engine::{Coded, ErrorCode};

/// Everything that is wrong with a schedule. Nothing was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleBuildError {
    faults: Vec<ScheduleFault>,
}

impl Coded for ScheduleBuildError {
    fn code(&self) -> ErrorCode {
        ErrorCode::SCHEDULE_BUILD
    }
}

impl ScheduleBuildError {
    pub(super) fn new(faults: Vec<ScheduleFault>) -> Self {
        debug_assert!(!faults.is_empty());
        Self { faults }
    }

    /// The faults, at least one: those of single declarations first, then those of pairs of systems, DAG by DAG.
    pub fn faults(&self) -> &[ScheduleFault] {
        &self.faults
    }
}

impl std::error::Error for ScheduleBuildError {}

impl fmt::Display for ScheduleBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.faults.len();
        write!(f, "the schedule has {count} fault{}", if count == 1 { "" } else { "s" })?;
        for (at, fault) in self.faults.iter().enumerate() {
            write!(f, "\n{}. {fault}\n   fix: {}", at + 1, fault.fix())?;
        }
        Ok(())
    }
}

/// Something that systems share and can disagree about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A component, by the path of its type or by name.
    Component(String),
    /// A resource, by name.
    Resource(String),
    /// An event queue, by name.
    Queue(String),
}

impl Subject {
    /// Its name, without saying what it is.
    pub fn name(&self) -> &str {
        match self {
            Self::Component(name) | Self::Resource(name) | Self::Queue(name) => name,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Component(name) => write!(f, "component {name}"),
            Self::Resource(name) => write!(f, "resource \"{name}\""),
            Self::Queue(name) => write!(f, "queue \"{name}\""),
        }
    }
}

/// One fault of a schedule. Fields named `system`, `first` and so on are names of systems.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are names of what the variant speaks of")]
pub enum ScheduleFault {
    /// A name is empty. `place` says of what.
    EmptyName { place: String },
    /// There is a track of this name.
    DuplicateTrack { track: String },
    /// The track's name belongs to the engine.
    ReservedTrackName { track: String },
    /// The track's tag belongs to the engine.
    ReservedTag { track: String },
    /// The track has a DAG of this name.
    DuplicateDag { track: String, dag: String },
    /// `phases` was called with an empty list.
    NoPhases { dag: String },
    /// The DAG has a phase of this name.
    DuplicatePhase { dag: String, phase: String },
    /// The default phase is none of the DAG's.
    UnknownDefaultPhase { dag: String, phase: String, known: Vec<String> },
    /// The system's phase is none of the DAG's.
    UnknownPhase { system: String, dag: String, phase: String, known: Vec<String> },
    /// There is a system of this name, in the same DAG or in another.
    DuplicateSystem { system: String, dags: [String; 2] },
    /// There is a queue of this name, in the same DAG or in another.
    DuplicateQueue { queue: String },
    /// `call`, which is `after` or `before`, names a system that does not exist; `similar` is the name in the DAG that is
    /// most like it.
    UnknownSystem { system: String, call: &'static str, named: String, similar: Option<String> },
    /// `after` or `before` names a system of another DAG.
    SystemOfOtherDag { system: String, dag: String, named: String, other_dag: String },
    /// A system is to run after or before itself.
    OrderedWithItself { system: String },
    /// A divisor is 0. `call` is the name of the builder's method.
    ZeroDivisor { system: String, call: &'static str },
    /// The number of chunks is 0 or above [`MAX_CHUNKS`].
    ChunkCount { system: String, chunks: u32 },
    /// A queue has a capacity that does not work; `fault` says which and what would.
    QueueOptions { queue: String, fault: String },
    /// The handle of a queue belongs to another schedule.
    ForeignQueue { system: String },
    /// A queue is used outside its DAG.
    QueueOfOtherDag { system: String, dag: String, queue: String, queue_dag: String },
    /// Two systems of one phase write the same things, and nothing says which goes first.
    WriteConflict { first: String, second: String, phase: String, subjects: Vec<Subject> },
    /// A system reads what another of its phase writes, and nothing says which goes first.
    ReadConflict { reader: String, writer: String, phase: String, subjects: Vec<Subject> },
    /// Two systems of one phase consume the same events, at least one takes them away, and nothing says which goes first.
    DrainConflict { first: String, second: String, phase: String, subjects: Vec<Subject> },
    /// Two systems of one phase both push to and consume one queue.
    MutualEvents { first: String, second: String, phase: String, queue: String },
    /// A system that wants its phase to itself shares it.
    PhaseNotExclusive { system: String, phase: String, others: Vec<String> },
    /// DAGs of one track touch the same things, at least one of them writing, and nothing orders DAGs of one track.
    TrackConflict { track: String, first: String, second: String, dags: [String; 2], subjects: Vec<Subject> },
    /// `after` or `before` asks a system of an earlier phase to wait for one of a later phase.
    BackwardOrder { from: String, to: String, phases: [String; 2] },
    /// A system consumes events in an earlier phase than another pushes them; they would be gone before.
    EarlyConsumer { queue: String, consumer: String, producer: String },
    /// A consumer can be left out of ticks in which a producer runs; the events of those ticks would be lost.
    ConsumerCanMiss { queue: String, consumer: String, producer: String, because: &'static str },
    /// Systems declare no access, which the options forbid.
    NoDeclarations { systems: Vec<String> },
    /// Systems wait for each other in a circle, each for the one before and the first for the last. The second list
    /// says why each waits.
    Cycle { systems: Vec<String>, reasons: Vec<String> },
    /// There are more of something than its numbers allow.
    TooMany { what: &'static str, count: usize, limit: usize },
}

/// Chunks that one system can have in a tick.
pub const MAX_CHUNKS: u32 = 65_535;

impl fmt::Display for ScheduleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyName { place } => write!(f, "{place} has an empty name"),
            Self::DuplicateTrack { track } => write!(f, "two tracks are named \"{track}\""),
            Self::ReservedTrackName { track } => {
                write!(f, "track \"{track}\": names that begin with \"Engine-\" belong to the engine")
            }
            Self::ReservedTag { track } => {
                write!(f, "track \"{track}\": the tag \"engine\" belongs to the engine")
            }
            Self::DuplicateDag { track, dag } => {
                write!(f, "two DAGs of track \"{track}\" are named \"{dag}\"")
            }
            Self::NoPhases { dag } => write!(f, "DAG \"{dag}\" declares an empty list of phases"),
            Self::DuplicatePhase { dag, phase } => {
                write!(f, "two phases of DAG \"{dag}\" are named \"{phase}\"")
            }
            Self::UnknownDefaultPhase { dag, phase, known } => {
                write!(f, "DAG \"{dag}\" has no phase \"{phase}\" to be its default; it has {}", list(known))
            }
            Self::UnknownPhase { system, dag, phase, known } => {
                write!(
                    f,
                    "system \"{system}\": DAG \"{dag}\" has no phase \"{phase}\"; it has {}",
                    list(known)
                )
            }
            Self::DuplicateSystem { system, dags: [first, second] } if first == second => {
                write!(f, "two systems of DAG \"{first}\" are named \"{system}\"")
            }
            Self::DuplicateSystem { system, dags: [first, second] } => {
                write!(
                    f,
                    "two systems are named \"{system}\", one of DAG \"{first}\" and one of DAG \"{second}\""
                )
            }
            Self::DuplicateQueue { queue } => write!(f, "two event queues are named \"{queue}\""),
            Self::UnknownSystem { system, named, .. } => {
                write!(f, "system \"{system}\" is ordered with \"{named}\", which does not exist")
            }
            Self::SystemOfOtherDag { system, dag, named, other_dag } => write!(
                f,
                "system \"{system}\" of DAG \"{dag}\" is ordered with \"{named}\" of DAG \"{other_dag}\"; \
                 `after` and `before` work within one DAG"
            ),
            Self::OrderedWithItself { system } => write!(f, "system \"{system}\" is ordered with itself"),
            Self::ZeroDivisor { system, call } => write!(f, "system \"{system}\": {call}(0) would never run"),
            Self::ChunkCount { system, chunks } => {
                write!(f, "system \"{system}\" has {chunks} chunks; 1 to {MAX_CHUNKS} are possible")
            }
            Self::QueueOptions { queue, fault } => write!(f, "queue \"{queue}\": {fault}"),
            Self::ForeignQueue { system } => {
                write!(f, "system \"{system}\" uses an event queue that was declared in another schedule")
            }
            Self::QueueOfOtherDag { system, dag, queue, queue_dag } => write!(
                f,
                "system \"{system}\" of DAG \"{dag}\" uses queue \"{queue}\" of DAG \"{queue_dag}\"; \
                 a queue belongs to one DAG"
            ),
            Self::WriteConflict { first, second, phase, subjects } => write!(
                f,
                "systems \"{first}\" and \"{second}\" both write {} in phase \"{phase}\", in no declared order",
                subject_list(subjects)
            ),
            Self::ReadConflict { reader, writer, phase, subjects } => write!(
                f,
                "system \"{reader}\" reads {} while \"{writer}\" writes in phase \"{phase}\", in no declared order",
                subject_list(subjects)
            ),
            Self::DrainConflict { first, second, phase, subjects } => write!(
                f,
                "systems \"{first}\" and \"{second}\" both consume {} in phase \"{phase}\", at least one drains, \
                 in no declared order",
                subject_list(subjects)
            ),
            Self::MutualEvents { first, second, phase, queue } => write!(
                f,
                "systems \"{first}\" and \"{second}\" both push to and consume queue \"{queue}\" in phase \"{phase}\"; \
                 each would have to run before the other"
            ),
            Self::PhaseNotExclusive { system, phase, others } => write!(
                f,
                "system \"{system}\" wants phase \"{phase}\" to itself and shares it with {}",
                list(others)
            ),
            Self::TrackConflict { track, first, second, dags: [first_dag, second_dag], subjects } => write!(
                f,
                "system \"{first}\" of DAG \"{first_dag}\" and system \"{second}\" of DAG \"{second_dag}\" both touch {} \
                 and at least one writes; nothing orders the DAGs of track \"{track}\"",
                subject_list(subjects)
            ),
            Self::BackwardOrder { from, to, phases: [from_phase, to_phase] } => write!(
                f,
                "system \"{to}\" of phase \"{to_phase}\" is to wait for \"{from}\" of the later phase \"{from_phase}\""
            ),
            Self::EarlyConsumer { queue, consumer, producer } => write!(
                f,
                "system \"{consumer}\" consumes queue \"{queue}\" in an earlier phase than \"{producer}\" pushes to it; \
                 the events would be gone before it runs again"
            ),
            Self::ConsumerCanMiss { queue, consumer, producer, because } => write!(
                f,
                "system \"{consumer}\" consumes queue \"{queue}\" and can miss ticks in which \"{producer}\" pushes to it, \
                 because {because}; the events of those ticks would be lost"
            ),
            Self::NoDeclarations { systems } => write!(f, "no access is declared by {}", list(systems)),
            Self::Cycle { systems, reasons } => {
                write!(f, "systems wait for each other in a circle: ")?;
                for (system, reason) in systems.iter().zip(reasons) {
                    write!(f, "\"{system}\" -({reason})-> ")?;
                }
                write!(f, "\"{}\"", systems.first().map_or("", String::as_str))
            }
            Self::TooMany { what, count, limit } => {
                write!(f, "{count} {what} are more than the {limit} possible")
            }
        }
    }
}

impl ScheduleFault {
    /// What to write instead; where one line of code does it, that line.
    pub fn fix(&self) -> String {
        match self {
            Self::EmptyName { .. } => "give it a name; traces and messages need one".to_owned(),
            Self::DuplicateTrack { .. } | Self::DuplicateDag { .. } | Self::DuplicatePhase { .. } => {
                "rename or remove one of the two".to_owned()
            }
            Self::DuplicateSystem { .. } | Self::DuplicateQueue { .. } => {
                "rename one of the two; names are unique over the whole schedule".to_owned()
            }
            Self::ReservedTrackName { track } => {
                format!("declare_track(\"{}\", &[])", track.trim_start_matches("Engine-"))
            }
            Self::ReservedTag { .. } => "leave the tag out".to_owned(),
            Self::NoPhases { .. } => "name at least one phase, or leave the call out".to_owned(),
            Self::UnknownDefaultPhase { phase, .. } => format!(".phases([…, \"{phase}\"])"),
            Self::UnknownPhase { phase, dag, known, .. } => match nearest(phase, known) {
                Some(near) => format!(".phase(\"{near}\")"),
                None => format!("add \"{phase}\" to the phases of DAG \"{dag}\""),
            },
            Self::UnknownSystem { named, similar: None, .. } => {
                format!("declare \"{named}\" in the same DAG, or leave it out")
            }
            Self::UnknownSystem { system, call, similar: Some(similar), .. } => {
                format!("on \"{system}\": .{call}(\"{similar}\")")
            }
            Self::SystemOfOtherDag { system, other_dag, .. } => {
                format!(
                    "declare \"{system}\" in DAG \"{other_dag}\", or one of the two DAGs in a later track"
                )
            }
            Self::OrderedWithItself { .. } => "name another system, or leave the call out".to_owned(),
            Self::ZeroDivisor { call, .. } => format!(".{call}(1)"),
            Self::ChunkCount { chunks, .. } => format!("{} chunks", (*chunks).clamp(1, MAX_CHUNKS)),
            Self::QueueOptions { queue, .. } => {
                format!("event_queue(\"{queue}\", 1024), or another power of two")
            }
            Self::ForeignQueue { .. } => {
                "dag.event_queue(…) in this schedule, and its handle here".to_owned()
            }
            Self::QueueOfOtherDag { system, queue_dag, .. } => {
                format!("declare \"{system}\" in DAG \"{queue_dag}\", or a queue in its own DAG")
            }
            Self::WriteConflict { first, second, .. } | Self::DrainConflict { first, second, .. } => {
                format!("on \"{second}\": .after(\"{first}\")")
            }
            Self::ReadConflict { reader, writer, subjects, .. } => {
                let fresh: Vec<String> =
                    subjects.iter().map(|subject| format!(".reads_fresh::<{}>()", subject.name())).collect();
                format!(
                    "on \"{reader}\": {} for this tick's values, or .before(\"{writer}\")",
                    fresh.concat()
                )
            }
            Self::MutualEvents { second, .. } => {
                format!("let \"{second}\" push to a queue of its own, or move it to another phase")
            }
            Self::PhaseNotExclusive { .. } => "move it to a phase of its own: .phase(\"…\")".to_owned(),
            Self::TrackConflict { second, dags: [first_dag, second_dag], .. } => {
                format!(
                    "declare \"{second}\" in DAG \"{first_dag}\", or DAG \"{second_dag}\" in a later track"
                )
            }
            Self::BackwardOrder { from, to, phases: [from_phase, _] } => {
                format!(
                    "on \"{to}\": .phase(\"{from_phase}\"), or turn the order around: .before(\"{from}\")"
                )
            }
            Self::EarlyConsumer { queue, .. } | Self::ConsumerCanMiss { queue, .. } => {
                format!("event_queue(\"{queue}\", QueueOptions::from(…).carry_over())")
            }
            Self::NoDeclarations { .. } => ".reads::<…>(), .writes::<…>() and so on, on each".to_owned(),
            Self::Cycle { .. } => {
                "leave out one of these orders, or move one of the systems to another phase".to_owned()
            }
            Self::TooMany { .. } => "merge some of them".to_owned(),
        }
    }
}

/// "a", "b" and "c"
fn list(names: &[String]) -> String {
    join(names.iter().map(|name| format!("\"{name}\"")).collect())
}

fn subject_list(subjects: &[Subject]) -> String {
    join(subjects.iter().map(Subject::to_string).collect())
}

fn join(mut items: Vec<String>) -> String {
    match items.pop() {
        None => "none".to_owned(),
        Some(only) if items.is_empty() => only,
        Some(last) => format!("{} and {last}", items.join(", ")),
    }
}

/// The name that was probably meant, if one is near enough: at most a third of the letters differ.
pub(super) fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n String>) -> Option<&'n str> {
    let limit = (wanted.chars().count() / 3).max(1);
    let distances = names.into_iter().map(|name| (edit_distance(wanted, name), name));
    let (distance, name) = distances.min_by_key(|&(distance, _)| distance)?;
    (distance <= limit).then_some(name.as_str())
}

/// Letters to insert, remove or replace to make one of the other, ignoring case.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.to_lowercase().chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for column in 0..to.len() {
            let replaced = diagonal + usize::from(letter != to[column]);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}
