//! Schedules of bevy_ecs, to be measured beside.

use crate::graphs::Shape;
use bevy_ecs::schedule::{
    IntoScheduleConfigs, MultiThreadedExecutor, Schedule, SingleThreadedExecutor, SystemSet,
};
use bevy_ecs::world::World;
use bevy_tasks::{ComputeTaskPool, TaskPoolBuilder};

#[derive(SystemSet, Debug, Clone, PartialEq, Eq, Hash)]
struct Place(usize);

/// Each of its executors: a label, and what runs a tick of systems that do nothing.
pub fn schedules(shape: Shape, systems: usize) -> [(&'static str, Box<dyn FnMut()>); 2] {
    ComputeTaskPool::get_or_init(|| TaskPoolBuilder::new().num_threads(2).build());
    let mut single = schedule(shape, systems);
    single.set_executor(SingleThreadedExecutor::new());
    let mut multi = schedule(shape, systems);
    multi.set_executor(MultiThreadedExecutor::new());
    [("bevy_ecs, single-threaded executor", single), ("bevy_ecs, multi-threaded, 2 threads", multi)]
        .map(|(label, schedule)| (label, running(schedule)))
}

fn running(mut schedule: Schedule) -> Box<dyn FnMut()> {
    let mut world = World::new();
    schedule.run(&mut world);
    Box::new(move || schedule.run(&mut world))
}

fn schedule(shape: Shape, systems: usize) -> Schedule {
    let mut schedule = Schedule::default();
    for at in 0..systems {
        let mut system = (|| {}).in_set(Place(at));
        for before in shape.predecessors(at, systems) {
            system = system.after(Place(before));
        }
        schedule.add_systems(system);
    }
    schedule
}
