//! Speed of reading .NET event streams: the decoder alone, and the way to collections and suspensions.
//!
//! The floor copies the same bytes in the same chunks and looks at none.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;

use bench::Pair;
use typhon_clr::gc::{GcItem, GcStream};
use typhon_clr::nettrace::Decoder;

/// A session reads into a buffer of this size.
const CHUNK_BYTES: usize = 64 << 10;
const ROUNDS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/nettrace");
    let mut streams = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "nettrace") {
            streams.push(std::fs::read(path)?);
        }
    }
    let megabytes = streams.iter().map(Vec::len).sum::<usize>() as f64 / 1e6;
    let copy = || {
        for stream in &streams {
            let mut buffer = Vec::new();
            for chunk in stream.chunks(CHUNK_BYTES) {
                buffer.extend_from_slice(black_box(chunk));
            }
            black_box(buffer);
        }
    };
    let decode = || streams.iter().for_each(|stream| _ = black_box(count_items(stream)));
    let pair = || streams.iter().for_each(|stream| _ = black_box(count_records(stream)));
    println!("{}", Pair::measure(ROUNDS, copy, decode).report("decode to events", megabytes, "MB/s"));
    println!("{}", Pair::measure(ROUNDS, copy, pair).report("decode, order, pair", megabytes, "MB/s"));
    Ok(())
}

fn count_items(stream: &[u8]) -> usize {
    let mut decoder = Decoder::new();
    let mut items = 0;
    for chunk in stream.chunks(CHUNK_BYTES) {
        decoder.feed(chunk);
        while let Ok(Some(item)) = decoder.next_item() {
            black_box(item);
            items += 1;
        }
    }
    items
}

fn count_records(stream: &[u8]) -> usize {
    let mut gc = GcStream::new();
    let mut items = 0;
    let mut count = |item: GcItem<'_>| {
        black_box(item);
        items += 1;
    };
    for chunk in stream.chunks(CHUNK_BYTES) {
        if gc.feed(chunk, &mut count).is_err() {
            break;
        }
    }
    gc.finish(&mut count);
    items
}
