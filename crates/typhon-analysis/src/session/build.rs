//! Indexing in the background: from a sidecar, or from the blocks with a sidecar as result.

use super::memory::Held;
use super::resting::{Ready, Sidecar};
use super::{Outcome, SessionError, SessionOptions, Shared};
use crate::clock::Clock;
use crate::index::Index;
use crate::index::build::Builder;
use crate::index::lists::Lists;
use crate::index::preview::Preview;
use crate::index::scan::Scanner;
use crate::index::store::StoreWriter;
use crate::pipeline::{PipelineOptions, map_blocks};
use crate::sidecar::{self, Fingerprint, cache, unfinished};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{fs, io, thread};
use tempfile::NamedTempFile;
use typhon_trace::reader::{BlockBuffer, BlockFeed, ReadOptions};

/// Memory that a byte of a file takes while it is indexed, about: its records wait in it to be sorted.
const INDEXING_BYTES_PER_BYTE: usize = 8;
/// The least memory for indexing a file, if there is so much: blocks that are being decoded take up to this as well.
const INDEXING_LEAST_BYTES: usize = 16 << 20;
/// Part of the memory for indexing, as a divisor, for items that wait to be sorted: the lists of them may have room for
/// twice as many.
const SORT_SHARE: usize = 2;

/// Batches in work, as a multiple of the usual: while items are sorted and written nobody takes batches, and threads that
/// have nothing else to do decode ahead.
const WINDOW_FACTOR: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// Part of what tables may take, as a divisor, beyond which there are no more previews.
const PREVIEW_SHARE: usize = 4;

impl Shared {
    /// Runs on a thread of its own.
    pub(super) fn build(&self, options: &SessionOptions) {
        let _end = AtTheEnd(self);
        match self.index_file(options) {
            Ok(()) => {}
            Err(SessionError::Cancelled) => self.publish(Outcome::Cancelled),
            Err(error) => self.publish(Outcome::Failed(error.to_string())),
        }
    }

    /// Publishes an index, and then keeps it in a file.
    fn index_file(&self, options: &SessionOptions) -> Result<(), SessionError> {
        let clock = Clock::new(self.trace.header().timestamp_frequency);
        let keeps_index = options.index_files && self.file_bytes >= options.index_min_bytes;
        if !keeps_index {
            return self.index_temporarily(options, clock);
        }
        let fingerprint = Fingerprint::of(self.trace.data())?;
        let mut places = vec![sidecar::path_beside(&self.path)];
        places.extend(options.cache_dir.iter().map(|cache| sidecar::path_in_cache(cache, &fingerprint)));
        for place in &places {
            // One that cannot be read is as good as none.
            if let Ok(Some(index)) = sidecar::load(place, &fingerprint, clock) {
                self.keep_sidecar(place, &fingerprint);
                return self.publish_index(Arc::new(index));
            }
        }
        for place in &places {
            match self.index_into(place, &fingerprint, options, clock) {
                Err(SessionError::Index(error)) => {
                    self.remark(format!("the index cannot be kept in {}: {error}", place.display()));
                }
                other => return other,
            }
        }
        self.index_temporarily(options, clock)
    }

    fn index_temporarily(&self, options: &SessionOptions, clock: Clock) -> Result<(), SessionError> {
        // The other half is for what has no file to go to.
        let kept = &options.memory.kept;
        let store = StoreWriter::in_memory_of(kept, kept.limit() / 2);
        let (index, _) = self.index_blocks(options, clock, store)?;
        self.publish_index(Arc::new(index))
    }

    /// Indexes into a file that becomes the sidecar once it is complete.
    fn index_into(
        &self,
        place: &Path,
        fingerprint: &Fingerprint,
        options: &SessionOptions,
        clock: Clock,
    ) -> Result<(), SessionError> {
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let is_cache = options.cache_dir.as_deref() == Some(folder);
        if is_cache {
            fs::create_dir_all(folder)?;
        }
        let mut file = unfinished::create(folder)?;
        let store = StoreWriter::to_file(file.reopen()?, sidecar::HEADER_BYTES as u64)?;
        let (index, pieces_end) = self.index_blocks(options, clock, store)?;
        let index = Arc::new(index);
        // Nobody has to wait for the disk.
        self.publish_index(index.clone())?;
        let kept = self.complete(&mut file, pieces_end, &index, fingerprint);
        match kept.and_then(|()| file.persist(place).map_err(|error| error.error)) {
            Ok(_) => self.keep_sidecar(place, fingerprint),
            Err(error) => self.remark(format!("the index was not kept in {}: {error}", place.display())),
        }
        if is_cache {
            cache::remove_oldest(folder, options.cache_bytes, place);
        }
        Ok(())
    }

    fn complete(
        &self,
        file: &mut NamedTempFile,
        pieces_end: u64,
        index: &Index,
        fingerprint: &Fingerprint,
    ) -> io::Result<()> {
        if Fingerprint::of(self.trace.data())? != *fingerprint {
            return Err(io::Error::other("the trace has changed meanwhile"));
        }
        sidecar::complete(file.as_file_mut(), pieces_end, index, fingerprint)
    }

    /// Indexes the blocks of the file; gives the end of the pieces in the store as well.
    fn index_blocks(
        &self,
        options: &SessionOptions,
        clock: Clock,
        store: StoreWriter,
    ) -> Result<(Index, u64), SessionError> {
        let scanner = Scanner { clock, own_dialect: self.trace.header().is_typhon_dialect() };
        let feed = BlockFeed::from_file(self.trace.data(), ReadOptions::default())?;
        let room = self.room(options)?;
        let mut builder = Builder::new(room.bytes() / SORT_SHARE);
        let (mut preview, mut published) = (Preview::default(), Instant::now());
        let scan = || {
            let mut lists = Lists::default();
            move |block: &BlockBuffer| scanner.scan(block, &mut lists)
        };
        let window = options.pipeline.window.saturating_mul(WINDOW_FACTOR);
        let pipeline = PipelineOptions { window, ..options.pipeline };
        let outcome = map_blocks(feed, pipeline, scan, |block| {
            if block.delivered {
                preview.add(&block.payload, builder.blocks.records);
            }
            builder.absorb(&block.summary, block.delivered, block.payload, self.trace.tables())?;
            self.bytes_done.store(block.summary.entry.end(), Ordering::Relaxed);
            let table_bytes = builder.table_bytes();
            options.memory.check_heads(table_bytes)?;
            // A preview copies the tables.
            let has_room = table_bytes < options.memory.heads_max() / PREVIEW_SHARE;
            if has_room && published.elapsed() >= self.preview_pause(options, &builder) {
                self.publish(Outcome::Opening(Some(Arc::new(preview.index(&builder, clock)?))));
                published = Instant::now();
            }
            let go_on = !self.cancel.is_cancelled();
            Ok::<_, SessionError>(if go_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        let outcome = outcome.ok_or(SessionError::Cancelled)?;
        Ok(builder.finish(&outcome, clock, store)?)
    }

    /// Memory for indexing. A large file leaves a quarter for those that come after it, and waits for as much.
    fn room(&self, options: &SessionOptions) -> Result<Held, SessionError> {
        let pool = &options.memory.indexing;
        let bytes = usize::try_from(self.file_bytes).unwrap_or(usize::MAX);
        let wanted = bytes.saturating_mul(INDEXING_BYTES_PER_BYTE).max(INDEXING_LEAST_BYTES);
        pool.take(wanted.min(pool.limit() / 4), wanted.min(pool.limit() / 4 * 3), &self.cancel)
    }

    /// Previews copy the ticks, so they become rarer with their number.
    fn preview_pause(&self, options: &SessionOptions, builder: &Builder) -> Duration {
        let events: u64 = builder.kinds[usize::from(typhon_trace::registry::id::TICK_START)];
        options.preview_pause.saturating_mul(1 + (events / 100_000) as u32)
    }

    fn publish_index(&self, index: Arc<Index>) -> Result<(), SessionError> {
        let held = self.memory.heads_in_time(index.resident_bytes(), &self.cancel)?;
        self.publish(Outcome::Ready(Ready::new(index, held)));
        Ok(())
    }

    fn keep_sidecar(&self, place: &Path, fingerprint: &Fingerprint) {
        let kept = Sidecar { path: place.to_owned(), fingerprint: *fingerprint };
        *self.sidecar.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(kept);
    }

    pub(super) fn remark(&self, text: String) {
        self.remarks.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(text);
    }
}

/// Tells whoever waits, also after a panic: that is a failed session, not one that opens forever.
struct AtTheEnd<'s>(&'s Shared);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.publish(Outcome::Failed("indexing met an internal error; please report it".to_owned()));
        }
        self.0.end();
    }
}
