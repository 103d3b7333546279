//! [`typhon_trace::reader::verify`] on several threads, with the same report.

use std::ops::ControlFlow;

use typhon_trace::TraceError;
use typhon_trace::reader::{
    BlockBuffer, BlockCheck, BlockFeed, Source, Verifier, VerifyOptions, VerifyReport,
};

use crate::pipeline::{PipelineOptions, map_blocks};

/// Reads a trace to its end and reports everything that is wrong with it. `progress` gets the number of bytes done
/// after each block.
///
/// # Errors
/// [`TraceError::Io`].
pub fn verify<S: Source + Send>(
    feed: BlockFeed<S>,
    options: PipelineOptions,
    checks: VerifyOptions,
    mut progress: impl FnMut(u64),
) -> Result<VerifyReport, TraceError> {
    let preamble = feed.preamble().clone();
    let mut verifier = Verifier::new();
    let worker = || move |buffer: &BlockBuffer| BlockCheck::of(buffer, checks);
    let outcome = map_blocks(feed, options, worker, |block| {
        verifier.add(&block);
        progress(block.summary.entry.end());
        Ok::<_, TraceError>(ControlFlow::Continue(()))
    })?;
    match outcome {
        Some(outcome) => Ok(verifier.finish(&preamble, outcome)),
        None => unreachable!("the consumer never breaks off"),
    }
}
