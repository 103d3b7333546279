//! The least that anybody could do: the bytes of the records, one behind the other, into a file that was written before;
//! then a sync. Threads share one by the plainest group commit: whoever finds nobody writing writes for all.

use crate::contender::{Contender, Recovery, Result};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use typhon_store::{Access, File, Io, Open, write_all_at};

const FILE_BYTES: u64 = 64 << 20;

pub struct Floor {
    file: Arc<dyn File>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    collected: Vec<u8>,
    spare: Vec<u8>,
    position: u64,
    /// Bytes appended and bytes durable, since the beginning.
    appended: u64,
    durable: u64,
    is_writing: bool,
}

impl State {
    /// Where so many bytes go.
    fn take(&mut self, bytes: usize) -> u64 {
        if self.position + bytes as u64 > FILE_BYTES {
            self.position = 0;
        }
        self.position += bytes as u64;
        self.position - bytes as u64
    }
}

impl Floor {
    pub fn create(io: &dyn Io, directory: &Path) -> Result<Self> {
        let file = io.open(&directory.join("floor"), Open::cached(Access::Create))?;
        // Page by page: what is written at once the system may keep, and write again, as one large page.
        let zeros = vec![0; 4096];
        for at in (0..FILE_BYTES).step_by(zeros.len()) {
            write_all_at(&*file, &zeros, at, false)?;
        }
        file.sync_data()?;
        Ok(Self { file, state: Mutex::default(), changed: Condvar::new() })
    }

    /// One write and one sync, by whoever calls.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let position = self.lock().take(bytes.len());
        write_all_at(&*self.file, bytes, position, false)?;
        Ok(self.file.sync_data()?)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contender for Floor {
    fn append_durable(&self, record: &[u8], count: usize) -> Result<()> {
        let mut state = self.lock();
        (0..count).for_each(|_| state.collected.extend_from_slice(record));
        state.appended += (record.len() * count) as u64;
        let mine = state.appended;
        while state.durable < mine {
            if state.is_writing {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_writing = true;
            let mut group = std::mem::take(&mut state.spare);
            std::mem::swap(&mut group, &mut state.collected);
            let target = state.appended;
            let position = state.take(group.len());
            drop(state);
            write_all_at(&*self.file, &group, position, false)?;
            self.file.sync_data()?;
            state = self.lock();
            group.clear();
            state.spare = group;
            (state.durable, state.is_writing) = (target, false);
            self.changed.notify_all();
        }
        Ok(())
    }

    /// One write each, into the cache of the system.
    fn append_deferred(&self, record: &[u8]) -> Result<bool> {
        let position = self.lock().take(record.len());
        write_all_at(&*self.file, record, position, false)?;
        Ok(true)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.file.sync_data()?)
    }
}

/// Reads the file and takes a checksum of all of it.
pub fn recover(io: &dyn Io, directory: &Path) -> Result<Recovery> {
    let file = io.open(&directory.join("floor"), Open::cached(Access::Read))?;
    let mut bytes = vec![0; 1 << 20];
    let (mut at, mut crc) = (0, 0);
    loop {
        let count = file.read_some_at(&mut bytes, at)?;
        if count == 0 {
            break;
        }
        crc = crc32c::crc32c_append(crc, &bytes[..count]);
        at += count as u64;
    }
    std::hint::black_box(crc);
    Ok(Recovery { records: 0, bytes: at })
}
