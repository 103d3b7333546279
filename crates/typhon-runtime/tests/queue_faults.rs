//! Rules about event queues that a schedule can break.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{build, expect_all, pick, s, sim, system};
use typhon_runtime::Priority;
use typhon_runtime::event_queue::{FullPolicy, QueueOptions};
use typhon_runtime::schedule::{
    BuiltSchedule, Schedule, ScheduleBuildError, ScheduleFault as Fault, Subject,
};
use typhon_runtime::system::{ChunkCtx, Chunks};

#[test]
fn b45_capacities_names_and_drains() {
    expect_all(vec![
        (
            "capacities",
            |schedule, mended| {
                let dag = sim(schedule);
                dag.event_queue::<u8>("Odd", pick(mended, 1024, 1000));
                let grow = QueueOptions::from(1024).full(FullPolicy::Grow(pick(mended, 4096, 512)));
                dag.event_queue::<u8>("Shrinks", grow);
            },
            vec![
                Fault::QueueOptions { queue: s("Odd"), fault: QueueOptions::from(1000).faults().remove(0) },
                Fault::QueueOptions {
                    queue: s("Shrinks"),
                    fault: QueueOptions::from(1024).full(FullPolicy::Grow(512)).faults().remove(0),
                },
            ],
        ),
        (
            "names",
            |schedule, mended| {
                sim(schedule).event_queue::<u8>("Hits", 8);
                let late = schedule.declare_track("Late", &[]).declare_dag("Last");
                late.event_queue::<u8>(pick(mended, "Misses", "Hits"), 8);
                late.event_queue::<u8>(pick(mended, "Others", ""), 8);
            },
            vec![
                Fault::DuplicateQueue { queue: s("Hits") },
                Fault::EmptyName { place: s("an event queue of DAG \"Last\"") },
            ],
        ),
        (
            "a consumer that takes events away, beside another",
            |schedule, mended| {
                let dag = sim(schedule);
                let queue = dag.event_queue::<u8>("Hits", 8);
                system(dag, "Move").writes_events(&queue);
                system(dag, "Count").reads_events(&queue);
                let clear = system(dag, "Clear").drains_events(&queue);
                if mended {
                    clear.after("Count");
                }
            },
            vec![Fault::DrainConflict {
                first: s("Count"),
                second: s("Clear"),
                phase: s("A"),
                subjects: vec![Subject::Queue(s("Hits"))],
            }],
        ),
    ]);
}

#[test]
fn b45_a_handle_of_another_schedule_is_refused() {
    let other = Schedule::new();
    let foreign = sim(&other).event_queue::<u8>("Hits", 8);
    let error = build(|schedule| {
        let dag = sim(schedule);
        dag.event_queue::<u8>("Hits", 8);
        system(dag, "Count").reads_events(&foreign);
    });
    assert_eq!(error.unwrap_err().faults(), [Fault::ForeignQueue { system: s("Count") }]);
}

/// Divisor, divisor under overload, priority, can be shed.
type Pace = (u32, u32, Priority, bool);

#[test]
fn b45_a_consumer_that_can_miss_its_producer_needs_carry_over() {
    use Priority::{High, Low, Normal};
    let cases: [(Pace, Pace, Option<&str>); 12] = [
        ((1, 1, Normal, false), (1, 1, Normal, false), None),
        ((2, 1, Normal, false), (1, 1, Normal, false), None),
        ((4, 1, Normal, false), (2, 1, Normal, false), None),
        ((1, 1, Normal, false), (2, 1, Normal, false), Some("its tick_divisor is no divisor of the other's")),
        ((4, 1, Normal, false), (3, 1, Normal, false), Some("its tick_divisor is no divisor of the other's")),
        ((1, 1, Normal, false), (1, 1, Low, true), Some("it can be shed under overload")),
        ((1, 1, Low, true), (1, 1, Low, true), None),
        // Of a high system, or without low priority, overload takes nothing.
        ((1, 1, Normal, false), (1, 1, Normal, true), None),
        ((1, 1, Normal, false), (1, 2, High, false), None),
        ((1, 2, Normal, false), (1, 2, Low, false), None),
        ((1, 6, Normal, false), (1, 3, Low, false), None),
        (
            (1, 1, High, false),
            (1, 2, Low, false),
            Some("its divisor under overload is no divisor of the other's"),
        ),
    ];
    for (producer, consumer, because) in cases {
        for carry_over in [false, true] {
            let result = build(|schedule| {
                let dag = sim(schedule);
                let queue = dag.event_queue::<u8>("Hits", QueueOptions { carry_over, ..8.into() });
                let paced = |name, (divisor, throttled, priority, sheds): Pace| {
                    let builder = system(dag, name).tick_divisor(divisor).throttled_tick_divisor(throttled);
                    let builder = builder.priority(priority);
                    if sheds { builder.can_shed() } else { builder }
                };
                paced("Move", producer).writes_events(&queue);
                paced("Count", consumer).reads_events(&queue);
            });
            expect_miss(result, because.filter(|_| !carry_over), &format!("{producer:?} {consumer:?}"));
        }
    }
}

#[test]
fn b45_a_gated_consumer_can_miss_its_producer() {
    let because = Some("it has a gate of its own");
    let gated = build(|schedule| {
        let dag = sim(schedule);
        let queue = dag.event_queue::<u8>("Hits", 8);
        system(dag, "Move").writes_events(&queue);
        system(dag, "Count").reads_events(&queue).run_if(|tick| tick.number > 3);
    });
    expect_miss(gated, because, "run_if");
    for hook in [true, false] {
        let gated = build(|schedule| {
            let dag = sim(schedule);
            let queue = dag.event_queue::<u8>("Hits", 8);
            system(dag, "Move").writes_events(&queue).run_if(|_| true);
            let counts = dag.chunked_system_with("Count", 4, |_: &u32, _: &ChunkCtx<'_>| {});
            let counts = counts.reads_events(&queue);
            if hook {
                counts.should_run(|_| true)
            } else {
                counts.prepare(|_| Chunks::Skip)
            };
        });
        expect_miss(gated, because, "hook");
    }
}

fn expect_miss(result: Result<BuiltSchedule, ScheduleBuildError>, because: Option<&'static str>, case: &str) {
    let faults = result.map_or_else(|error| error.faults().to_vec(), |_| Vec::new());
    let expected = because.map(|because| Fault::ConsumerCanMiss {
        queue: s("Hits"),
        consumer: s("Count"),
        producer: s("Move"),
        because,
    });
    assert_eq!(faults, Vec::from_iter(expected), "{case}");
}
