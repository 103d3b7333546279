//! What the pages say about the tree: links lead somewhere, and commands exist.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::{TASKS, workspace};

/// One line for every dead link and for every command that this repository does not have.
///
/// # Errors
/// When a page cannot be read or the command line cannot be built.
pub(crate) fn findings(files: &[String]) -> Result<Vec<String>, String> {
    let typhon = Typhon::build()?;
    let mut found = Vec::new();
    for page in files.iter().filter(|file| file.ends_with(".md")) {
        let text = read(page)?;
        for link in local_links(&text) {
            if let Some(fault) = link_fault(page, &link) {
                found.push(format!("{page}: {fault}"));
            }
        }
        for command in commands(&text) {
            if let Some(fault) = command_fault(&command, &typhon) {
                found.push(format!("{page}: `{command}`: {fault}"));
            }
        }
    }
    Ok(found)
}

fn read(file: &str) -> Result<String, String> {
    std::fs::read_to_string(workspace::root().join(file)).map_err(|error| format!("{file}: {error}"))
}

/// Targets of Markdown links that stay inside the repository. Fenced code has no links.
fn local_links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in outside_fences(text) {
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                links.push(target.to_owned());
            }
        }
    }
    links
}

fn outside_fences(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

fn link_fault(page: &str, link: &str) -> Option<String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { resolve(page, file) };
    let path = workspace::root().join(&target);
    if !path.exists() {
        return Some(format!("link to {link}, which does not exist"));
    }
    if anchor.is_empty() || !target.ends_with(".md") {
        return None;
    }
    let text = std::fs::read_to_string(&path).ok()?;
    let known: BTreeSet<String> = outside_fences(&text).filter_map(heading_anchor).collect();
    (!known.contains(anchor)).then(|| format!("link to {link}, but that page has no such heading"))
}

/// `link` as seen from `page`, without `.` and `..`, relative to the repository's root.
fn resolve(page: &str, link: &str) -> String {
    let mut path = PathBuf::from(page).parent().map(PathBuf::from).unwrap_or_default();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path.to_string_lossy().into_owned()
}

/// The anchor that code forges give a heading: lower case, spaces as hyphens, punctuation dropped.
fn heading_anchor(line: &str) -> Option<String> {
    let title = line.trim_start_matches('#');
    if title.len() == line.len() || !title.starts_with(' ') {
        return None;
    }
    let kept = title.trim().chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    Some(kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect())
}

/// Command lines in fenced code and in code spans, without prompt and comment.
fn commands(text: &str) -> Vec<String> {
    let starts = ["cargo ", "typhon ", "./"];
    let mut found = Vec::new();
    for line in text.lines() {
        let spans = line.split('`').skip(1).step_by(2);
        for candidate in std::iter::once(line).chain(spans) {
            let candidate = candidate.trim().trim_start_matches("$ ");
            let candidate = candidate.split("  #").next().unwrap_or_default().trim();
            if starts.iter().any(|start| candidate.starts_with(start)) && is_command(candidate) {
                found.push(candidate.to_owned());
            }
        }
    }
    found
}

/// Prose may begin with one of our commands' names; a command has no sentence in it.
fn is_command(line: &str) -> bool {
    !line.contains('`') && !line.ends_with(['.', ',', ':', ';'])
}

fn command_fault(command: &str, typhon: &Typhon) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["cargo", "xtask", "--help", ..] => None,
        ["cargo", "xtask", task, ..] => {
            let known = TASKS.iter().any(|(name, _, _)| name == task);
            (!known).then(|| format!("cargo xtask has no task {task}"))
        }
        ["cargo", "run", options @ ..] => {
            let (options, arguments) = split_at_dashes(options);
            let package = after(options, &["-p", "--package"])?;
            if package == "typhon-cli" {
                return typhon.fault(arguments);
            }
            package_fault(package)
        }
        ["cargo", _, options @ ..] => package_fault(after(options, &["-p", "--package"])?),
        ["typhon", arguments @ ..] => typhon.fault(arguments),
        [script, ..] if script.starts_with("./") => {
            (!workspace::root().join(script).exists()).then(|| format!("{script} does not exist"))
        }
        _ => None,
    }
}

fn split_at_dashes<'w, 's>(words: &'w [&'s str]) -> (&'w [&'s str], &'w [&'s str]) {
    match words.iter().position(|word| *word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[]),
    }
}

fn after<'s>(words: &[&'s str], options: &[&str]) -> Option<&'s str> {
    let at = words.iter().position(|word| options.contains(word))?;
    words.get(at + 1).copied()
}

/// A package may also live in one of the workspaces beside the main one.
fn package_fault(package: &str) -> Option<String> {
    let root = workspace::root();
    let exists = root.join("crates").join(package).exists() || root.join(package).join("Cargo.toml").exists();
    (!exists && !package.contains("..")).then(|| format!("there is no package {package}"))
}

/// The built command line, asked for help about what the pages mention.
struct Typhon {
    binary: PathBuf,
}

impl Typhon {
    fn build() -> Result<Self, String> {
        workspace::run_cargo(&["build", "--quiet", "--package", "typhon-cli"])?;
        Ok(Self { binary: workspace::debug_binary("typhon")? })
    }

    /// Checks the subcommands and the long options of one invocation against its help.
    fn fault(&self, arguments: &[&str]) -> Option<String> {
        let is_name =
            |word: &&&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let names: Vec<&str> = arguments.iter().take_while(is_name).take(2).copied().collect();
        let help = match self.help(&names) {
            Ok(help) => help,
            Err(fault) => return Some(fault),
        };
        let options = arguments.iter().filter(|word| word.starts_with("--") && word.len() > 2);
        let mut unknown = options.map(|word| word.split('=').next().unwrap_or(word)).filter(|option| {
            let is_boundary = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
            !help.match_indices(option).any(|(at, _)| is_boundary(&help[at + option.len()..]))
        });
        unknown.next().map(|option| format!("no option {option}"))
    }

    fn help(&self, names: &[&str]) -> Result<String, String> {
        let run = Command::new(&self.binary)
            .args(names)
            .arg("--help")
            .output()
            .map_err(|error| format!("{}: {error}", self.binary.display()))?;
        if run.status.success() {
            return Ok(String::from_utf8_lossy(&run.stdout).into_owned());
        }
        // The second word may be an argument rather than a subcommand.
        match names {
            [] => Err("typhon --help fails".to_owned()),
            [name] => Err(format!("typhon has no command {name}")),
            [group, ..] => match self.help(&[group]) {
                Ok(help) if !help.contains("Commands:") => Ok(help),
                _ => Err(format!("typhon has no command {}", names.join(" "))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_only_mention_what_exists() {
        let files = workspace::tracked_files().unwrap();
        assert_eq!(findings(&files).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn links_are_found_outside_code_and_resolved_from_their_page() {
        let text = "[a](x.md) [b](https://example.org)\n```\n[c](y.md)\n```\n![d](../p.svg \"t\")";
        assert_eq!(local_links(text), ["x.md", "../p.svg"]);
        assert_eq!(resolve("docs/a/page.md", "../p.svg"), "docs/p.svg");
        assert!(link_fault("README.md", "no-such-file.md").is_some());
        assert!(link_fault("ARCHITECTURE.md", "#code-map").is_none());
        assert!(link_fault("ARCHITECTURE.md", "#no-such-heading").is_some());
    }

    #[test]
    fn anchors_follow_the_headings() {
        assert_eq!(heading_anchor("## 2 Basic types").as_deref(), Some("2-basic-types"));
        assert_eq!(heading_anchor("# `x`: y, z").as_deref(), Some("x-y-z"));
        assert_eq!(heading_anchor("#no heading"), None);
    }

    #[test]
    fn commands_are_found_in_blocks_and_spans() {
        let text = "Run `cargo xtask check` now.\n\n    $ typhon kinds  # all\ntyphon is a tool.\n";
        assert_eq!(commands(text), ["cargo xtask check", "typhon kinds"]);
    }

    #[test]
    fn commands_that_do_not_exist_are_found() {
        let typhon = Typhon::build().unwrap();
        for wrong in [
            "cargo xtask no-such-task",
            "cargo test -p no-such-crate",
            "cargo run -p typhon-cli -- no-such-command",
            "typhon trace no-such-command FILE",
            "typhon trace info FILE --no-such-option",
            "./no-such-script",
        ] {
            assert!(command_fault(wrong, &typhon).is_some(), "{wrong}");
        }
        for right in [
            "cargo xtask check",
            "cargo test -p xtask",
            "typhon trace info FILE --json",
            "typhon kinds BTree",
        ] {
            assert_eq!(command_fault(right, &typhon), None, "{right}");
        }
    }
}
