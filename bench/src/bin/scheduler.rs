//! What a tick costs: empty systems in different graphs, one worker and two, tracing off and on; with `--features bevy`
//! beside bevy_ecs's executors on the same graphs in the same run.
//!
//! The floor is a loop that calls the same boxed closures with two reads of the clock around each: what anybody pays who
//! wants to know how long each system takes.

use bench::graphs::Shape;
use bench::ticking::{Ticking, per_system};
use typhon_profiler::gates::KindMask;
use typhon_profiler::session::{self, SessionOptions};

const ROUNDS: usize = 60;

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
        for (label, mut run) in bench::bevy::schedules(shape, systems) {
            per_system(label, systems, ROUNDS, &mut run);
        }
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
            record(kinds, || per_system(&label, systems, ROUNDS, || ticking.step()));
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
