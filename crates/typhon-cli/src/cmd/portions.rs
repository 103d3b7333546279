//! The records of a trace in portions that can be turned into text independently of one another.
//!
//! Blocks are a bad unit for that: recorders write many of a single record, and a foreign file may hold some of 16 MiB.
//! A portion has a bounded size and knows what the records before it said: the tick, the names of threads.

use super::dump::row::Row;
use crate::cmd::input::{Input, Pipe};
use crate::failure::Failure;
use crate::output::progress::Progress;
use std::fs::File;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::thread::available_parallelism;
use typhon_analysis::beside::trace_of;
use typhon_analysis::facts::{MarkNames, RecordFacts, TraceContext};
use typhon_analysis::ordered::{Ordered, with_workers};
use typhon_analysis::pipeline::{PipelineOptions, map_blocks};
use typhon_analysis::placing::{Place, PlaceFaults, Placer};
use typhon_analysis::stream_state::StreamState;
use typhon_analysis::survey::Survey;
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
    /// Places of its spans, when somebody asks for them.
    places: Vec<Place>,
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
    /// Names of marks.
    pub(crate) marks: MarkNames,
    /// Ticks and threads by time. Without it they are those of the stream so far.
    pub(crate) survey: Option<Survey>,
}

impl Names {
    fn new(preamble: &Preamble, sections: Sections, marks: MarkNames) -> Self {
        Self {
            header: preamble.header.clone(),
            tables: preamble.tables.clone(),
            sections,
            marks,
            survey: None,
        }
    }
}

impl Portion {
    fn new(state: StreamState, origin_ticks: i64) -> Self {
        let data = Vec::with_capacity(PORTION_BYTES);
        Self { data, runs: Vec::new(), state, origin_ticks, places: Vec::new() }
    }

    /// The records, without spans too short for their own header.
    fn records(&self) -> impl Iterator<Item = (Record<'_>, u64, u32)> {
        let of_run = |run: &Run| {
            let (block, records) = (run.block, RecordWalk::new(&self.data[run.bytes.clone()]));
            records.zip(run.ordinal..).map(move |(record, ordinal)| (record, block, ordinal))
        };
        self.runs.iter().flat_map(of_run).filter(|(record, ..)| !record.is_short_span())
    }

    /// Goes through the records.
    pub(crate) fn for_each(&self, names: &Names, mut visit: impl FnMut(&Row<'_>)) {
        let context = TraceContext::new(&names.header, &names.tables, &names.sections, self.origin_ticks)
            .with_mark_names(&names.marks);
        let mut state = self.state.clone();
        let mut places = self.places.iter().copied();
        for (record, block, ordinal) in self.records() {
            state.advance(&record);
            let (slot, at) = (record.slot(), record.timestamp());
            let (thread, tick) = match &names.survey {
                None => (state.thread(slot), state.tick()),
                Some(survey) => {
                    let thread = survey.threads.at(slot, at).and_then(|thread| thread.name.as_deref());
                    (thread, u64::try_from(survey.ticks.tick_at(at)).unwrap_or(0))
                }
            };
            let place = record.span().and_then(|_| places.next());
            visit(&Row {
                facts: RecordFacts { record, context: &context, thread, tick, place },
                block,
                ordinal,
            });
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
    /// Opens an input that stands at `path`. A pipe does not know in time
    /// the source locations, which stand at the end of a trace, and the names of marks, which stand between its blocks.
    pub(crate) fn open(input: &'a Input, path: &Path) -> Result<(Self, Names), TraceError> {
        match input {
            Input::File(file) => {
                let trace = trace_of(file, path)?;
                let feed = BlockFeed::from_file(file, ReadOptions::default())?;
                let names = Names::new(trace.preamble(), trace.sections().clone(), MarkNames::read(&trace)?);
                Ok((Self::File(feed), names))
            }
            Input::Pipe(pipe) => {
                let feed = BlockFeed::from_reader(pipe, ReadOptions::default())?;
                let names = Names::new(feed.preamble(), Sections::default(), MarkNames::default());
                Ok((Self::Pipe(feed), names))
            }
        }
    }

    /// Turns every portion into text on all cores and delivers the texts in file order. `Ok(None)` when `deliver`
    /// broke off. With `with_places`, portions know the places of their spans, and come as late as these are known.
    pub(crate) fn run(
        self,
        path: &Path,
        progress: Progress,
        with_places: bool,
        format: impl Fn(&Portion) -> Text + Sync,
        deliver: impl FnMut(Text) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<Option<(Outcome, PlaceFaults)>, Failure> {
        let result = match self {
            Self::File(feed) => run(feed, progress, with_places, format, deliver),
            Self::Pipe(feed) => run(feed, progress, with_places, format, deliver),
        };
        result.map_err(|stop| match stop {
            Stop::Trace(err) => Failure::trace(path, err),
            Stop::Failure(failure) => failure,
            Stop::Enough => Failure::ClosedPipe,
        })
    }
}

/// Holds portions back until their spans have a place, if anybody asks for places.
struct Placing {
    placer: Option<Placer<Portion>>,
}

impl Placing {
    fn push<E>(&mut self, portion: Portion, submit: impl FnMut(Portion) -> Result<(), E>) -> Result<(), E> {
        let Some(placer) = &mut self.placer else { return [portion].into_iter().try_for_each(submit) };
        placer.push(portion, |portion, see| portion.records().for_each(|(record, ..)| see(record)));
        placed(placer).try_for_each(submit)
    }

    fn finish<E>(mut self, submit: impl FnMut(Portion) -> Result<(), E>) -> Result<PlaceFaults, E> {
        let Some(placer) = &mut self.placer else { return Ok(PlaceFaults::default()) };
        placer.finish();
        placed(placer).try_for_each(submit)?;
        Ok(placer.faults())
    }
}

fn placed(placer: &mut Placer<Portion>) -> impl Iterator<Item = Portion> {
    std::iter::from_fn(|| placer.pop().map(|(portion, places)| Portion { places, ..portion }))
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
    with_places: bool,
    format: impl Fn(&Portion) -> Text + Sync,
    mut deliver: impl FnMut(Text) -> Result<ControlFlow<()>, Failure>,
) -> Result<Option<(Outcome, PlaceFaults)>, Stop> {
    let threads = available_parallelism().unwrap_or(NonZeroUsize::MIN);
    // Decoding costs a small part of formatting, so that few threads for it feed many for that.
    let decoders = NonZeroUsize::new(threads.get().div_ceil(8)).unwrap_or(NonZeroUsize::MIN);
    let mut cutter = Cutter::new();
    let mut placing = Placing { placer: with_places.then(Placer::default) };
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
                            placing.push(portion, |portion| pool.submit(portion))
                        })?;
                    }
                    Ok(ControlFlow::Continue(()))
                },
            )?;
            placing.push(cutter.cut(), |portion| pool.submit(portion))?;
            let faults = placing.finish(|portion| pool.submit(portion))?;
            Ok(outcome.map(|outcome| (outcome, faults)))
        },
    );
    match result {
        Err(Stop::Enough) => Ok(None),
        other => other,
    }
}
