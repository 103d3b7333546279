//! Who a slot belongs to, and the `ThreadInfo` record (kind 77) that tells readers.
#![forbid(unsafe_code)]

use typhon_trace::event::MAX_NAME_BYTES;
use typhon_trace::record::RECORD_HEADER_BYTES;

/// Kind id of `ThreadInfo`.
pub(crate) const THREAD_INFO: u8 = 77;

/// What a thread is for, as the trace format numbers it (brief 02 B-13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum ThreadKind {
    /// The thread that started the profiler.
    Main = 0,
    /// A worker of the scheduler, `Typhon.Worker-N`.
    Worker = 1,
    /// A thread of some other pool.
    Pool = 2,
    /// Anything else.
    #[default]
    Other = 3,
}

/// The owner of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ThreadLabel {
    /// Thread id of the operating system, for liveness checks and samplers.
    pub(crate) os_thread_id: u32,
    /// Id in the process's thread registry, the one that lock events carry; 0 = none.
    pub(crate) thread_id: u16,
    /// Name, empty when the thread has none.
    pub(crate) name: String,
    /// What the thread is for.
    pub(crate) kind: ThreadKind,
}

impl ThreadLabel {
    /// The record that announces this owner of `slot`.
    pub(crate) fn record(&self, slot: u8, timestamp: u64) -> Vec<u8> {
        let name = &self.name[..self.name.floor_char_boundary(MAX_NAME_BYTES)];
        let size = RECORD_HEADER_BYTES + 4 + 2 + name.len() + 1;
        let mut record = Vec::with_capacity(size);
        record.extend((size as u16).to_le_bytes());
        record.extend([THREAD_INFO, slot]);
        record.extend(timestamp.to_le_bytes());
        record.extend(i32::from(self.thread_id).to_le_bytes());
        record.extend((name.len() as u16).to_le_bytes());
        record.extend(name.as_bytes());
        record.push(self.kind as u8);
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b13_thread_info_layout() {
        let label =
            ThreadLabel { os_thread_id: 9, thread_id: 0x0102, name: "io".into(), kind: ThreadKind::Pool };
        let record = label.record(7, 0x1122);
        assert_eq!(record, [21, 0, 77, 7, 0x22, 0x11, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 2, 0, b'i', b'o', 2]);
    }

    #[test]
    fn long_name_is_cut_at_a_character() {
        let label = ThreadLabel { name: format!("{}é", "x".repeat(254)), ..ThreadLabel::default() };
        let record = label.record(0, 0);
        assert_eq!(record.len(), 12 + 6 + 254 + 1);
    }
}
