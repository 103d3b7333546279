//! The records of a trace in portions that can be turned into text independently of one another.
//!
//! Blocks are a bad unit for that: recorders write many of a single record, and a foreign file may hold some of 16 MiB.
//! A portion has a bounded size and knows what the records before it said: the tick, the names of threads.

use super::dump::row::Row;
use crate::cmd::input::{Input, Pipe, trace_of};
use crate::failure::Failure;
use crate::output::progress::Progress;
use std::fs::File;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::thread::available_parallelism;
use typhon_analysis::facts::{RecordFacts, TraceContext};
use typhon_analysis::ordered::{Ordered, with_workers};
use typhon_analysis::pipeline::{PipelineOptions, map_blocks};
use typhon_analysis::stream_state::StreamState;
use typhon_trace::reader::{
    BlockBuffer, BlockFeed, Closing, FileSource, Outcome, PipeSource, Preamble, ReadOptions, Sections,
    Sequenced, Source,
};
use typhon_trace::record::{Record, RecordWalk};
use typhon_trace::tables::Tables;
use typhon_trace::{TraceError, header::FileHeader};

/// A portion is complete when it holds this many bytes of records.
const PORTION_BYTES: usize = 128 * 1024;

/// Records in file order, with what is known where they begin.
pub(crate) struct Portion {
    data: Vec<u8>,
    runs: Vec<Run>,
    state: StreamState,
    origin_ticks: i64,
}

/// Neighbouring records of one block.
struct Run {
    block: u64,
    /// Index in the block of the first record.
    ordinal: u32,
    bytes: Range<usize>,
}

/// What a whole file says about its records, apart from what stands in the stream.
pub(crate) struct Names {
    pub(crate) header: FileHeader,
    pub(crate) tables: Tables,
    pub(crate) sections: Sections,
}

impl Names {
    fn new(preamble: &Preamble, sections: Sections) -> Self {
        Self { header: preamble.header.clone(), tables: preamble.tables.clone(), sections }
    }
}

impl Portion {
    fn new(state: StreamState, origin_ticks: i64) -> Self {
        Self { data: Vec::with_capacity(PORTION_BYTES), runs: Vec::new(), state, origin_ticks }
    }

    /// Goes through the records. Spans too short for their own header are left out.
    pub(crate) fn for_each(&self, names: &Names, mut visit: impl FnMut(&Row<'_>)) {
        let context = TraceContext::new(&names.header, &names.tables, &names.sections, self.origin_ticks);
        let mut state = self.state.clone();
        for run in &self.runs {
            let records = RecordWalk::new(&self.data[run.bytes.clone()]);
            for (record, ordinal) in records.zip(run.ordinal..) {
                if record.is_short_span() {
                    continue;
                }
                state.advance(&record);
                let thread = state.thread(record.slot());
                let facts = RecordFacts { record, context: &context, thread, tick: state.tick() };
                visit(&Row { facts, block: run.block, ordinal });
            }
        }
    }
}

/// Cuts the stream of blocks into portions.
struct Cutter {
    state: StreamState,
    origin_ticks: Option<i64>,
    open: Portion,
}

impl Cutter {
    fn new() -> Self {
        let state = StreamState::new();
        Self { open: Portion::new(state.clone(), 0), state, origin_ticks: None }
    }

    /// Adds the events of a block; `emit` gets each portion that is complete.
    fn push<E>(
        &mut self,
        block: &Events,
        index: u64,
        mut emit: impl FnMut(Portion) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut walk = RecordWalk::new(&block.bytes);
        let mut run = (0, block.first_ordinal);
        let mut ordinal = block.first_ordinal;
        while let Some(record) = walk.next() {
            if self.origin_ticks.is_none() && !record.is_short_span() {
                self.origin_ticks = Some(record.timestamp());
                self.open.origin_ticks = record.timestamp();
            }
            self.advance(&record);
            ordinal += 1;
            if self.open.data.len() + walk.offset() - run.0 >= PORTION_BYTES {
                self.append(&block.bytes[run.0..walk.offset()], index, run.1);
                run = (walk.offset(), ordinal);
                emit(self.cut())?;
            }
        }
        self.append(&block.bytes[run.0..walk.offset()], index, run.1);
        Ok(())
    }

    fn advance(&mut self, record: &Record<'_>) {
        if !record.is_short_span() {
            self.state.advance(record);
        }
    }

    fn append(&mut self, records: &[u8], block: u64, ordinal: u32) {
        if records.is_empty() {
            return;
        }
        let start = self.open.data.len();
        self.open.data.extend_from_slice(records);
        self.open.runs.push(Run { block, ordinal, bytes: start..self.open.data.len() });
    }

    /// The open portion; the next one begins in the state reached.
    fn cut(&mut self) -> Portion {
        let next = Portion::new(self.state.clone(), self.origin_ticks.unwrap_or(0));
        std::mem::replace(&mut self.open, next)
    }
}

/// The events of a block, copied out of the decoder's buffer.
struct Events {
    bytes: Vec<u8>,
    first_ordinal: u32,
}

impl Events {
    fn of(buffer: &BlockBuffer) -> Self {
        let skip = buffer.events().offset();
        let is_closing = buffer.summary().is_some_and(|summary| summary.closing != Closing::No);
        let bytes = if is_closing { Vec::new() } else { buffer.walked()[skip..].to_vec() };
        // At most one marker stands before the events.
        Self { bytes, first_ordinal: u32::from(skip > 0) }
    }
}

/// Result of one portion: text, the number of records in it, and for sorting one key per record.
#[derive(Default)]
pub(crate) struct Text {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u64,
    pub(crate) keys: Vec<i64>,
}

/// A trace about to be read from front to back.
pub(crate) enum Feed<'a> {
    File(BlockFeed<FileSource<&'a File>>),
    Pipe(BlockFeed<PipeSource<&'a Pipe>>),
}

impl<'a> Feed<'a> {
    /// Opens an input that stands at `path`. Source locations stand at the end of a trace, so that a pipe does not know them in time.
    pub(crate) fn open(input: &'a Input, path: &Path) -> Result<(Self, Names), TraceError> {
        match input {
            Input::File(file) => {
                let trace = trace_of(file, path)?;
                let feed = BlockFeed::from_file(file, ReadOptions::default())?;
                let names = Names::new(trace.preamble(), trace.sections().clone());
                Ok((Self::File(feed), names))
            }
            Input::Pipe(pipe) => {
                let feed = BlockFeed::from_reader(pipe, ReadOptions::default())?;
                let names = Names::new(feed.preamble(), Sections::default());
                Ok((Self::Pipe(feed), names))
            }
        }
    }

    /// Turns every portion into text on all cores and delivers the texts in file order. `Ok(None)` when `deliver`
    /// broke off.
    pub(crate) fn run(
        self,
        path: &Path,
        progress: Progress,
        format: impl Fn(&Portion) -> Text + Sync,
        deliver: impl FnMut(Text) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<Option<Outcome>, Failure> {
        let result = match self {
            Self::File(feed) => run(feed, progress, format, deliver),
            Self::Pipe(feed) => run(feed, progress, format, deliver),
        };
        result.map_err(|stop| match stop {
            Stop::Trace(err) => Failure::trace(path, err),
            Stop::Failure(failure) => failure,
            Stop::Enough => Failure::ClosedPipe,
        })
    }
}

/// Why reading ends early.
enum Stop {
    Trace(TraceError),
    Failure(Failure),
    /// The receiver has what it wanted.
    Enough,
}

impl From<TraceError> for Stop {
    fn from(err: TraceError) -> Self {
        Self::Trace(err)
    }
}

fn run<S: Source + Send>(
    feed: BlockFeed<S>,
    mut progress: Progress,
    format: impl Fn(&Portion) -> Text + Sync,
    mut deliver: impl FnMut(Text) -> Result<ControlFlow<()>, Failure>,
) -> Result<Option<Outcome>, Stop> {
    let threads = available_parallelism().unwrap_or(NonZeroUsize::MIN);
    // Decoding costs a small part of formatting, so that few threads for it feed many for that.
    let decoders = NonZeroUsize::new(threads.get().div_ceil(8)).unwrap_or(NonZeroUsize::MIN);
    let mut cutter = Cutter::new();
    let result = with_workers(
        threads,
        |portion| format(&portion),
        |text| match deliver(text) {
            Ok(ControlFlow::Continue(())) => Ok(()),
            Ok(ControlFlow::Break(())) => Err(Stop::Enough),
            Err(failure) => Err(Stop::Failure(failure)),
        },
        |pool: &mut Ordered<_, _, _>| {
            let outcome = map_blocks(
                feed,
                PipelineOptions::new(decoders),
                || Events::of,
                |block: Sequenced<Events>| -> Result<_, Stop> {
                    progress.update(block.summary.entry.end());
                    if block.delivered {
                        cutter.push(&block.payload, block.summary.entry.index, |portion| {
                            pool.submit(portion)
                        })?;
                    }
                    Ok(ControlFlow::Continue(()))
                },
            )?;
            pool.submit(cutter.cut())?;
            Ok(outcome)
        },
    );
    match result {
        Err(Stop::Enough) => Ok(None),
        other => other,
    }
}
