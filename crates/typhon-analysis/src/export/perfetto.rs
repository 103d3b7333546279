//! Perfetto's trace format: a stream of protobuf packets (brief 11 §5.5).
//!
//! All events go into one packet sequence with interned names. Slices of one track must nest and be given in order of time;
//! the reader of the format sorts packets by timestamp and keeps the order of equal ones, so a caller that writes ends
//! before begins at equal times, parents before children, gets exactly its nesting back.

use super::event::{Annotation, EventText};
use super::protobuf::Message;
use std::collections::HashMap;
use std::io::{self, Write};

/// Field numbers of Perfetto's published protos.
mod field {
    pub(super) const TRACE_PACKET: u32 = 1;
    pub(super) mod packet {
        pub(in super::super) const TIMESTAMP: u32 = 8;
        pub(in super::super) const SEQUENCE_ID: u32 = 10;
        pub(in super::super) const TRACK_EVENT: u32 = 11;
        pub(in super::super) const INTERNED_DATA: u32 = 12;
        pub(in super::super) const SEQUENCE_FLAGS: u32 = 13;
        pub(in super::super) const TRACK_DESCRIPTOR: u32 = 60;
    }
    pub(super) mod track {
        pub(in super::super) const UUID: u32 = 1;
        pub(in super::super) const NAME: u32 = 2;
        pub(in super::super) const PROCESS: u32 = 3;
        pub(in super::super) const THREAD: u32 = 4;
        pub(in super::super) const PARENT_UUID: u32 = 5;
        pub(in super::super) const COUNTER: u32 = 8;
        pub(in super::super) const PID: u32 = 1;
        pub(in super::super) const PROCESS_NAME: u32 = 6;
        pub(in super::super) const TID: u32 = 2;
        pub(in super::super) const THREAD_NAME: u32 = 5;
        pub(in super::super) const COUNTER_UNIT: u32 = 3;
    }
    pub(super) mod event {
        pub(in super::super) const CATEGORY_IID: u32 = 3;
        pub(in super::super) const DEBUG_ANNOTATION: u32 = 4;
        pub(in super::super) const TYPE: u32 = 9;
        pub(in super::super) const NAME_IID: u32 = 10;
        pub(in super::super) const TRACK_UUID: u32 = 11;
        pub(in super::super) const NAME: u32 = 23;
        pub(in super::super) const COUNTER_VALUE: u32 = 30;
        pub(in super::super) const DOUBLE_COUNTER_VALUE: u32 = 44;
        pub(in super::super) const FLOW_ID: u32 = 47;
    }
    pub(super) mod annotation {
        pub(in super::super) const NAME_IID: u32 = 1;
        pub(in super::super) const BOOL: u32 = 2;
        pub(in super::super) const UINT: u32 = 3;
        pub(in super::super) const INT: u32 = 4;
        pub(in super::super) const DOUBLE: u32 = 5;
        pub(in super::super) const STRING: u32 = 6;
    }
    pub(super) mod interned {
        pub(in super::super) const CATEGORY: u32 = 1;
        pub(in super::super) const EVENT_NAME: u32 = 2;
        pub(in super::super) const ANNOTATION_NAME: u32 = 3;
        pub(in super::super) const IID: u32 = 1;
        pub(in super::super) const NAME: u32 = 2;
    }
}

const SEQUENCE_ID: u64 = 1;
const FLAG_STATE_CLEARED: u64 = 1;
const FLAG_NEEDS_STATE: u64 = 2;
/// The one process of a trace.
const PID: u64 = 1;

/// Identity of a track; any number that is unique in the file, not 0.
pub type TrackUuid = u64;

/// What a track is.
#[derive(Debug, Clone, Copy)]
pub enum Track<'a> {
    /// The recorded process.
    Process {
        /// Its name.
        name: &'a str,
    },
    /// A thread lane, below the process.
    Thread {
        /// Any number unique among lanes, ≥ 2.
        tid: u32,
        /// Its name.
        name: &'a str,
    },
    /// A track of slices or instants below another one.
    Child {
        /// Its parent.
        parent: TrackUuid,
        /// Its name.
        name: &'a str,
    },
    /// A track of values below another one.
    Counter {
        /// Its parent.
        parent: TrackUuid,
        /// Its name.
        name: &'a str,
        /// Unit of its values.
        unit: CounterUnit,
    },
}

/// Unit of a counter track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterUnit {
    /// None that Perfetto knows.
    Unspecified = 0,
    /// Nanoseconds.
    TimeNs = 1,
    /// A count.
    Count = 2,
    /// Bytes.
    Bytes = 3,
}

/// Writes a Perfetto trace.
#[derive(Debug)]
pub struct PerfettoWriter<W> {
    out: W,
    packet: Message,
    names: Interner,
    categories: Interner,
    annotation_names: Interner,
    is_first: bool,
}

/// Names that get an id; programs can make up any number of them, and those beyond are written out each time.
const MAX_NAMES: usize = 1 << 16;

/// Ids of texts that the file has seen.
#[derive(Debug, Default)]
struct Interner {
    ids: HashMap<String, u64>,
}

impl Interner {
    /// The id, and whether the text is new.
    fn intern(&mut self, text: &str) -> (u64, bool) {
        if let Some(id) = self.ids.get(text) {
            return (*id, false);
        }
        let id = self.ids.len() as u64 + 1;
        self.ids.insert(text.to_owned(), id);
        (id, true)
    }
}

/// TrackEvent.Type.
#[derive(Clone, Copy)]
enum EventType {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

impl<W: Write> PerfettoWriter<W> {
    /// Starts a trace; wrap files in a `BufWriter`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            packet: Message::default(),
            names: Interner::default(),
            categories: Interner::default(),
            annotation_names: Interner::default(),
            is_first: true,
        }
    }

    /// Ends the trace and gives the destination back, not yet flushed.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Describes a track; must come before its first event.
    pub fn track(&mut self, uuid: TrackUuid, track: Track<'_>) -> io::Result<()> {
        use field::track as f;
        self.write_packet(|packet| {
            packet.message(field::packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.uint(f::UUID, uuid);
                match track {
                    Track::Process { name } => descriptor.message(f::PROCESS, |process| {
                        process.uint(f::PID, PID);
                        process.string(f::PROCESS_NAME, name);
                    }),
                    Track::Thread { tid, name } => descriptor.message(f::THREAD, |thread| {
                        thread.uint(f::PID, PID);
                        thread.uint(f::TID, u64::from(tid));
                        thread.string(f::THREAD_NAME, name);
                    }),
                    Track::Child { parent, name } => {
                        descriptor.string(f::NAME, name);
                        descriptor.uint(f::PARENT_UUID, parent);
                    }
                    Track::Counter { parent, name, unit } => {
                        descriptor.string(f::NAME, name);
                        descriptor.uint(f::PARENT_UUID, parent);
                        descriptor.message(f::COUNTER, |counter| counter.uint(f::COUNTER_UNIT, unit as u64));
                    }
                }
            });
        })
    }

    /// A slice begins on a track.
    pub fn begin(&mut self, ts_ns: i64, track: TrackUuid, text: EventText<'_>) -> io::Result<()> {
        self.named_event(ts_ns, track, EventType::Begin, text)
    }

    /// The innermost slice of a track ends.
    pub fn end(&mut self, ts_ns: i64, track: TrackUuid) -> io::Result<()> {
        self.write_packet(|packet| {
            packet.int(field::packet::TIMESTAMP, ts_ns);
            packet.message(field::packet::TRACK_EVENT, |event| {
                event.uint(field::event::TYPE, EventType::End as u64);
                event.uint(field::event::TRACK_UUID, track);
            });
        })
    }

    /// A point in time on a track.
    pub fn instant(&mut self, ts_ns: i64, track: TrackUuid, text: EventText<'_>) -> io::Result<()> {
        self.named_event(ts_ns, track, EventType::Instant, text)
    }

    /// A value of a counter track.
    pub fn counter(&mut self, ts_ns: i64, track: TrackUuid, value: Annotation<'_>) -> io::Result<()> {
        self.write_packet(|packet| {
            packet.int(field::packet::TIMESTAMP, ts_ns);
            packet.message(field::packet::TRACK_EVENT, |event| {
                event.uint(field::event::TYPE, EventType::Counter as u64);
                event.uint(field::event::TRACK_UUID, track);
                match value {
                    Annotation::Int(value) => event.int(field::event::COUNTER_VALUE, value),
                    // A counter is an int64 there; what does not fit keeps its magnitude as a double.
                    Annotation::Uint(value) => match i64::try_from(value) {
                        Ok(value) => event.int(field::event::COUNTER_VALUE, value),
                        Err(_) => event.double(field::event::DOUBLE_COUNTER_VALUE, value as f64),
                    },
                    Annotation::Double(value) => event.double(field::event::DOUBLE_COUNTER_VALUE, value),
                    Annotation::Bool(value) => event.int(field::event::COUNTER_VALUE, i64::from(value)),
                    Annotation::Text(_) => {}
                }
            });
        })
    }

    fn named_event(
        &mut self,
        ts_ns: i64,
        track: TrackUuid,
        ty: EventType,
        text: EventText<'_>,
    ) -> io::Result<()> {
        let name = match self.names.ids.len() {
            MAX_NAMES.. if !self.names.ids.contains_key(text.name) => None,
            _ => Some(self.names.intern(text.name)),
        };
        let category = self.categories.intern(text.category);
        let labels: Vec<(u64, bool)> =
            text.annotations.iter().map(|(label, _)| self.annotation_names.intern(label)).collect();
        self.write_packet(|packet| {
            packet.int(field::packet::TIMESTAMP, ts_ns);
            if name.is_some_and(|name| name.1) || category.1 || labels.iter().any(|label| label.1) {
                packet.message(field::packet::INTERNED_DATA, |data| {
                    intern_new(data, field::interned::CATEGORY, category, text.category);
                    if let Some(name) = name {
                        intern_new(data, field::interned::EVENT_NAME, name, text.name);
                    }
                    for (id, (label, _)) in labels.iter().zip(text.annotations) {
                        intern_new(data, field::interned::ANNOTATION_NAME, *id, label);
                    }
                });
            }
            packet.message(field::packet::TRACK_EVENT, |event| {
                event.uint(field::event::TYPE, ty as u64);
                event.uint(field::event::TRACK_UUID, track);
                event.uint(field::event::CATEGORY_IID, category.0);
                match name {
                    Some((id, _)) => event.uint(field::event::NAME_IID, id),
                    None => event.string(field::event::NAME, text.name),
                }
                for (id, (_, value)) in labels.iter().zip(text.annotations) {
                    event.message(field::event::DEBUG_ANNOTATION, |annotation| {
                        annotate(annotation, id.0, value)
                    });
                }
                for flow in text.flows {
                    event.fixed64(field::event::FLOW_ID, *flow);
                }
            });
        })
    }

    fn write_packet(&mut self, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        let flags = if self.is_first { FLAG_STATE_CLEARED | FLAG_NEEDS_STATE } else { FLAG_NEEDS_STATE };
        self.is_first = false;
        self.packet.clear();
        self.packet.message(field::TRACE_PACKET, |packet| {
            packet.uint(field::packet::SEQUENCE_ID, SEQUENCE_ID);
            packet.uint(field::packet::SEQUENCE_FLAGS, flags);
            fill(packet);
        });
        self.out.write_all(self.packet.bytes())
    }
}

fn intern_new(data: &mut Message, table: u32, (id, is_new): (u64, bool), text: &str) {
    if is_new {
        data.message(table, |entry| {
            entry.uint(field::interned::IID, id);
            entry.string(field::interned::NAME, text);
        });
    }
}

fn annotate(annotation: &mut Message, name: u64, value: &Annotation<'_>) {
    use field::annotation as f;
    annotation.uint(f::NAME_IID, name);
    match *value {
        Annotation::Bool(value) => annotation.uint(f::BOOL, u64::from(value)),
        Annotation::Uint(value) => annotation.uint(f::UINT, value),
        Annotation::Int(value) => annotation.int(f::INT, value),
        Annotation::Double(value) => annotation.double(f::DOUBLE, value),
        Annotation::Text(ref value) => annotation.string(f::STRING, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limit_are_written_out_and_remembered_no_more() {
        let mut writer = PerfettoWriter::new(Vec::new());
        for number in 0..MAX_NAMES + 10 {
            let name = format!("name {number}");
            let text = EventText { name: &name, ..EventText::default() };
            writer.instant(0, 1, text).expect("memory");
            writer.instant(0, 1, text).expect("memory");
        }
        assert_eq!(writer.names.ids.len(), MAX_NAMES);
        let file = writer.into_inner();
        let tail = &file[file.len() - 4_096..];
        let count = |name: &[u8]| tail.windows(name.len()).filter(|window| *window == name).count();
        assert_eq!((count(b"name 65535"), count(b"name 65536")), (1, 2), "interned once; written each time");
    }
}
