//! Options are checked before anything happens.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use typhon_engine::options::{InvalidOptions, RuntimeOptions, WorkerCount};
use typhon_engine::{Coded, Engine, ErrorCode};

fn refusal(change: impl FnOnce(&mut RuntimeOptions)) -> InvalidOptions {
    Engine::builder().runtime(change).build().unwrap_err()
}

/// The faults of one changed option.
fn faults(change: impl FnOnce(&mut RuntimeOptions)) -> Vec<String> {
    refusal(change).faults().iter().map(|fault| fault.option.to_owned()).collect()
}

#[test]
fn b76_each_rule_refuses() {
    type Change = fn(&mut RuntimeOptions);
    let rules: &[(&str, &[Change])] = &[
        ("runtime.base_tick_rate_hz", &[|o| o.base_tick_rate_hz = 1001]),
        ("runtime.worker_count", &[|o| o.worker_count = WorkerCount::Fixed(0)]),
        (
            "runtime.telemetry_ring_capacity",
            &[
                |o| o.telemetry_ring_capacity = 0,
                |o| o.telemetry_ring_capacity = 1000,
                |o| o.telemetry_ring_capacity = 1 << 21,
            ],
        ),
        (
            "runtime.max_delta_time_seconds",
            &[|o| o.max_delta_time_seconds = 0.0, |o| o.max_delta_time_seconds = f64::NAN],
        ),
        ("runtime.stall_warn_ms", &[|o| o.stall_warn_ms = 0]),
        ("runtime.shutdown_stall_grace_ms", &[|o| o.shutdown_stall_grace_ms = 0]),
        (
            "runtime.overload.deescalation_ratio",
            &[|o| o.overload.deescalation_ratio = 0.0, |o| o.overload.deescalation_ratio = f32::INFINITY],
        ),
        (
            "runtime.overload.overrun_threshold",
            &[|o| o.overload.overrun_threshold = 0.6, |o| o.overload.overrun_threshold = f32::NAN],
        ),
        ("runtime.overload.escalation_ticks", &[|o| o.overload.escalation_ticks = 0]),
        ("runtime.overload.deescalation_ticks", &[|o| o.overload.deescalation_ticks = 0]),
        (
            "runtime.overload.min_tick_rate_hz",
            &[|o| o.overload.min_tick_rate_hz = 0, |o| o.overload.min_tick_rate_hz = 61],
        ),
    ];
    for (option, changes) in rules {
        for change in *changes {
            assert_eq!(faults(change), [*option]);
        }
    }
}

#[test]
fn b76_bounds_are_accepted() {
    for (rate_hz, min_hz) in [(1, 1), (1000, 1000), (1000, 1)] {
        let built = Engine::builder()
            .runtime(|runtime| {
                runtime.base_tick_rate_hz = rate_hz;
                runtime.overload.min_tick_rate_hz = min_hz;
                runtime.worker_count = WorkerCount::Fixed(255);
                runtime.telemetry_ring_capacity = 1 << 20;
                runtime.max_catch_up_ticks = 0;
                runtime.overload.queue_growth_ticks = 0;
            })
            .build();
        assert!(built.is_ok());
    }
}

#[test]
fn b76_all_faults_are_reported_at_once_with_what_is_allowed() {
    let refusal = refusal(|runtime| {
        runtime.base_tick_rate_hz = 0;
        runtime.telemetry_ring_capacity = 1000;
        runtime.overload.overrun_threshold = 0.5;
    });
    assert_eq!(
        refusal.to_string(),
        "nothing was started, since \
         runtime.base_tick_rate_hz is 0, but must be from 1 to 1000; \
         runtime.telemetry_ring_capacity is 1000, but must be a power of two up to 1048576, as 1024; \
         runtime.overload.overrun_threshold is 0.5, but must be a finite number above \
         runtime.overload.deescalation_ratio, 0.6"
    );
    assert_eq!((refusal.code(), refusal.is_transient()), (ErrorCode::INVALID_OPTIONS, false));
}

#[test]
fn b30_workers_are_all_processors_up_to_eight_and_then_all_but_four() {
    let resolved = [0, 1, 2, 4, 8, 9, 16, 1000].map(|processors| WorkerCount::Auto.resolve(processors));
    assert_eq!(resolved, [1, 1, 2, 4, 8, 5, 12, 255]);
    assert_eq!((WorkerCount::Fixed(3).resolve(1), WorkerCount::Fixed(0).resolve(1)), (3, 1));
}
