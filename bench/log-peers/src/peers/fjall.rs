//! fjall: a log-structured tree with a journal. Batches are made durable by `fdatasync` of the journal.

use crate::contender::{Contender, Recovery, Result};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

struct Fjall {
    database: Database,
    keyspace: Keyspace,
    next: AtomicU64,
}

/// Everything stays in the journal, so that recovery reads the journal.
fn open(directory: &Path) -> Result<(Database, Keyspace)> {
    let database = Database::builder(directory).max_journaling_size(8 << 30).open()?;
    let options = || KeyspaceCreateOptions::default().max_memtable_size(1 << 30);
    let keyspace = database.keyspace("log", options)?;
    Ok((database, keyspace))
}

pub fn create(directory: &Path) -> Result<Box<dyn Contender>> {
    let (database, keyspace) = open(directory)?;
    Ok(Box::new(Fjall { database, keyspace, next: AtomicU64::new(0) }))
}

impl Fjall {
    fn key(&self) -> [u8; 8] {
        self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes()
    }
}

impl Contender for Fjall {
    fn append_durable(&self, record: &[u8], count: usize) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        (0..count).for_each(|_| batch.insert(&self.keyspace, self.key(), record));
        Ok(batch.commit()?)
    }

    fn append_deferred(&self, record: &[u8]) -> Result<bool> {
        self.keyspace.insert(self.key(), record)?;
        Ok(true)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.database.persist(PersistMode::SyncData)?)
    }
}

pub fn recover(directory: &Path) -> Result<Recovery> {
    let (_database, keyspace) = open(directory)?;
    let mut found = Recovery::default();
    for entry in keyspace.iter() {
        found.add(&entry.value()?);
    }
    Ok(found)
}
