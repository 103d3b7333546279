//! Encoding whole records one after the other into a buffer, as a producer thread does, beside copying records that
//! are already there.

use std::hint::black_box;

use bench::Pair;
use typhon_trace::event::{
    BufferTooSmall, GcEnd, InstantEvent, SchedulerChunk, SpanEvent, SpanFields, SystemReady, TickStart,
    TransactionCommit,
};

const RECORDS: usize = 1_000_000;
const ROUNDS: usize = 21;
/// What a producer writes into before it hands the buffer over.
const BUFFER_BYTES: usize = 64 << 10;

fn main() -> Result<(), BufferTooSmall> {
    let span = SpanFields { duration: 5, span_id: 1 << 56 | 9, ..SpanFields::default() };
    let sited = SpanFields { trace_id: Some([7; 16]), site: Some(4), ..span };
    let commit = |number: i64| TransactionCommit {
        tsn: number,
        component_count: Some(3),
        ..TransactionCommit::default()
    };
    let chunk = |number: i64| SchedulerChunk {
        system_idx: number as u16,
        chunk_idx: 1,
        total_chunks: 2,
        entities_processed: 4,
    };
    let ready = |number: i64| SystemReady { system_idx: number as u16, predecessor_count: 2 };
    let gc = |number: i64| GcEnd { count: number as u32, promoted_bytes: 9, ..GcEnd::default() };

    measure("instant, no payload", &|number, out| TickStart {}.encode(1, number, out))?;
    measure("instant, 4 bytes", &|number, out| ready(number).encode(1, number, out))?;
    measure("instant, 69 bytes", &|number, out| gc(number).encode(1, number, out))?;
    measure("span, 10 bytes", &|number, out| chunk(number).encode(1, number, &span, out))?;
    measure("span, one of two optional fields", &|number, out| commit(number).encode(1, number, &span, out))?;
    measure("the same with trace context and site", &|number, out| {
        commit(number).encode(1, number, &sited, out)
    })
}

/// Measures one encoder, which writes the record with a number and returns its size.
fn measure(
    name: &str,
    encode: &impl Fn(i64, &mut [u8]) -> Result<usize, BufferTooSmall>,
) -> Result<(), BufferTooSmall> {
    let mut sample = [0; 128];
    let size = encode(1, &mut sample)?;
    let (mut copied, mut encoded) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
    let floor = || {
        fill(&mut copied, size, |_, out| out[..size].copy_from_slice(black_box(&sample[..size])));
    };
    let subject = || {
        fill(&mut encoded, size, |number, out| {
            let written = encode(black_box(number), out);
            assert_eq!(written, Ok(size));
        });
    };
    let pair = Pair::measure(ROUNDS, floor, subject);
    println!("{}", pair.report(name, RECORDS as f64 / 1e6, "M records/s"));
    println!(
        "{:>40} {:.2} ns each, {size} bytes",
        "",
        pair.fastest_subject().as_nanos() as f64 / RECORDS as f64
    );
    Ok(())
}

/// Calls `put` for each record with what is left of the buffer, which starts over when it is full.
fn fill(buffer: &mut [u8], size: usize, mut put: impl FnMut(i64, &mut [u8])) {
    let mut at = 0;
    for number in 0..RECORDS as i64 {
        if at + size > buffer.len() {
            at = 0;
        }
        put(number, &mut buffer[at..]);
        at += size;
    }
    black_box(buffer);
}
