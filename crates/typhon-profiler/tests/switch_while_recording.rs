//! Gates switched while a session records: what is off is not there, and the trace says when it was off (B-36).
#![allow(clippy::unwrap_used)]

mod common;

use typhon_profiler::config::{Overrides, Settings, resolve};
use typhon_profiler::events::{CheckpointCycle, SchedulerWorkerWake};
use typhon_profiler::gates::Gates;
use typhon_profiler::{emit, session, span};

const CHECKPOINT_CYCLE: u8 = 83;
const WORKER_WAKE: u8 = 151;

#[test]
fn b36_gates_switched_while_recording_are_marked_in_the_trace() {
    let settings = Settings::builder().overrides(Overrides::new().enabled(true));
    let resolved = resolve(&settings.build());
    let gates = Gates::new(&resolved, |change| _ = session::set_mask(change.mask));
    let one_of_each = || {
        drop(span!(CheckpointCycle::default()));
        emit(SchedulerWorkerWake::default);
    };

    let running = common::start(&resolved.mask().iter().collect::<Vec<_>>());
    one_of_each();
    gates.set("Scheduler", true).unwrap();
    one_of_each();
    gates.set("CheckpointCycle", false).unwrap();
    one_of_each();
    gates.set("Scheduler", false).unwrap();
    one_of_each();
    let (recorded, _) = common::stop(running);

    assert_eq!(recorded.of_kind(CHECKPOINT_CYCLE).len(), 2);
    assert_eq!(recorded.of_kind(WORKER_WAKE).len(), 2);
    let scheduler: Vec<i32> = (146..=160).chain([241, 242, 244]).collect();
    assert_eq!(recorded.markers("typhon.kind_on"), scheduler);
    let off: Vec<i32> = [i32::from(CHECKPOINT_CYCLE)].into_iter().chain(scheduler).collect();
    assert_eq!(recorded.markers("typhon.kind_off"), off);
}
