//! LMDB through heed: no log, a tree that is copied on write; a commit syncs its pages and then the root.

use crate::contender::{Contender, Recovery, Result};
use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{Database, Env, EnvOpenOptions, PutFlags};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

type Table = Database<U64<BigEndian>, Bytes>;

struct Lmdb {
    env: Env,
    table: Table,
    /// Changed inside of transactions, of which there is one at a time.
    next: AtomicU64,
}

fn open(directory: &Path) -> Result<(Env, Table)> {
    // SAFETY: nothing else opens or changes the files of this directory.
    let env = unsafe { EnvOpenOptions::new().map_size(8 << 30).open(directory)? };
    let mut transaction = env.write_txn()?;
    let table = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok((env, table))
}

pub fn create(directory: &Path) -> Result<Box<dyn Contender>> {
    let (env, table) = open(directory)?;
    Ok(Box::new(Lmdb { env, table, next: AtomicU64::new(0) }))
}

impl Contender for Lmdb {
    fn append_durable(&self, record: &[u8], count: usize) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for _ in 0..count {
            let key = self.next.fetch_add(1, Ordering::Relaxed);
            self.table.put_with_flags(&mut transaction, PutFlags::APPEND, &key, record)?;
        }
        Ok(transaction.commit()?)
    }
}

pub fn recover(directory: &Path) -> Result<Recovery> {
    let (env, table) = open(directory)?;
    let transaction = env.read_txn()?;
    let mut found = Recovery::default();
    for entry in table.iter(&transaction)? {
        found.add(entry?.1);
    }
    drop(transaction);
    env.prepare_for_closing().wait();
    Ok(found)
}
