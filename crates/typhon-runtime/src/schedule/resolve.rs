//! From names to numbers: puts everything that was declared in its final order, and checks each declaration by itself.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::draft::{DagDraft, Draft, QueueDraft, SystemDraft};
use super::fault::nearest;
use super::{ENGINE_TAG, MAX_CHUNKS, ScheduleFault, phase};
use crate::event_queue::ErasedQueue;
use crate::graph::{DagNode, Nodes, QueueNode, SystemNode, SystemQueues, TrackNode};
use crate::system::{RunIf, SystemBody};
use crate::{DagIndex, PhaseIndex, QueueId, SystemIndex, TrackIndex};

/// The schedule with numbers in place of names. Uses that were refused are left out of it.
pub(super) struct Resolved {
    pub(super) nodes: Nodes,
    pub(super) bodies: Vec<SystemBody>,
    pub(super) gates: Vec<Vec<Box<RunIf>>>,
    pub(super) queue_storage: Vec<Arc<dyn ErasedQueue>>,
    pub(super) faults: Vec<ScheduleFault>,
}

/// # Errors
/// There is more of something than there are numbers.
pub(super) fn resolve(mut draft: Draft) -> Result<Resolved, Vec<ScheduleFault>> {
    let mut faults = std::mem::take(&mut draft.faults);
    check_limits(&draft, &mut faults)?;
    put_in_order(&mut draft);
    let tracks = tracks(&draft, &mut faults);
    let dags = dags(&draft, &mut faults);
    let systems = systems(&draft, &dags, &mut faults);
    let queues = queues(&draft, &systems, &mut faults);
    let queue_storage = draft.queues.into_iter().map(|queue| queue.storage).collect();
    let (bodies, gates) = draft.systems.into_iter().map(|system| (system.body, system.gates)).unzip();
    Ok(Resolved { nodes: Nodes { tracks, dags, systems, queues }, bodies, gates, queue_storage, faults })
}

fn check_limits(draft: &Draft, faults: &mut Vec<ScheduleFault>) -> Result<(), Vec<ScheduleFault>> {
    let most = usize::from(u16::MAX);
    let phases = draft.dags.iter().map(|dag| dag.phases.len()).max().unwrap_or(0);
    let counts = [
        ("systems", draft.systems.len(), SystemIndex::MAX_COUNT),
        ("event queues", draft.queues.len(), QueueId::MAX_COUNT),
        ("tracks", draft.tracks.len(), most),
        ("DAGs", draft.dags.len(), most),
        ("phases of one DAG", phases, most),
    ];
    let too_many = counts.into_iter().filter(|&(_, count, limit)| count > limit);
    let before = faults.len();
    faults.extend(too_many.map(|(what, count, limit)| ScheduleFault::TooMany { what, count, limit }));
    if faults.len() > before { Err(std::mem::take(faults)) } else { Ok(()) }
}

/// Sorts tracks, DAGs and systems into the order of their numbers, and lets them name each other by it.
fn put_in_order(draft: &mut Draft) {
    let Draft { tracks, dags, systems, queues, .. } = draft;
    // Declared as Engine-Pre, Public, Engine-Post and then the others; Engine-Post runs last.
    let last = tracks.len() - 1;
    tracks[2..].rotate_left(1);
    let track_number = |track: usize| match track {
        2 => last,
        3.. => track - 1,
        _ => track,
    };
    for dag in dags.iter_mut() {
        dag.track = track_number(dag.track);
    }
    let dag_numbers = sort_by_owner(dags, |dag| dag.track);
    for system in systems.iter_mut() {
        system.dag = dag_numbers[system.dag];
    }
    for queue in queues {
        queue.dag = dag_numbers[queue.dag];
    }
    systems.sort_by_key(|system| system.dag);
    for dag in dags.iter_mut().filter(|dag| dag.phases.is_empty()) {
        dag.phases.push(phase::DEFAULT.to_owned());
    }
}

/// Sorts by owner, keeping the order of declaration, and says for each old place which is the new one.
fn sort_by_owner<T>(items: &mut Vec<T>, owner: impl Fn(&T) -> usize) -> Vec<usize> {
    let mut sorted: Vec<(usize, T)> = items.drain(..).enumerate().collect();
    sorted.sort_by_key(|(_, item)| owner(item));
    let mut places = vec![0; sorted.len()];
    for (new, (old, item)) in sorted.into_iter().enumerate() {
        places[old] = new;
        items.push(item);
    }
    places
}

/// The stretch of a list, sorted by owner, that belongs to one owner.
fn stretch<T>(items: &[T], owner: impl Fn(&T) -> usize, of: usize) -> Range<u16> {
    let start = items.partition_point(|item| owner(item) < of);
    let end = items.partition_point(|item| owner(item) <= of);
    start as u16..end as u16
}

fn tracks(draft: &Draft, faults: &mut Vec<ScheduleFault>) -> Vec<TrackNode> {
    let mut nodes = Vec::with_capacity(draft.tracks.len());
    let mut names = HashSet::with_capacity(draft.tracks.len());
    for (at, track) in draft.tracks.iter().enumerate() {
        let name = track.name.clone();
        if name.is_empty() {
            faults.push(ScheduleFault::EmptyName { place: "a track".to_owned() });
        }
        if !track.is_engine {
            if name.starts_with("Engine-") {
                faults.push(ScheduleFault::ReservedTrackName { track: name.clone() });
            }
            if track.tags.iter().any(|tag| tag == ENGINE_TAG) {
                faults.push(ScheduleFault::ReservedTag { track: name.clone() });
            }
        }
        if !names.insert(&track.name) {
            faults.push(ScheduleFault::DuplicateTrack { track: name.clone() });
        }
        let dags = stretch(&draft.dags, |dag| dag.track, at);
        nodes.push(TrackNode { name, tags: track.tags.clone(), is_engine: track.is_engine, dags });
    }
    nodes
}

fn dags(draft: &Draft, faults: &mut Vec<ScheduleFault>) -> Vec<DagNode> {
    let mut nodes = Vec::with_capacity(draft.dags.len());
    let mut names = HashSet::with_capacity(draft.dags.len());
    for (at, dag) in draft.dags.iter().enumerate() {
        let track = TrackIndex::new(dag.track as u16);
        let track_name = &draft.tracks[dag.track].name;
        if dag.name.is_empty() {
            faults.push(ScheduleFault::EmptyName { place: format!("a DAG of track \"{track_name}\"") });
        } else if !names.insert((track, &dag.name)) {
            faults.push(ScheduleFault::DuplicateDag { track: track_name.clone(), dag: dag.name.clone() });
        }
        check_phases(dag, faults);
        let systems = stretch(&draft.systems, |system| system.dag, at);
        nodes.push(DagNode { name: dag.name.clone(), track, phases: dag.phases.clone(), systems });
    }
    nodes
}

fn check_phases(dag: &DagDraft, faults: &mut Vec<ScheduleFault>) {
    let mut names = HashSet::with_capacity(dag.phases.len());
    for phase in &dag.phases {
        if phase.is_empty() {
            faults.push(ScheduleFault::EmptyName { place: format!("a phase of DAG \"{}\"", dag.name) });
        } else if !names.insert(phase) {
            faults.push(ScheduleFault::DuplicatePhase { dag: dag.name.clone(), phase: phase.clone() });
        }
    }
    if let Some(phase) = dag.default_phase.as_ref().filter(|phase| !dag.phases.contains(phase)) {
        let (dag, known) = (dag.name.clone(), dag.phases.clone());
        faults.push(ScheduleFault::UnknownDefaultPhase { dag, phase: phase.clone(), known });
    }
}

fn systems(draft: &Draft, dags: &[DagNode], faults: &mut Vec<ScheduleFault>) -> Vec<SystemNode> {
    let names = system_names(draft, dags, faults);
    let resolver = SystemResolver { draft, dags, names };
    draft.systems.iter().map(|system| resolver.resolve(system, faults)).collect()
}

/// The systems by name; of several with one name, the first.
fn system_names<'d>(
    draft: &'d Draft,
    dags: &[DagNode],
    faults: &mut Vec<ScheduleFault>,
) -> HashMap<&'d str, SystemIndex> {
    let mut names = HashMap::with_capacity(draft.systems.len());
    for (at, system) in draft.systems.iter().enumerate() {
        let dag = &dags[system.dag].name;
        if system.name.is_empty() {
            faults.push(ScheduleFault::EmptyName { place: format!("a system of DAG \"{dag}\"") });
            continue;
        }
        let first = *names.entry(system.name.as_str()).or_insert(SystemIndex::new(at as u16));
        if first.as_usize() != at {
            let first_dag = dags[draft.systems[first.as_usize()].dag].name.clone();
            let dags = [first_dag, dag.clone()];
            faults.push(ScheduleFault::DuplicateSystem { system: system.name.clone(), dags });
        }
    }
    names
}

struct SystemResolver<'d> {
    draft: &'d Draft,
    dags: &'d [DagNode],
    names: HashMap<&'d str, SystemIndex>,
}

impl SystemResolver<'_> {
    fn resolve(&self, system: &SystemDraft, faults: &mut Vec<ScheduleFault>) -> SystemNode {
        check_numbers(system, faults);
        SystemNode {
            name: system.name.clone(),
            dag: DagIndex::new(system.dag as u16),
            phase: self.phase(system, faults),
            kind: system.kind,
            priority: system.priority,
            tick_divisor: system.tick_divisor.max(1),
            throttled_tick_divisor: system.throttled_tick_divisor.max(1),
            can_shed: system.can_shed,
            chunk_count: system.chunk_count,
            is_gated: is_gated(system),
            is_exclusive: system.is_exclusive,
            components: without_repetitions(&system.components),
            resources: without_repetitions(&system.resources),
            queues: self.queues(system, faults),
            explicit_after: self.ordered_with(system, "after", &system.after, faults),
            explicit_before: self.ordered_with(system, "before", &system.before, faults),
        }
    }

    fn phase(&self, system: &SystemDraft, faults: &mut Vec<ScheduleFault>) -> PhaseIndex {
        let dag = &self.draft.dags[system.dag];
        let find = |name: &String| dag.phases.iter().position(|phase| phase == name);
        let place = match &system.phase {
            Some(phase) => find(phase).or_else(|| {
                faults.push(ScheduleFault::UnknownPhase {
                    system: system.name.clone(),
                    dag: dag.name.clone(),
                    phase: phase.clone(),
                    known: dag.phases.clone(),
                });
                None
            }),
            None => dag.default_phase.as_ref().and_then(find),
        };
        PhaseIndex::new(place.unwrap_or(0) as u16)
    }

    fn queues(&self, system: &SystemDraft, faults: &mut Vec<ScheduleFault>) -> SystemQueues {
        let mut of_this_dag = |ids: &[QueueId]| {
            let mut ids = ids.to_vec();
            ids.sort_unstable();
            ids.dedup();
            ids.retain(|id| {
                let queue = &self.draft.queues[id.as_usize()];
                if queue.dag != system.dag {
                    faults.push(ScheduleFault::QueueOfOtherDag {
                        system: system.name.clone(),
                        dag: self.dags[system.dag].name.clone(),
                        queue: queue.storage.name().to_owned(),
                        queue_dag: self.dags[queue.dag].name.clone(),
                    });
                }
                queue.dag == system.dag
            });
            ids
        };
        let writes = of_this_dag(&system.queue_writes);
        let drains = of_this_dag(&system.queue_drains);
        let mut reads = of_this_dag(&system.queue_reads);
        reads.retain(|id| drains.binary_search(id).is_err());
        SystemQueues { writes, reads, drains }
    }

    /// The systems that were named, without repetitions.
    fn ordered_with(
        &self,
        system: &SystemDraft,
        call: &'static str,
        named: &[String],
        faults: &mut Vec<ScheduleFault>,
    ) -> Vec<SystemIndex> {
        let mut found = Vec::with_capacity(named.len());
        for name in named {
            match self.names.get(name.as_str()) {
                Some(&other) if self.can_be_ordered(system, other) => found.push(other),
                other => faults.push(self.order_fault(system, call, name, other.copied())),
            }
        }
        without_repetitions(&found)
    }

    fn can_be_ordered(&self, system: &SystemDraft, other: SystemIndex) -> bool {
        let other = &self.draft.systems[other.as_usize()];
        other.dag == system.dag && other.name != system.name
    }

    /// Why a system cannot be ordered with what it names.
    fn order_fault(
        &self,
        system: &SystemDraft,
        call: &'static str,
        named: &str,
        other: Option<SystemIndex>,
    ) -> ScheduleFault {
        let name = system.name.clone();
        let Some(other) = other.map(|index| &self.draft.systems[index.as_usize()]) else {
            let of_this_dag = self.draft.systems.iter().filter(|other| other.dag == system.dag);
            let others = of_this_dag.map(|other| &other.name).filter(|other| **other != name);
            let similar = nearest(named, others).map(str::to_owned);
            return ScheduleFault::UnknownSystem { system: name, call, named: named.to_owned(), similar };
        };
        if other.dag == system.dag {
            return ScheduleFault::OrderedWithItself { system: name };
        }
        ScheduleFault::SystemOfOtherDag {
            system: name,
            dag: self.dags[system.dag].name.clone(),
            named: named.to_owned(),
            other_dag: self.dags[other.dag].name.clone(),
        }
    }
}

fn check_numbers(system: &SystemDraft, faults: &mut Vec<ScheduleFault>) {
    let divisors =
        [("tick_divisor", system.tick_divisor), ("throttled_tick_divisor", system.throttled_tick_divisor)];
    for (call, _) in divisors.into_iter().filter(|&(_, divisor)| divisor == 0) {
        faults.push(ScheduleFault::ZeroDivisor { system: system.name.clone(), call });
    }
    if !(1..=MAX_CHUNKS).contains(&system.chunk_count) {
        faults.push(ScheduleFault::ChunkCount { system: system.name.clone(), chunks: system.chunk_count });
    }
}

fn is_gated(system: &SystemDraft) -> bool {
    let has_hook = match &system.body {
        SystemBody::Chunked(body) => body.should_run.is_some() || body.prepare.is_some(),
        SystemBody::Callback(_) | SystemBody::Pipeline(_) => false,
    };
    has_hook || !system.gates.is_empty()
}

/// Systems declare few things, so that looking at all earlier ones is quicker than hashing.
fn without_repetitions<T: Clone + PartialEq>(items: &[T]) -> Vec<T> {
    let mut kept: Vec<T> = Vec::with_capacity(items.len());
    for item in items {
        if !kept.contains(item) {
            kept.push(item.clone());
        }
    }
    kept
}

fn queues(draft: &Draft, systems: &[SystemNode], faults: &mut Vec<ScheduleFault>) -> Vec<QueueNode> {
    let mut nodes: Vec<QueueNode> = draft.queues.iter().map(queue_node).collect();
    let mut names = HashSet::with_capacity(nodes.len());
    for queue in &nodes {
        if queue.name.is_empty() {
            let dag = &draft.dags[queue.dag.as_usize()].name;
            faults.push(ScheduleFault::EmptyName { place: format!("an event queue of DAG \"{dag}\"") });
        } else if !names.insert(&queue.name) {
            faults.push(ScheduleFault::DuplicateQueue { queue: queue.name.clone() });
        }
        for fault in queue.options.faults() {
            faults.push(ScheduleFault::QueueOptions { queue: queue.name.clone(), fault });
        }
    }
    for (at, system) in systems.iter().enumerate() {
        let index = SystemIndex::new(at as u16);
        for id in &system.queues.writes {
            nodes[id.as_usize()].producers.push(index);
        }
        for id in system.queues.consumed() {
            nodes[id.as_usize()].consumers.push(index);
        }
    }
    nodes
}

fn queue_node(queue: &QueueDraft) -> QueueNode {
    QueueNode {
        name: queue.storage.name().to_owned(),
        dag: DagIndex::new(queue.dag as u16),
        options: *queue.storage.options(),
        event_type_name: queue.event_type_name,
        producers: Vec::new(),
        consumers: Vec::new(),
    }
}
