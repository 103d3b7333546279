//! Standard output and error: colours, width, and writes that know what went wrong.

use crate::failure::Failure;
use anstream::{AutoStream, ColorChoice};
use std::io::{self, IsTerminal, Write};

/// How the user wants things shown; from the global options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) color: ColorChoice,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) progress: bool,
    pub(crate) json: bool,
}

impl Style {
    /// Columns of the terminal; `None` when standard output is none.
    pub(crate) fn width(&self) -> Option<usize> {
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            return None;
        }
        terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0))
    }

    /// Lines of the terminal; `None` when standard output is none.
    pub(crate) fn height(&self) -> Option<usize> {
        let stdout = io::stdout();
        let size = stdout.is_terminal().then(|| terminal_size::terminal_size_of(&stdout))?;
        size.map(|(_, height)| usize::from(height.0))
    }

    /// Is standard output coloured? Obeys `--color`, `NO_COLOR`, `CLICOLOR_FORCE` and `TERM=dumb`.
    pub(crate) fn is_colored(&self) -> bool {
        resolved(self.color, AutoStream::choice(&io::stdout()))
    }

    /// Says something that is not data, unless `-q`.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            // Nothing sensible is left to do when standard error is gone.
            let _ = writeln!(AutoStream::new(io::stderr(), self.color), "{text}");
        }
    }

    /// Says something that only the curious want to know: with `-v`.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbose {
            self.say(text);
        }
    }
}

fn resolved(asked: ColorChoice, automatic: ColorChoice) -> bool {
    match asked {
        ColorChoice::Auto => automatic != ColorChoice::Never,
        ColorChoice::Never => false,
        ColorChoice::Always | ColorChoice::AlwaysAnsi => true,
    }
}

/// Writes data to standard output in one go.
pub(crate) fn print(text: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).map_err(Failure::stdout)
}
