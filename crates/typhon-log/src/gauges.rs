//! The log's gauges, read once per tick.

use crate::log::Shared;
use crate::sync::Ordering;
use std::sync::{Arc, Weak};
use typhon_profiler::gauges::{self, GaugeValue, Readings, Registration};

/// Bytes of the ring that are in use, and its size; frames being written; the staging buffer, of which there is one.
pub(crate) fn register(shared: &Arc<Shared>) -> Registration {
    let shared: Weak<Shared> = Arc::downgrade(shared);
    gauges::register(move |readings: &mut Readings| {
        let Some(shared) = shared.upgrade() else { return };
        let stream = &shared.driven.stream;
        let in_flight = shared.told.frames_in_flight.load(Ordering::Relaxed);
        let groups = shared.told.groups.load(Ordering::Relaxed);
        readings.set(0x0300, GaugeValue::U64Bytes(stream.claimed_bytes()));
        readings.set(0x0301, GaugeValue::U64Bytes(stream.capacity()));
        readings.set(0x0302, GaugeValue::U32Count(in_flight));
        readings.set(0x0303, GaugeValue::U32Count(u32::from(in_flight > 0)));
        readings.set(0x0304, GaugeValue::U32Count(u32::from(groups > 0)));
        readings.set(0x0305, GaugeValue::U32Count(1));
        readings.set(0x0306, GaugeValue::U64Bytes(groups));
    })
}
