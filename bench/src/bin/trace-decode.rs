//! Decoding beside plain LZ4 decompression of the same blocks, on one thread and on two.
//!
//! - *codec*: decompression, record walk, typed view by kind, time stamp and one field of each record.
//! - *reader*: the same through `TraceFile`, which also checks every block's CRC-32C and compares counts.
//! - *pipeline*: the same through `map_blocks`, results in file order.

use std::error::Error;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::thread;

use bench::Pair;
use bench::recording::in_memory;
use typhon_analysis::pipeline::{PipelineOptions, map_blocks};
use typhon_trace::TraceError;
use typhon_trace::block::{BLOCK_HEADER_BYTES, BlockHeader};
use typhon_trace::event::EventView;
use typhon_trace::reader::{BlockBuffer, BlockFeed, BlockIndex, ReadOptions, TraceFile};
use typhon_trace::record::{Record, RecordWalk};

const RECORDS: u64 = 2_000_000;
const ROUNDS: usize = 21;

fn main() -> Result<(), Box<dyn Error>> {
    let file = TraceFile::open(in_memory(RECORDS)?)?;
    let index = file.scan(ReadOptions::default())?;
    let blocks: Vec<Block<'_>> =
        index.entries.iter().map(|entry| Block::new(&file.data()[..], entry.offset)).collect();
    let records = index.stated_records() as f64 / 1e6;
    println!(
        "{records:.2} M records, {:.1} MB in {} blocks, decompressed {:.1} MB",
        file.data().len() as f64 / 1e6,
        blocks.len(),
        index.uncompressed_bytes() as f64 / 1e6,
    );
    for threads in [1, 2] {
        let floor = || on_threads(threads, &blocks, decompress);
        let measure = |name: &str, subject: &mut dyn FnMut()| {
            let pair = Pair::measure(ROUNDS, floor, subject);
            println!("{}", pair.report(&format!("{name}, {threads} threads"), records, "M records/s"));
        };
        measure("record walk alone", &mut || on_threads(threads, &blocks, walk));
        measure("codec", &mut || on_threads(threads, &blocks, decode));
        measure("reader", &mut || read(&file, &index, threads));
        measure("pipeline", &mut || pipeline(&file, threads));
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Block<'a> {
    header: BlockHeader,
    data: &'a [u8],
}

impl<'a> Block<'a> {
    fn new(file: &'a [u8], offset: u64) -> Self {
        let (head, rest) =
            file[offset as usize..].split_first_chunk::<BLOCK_HEADER_BYTES>().expect("a whole block");
        let header = BlockHeader::parse(head).expect("a sound block");
        Self { header, data: &rest[..header.compressed_bytes as usize] }
    }
}

/// Gives each thread every n-th block, and its own buffer.
fn on_threads(threads: usize, blocks: &[Block<'_>], work: fn(&Block<'_>, &mut Vec<u8>)) {
    thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || {
                let mut buffer = Vec::new();
                blocks.iter().skip(first).step_by(threads).for_each(|block| work(block, &mut buffer));
            });
        }
    });
}

/// The floor: nothing but LZ4 into a buffer that is large enough.
fn decompress(block: &Block<'_>, buffer: &mut Vec<u8>) {
    let bytes = block.header.uncompressed_bytes as usize;
    if buffer.len() < bytes {
        buffer.resize(bytes, 0);
    }
    let decoded = lz4_flex::block::decompress_into(block.data, &mut buffer[..bytes]);
    assert!(black_box(decoded).is_ok_and(|decoded| decoded == bytes));
}

fn walk(block: &Block<'_>, buffer: &mut Vec<u8>) {
    let records = block.header.decompress(block.data, buffer).expect("a sound block");
    black_box(RecordWalk::new(records).fold(0, |sum: i64, record| sum.wrapping_add(record.timestamp())));
}

fn decode(block: &Block<'_>, buffer: &mut Vec<u8>) {
    let records = block.header.decompress(block.data, buffer).expect("a sound block");
    black_box(RecordWalk::new(records).fold(0, |sum: i64, record| sum.wrapping_add(use_record(&record))));
}

fn read(file: &TraceFile<Vec<u8>>, index: &BlockIndex, threads: usize) {
    thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || {
                let mut buffer = BlockBuffer::new();
                for entry in index.entries.iter().skip(first).step_by(threads) {
                    file.read_block(index, entry, &mut buffer).expect("a sound block");
                    black_box(sum_of(&buffer));
                }
            });
        }
    });
}

fn pipeline(file: &TraceFile<Vec<u8>>, threads: usize) {
    let feed = BlockFeed::from_file(file.data(), ReadOptions::default()).expect("a sound file");
    let options = PipelineOptions::new(NonZeroUsize::new(threads).expect("not zero"));
    let mut sum = 0_i64;
    let outcome = map_blocks(
        feed,
        options,
        || sum_of,
        |block| {
            sum = sum.wrapping_add(block.payload);
            Ok::<_, TraceError>(ControlFlow::Continue(()))
        },
    );
    assert!(outcome.expect("a sound file").is_some());
    black_box(sum);
}

fn sum_of(buffer: &BlockBuffer) -> i64 {
    buffer.events().fold(0, |sum: i64, record| sum.wrapping_add(use_record(&record)))
}

/// Time stamp and one field by typed view.
#[inline]
fn use_record(record: &Record<'_>) -> i64 {
    let field = match EventView::new(record) {
        Some(EventView::SchedulerChunk(view)) => view.entities_processed().map(i64::from),
        Some(EventView::TransactionCommit(view)) => view.component_count().map(i64::from),
        Some(EventView::TransactionCommitComponent(view)) => view.row_count().map(i64::from),
        Some(EventView::EcsSpawn(view)) => view.entity_id().map(|id| id as i64),
        Some(EventView::EcsDestroy(view)) => view.entity_id().map(|id| id as i64),
        Some(EventView::EcsQueryCount(view)) => view.result_count().map(i64::from),
        Some(EventView::ConcurrencyEpochScopeEnter(view)) => view.current_epoch().map(i64::from),
        Some(EventView::PageCacheDiskRead(view)) => view.file_page_index().map(i64::from),
        Some(EventView::MemoryAllocEvent(view)) => view.size_bytes().map(|size| size as i64),
        Some(EventView::SystemReady(view)) => view.system_idx().map(i64::from),
        Some(EventView::SchedulerSystemArchetype(view)) => view.entity_count().map(i64::from),
        Some(EventView::RuntimePhaseSpan(view)) => view.phase().map(|phase| i64::from(phase.0)),
        Some(EventView::WalFlush(view)) => view.high_lsn(),
        Some(EventView::ClusterMigration(view)) => view.crossing_count().map(i64::from),
        Some(EventView::TickEnd(view)) => view.tick_multiplier().map(i64::from),
        Some(EventView::PerTickSnapshot(view)) => view.tick_number().map(i64::from),
        Some(EventView::ThreadInfo(view)) => view.managed_thread_id().map(i64::from),
        _ => record.span().map(|span| span.duration),
    };
    record.timestamp().wrapping_add(field.unwrap_or_default())
}
