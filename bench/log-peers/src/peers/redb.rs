//! redb: no log, a tree that is copied on write; commits are durable at once by default.

use crate::contender::{Contender, Recovery, Result};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const TABLE: TableDefinition<u64, &[u8]> = TableDefinition::new("log");

struct Redb {
    database: Database,
    next: AtomicU64,
}

pub fn create(directory: &Path) -> Result<Box<dyn Contender>> {
    let database = Database::create(directory.join("log.redb"))?;
    Ok(Box::new(Redb { database, next: AtomicU64::new(0) }))
}

impl Redb {
    fn append(&self, record: &[u8], count: usize, durability: Durability) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for _ in 0..count {
                table.insert(self.next.fetch_add(1, Ordering::Relaxed), record)?;
            }
        }
        Ok(transaction.commit()?)
    }
}

impl Contender for Redb {
    fn append_durable(&self, record: &[u8], count: usize) -> Result<()> {
        self.append(record, count, Durability::Immediate)
    }

    fn append_deferred(&self, record: &[u8]) -> Result<bool> {
        self.append(record, 1, Durability::None)?;
        Ok(true)
    }

    fn flush(&self) -> Result<()> {
        self.append(b"", 1, Durability::Immediate)
    }
}

pub fn recover(directory: &Path) -> Result<Recovery> {
    let database = Database::open(directory.join("log.redb"))?;
    let transaction = database.begin_read()?;
    let table = transaction.open_table(TABLE)?;
    let mut found = Recovery::default();
    for entry in table.iter()? {
        found.add(entry?.1.value());
    }
    Ok(found)
}
