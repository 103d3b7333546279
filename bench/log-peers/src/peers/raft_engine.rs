//! raft-engine: the log of TiKV. Writers of several threads are grouped; records are key-values of one region.

use crate::contender::{Contender, Recovery, Result};
use raft_engine::{Config, Engine, LogBatch};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const REGION: u64 = 1;

struct RaftEngine {
    engine: Engine,
    next: AtomicU64,
}

fn open(directory: &Path) -> Result<Engine> {
    let dir = directory.to_str().ok_or("the directory's name is not UTF-8")?.to_owned();
    Ok(Engine::open(Config { dir, ..Config::default() })?)
}

pub fn create(directory: &Path) -> Result<Box<dyn Contender>> {
    Ok(Box::new(RaftEngine { engine: open(directory)?, next: AtomicU64::new(0) }))
}

impl RaftEngine {
    fn append(&self, record: &[u8], count: usize, sync: bool) -> Result<()> {
        let mut batch = LogBatch::with_capacity(count);
        for _ in 0..count {
            let key = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec();
            batch.put(REGION, key, record.to_vec())?;
        }
        self.engine.write(&mut batch, sync)?;
        Ok(())
    }
}

impl Contender for RaftEngine {
    fn append_durable(&self, record: &[u8], count: usize) -> Result<()> {
        self.append(record, count, true)
    }

    fn append_deferred(&self, record: &[u8]) -> Result<bool> {
        self.append(record, 1, false)?;
        Ok(true)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.engine.sync()?)
    }
}

pub fn recover(directory: &Path) -> Result<Recovery> {
    let engine = open(directory)?;
    let mut found = Recovery::default();
    engine.scan_raw_messages(REGION, None, None, false, |_, record| {
        found.add(record);
        true
    })?;
    Ok(found)
}
