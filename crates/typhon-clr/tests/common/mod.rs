//! The recorded streams of `corpus/nettrace` and what a reference decoder read out of them.
#![allow(dead_code, clippy::unwrap_used)] // every test binary uses its own part; a panic is a report

#[cfg(unix)]
pub(crate) mod fake;
pub(crate) mod writer;

use std::io::Read;
use std::path::PathBuf;

use serde_json::Value;
use typhon_clr::gc::{GcItem, GcRecord, GcStream};

/// Every recorded stream.
pub(crate) const NAMES: [&str; 6] = [
    "net10-suspend-start",
    "net10-workstation-concurrent",
    "net31-workstation",
    "net8-server",
    "net8-workstation-concurrent",
    "net8-workstation-sampler",
];

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/nettrace").join(file)
}

/// The raw bytes of a recorded stream.
pub(crate) fn stream(name: &str) -> Vec<u8> {
    std::fs::read(path(&format!("{name}.nettrace"))).unwrap()
}

/// What should come out of it.
pub(crate) fn expected(name: &str) -> Value {
    let file = std::fs::File::open(path(&format!("{name}.json.gz"))).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// All records of a stream that is fed in the given chunks.
pub(crate) fn records<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<GcRecord> {
    let mut stream = GcStream::new();
    let mut records = Vec::new();
    let mut out = |item: GcItem<'_>| {
        if let GcItem::Record(record) = item {
            records.push(record);
        }
    };
    for chunk in chunks {
        stream.feed(chunk, &mut out).unwrap();
    }
    stream.finish(&mut out);
    records
}
