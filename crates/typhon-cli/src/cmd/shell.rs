//! `typhon completions` and `typhon man`: what shells and `man` want to know, from the declared command line.

use crate::cli::{Cli, Completions, Man};
use crate::failure::{Exit, Failure};
use crate::output::stream::{Style, print};
use clap::CommandFactory;

pub(crate) fn completions(args: &Completions) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "typhon", &mut script);
    print(&script)?;
    Ok(0)
}

pub(crate) fn man(args: &Man, style: &Style) -> Result<u8, Failure> {
    let folder = &args.folder;
    let failed = |err: std::io::Error| {
        Failure::new(Exit::of_creating(&err), "the man pages cannot be written")
            .in_file(folder)
            .caused_by(err)
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
    style.say(&format!("man pages are in {}", folder.display()));
    Ok(0)
}
