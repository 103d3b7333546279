//! The two formats as receivers of a conversion.

use super::chrome::ChromeWriter;
use super::convert::{EventSink, Place, SourceEvent};
use super::event::{Annotation, EventText};
use super::perfetto::{CounterUnit, PerfettoWriter, Track, TrackUuid};
use std::collections::HashMap;
use std::io::{self, Write};
use typhon_trace::registry::GaugeValueKind;

const PROCESS: TrackUuid = 1;
/// Thread numbers start above that of the process, which would make a lane its main thread.
const FIRST_TID: u32 = 2;

/// Writes a conversion as a Perfetto trace.
#[derive(Debug)]
pub struct PerfettoSink<W> {
    writer: PerfettoWriter<W>,
    tracks: HashMap<Place, TrackUuid>,
    counters: HashMap<String, TrackUuid>,
    next_uuid: TrackUuid,
}

impl<W: Write> PerfettoSink<W> {
    /// Starts a trace of a process with this name.
    pub fn new(out: W, process_name: &str) -> io::Result<Self> {
        let mut writer = PerfettoWriter::new(out);
        writer.track(PROCESS, Track::Process { name: process_name })?;
        Ok(Self { writer, tracks: HashMap::new(), counters: HashMap::new(), next_uuid: PROCESS + 1 })
    }

    /// Gives the destination back, not yet flushed.
    pub fn finish(self) -> W {
        self.writer.into_inner()
    }

    fn uuid(&mut self) -> TrackUuid {
        let uuid = self.next_uuid;
        self.next_uuid += 1;
        uuid
    }

    fn track(&self, place: Place) -> TrackUuid {
        self.tracks.get(&place).copied().unwrap_or(PROCESS)
    }
}

impl<W: Write> EventSink for PerfettoSink<W> {
    fn place(&mut self, place: Place, label: &str) -> io::Result<()> {
        let uuid = self.uuid();
        self.tracks.insert(place, uuid);
        let track = match place {
            Place::Thread(index) => Track::Thread { tid: FIRST_TID + index as u32, name: label },
            Place::Overlap { thread, .. } => {
                Track::Child { parent: self.track(Place::Thread(thread)), name: label }
            }
            Place::Gc | Place::Ticks => Track::Child { parent: PROCESS, name: label },
            Place::GcOverlap(_) => Track::Child { parent: self.track(Place::Gc), name: label },
        };
        self.writer.track(uuid, track)
    }

    fn begin(&mut self, place: Place, start_ns: i64, event: &SourceEvent<'_>) -> io::Result<()> {
        let track = self.track(place);
        event.with_text(|text| self.writer.begin(start_ns, track, text))
    }

    fn end(&mut self, place: Place, _start_ns: i64, end_ns: i64, _event: &SourceEvent<'_>) -> io::Result<()> {
        self.writer.end(end_ns, self.track(place))
    }

    fn instant(&mut self, place: Place, at_ns: i64, event: &SourceEvent<'_>) -> io::Result<()> {
        let track = self.track(place);
        event.with_text(|text| self.writer.instant(at_ns, track, text))
    }

    fn counter(
        &mut self,
        name: &str,
        kind: GaugeValueKind,
        at_ns: i64,
        value: Annotation<'_>,
    ) -> io::Result<()> {
        let uuid = match self.counters.get(name) {
            Some(uuid) => *uuid,
            None => {
                let uuid = self.uuid();
                let unit = counter_unit(name, kind);
                self.writer.track(uuid, Track::Counter { parent: PROCESS, name, unit })?;
                self.counters.insert(name.to_owned(), uuid);
                uuid
            }
        };
        self.writer.counter(at_ns, uuid, value)
    }

    fn tick(&mut self, start_ns: i64, end_ns: i64, number: i64) -> io::Result<()> {
        let track = self.track(Place::Ticks);
        let annotations = [("number", Annotation::Int(number))];
        let text = EventText { name: "Tick", category: "Tick", annotations: &annotations, flows: &[] };
        self.writer.begin(start_ns, track, text)?;
        self.writer.end(end_ns, track)
    }
}

/// Writes a conversion as Chrome JSON.
#[derive(Debug)]
pub struct ChromeSink<W> {
    writer: ChromeWriter<W>,
    tids: HashMap<Place, u32>,
    next_tid: u32,
    next_async_id: u64,
}

impl<W: Write> ChromeSink<W> {
    /// Starts a trace of a process with this name.
    pub fn new(out: W, process_name: &str) -> io::Result<Self> {
        let mut writer = ChromeWriter::new(out)?;
        writer.process(process_name)?;
        Ok(Self { writer, tids: HashMap::new(), next_tid: FIRST_TID, next_async_id: 1 })
    }

    /// Closes the document and gives the destination back, not yet flushed.
    pub fn finish(self) -> io::Result<W> {
        self.writer.finish()
    }

    /// Overlapping slices are drawn in the lane they belong to, as asynchronous ones.
    fn tid(&self, place: Place) -> u32 {
        let home = match place {
            Place::Overlap { thread, .. } => Place::Thread(thread),
            Place::GcOverlap(_) => Place::Gc,
            place => place,
        };
        self.tids.get(&home).copied().unwrap_or(0)
    }
}

impl<W: Write> EventSink for ChromeSink<W> {
    fn place(&mut self, place: Place, label: &str) -> io::Result<()> {
        if matches!(place, Place::Overlap { .. } | Place::GcOverlap(_)) {
            return Ok(());
        }
        let tid = self.next_tid;
        self.next_tid += 1;
        self.tids.insert(place, tid);
        self.writer.thread(tid, label)
    }

    fn begin(&mut self, _place: Place, _start_ns: i64, _event: &SourceEvent<'_>) -> io::Result<()> {
        // Slices are written whole, when they end.
        Ok(())
    }

    fn end(&mut self, place: Place, start_ns: i64, end_ns: i64, event: &SourceEvent<'_>) -> io::Result<()> {
        let (tid, duration_ns) = (self.tid(place), end_ns.saturating_sub(start_ns));
        event.with_text(|text| {
            if matches!(place, Place::Overlap { .. } | Place::GcOverlap(_)) {
                let id = self.next_async_id;
                self.next_async_id += 1;
                self.writer.async_slice(start_ns, duration_ns, tid, id, text)?;
            } else {
                self.writer.slice(start_ns, duration_ns, tid, text)?;
            }
            for flow in text.flows {
                self.writer.flow(event.flow_end(*flow), start_ns, tid, *flow, text.name)?;
            }
            Ok(())
        })
    }

    fn instant(&mut self, place: Place, at_ns: i64, event: &SourceEvent<'_>) -> io::Result<()> {
        let tid = self.tid(place);
        event.with_text(|text| self.writer.instant(at_ns, tid, text))
    }

    fn counter(
        &mut self,
        name: &str,
        _kind: GaugeValueKind,
        at_ns: i64,
        value: Annotation<'_>,
    ) -> io::Result<()> {
        self.writer.counter(at_ns, name, value)
    }

    fn tick(&mut self, start_ns: i64, end_ns: i64, number: i64) -> io::Result<()> {
        let tid = self.tid(Place::Ticks);
        let number = [("number", Annotation::Int(number))];
        let text = EventText { name: "Tick", category: "Tick", annotations: &number, flows: &[] };
        self.writer.slice(start_ns, end_ns.saturating_sub(start_ns), tid, text)
    }
}

/// The encoding `U64Bytes` also carries totals and ages, so that only the name tells what is counted.
fn counter_unit(name: &str, kind: GaugeValueKind) -> CounterUnit {
    match kind {
        _ if name.ends_with("Bytes") => CounterUnit::Bytes,
        GaugeValueKind::U64Bytes | GaugeValueKind::U32Count if !name.ends_with("Ticks") => CounterUnit::Count,
        _ => CounterUnit::Unspecified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use typhon_trace::registry;

    #[test]
    fn only_gauges_of_bytes_have_the_unit_bytes() {
        let unit = |name: &str| {
            let gauge = registry::GAUGES.iter().find(|gauge| gauge.name == name).expect(name);
            counter_unit(gauge.name, gauge.value_kind)
        };
        assert_eq!(unit("MemoryUnmanagedTotalBytes"), CounterUnit::Bytes);
        assert_eq!(unit("TxChainCommitTotal"), CounterUnit::Count);
        assert_eq!(unit("MemoryUnmanagedLiveBlocks"), CounterUnit::Count);
        assert_eq!(unit("MemoryFragmentationPctHundredths"), CounterUnit::Unspecified);
    }
}
