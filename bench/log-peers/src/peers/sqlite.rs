//! SQLite: a table of blobs, write-ahead log, `synchronous = FULL`. One connection, which threads take in turn: its
//! writers exclude each other, and waiting for a mutex is kinder to them than SQLite's busy timeout.

use crate::contender::{Contender, Recovery, Result};
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

struct Sqlite(Mutex<Connection>);

fn open(directory: &Path) -> Result<Connection> {
    let connection = Connection::open(directory.join("log.sqlite"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

pub fn create(directory: &Path) -> Result<Box<dyn Contender>> {
    let connection = open(directory)?;
    connection.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, body BLOB)", ())?;
    Ok(Box::new(Sqlite(Mutex::new(connection))))
}

impl Contender for Sqlite {
    fn append_durable(&self, record: &[u8], count: usize) -> Result<()> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO log (body) VALUES (?)")?;
            for _ in 0..count {
                insert.execute([record])?;
            }
        }
        Ok(transaction.commit()?)
    }
}

pub fn recover(directory: &Path) -> Result<Recovery> {
    let connection = open(directory)?;
    let mut found = Recovery::default();
    let mut select = connection.prepare("SELECT body FROM log ORDER BY id")?;
    let mut rows = select.query(())?;
    while let Some(row) = rows.next()? {
        found.add(row.get_ref(0)?.as_blob()?);
    }
    Ok(found)
}
