//! What overload, queues and the metronome leave in a trace. One process, one session, hence one test.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::mpsc::channel;
use std::time::Duration;
use typhon_engine::Engine;
use typhon_profiler::export::MemoryExporter;
use typhon_profiler::session::{self, SessionOptions};
use typhon_runtime::{Priority, Runtime};
use typhon_trace::event::EventView;

const INTERVAL: Duration = Duration::from_nanos(16_666_667);

/// A busy world that is stepped into overload and back.
fn step_through_overload() {
    let engine = Engine::builder().build().unwrap();
    let runtime = Runtime::create(&engine, |schedule| {
        let sim = schedule.public_track().declare_dag("Sim");
        let queue = sim.event_queue::<u32>("Events", 16);
        let push = queue.clone();
        sim.callback_system("Producer", move |ctx| push.push(ctx, 1)).writes_events(&queue);
        sim.callback_system("Gated", |_| {}).run_if(|_| false);
        sim.callback_system("Throttled", |_| {}).throttled_tick_divisor(4);
        sim.callback_system("Shed", |_| {}).priority(Priority::Low).can_shed();
    });
    let runtime = runtime.unwrap();
    let mut now = Duration::ZERO;
    for length in [10.0; 5].into_iter().chain([0.1; 20]) {
        now += INTERVAL;
        runtime.step_as_if(now, INTERVAL.mul_f64(length)).unwrap();
    }
    runtime.shutdown().unwrap();
}

/// A world that keeps its own time for a few ticks.
fn keep_time() {
    let engine = Engine::builder().runtime(|runtime| runtime.base_tick_rate_hz = 1000).build().unwrap();
    let (sender, ticks) = channel();
    let runtime = Runtime::create(&engine, |schedule| {
        let sim = schedule.public_track().declare_dag("Sim");
        sim.callback_system("Tick", move |ctx| _ = sender.send(ctx.tick_number()));
    });
    let runtime = runtime.unwrap();
    runtime.start().unwrap();
    assert_eq!(ticks.iter().take(5).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    runtime.shutdown().unwrap();
}

/// One line for each record of the kinds that this is about.
fn record(run: impl FnOnce()) -> Vec<String> {
    let (exporter, trace) = MemoryExporter::new();
    let mask = [0, 1, 156, 157, 158, 241, 242, 244].into_iter().collect();
    session::start(SessionOptions { mask, exporters: vec![Box::new(exporter)], ..Default::default() })
        .unwrap();
    run();
    session::stop().unwrap();
    let mut lines = Vec::new();
    trace.for_each(|record| lines.extend(EventView::new(record).and_then(line)));
    lines
}

/// `None` of what the profiler says about itself.
fn line(view: EventView<'_>) -> Option<String> {
    Some(match view {
        EventView::TickEnd(end) => format!("tick end {} {}", end.overload_level()?.0, end.tick_multiplier()?),
        EventView::SchedulerOverloadLevelChange(change) => {
            format!("level {} to {}", change.prev_lvl()?.0, change.new_lvl()?.0)
        }
        EventView::SchedulerOverloadSystemShed(shed) => {
            format!("shed {} {} {}", shed.sys_idx()?, shed.divisor()?, shed.decision()?.0)
        }
        EventView::SchedulerOverloadTickMultiplier(at) => {
            format!("multiplier {} {}", at.tick()?, at.multiplier()?)
        }
        EventView::SchedulerMetronomeWait(wait) => {
            assert!(wait.scheduled_timestamp()? > 0);
            format!("wait {}", wait.intent_class()?.0)
        }
        EventView::SchedulerOverloadDetector(state) => {
            let counts = (state.consecutive_overrun()?, state.consecutive_underrun()?);
            format!("state {} {} {counts:?}", state.tick()?, state.level()?.0)
        }
        EventView::QueueTickEnd(queue) => {
            format!("queue {} {} {}", queue.tick()?, queue.produced()?, queue.end_of_tick_depth()?)
        }
        _ => return None,
    })
}

#[test]
fn overload_queues_and_metronome_are_in_the_trace() {
    let lines = record(step_through_overload);
    let first: Vec<_> = lines.iter().take(3).map(String::as_str).collect();
    assert_eq!(first, ["tick end 0 1", "queue 0 1 1", "state 0 0 (1, 0)"]);
    let changes: Vec<_> = lines.iter().filter(|line| line.starts_with("level")).collect();
    assert_eq!(changes, ["level 0 to 1", "level 1 to 0"]);
    let of = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    // Twenty ticks at level one: one system says no itself, one runs in five of them, one does not run.
    assert_eq!([of("shed 1 1 0"), of("shed 2 4 1"), of("shed 3 0 2"), of("shed")], [20, 15, 20, 55]);
    assert_eq!([of("state"), of("queue"), of("tick end 0 1"), of("tick end 1 1")], [25, 25, 5, 20]);

    let lines = record(keep_time);
    assert!(lines[0].starts_with("wait ") && lines[1] == "multiplier 0 1" && lines[2] == "tick end 0 1");
    assert!(lines.iter().any(|line| line == "multiplier 4 1"));
}
