//! Ticks, gauges and native memory of programs without a runtime of ours.

use super::{Home, TRACE};
use typhon_profiler::gauges::{Gauge, GaugeValue};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("b26_tick_guard_records_ticks_gauges_and_memory", tick_guard_records_ticks_gauges_and_memory),
    ("b26_gauges_are_read_at_intervals_without_ticks", gauges_are_read_at_intervals_without_ticks),
];

fn value(gauges: &[Gauge], id: u16) -> Option<GaugeValue> {
    gauges.iter().find(|gauge| gauge.id == id).map(|gauge| gauge.value)
}

fn tick_guard_records_ticks_gauges_and_memory() {
    let home = Home::new();
    home.configure(
        r#"{ "Typhon": { "Profiler": { "Trace": "run.typhon-trace", "Gauges": { "Enabled": true, "IntervalMs": 3600000 },
             "MemoryAllocations": { "Enabled": true }, "Memory": { "Enabled": true } } } }"#,
    );
    assert!(home.run("ticks", &[]).is_well());
    let recording = home.recording(TRACE);
    // The block that was there before the first tick started the recording is in the totals only.
    let spine: Vec<u8> =
        recording.kinds.iter().copied().filter(|kind| [0, 1, 9, 76].contains(kind)).collect();
    assert_eq!(spine, [0, 9, 9, 1, 76, 0, 9, 9, 1, 76, 0, 9, 9, 1, 76, 9]);
    let numbers: Vec<u32> = recording.snapshots.iter().map(|(tick, _)| *tick).collect();
    assert_eq!(numbers, [10, 11, 12]);
    for (index, (_, gauges)) in recording.snapshots.iter().enumerate() {
        assert_eq!(value(gauges, 0x0100), Some(GaugeValue::U64Bytes(1_000)));
        assert_eq!(value(gauges, 0x0101), Some(GaugeValue::U64Bytes(1_500)));
        assert_eq!(value(gauges, 0x0102), Some(GaugeValue::U32Count(1)));
        assert_eq!(value(gauges, 0x8000), Some(GaugeValue::I64Signed(-5)));
        let capacity = (index == 0).then_some(GaugeValue::U32Count(256));
        assert_eq!(value(gauges, 0x0200), capacity, "capacities are in the first snapshot only");
    }
}

fn gauges_are_read_at_intervals_without_ticks() {
    let home = Home::new();
    let environment = [
        ("TYPHON__PROFILER__TRACE", TRACE),
        ("TYPHON__PROFILER__GAUGES__ENABLED", "on"),
        ("TYPHON__PROFILER__GAUGES__INTERVALMS", "1"),
    ];
    assert!(home.run("interval", &environment).is_well());
    let recording = home.recording(TRACE);
    let values: Vec<GaugeValue> =
        recording.snapshots.iter().filter_map(|(_, gauges)| value(gauges, 0x8001)).collect();
    assert!(values.len() >= 3, "{values:?}");
    assert!(values.iter().zip(0..).all(|(value, index)| *value == GaugeValue::U32Count(index)), "{values:?}");
}
