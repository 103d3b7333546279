//! The pictures in the README: terminals with real commands and what they really print.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use crate::{Outcome, workspace};

/// A picture, and what it shows.
type Picture = (&'static str, fn() -> Result<Vec<Line>, String>);

const PICTURES: &[Picture] = &[("docs/demo.svg", colony), ("docs/typhon.svg", commands)];
const RECORDING: &str = "corpus/guide-shard.typhon-trace";

/// What runs the colony: the same world as that of the demo, without its clock, so that it always ends the same way.
const COLONY: &[&str] = &["run", "--quiet", "--package", "anthill", "--example", "picture"];

/// The commands of the first picture, without the file that each ends with.
const SCENES: &[&[&str]] = &[
    &["trace", "info"],
    &["trace", "dump", "--where", "kind=Transaction* dur>1ms", "--limit", "3"],
    &["kinds", "TransactionCommit*"],
];

const LINE_PX: usize = 19;
const LETTER_PX: f64 = 7.83;
const MARGIN_PX: usize = 18;
const COLUMNS_MAX: usize = 118;

/// Writes the pictures.
pub(crate) fn run(_arguments: &[String]) -> Outcome {
    for (picture, lines) in PICTURES {
        let path = workspace::root().join(picture);
        fs::write(&path, svg(&lines()?)).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// One line for each picture that no longer shows what the commands print.
///
/// # Errors
/// When a command cannot be built or run.
pub(crate) fn findings() -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for (picture, lines) in PICTURES {
        let there = fs::read_to_string(workspace::root().join(picture)).unwrap_or_default();
        if there != svg(&lines()?) {
            found.push(format!("{picture} is stale: cargo xtask picture"));
        }
    }
    Ok(found)
}

/// The colony of the demo after ten seconds.
fn colony() -> Result<Vec<Line>, String> {
    let prompt = Line { text: format!("$ cargo {}", COLONY.join(" ")), class: "cmd" };
    let output = workspace::output(workspace::cargo().args(COLONY))?;
    let shown = output.lines().map(|line| Line { text: fitted(line), class: "out" });
    Ok([prompt].into_iter().chain(shown).collect())
}

fn commands() -> Result<Vec<Line>, String> {
    workspace::run_cargo(&["build", "--quiet", "--package", "typhon-cli"])?;
    let mut lines = Vec::new();
    for arguments in SCENES {
        lines.extend(scene(arguments)?);
        lines.push(Line { text: String::new(), class: "out" });
    }
    lines.pop();
    Ok(lines)
}

struct Line {
    text: String,
    class: &'static str,
}

/// The command line and its output.
fn scene(arguments: &[&str]) -> Result<Vec<Line>, String> {
    let mut words: Vec<&str> = arguments.to_vec();
    if arguments[0] == "trace" {
        words.insert(2, RECORDING);
    }
    let binary = workspace::debug_binary("typhon")?;
    let output = workspace::output(Command::new(binary).current_dir(workspace::root()).args(&words))?;
    let quoted =
        words.iter().map(|word| if word.contains([' ', '*']) { format!("'{word}'") } else { (*word).into() });
    let prompt = format!("$ typhon {}", quoted.collect::<Vec<String>>().join(" "));
    let mut lines = vec![Line { text: prompt, class: "cmd" }];
    lines.extend(output.lines().map(|line| Line { text: fitted(line), class: "out" }));
    Ok(lines)
}

/// A line that is too wide ends in `…`, as on a terminal.
fn fitted(line: &str) -> String {
    if line.chars().count() <= COLUMNS_MAX {
        return line.to_owned();
    }
    line.chars().take(COLUMNS_MAX - 1).chain(['…']).collect()
}

fn svg(lines: &[Line]) -> String {
    let columns = lines.iter().map(|line| line.text.chars().count()).max().unwrap_or(0);
    let width = (columns as f64 * LETTER_PX) as usize + 2 * MARGIN_PX;
    let height = lines.len() * LINE_PX + 2 * MARGIN_PX;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"typhon in a terminal\">\n\
         <style>text{{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}}\
         .cmd{{fill:#8bd5a2}}.out{{fill:#d6d9e0}}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#181b22\"/>\n"
    );
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.text.is_empty()) {
        let y = MARGIN_PX + index * LINE_PX + 13;
        let length = line.text.chars().count() as f64 * LETTER_PX;
        let (class, text) = (line.class, escaped(&line.text));
        // The stated length keeps columns aligned whatever font is found.
        let _ = writeln!(
            svg,
            "<text class=\"{class}\" x=\"{MARGIN_PX}\" y=\"{y}\" textLength=\"{length:.0}\" xml:space=\"preserve\">{text}</text>"
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pictures_show_what_the_commands_print() {
        assert_eq!(findings().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn wide_lines_are_cut_and_markup_is_escaped() {
        assert_eq!(fitted(&"x".repeat(COLUMNS_MAX)).len(), COLUMNS_MAX);
        assert!(fitted(&"x".repeat(COLUMNS_MAX + 1)).ends_with('…'));
        assert_eq!(escaped("a<b>&c"), "a&lt;b&gt;&amp;c");
    }
}
