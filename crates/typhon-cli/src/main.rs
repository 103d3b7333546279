//! The `typhon` command: open, check, explain and repair `.typhon-trace` files, and look at the files of databases.
//!
//! [`cli`] declares the command line, `cmd` has one module per command, [`output`] decides how results look, and
//! [`failure`] how things that went wrong are told. Commands return an exit code or a [`failure::Failure`];
//! nothing else ends the process but a signal.
//!
//! **Invariants**
//! - Data on standard output, everything else on standard error.
//! - Names of commands and options, JSON schemas and exit codes are a contract; fields are only added.
//! - No input, file or option causes a panic; a panic is exit code 70 and a bug.
#![forbid(unsafe_code)]

mod cli;
mod cmd;
mod failure;
mod output;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use cli::{Cli, Command, Trace, When};
use failure::{Exit, Failure};
use output::escape::shell_word;
use output::stream::Style;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(err) => return usage(&err),
    };
    let style = style(&cli.global);
    report_panics(cli.global.verbose);
    let result = std::panic::catch_unwind(|| {
        output::signals::install()
            .map_err(|err| Failure::new(Exit::Internal, "signals cannot be handled").caused_by(err))?;
        run(&cli, &style)
    });
    let code = match result {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => {
            let mut stderr = anstream::AutoStream::new(std::io::stderr(), style.color);
            // Nothing is left to do when even the error cannot be written.
            let _ = stderr.write_all(failure.render().as_bytes());
            failure.exit_code()
        }
        Err(_) => Exit::Internal as u8,
    };
    ExitCode::from(code)
}

fn run(cli: &Cli, style: &Style) -> Result<u8, Failure> {
    match &cli.command {
        Command::Kinds(args) => cmd::kinds::run(args, style),
        Command::Trace(Trace::Info(args)) => cmd::info::run(args, style),
        Command::Trace(Trace::Dump(args)) => cmd::dump::run(args, style),
        Command::Trace(Trace::Verify(args)) => cmd::verify::run(args, style),
        Command::Trace(Trace::Repair(args)) => cmd::repair::run(args, style),
        Command::Trace(Trace::Export(args)) => cmd::export::run(args, style),
        Command::Trace(Trace::Diff(args)) => cmd::diff::run(args, style),
        Command::Trace(Trace::Stats(args)) => cmd::stats::run(args, style),
        #[cfg(unix)]
        Command::Db(cli::Db::Log(args)) => cmd::db::log::run(args, style),
        Command::Ui(args) => cmd::ui::run(args, style),
        Command::Demo(args) => cmd::demo::run(args, style),
        Command::Gc(args) => cmd::gc::run(args, style),
        Command::Completions(args) => cmd::shell::completions(args),
        Command::Man(args) => cmd::shell::man(args, style),
    }
}

/// Help and version are results; every other complaint of the parser is exit code 64 instead of its own 2.
fn usage(err: &clap::Error) -> ExitCode {
    let printed = err.print();
    if let Some(hint) = hint(err) {
        // Whoever lost the complaint does not need the hint.
        let _ = writeln!(std::io::stderr(), "  hint  {hint}");
    }
    match printed {
        // A complaint that nobody reads remains one.
        _ if err.use_stderr() => ExitCode::from(Exit::Usage as u8),
        Ok(()) => ExitCode::SUCCESS,
        Err(lost) => ExitCode::from(Failure::stdout(lost).exit_code()),
    }
}

/// For what stands in the place of a command: one that is below `trace`, or a file.
fn hint(err: &clap::Error) -> Option<String> {
    let ContextValue::String(name) = err.get(ContextKind::InvalidSubcommand)? else { return None };
    if let Some(command) = Cli::command().find_subcommand("trace")?.find_subcommand(name) {
        return Some(format!("did you mean `typhon trace {}`?", command.get_name()));
    }
    let path = Path::new(name);
    let is_file = path.is_file() || path.extension().is_some_and(|ending| ending == "typhon-trace");
    let file = shell_word(path);
    is_file.then(|| {
        format!(
            "`typhon ui {file}` opens a trace in a browser, `typhon trace info {file}` says what is in it"
        )
    })
}

fn style(global: &cli::Global) -> Style {
    Style {
        color: match global.color {
            When::Auto => anstream::ColorChoice::Auto,
            When::Always => anstream::ColorChoice::Always,
            When::Never => anstream::ColorChoice::Never,
        },
        quiet: global.quiet,
        verbose: global.verbose > 0,
        progress: !global.no_progress,
        json: global.json,
    }
}

/// A panic is a bug: say so in one line, with a backtrace only for `-vv`.
fn report_panics(verbose: u8) {
    std::panic::set_hook(Box::new(move |info| {
        let mut stderr = std::io::stderr().lock();
        // If standard error is gone, the exit code still tells.
        let _ = writeln!(
            stderr,
            "error: internal error: {info}\n  hint  this is a bug in typhon, please report it"
        );
        if verbose >= 2 {
            let _ = writeln!(stderr, "{}", std::backtrace::Backtrace::force_capture());
        }
    }));
}
