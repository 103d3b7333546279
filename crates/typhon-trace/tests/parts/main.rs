//! The codecs for the parts of a file and of the live stream, one module each, on recordings of the reference engine,
//! made-up values and damaged bytes.
#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod block;
mod checksum;
mod header;
mod live;
mod tables;
mod trailer;

/// Names of the recorded files.
const RECORDINGS: [&str; 3] = ["all-kinds", "guide-shard", "anthill"];

/// The bytes of a file of `corpus/`.
fn corpus(name: &str) -> Vec<u8> {
    let path = format!("{}/../../corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn recording(name: &str) -> Vec<u8> {
    corpus(&format!("{name}.typhon-trace"))
}

fn tables_of(name: &str) -> typhon_trace::tables::Tables {
    let file = recording(name);
    typhon_trace::tables::Tables::read(&mut &file[typhon_trace::header::HEADER_BYTES..]).unwrap().tables
}
