//! What the records before a record say about it: the number of its tick and the name of its thread.
//!
//! This is the view of a reader that goes through the file once (brief 01 B-35): a TickStart or ThreadInfo counts from
//! its place in the file on. [`crate::ticks`] has the numbering by time, which needs a whole pass.

use std::sync::Arc;
use typhon_trace::event::Text;
use typhon_trace::record::Record;
use typhon_trace::registry::id;
use typhon_trace::{decode, decode::Value};

/// State between two records of a stream. Cloning is cheap, so that every block can be given the state it starts in.
#[derive(Debug, Clone, Default)]
pub struct StreamState {
    ticks: u64,
    threads: Arc<Threads>,
}

/// Names by slot, in a map that is copied when a thread appears, which is rare.
type Threads = std::collections::BTreeMap<u8, Arc<str>>;

impl StreamState {
    /// The state before the first record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Steps over a record. Call it before asking about this record.
    #[inline]
    pub fn advance(&mut self, record: &Record<'_>) {
        match record.kind() {
            id::TICK_START => self.ticks += 1,
            id::THREAD_INFO => self.name_thread(record),
            _ => {}
        }
    }

    fn name_thread(&mut self, record: &Record<'_>) {
        let name = decode::fields(record).find_map(|field| match field.value {
            Value::Text(name) => Some(name),
            _ => None,
        });
        let name = Text::to_str_lossy(name.unwrap_or(Text(b"")));
        Arc::make_mut(&mut self.threads).insert(record.slot(), name.into());
    }

    /// TickStart records so far.
    pub fn tick(&self) -> u64 {
        self.ticks
    }

    /// Name of the thread that has a slot; `None` before its ThreadInfo.
    pub fn thread(&self, slot: u8) -> Option<&str> {
        self.threads.get(&slot).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(kind: u8, slot: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![(12 + payload.len()) as u8, 0, kind, slot];
        bytes.extend_from_slice(&7i64.to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn b35_ticks_are_counted_in_stream_order() {
        let mut state = StreamState::new();
        assert_eq!(state.tick(), 0);
        let bytes = instant(0, 0, &[]);
        let record = Record::parse(&bytes).expect("valid");
        state.advance(&record);
        state.advance(&record);
        assert_eq!(state.tick(), 2);
    }

    #[test]
    fn slots_are_renamed_from_there_on_and_snapshots_keep_the_old_name() {
        let mut state = StreamState::new();
        let named = |name: &str| {
            let mut payload = vec![1, 0, 0, 0, name.len() as u8, 0];
            payload.extend_from_slice(name.as_bytes());
            instant(77, 3, &payload)
        };
        state.advance(&Record::parse(&named("first")).expect("valid"));
        let before = state.clone();
        state.advance(&Record::parse(&named("second")).expect("valid"));
        assert_eq!(before.thread(3), Some("first"));
        assert_eq!(state.thread(3), Some("second"));
        assert_eq!(state.thread(4), None);
    }
}
