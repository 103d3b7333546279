//! From declarations to what execution gets.

use std::sync::Arc;

use typhon_profiler::Ticks;

use super::resolve::{Resolved, resolve};
use super::rules::derive;
use super::{BuiltSchedule, QueueDeclaration, Schedule, ScheduleBuildError, ScheduleFault, ScheduleOptions};
use super::{Priority, ScheduleWarning};
use crate::QueueId;
use crate::event_queue::Roles;
use crate::graph::{Cycle, Graph, Nodes};

impl Schedule {
    /// Checks everything that was declared, and builds the graph. No builder outlives the schedule:
    ///
    /// ```compile_fail
    /// # use typhon_runtime::schedule::Schedule;
    /// let schedule = Schedule::new();
    /// let sim = schedule.public_track().declare_dag("Sim");
    /// let built = schedule.build(&Default::default());
    /// sim.callback_system("Late", |_| {});
    /// ```
    ///
    /// Time and memory grow with the number of systems, and with the square of the number that share one thing.
    ///
    /// # Errors
    /// All faults at once; see [`ScheduleFault`].
    pub fn build(self, options: &ScheduleOptions) -> Result<BuiltSchedule, ScheduleBuildError> {
        let build_start = Ticks::now();
        let resolved = resolve(self.draft.into_inner()).map_err(ScheduleBuildError::new)?;
        let Resolved { nodes, bodies, gates, queue_storage, mut faults } = resolved;
        let mut warnings = warnings(&nodes);
        note_undeclared(&nodes, options, &mut warnings, &mut faults);
        let derived = derive(&nodes);
        faults.extend(derived.faults);
        let graph = match Graph::new(nodes, derived.edges) {
            Ok(graph) => graph,
            Err(cycles) => {
                faults.extend(cycles.into_iter().map(cycle_fault));
                return Err(ScheduleBuildError::new(faults));
            }
        };
        if !faults.is_empty() {
            return Err(ScheduleBuildError::new(faults));
        }
        for (at, storage) in queue_storage.iter().enumerate() {
            let roles = Roles::of(&graph, QueueId::new(at as u16));
            let bound = storage.bind(roles);
            debug_assert!(bound.is_ok(), "a queue belongs to the schedule that made it");
        }
        let queues = queue_storage.into_iter().map(|storage| QueueDeclaration { storage }).collect();
        let build_time = build_start..Ticks::now();
        Ok(BuiltSchedule { graph: Arc::new(graph), bodies, gates, queues, warnings, build_time })
    }
}

fn cycle_fault(cycle: Cycle) -> ScheduleFault {
    let (systems, reasons) =
        cycle.steps.into_iter().map(|(name, reasons)| (name, reasons.to_string())).unzip();
    ScheduleFault::Cycle { systems, reasons }
}

fn warnings(nodes: &Nodes) -> Vec<ScheduleWarning> {
    let shed = nodes.systems.iter().filter(|system| system.can_shed && system.priority != Priority::Low);
    let mut found: Vec<ScheduleWarning> =
        shed.map(|system| ScheduleWarning::ShedWithoutLowPriority { system: system.name.clone() }).collect();
    for queue in &nodes.queues {
        match (queue.producers.is_empty(), queue.consumers.is_empty()) {
            (true, false) => found.push(ScheduleWarning::NoProducer { queue: queue.name.clone() }),
            (false, true) => found.push(ScheduleWarning::NoConsumer { queue: queue.name.clone() }),
            (true, true) | (false, false) => {}
        }
    }
    found
}

/// Systems outside the engine's tracks that touch nothing, as far as they say.
fn note_undeclared(
    nodes: &Nodes,
    options: &ScheduleOptions,
    warnings: &mut Vec<ScheduleWarning>,
    faults: &mut Vec<ScheduleFault>,
) {
    let of_user = nodes.systems.iter().filter(|system| {
        let dag = &nodes.dags[system.dag.as_usize()];
        !nodes.tracks[dag.track.as_usize()].is_engine
    });
    let systems: Vec<String> =
        of_user.filter(|system| !system.declares_access()).map(|system| system.name.clone()).collect();
    if systems.is_empty() {
        return;
    }
    if options.require_access_declarations {
        faults.push(ScheduleFault::NoDeclarations { systems });
    } else {
        warnings.push(ScheduleWarning::NoDeclarations { systems });
    }
}
