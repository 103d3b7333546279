//! The best that threads can do which sleep while they wait: the number of threads is known, the last one to come writes for
//! all with one write and one sync, and wakes all others with one call. No log can know who will come.

use crate::contender::{Contender, Result};
use crate::floor::Floor;
use std::sync::{Condvar, Mutex, PoisonError};

pub struct Crowd<'a> {
    floor: &'a Floor,
    state: Mutex<State>,
    served: Condvar,
}

struct State {
    threads: usize,
    arrived: usize,
    /// Bytes that those who arrived append.
    bytes: Vec<u8>,
    /// Groups so far.
    groups: u64,
}

impl<'a> Crowd<'a> {
    pub fn new(floor: &'a Floor, threads: usize) -> Self {
        let state = State { threads, arrived: 0, bytes: Vec::new(), groups: 0 };
        Self { floor, state: Mutex::new(state), served: Condvar::new() }
    }

    /// The group is complete, and everybody else waits.
    fn write(&self, mut bytes: Vec<u8>) -> Result<()> {
        self.floor.write(&bytes)?;
        bytes.clear();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.arrived, state.bytes) = (0, bytes);
        state.groups += 1;
        drop(state);
        self.served.notify_all();
        Ok(())
    }
}

impl Contender for Crowd<'_> {
    fn append_durable(&self, record: &[u8], count: usize) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (0..count).for_each(|_| state.bytes.extend_from_slice(record));
        state.arrived += 1;
        if state.arrived == state.threads {
            let bytes = std::mem::take(&mut state.bytes);
            drop(state);
            return self.write(bytes);
        }
        let group = state.groups;
        let served = self.served.wait_while(state, |state| state.groups == group);
        drop(served.unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    fn leave(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.threads -= 1;
        if state.arrived < state.threads || state.arrived == 0 {
            return Ok(());
        }
        let bytes = std::mem::take(&mut state.bytes);
        drop(state);
        self.write(bytes)
    }
}
