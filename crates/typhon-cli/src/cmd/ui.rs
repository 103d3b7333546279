//! `typhon ui`: traces in a browser.

use super::input::open_trace;
use super::number::whole;
use crate::cli::{UI_MEMORY, Ui};
use crate::failure::{Exit, Failure};
use crate::output::json;
use crate::output::signals;
use crate::output::stream::{Style, print};
use serde_json::json;
use std::env;
use std::path::{Path, PathBuf};
use typhon_workbench::{DEFAULT_PORT, Options, Server, ServerError, places};

/// Added to a signal's number for the exit code.
const SIGNAL_EXIT: u8 = 128;

pub(crate) fn run(args: &Ui, style: &Style) -> Result<u8, Failure> {
    // What is wrong with a file is said here, before a browser opens (brief 11 B-1).
    for file in &args.files {
        open_trace(file)?;
    }
    let server = Server::bind(options(args)?).map_err(|error| failure(args, error))?;
    for file in &args.files {
        server.open(file).map_err(|error| failure(args, error).in_file(file))?;
    }
    signals::keep_first();
    let url = server.url(args.at.as_deref());
    if style.json {
        let document = json!({ "schema": "typhon.ui/1", "url": url, "port": server.port() });
        print(&json::line(&document))?;
    } else {
        print(format!("{url}\n").as_bytes())?;
    }
    let browser = match args.no_browser {
        true => None,
        false => match server.open_browser(args.at.as_deref(), env::var_os("TYPHON_BROWSER")) {
            Ok(page) => Some(page),
            Err(error) => {
                style.say(&format!("warning: no browser could be started ({error}); open the address above"));
                None
            }
        },
    };
    style.say("Ctrl+C ends the Workbench");
    let outcome = server.run(|| signals::received().is_some());
    drop(browser);
    outcome.map_err(|error| Failure::new(Exit::Internal, "the server has failed").caused_by(error))?;
    Ok(signals::received().map_or(0, |signal| SIGNAL_EXIT | signal))
}

/// Shows one file, with everything else as it is by default.
pub(super) fn show(file: &Path, style: &Style) -> Result<u8, Failure> {
    let args = Ui {
        files: vec![file.to_owned()],
        port: None,
        no_browser: false,
        no_index: false,
        root: None,
        source_root: Vec::new(),
        at: None,
        memory: None,
        ui_dir: None,
    };
    run(&args, style)
}

fn options(args: &Ui) -> Result<Options, Failure> {
    let current = || {
        env::current_dir()
            .map_err(|error| Failure::new(Exit::NoInput, "there is no working directory").caused_by(error))
    };
    let root = match &args.root {
        Some(root) => root.clone(),
        None => current()?,
    };
    let source_roots = match args.source_root.is_empty() {
        true => repository_around(&current()?).into_iter().collect(),
        false => args.source_root.clone(),
    };
    Ok(Options {
        port: args.port,
        first_port: first_port()?,
        root,
        source_roots,
        memory_bytes: args.memory.map_or_else(default_memory, Ok)?,
        index_files: !args.no_index,
        ui_folder: args.ui_dir.clone(),
        cache_folder: places::cache_folder(),
        settings_file: places::config_folder().map(|folder| folder.join("workbench.json")),
    })
}

fn first_port() -> Result<u16, Failure> {
    let Some(text) = env::var_os("TYPHON_UI_PORT") else { return Ok(DEFAULT_PORT) };
    whole(1..=u16::MAX)(&text.to_string_lossy())
        .map_err(|reason| Failure::usage("TYPHON_UI_PORT is not a port").hint(reason))
}

fn default_memory() -> Result<usize, Failure> {
    let Some(text) = env::var_os("TYPHON_UI_MEMORY") else { return Ok(UI_MEMORY) };
    parse_memory(&text.to_string_lossy())
        .map_err(|reason| Failure::usage("TYPHON_UI_MEMORY is not a number of bytes").hint(reason))
}

/// The repository that a folder is part of.
fn repository_around(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned)
}

fn failure(args: &Ui, error: ServerError) -> Failure {
    let what = error.to_string();
    match error {
        ServerError::Port { source, .. } => {
            let hint =
                if args.port.is_some() { "choose another port, or none" } else { "choose one with --port" };
            Failure::new(Exit::CannotCreate, what).caused_by(source).hint(hint)
        }
        ServerError::Folder { source, .. } => Failure::new(Exit::of_opening(&source), what).caused_by(source),
        ServerError::Session(_) => Failure::new(Exit::NoInput, what),
        ServerError::TooManyFiles | ServerError::NoRoom => Failure::usage(what),
        _ => Failure::new(Exit::Internal, what),
    }
}

/// A view, as links of the page have it behind the `#`, or such a link as a whole. The page leaves out what it does not
/// understand, as it has to for links of other versions; here somebody can be told.
pub(crate) fn parse_view(text: &str) -> Result<String, String> {
    let view = text.split_once('#').map_or(text, |(_, view)| view);
    for part in view.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match key {
            "t" if !is_window(value) => {
                return Err("t is a window in ns, the end after the start: t=1000000..2000000".to_owned());
            }
            "e" if !is_event(value) => {
                return Err("e is an event, as `typhon trace dump` names them: e=12.34".to_owned());
            }
            "t" | "e" | "v" | "f" | "c" | "s" => {}
            _ => return Err(format!("`{key}` is no part of a view; these are t, e, v, f, c and s")),
        }
    }
    Ok(view.to_owned())
}

fn is_window(text: &str) -> bool {
    let bound = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().ok())?;
    text.split_once("..").and_then(|(from, to)| Some(bound(from)? < bound(to)?)).unwrap_or(false)
}

fn is_event(text: &str) -> bool {
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u32>().is_ok();
    text.split_once('.').is_some_and(|(block, record)| number(block) && number(record))
}

/// Bytes: `512M`, `1GiB`, `1073741824`.
pub(crate) fn parse_memory(text: &str) -> Result<usize, String> {
    const LEAST: usize = 64 << 20;
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_end_matches('B').trim_end_matches('i') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err("write bytes as 512M, 1G or 1073741824".to_owned()),
    };
    let number: usize = number.parse().map_err(|_| "write bytes as 512M, 1G or 1073741824".to_owned())?;
    let bytes = number.checked_mul(1 << shift).ok_or("that is more than this machine can count")?;
    if bytes < LEAST { Err("at least 64M are needed".to_owned()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::{parse_memory, parse_view};

    #[test]
    fn views_are_written_as_links_have_them() {
        for (text, view) in [
            ("", ""),
            ("#t=1..2&e=3.4", "t=1..2&e=3.4"),
            ("v=inspector,top&f=name%3DA&c=kind&s=2", "v=inspector,top&f=name%3DA&c=kind&s=2"),
            ("http://127.0.0.1:5200/#t=0..9", "t=0..9"),
        ] {
            assert_eq!(parse_view(text).as_deref(), Ok(view), "{text}");
        }
        for text in ["t=zzz", "t=2..1", "t=1..1", "t=+1..2", "t", "e=x", "e=1", "zzz", "#token=abc", "x=1"] {
            assert!(parse_view(text).is_err(), "{text}");
        }
    }

    #[test]
    fn memory_is_written_with_units() {
        for (text, bytes) in [
            ("512M", 512 << 20),
            ("1G", 1 << 30),
            ("1GiB", 1 << 30),
            ("100000000", 100_000_000),
            ("90000KB", 90_000 << 10),
        ] {
            assert_eq!(parse_memory(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1M", "1T", "512 M", "1.5G", "63M", "99999999999999G", "512Mx"] {
            assert!(parse_memory(text).is_err(), "{text}");
        }
    }
}
