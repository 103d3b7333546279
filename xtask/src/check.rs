//! `cargo xtask check`: everything about the tree that a compiler does not look at.
//!
//! Each check returns one line per finding; the same functions run as unit tests under plain `cargo test`.

use crate::{Outcome, docs, edges, licences, picture, rules, tree, workspace};

/// Runs all checks and prints what they found.
pub(crate) fn run(_arguments: &[String]) -> Outcome {
    let metadata = workspace::metadata("Cargo.toml")?;
    let files = workspace::tracked_files()?;
    let mut count = 0;
    for (title, findings) in [
        ("dependency edges", edges::findings(&metadata)),
        ("licences", licences::findings(&metadata)),
        ("file hygiene", tree::findings(&files)?),
        ("links and commands in pages", docs::findings(&files)?),
        ("rules and their tests", rules::findings(&files)?),
        ("picture", picture::findings()?),
    ] {
        println!("{title}: {}", if findings.is_empty() { "ok" } else { "FAILED" });
        findings.iter().for_each(|finding| println!("  {finding}"));
        count += findings.len();
    }
    if count == 0 { Ok(()) } else { Err(format!("{count} findings")) }
}
