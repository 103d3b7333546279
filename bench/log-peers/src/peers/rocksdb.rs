//! RocksDB through its C interface, as Debian's librocksdb-dev has it: `sync = true`, writers grouped by a leader.

use crate::contender::{Contender, Recovery, Result};
use std::ffi::{CStr, CString, c_char, c_uchar, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

type Handle = *mut c_void;

#[link(name = "rocksdb")]
unsafe extern "C" {
    fn rocksdb_options_create() -> Handle;
    fn rocksdb_options_set_create_if_missing(options: Handle, value: c_uchar);
    fn rocksdb_options_set_write_buffer_size(options: Handle, bytes: usize);
    fn rocksdb_options_destroy(options: Handle);
    fn rocksdb_open(options: Handle, name: *const c_char, error: *mut *mut c_char) -> Handle;
    fn rocksdb_close(database: Handle);
    fn rocksdb_writeoptions_create() -> Handle;
    fn rocksdb_writeoptions_set_sync(options: Handle, value: c_uchar);
    fn rocksdb_writeoptions_destroy(options: Handle);
    fn rocksdb_writebatch_create() -> Handle;
    fn rocksdb_writebatch_put(
        batch: Handle,
        key: *const u8,
        key_bytes: usize,
        value: *const u8,
        value_bytes: usize,
    );
    fn rocksdb_writebatch_destroy(batch: Handle);
    fn rocksdb_write(database: Handle, options: Handle, batch: Handle, error: *mut *mut c_char);
    fn rocksdb_flush_wal(database: Handle, sync: c_uchar, error: *mut *mut c_char);
    fn rocksdb_readoptions_create() -> Handle;
    fn rocksdb_readoptions_destroy(options: Handle);
    fn rocksdb_create_iterator(database: Handle, options: Handle) -> Handle;
    fn rocksdb_iter_seek_to_first(iterator: Handle);
    fn rocksdb_iter_valid(iterator: Handle) -> c_uchar;
    fn rocksdb_iter_next(iterator: Handle);
    fn rocksdb_iter_value(iterator: Handle, bytes: *mut usize) -> *const u8;
    fn rocksdb_iter_destroy(iterator: Handle);
    fn rocksdb_free(pointer: Handle);
}

struct RocksDb {
    database: NonNull<c_void>,
    durable: Handle,
    deferred: Handle,
    next: AtomicU64,
}

// SAFETY: a RocksDB database may be used by any number of threads at once, and its write options are only read.
unsafe impl Send for RocksDb {}
// SAFETY: as above.
unsafe impl Sync for RocksDb {}

/// Turns the error that a call left behind into a result, and frees it.
fn check(error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: RocksDB leaves a string that ends with zero, allocated for the caller.
    let text = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: it is freed once.
    unsafe { rocksdb_free(error.cast()) };
    Err(text.into())
}

/// Everything stays in the log and in memory, so that recovery reads the log.
fn open(directory: &Path) -> Result<RocksDb> {
    let name = CString::new(directory.to_str().ok_or("the directory's name is not UTF-8")?)?;
    let mut error = ptr::null_mut();
    // SAFETY: the options live until they are destroyed, after the call that copies them; the name outlives the call.
    let database = unsafe {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, 1);
        rocksdb_options_set_write_buffer_size(options, 1 << 30);
        let database = rocksdb_open(options, name.as_ptr(), &mut error);
        rocksdb_options_destroy(options);
        database
    };
    check(error)?;
    let database = NonNull::new(database).ok_or("RocksDB gave neither a database nor an error")?;
    // SAFETY: write options are plain values.
    let options = |sync| unsafe {
        let options = rocksdb_writeoptions_create();
        rocksdb_writeoptions_set_sync(options, sync);
        options
    };
    Ok(RocksDb { database, durable: options(1), deferred: options(0), next: AtomicU64::new(0) })
}

pub fn create(directory: &Path) -> Result<Box<dyn Contender>> {
    Ok(Box::new(open(directory)?))
}

impl RocksDb {
    fn append(&self, record: &[u8], count: usize, options: Handle) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the batch is this call's own; it copies keys and values, and lives until it is destroyed.
        unsafe {
            let batch = rocksdb_writebatch_create();
            for _ in 0..count {
                let key = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
                rocksdb_writebatch_put(batch, key.as_ptr(), key.len(), record.as_ptr(), record.len());
            }
            rocksdb_write(self.database.as_ptr(), options, batch, &mut error);
            rocksdb_writebatch_destroy(batch);
        }
        check(error)
    }
}

impl Contender for RocksDb {
    fn append_durable(&self, record: &[u8], count: usize) -> Result<()> {
        self.append(record, count, self.durable)
    }

    fn append_deferred(&self, record: &[u8]) -> Result<bool> {
        self.append(record, 1, self.deferred)?;
        Ok(true)
    }

    fn flush(&self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the database is open.
        unsafe { rocksdb_flush_wal(self.database.as_ptr(), 1, &mut error) };
        check(error)
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: nobody uses them any more.
        unsafe {
            rocksdb_writeoptions_destroy(self.durable);
            rocksdb_writeoptions_destroy(self.deferred);
            rocksdb_close(self.database.as_ptr());
        }
    }
}

pub fn recover(directory: &Path) -> Result<Recovery> {
    let open = open(directory)?;
    let mut found = Recovery::default();
    // SAFETY: options and iterator live until they are destroyed, before the database is closed; a value is valid until
    // the iterator moves.
    unsafe {
        let options = rocksdb_readoptions_create();
        let iterator = rocksdb_create_iterator(open.database.as_ptr(), options);
        rocksdb_iter_seek_to_first(iterator);
        while rocksdb_iter_valid(iterator) != 0 {
            let mut bytes = 0;
            let value = rocksdb_iter_value(iterator, &mut bytes);
            found.add(std::slice::from_raw_parts(value, bytes));
            rocksdb_iter_next(iterator);
        }
        rocksdb_iter_destroy(iterator);
        rocksdb_readoptions_destroy(options);
    }
    Ok(found)
}
