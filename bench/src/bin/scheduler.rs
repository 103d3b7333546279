//! What a tick costs: empty systems in different graphs, one worker and two, tracing off and on; with `--features bevy`
//! beside bevy_ecs's executors on the same graphs in the same run.
//!
//! The floor is a loop that calls the same boxed closures with two reads of the clock around each: what anybody pays who
//! wants to know how long each system takes.

use bench::Pair;
use bench::graphs::Shape;
use bench::ticking::Ticking;
use std::hint::black_box;
use std::time::Duration;
use typhon_profiler::Ticks;
use typhon_profiler::gates::KindMask;
use typhon_profiler::session::{self, SessionOptions};

const ROUNDS: usize = 60;
/// Between two rounds; time for the profiler to put away what was recorded, as there is between the ticks of a world.
const PAUSE: Duration = Duration::from_millis(3);

/// Kinds that are recorded when nothing but the profiler is switched on, as far as schedulers have them.
const CORE: &[u8] = &[0, 1, 4, 5, 10, 243];
/// All kinds of the scheduler.
const ALL: &[u8] =
    &[0, 1, 4, 5, 10, 146, 147, 148, 149, 150, 151, 152, 153, 154, 155, 159, 241, 242, 243, 244];

fn main() {
    println!(
        "empty tick, and nanoseconds per system; floor and subject in turn, fastest round / median ratio\n"
    );
    for (shape, systems) in [
        (Shape::Independent, 1),
        (Shape::Independent, 100),
        (Shape::Independent, 1000),
        (Shape::Chain, 100),
        (Shape::Chain, 1000),
        (Shape::Fan, 100),
        (Shape::Fan, 1000),
        (Shape::Layers, 1000),
    ] {
        println!("{systems} systems, {shape:?}");
        ours(shape, systems);
        #[cfg(feature = "bevy")]
        bevy::measure(shape, systems);
        println!();
    }
}

fn ours(shape: Shape, systems: usize) {
    for (name, kinds) in [("not traced", None), ("traced", Some(CORE)), ("all kinds", Some(ALL))] {
        for (workers, helps) in [(1, false), (2, false), (2, true)] {
            if helps && kinds == Some(ALL) {
                continue;
            }
            let ticking = Ticking::empty(shape, systems, workers, helps);
            let label = match (workers, helps) {
                (1, _) => format!("1 worker, {name}"),
                (_, false) => format!("2 workers, {name}"),
                (_, true) => format!("2 workers, always helping, {name}"),
            };
            record(kinds, || measure(&label, systems, || ticking.step()));
        }
    }
}

/// Records these kinds meanwhile, to nowhere.
fn record(kinds: Option<&[u8]>, work: impl FnOnce()) {
    if let Some(kinds) = kinds {
        let mut mask = KindMask::EMPTY;
        kinds.iter().for_each(|&kind| mask.insert(kind));
        session::start(SessionOptions { mask, ..SessionOptions::default() }).expect("a session starts");
    }
    work();
    session::stop();
}

/// Measures ticks of something beside the floor.
fn measure(label: &str, systems: usize, mut tick: impl FnMut()) {
    let ticks = 20_000 / systems.max(20);
    let mut closures: Vec<Box<dyn FnMut() -> Result<(), ()> + Send>> =
        (0..systems).map(|_| Box::new(|| Ok(())) as _).collect();
    let floor = || {
        for _ in 0..ticks {
            for closure in &mut closures {
                let start = Ticks::now();
                black_box(closure()).expect("it does nothing");
                black_box((start, Ticks::now()));
            }
        }
    };
    let pair =
        Pair::measure_with(ROUNDS, || std::thread::sleep(PAUSE), floor, || (0..ticks).for_each(|_| tick()));
    let per_tick = pair.fastest_subject() / ticks as u32;
    println!(
        "  {label:<38} tick {:>9.3} µs  per system {:>7.1} ns  ratio {:>6.2} / {:>6.2}",
        us(per_tick),
        us(per_tick) * 1e3 / systems as f64,
        pair.ratio_of_minima(),
        pair.median_ratio(),
    );
}

fn us(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(feature = "bevy")]
mod bevy {
    use super::Shape;
    use bevy_ecs::schedule::{
        IntoScheduleConfigs, MultiThreadedExecutor, Schedule, SingleThreadedExecutor, SystemSet,
    };
    use bevy_ecs::world::World;
    use bevy_tasks::{ComputeTaskPool, TaskPoolBuilder};

    #[derive(SystemSet, Debug, Clone, PartialEq, Eq, Hash)]
    struct Place(usize);

    fn measure_executor(label: &str, systems: usize, mut schedule: Schedule) {
        let mut world = World::new();
        schedule.run(&mut world);
        super::measure(label, systems, || schedule.run(&mut world));
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

    pub fn measure(shape: Shape, systems: usize) {
        ComputeTaskPool::get_or_init(|| TaskPoolBuilder::new().num_threads(2).build());
        let mut single = schedule(shape, systems);
        single.set_executor(SingleThreadedExecutor::new());
        measure_executor("bevy_ecs, single-threaded executor", systems, single);
        let mut multi = schedule(shape, systems);
        multi.set_executor(MultiThreadedExecutor::new());
        measure_executor("bevy_ecs, multi-threaded, 2 threads", systems, multi);
    }
}
