//! `typhon db`.

use crate::cmd::number::whole;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Segments, frames and the tail of a write-ahead log
    Log(DbLog),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Nothing is written and no lock is taken: the log may be open elsewhere. What is shown is what the
files hold now; that it is durable only an open makes sure of. Frames before the base are not
shown, since recovery does not need them. Without an anchor, and for a single segment, the base
is where the newest open begins.

Sound is what an open reads: the anchor, the headers, and all blocks and frames from the base on,
with their checksums. Padding in there that is not zero is a notice (not-zero), since nothing
reads it. What lies behind the last block of a segment, before the first segment that is needed,
in files of the past and in spares may be anything, and is not judged.

Of many files with the same state in a row only the first and the last three are listed, and the
others counted; with --json all are.

Exit codes:
  0 sound   1 sound, with notices (a torn tail, padding)   2 parts disagree   3 data loss
  4 cannot be opened   66 no such file   74 reading failed   77 not permitted

Examples:
  typhon db log world/wal
  typhon db log world/wal --tail 5
  typhon db log world/wal --from 1073745920 --limit 1000 --json
  typhon db log world/wal/0000000000000007.wal"
)]
pub(crate) struct DbLog {
    /// Directory of a log, or one of its segments
    #[arg(value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,
    /// Show this many frames; 0 for none
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(allow_negative_numbers = true, value_parser = whole(0..=1_000_000_u32))]
    pub(crate) limit: u32,
    /// Only the last frames
    #[arg(long, value_name = "N", conflicts_with = "limit")]
    #[arg(allow_negative_numbers = true, value_parser = whole(0..=1_000_000_u32))]
    pub(crate) tail: Option<u32>,
    /// Only frames behind this position
    #[arg(long, value_name = "LSN", default_value_t = 0, hide_default_value = true)]
    #[arg(allow_negative_numbers = true, value_parser = whole(0..=u64::MAX))]
    pub(crate) from: u64,
}
