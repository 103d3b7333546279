//! Writes a recording of a made-up game server, of any length: `make-trace (--records N | --mebibytes N) FILE`.

use std::error::Error;
use std::fs::File;

use bench::recording::{Length, record};

const USAGE: &str = "usage: make-trace (--records N | --mebibytes N) FILE";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (length, path) = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--records", count, path] => (Length::Records(count.parse()?), *path),
        ["--mebibytes", count, path] => (Length::FileBytes(count.parse::<u64>()? << 20), *path),
        _ => return Err(USAGE.into()),
    };
    let (_, recorded) = record(File::create(path)?, length, 1)?;
    println!(
        "{path}: {} records in {} bytes, {:.1} bytes per record, compressed {:.2} to 1",
        recorded.records,
        recorded.file_bytes,
        recorded.file_bytes as f64 / recorded.records as f64,
        recorded.record_bytes as f64 / recorded.file_bytes as f64,
    );
    Ok(())
}
