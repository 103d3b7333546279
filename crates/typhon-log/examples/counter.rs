//! A counter that never forgets: each run adds one, and whatever kills it, what it printed is counted.
//!
//! `cargo run -p typhon-log --example counter -- DIRECTORY`

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use typhon_log::{Draft, Options, Store};
use typhon_store::PoolIo;
use typhon_sync::Deadline;

fn main() -> ExitCode {
    match run() {
        Ok(count) => {
            println!("{count}");
            ExitCode::SUCCESS
        }
        // Says what is wrong and what to do about it.
        Err(error) => {
            eprintln!("counter: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<u64, Box<dyn Error>> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from).ok_or("usage: counter DIRECTORY")?;
    let opening = Store::open(Arc::new(PoolIo::new()), &directory, Options::small(), &0_u64.to_le_bytes())?;

    // The anchor holds the count up to the base; each frame behind it is one more.
    let mut count = u64::from_le_bytes(opening.state().try_into()?);
    let mut frames = opening.frames();
    while frames.next_frame()?.is_some() {
        count += 1;
    }
    drop(frames);

    let log = opening.start(&count.to_le_bytes())?;
    log.commit(&Draft::commit(b"+1"), Deadline::INFINITE)?;
    Ok(count + 1)
}
