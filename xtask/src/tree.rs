//! Hygiene of the files under version control.

use crate::workspace;

/// A hand-written source file that is longer than this should have been two.
const LINES_MAX: usize = 800;

/// Files above this size belong somewhere else; only golden inputs and the registry come near it.
const FILE_BYTES_MAX: u64 = 1_000_000;

/// Words that mark unfinished work. Unfinished work is left out, and said so in the changelog.
/// (Spelled in two parts, so that this file passes its own check.)
const UNFINISHED: &[&str] =
    &[concat!("FIX", "ME"), concat!("XX", "X "), concat!("TO", "DO"), concat!("#[ig", "nore")];

/// Folders that only exist on one person's machine.
const PRIVATE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
    concat!("C:\\", "Users"),
];

/// One line for every tracked file that breaks a rule.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn findings(files: &[String]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for file in files {
        let path = workspace::root().join(file);
        let bytes = std::fs::read(&path).map_err(|error| format!("{file}: {error}"))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            found.push(format!("{file}: {} bytes, the limit is {FILE_BYTES_MAX}", bytes.len()));
        }
        // Recordings and other binary files have no lines to look at.
        if let Ok(text) = std::str::from_utf8(&bytes) {
            found.extend(text_findings(file, text));
        }
    }
    Ok(found)
}

fn text_findings(file: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_rust = file.ends_with(".rs");
    let is_generated =
        text.lines().next().is_some_and(|first| first.contains("enerated by `cargo xtask codegen`"));
    if is_rust && !is_generated && text.lines().count() > LINES_MAX {
        found.push(format!("{file}: more than {LINES_MAX} lines"));
    }
    for (index, line) in text.lines().enumerate() {
        let mut report = |what: &str| found.push(format!("{file}:{}: {what}", index + 1));
        if let Some(path) = PRIVATE_PATHS.iter().find(|path| begins_with_path(line, path)) {
            report(&format!("path of one machine ({path})"));
        }
        if let Some(word) = UNFINISHED.iter().find(|word| is_rust && line.contains(*word)) {
            report(&format!("unfinished work ({word})"));
        }
        if line.ends_with([' ', '\t']) && !is_generated {
            report("space at the end of the line");
        }
    }
    found
}

/// Whether `path` occurs as the beginning of a path, not inside a longer one.
fn begins_with_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(|before: char| before.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracked_files_are_clean() {
        let files = workspace::tracked_files().unwrap();
        assert!(files.iter().any(|file| file == "Cargo.toml"), "git listed no files");
        assert_eq!(findings(&files).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn each_rule_finds_its_fault() {
        let private = format!("let path = \"{}me\";", PRIVATE_PATHS[0]);
        assert_eq!(text_findings("a.rs", &private).len(), 1);
        let inner = format!("/proc/7{}", PRIVATE_PATHS[1]);
        assert_eq!(text_findings("a.rs", &inner), Vec::<String>::new());
        let unfinished = format!("// {} later", UNFINISHED[0]);
        assert_eq!(text_findings("a.rs", &unfinished).len(), 1);
        assert_eq!(text_findings("a.md", "text \n").len(), 1);
        assert_eq!(text_findings("a.rs", &"\n".repeat(LINES_MAX + 1)).len(), 1);
        assert_eq!(text_findings("a.rs", &"\n".repeat(LINES_MAX)), Vec::<String>::new());
    }
}
