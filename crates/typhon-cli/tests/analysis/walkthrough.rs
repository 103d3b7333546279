//! The commands of docs/reading-a-trace.md print what the page says.

use crate::common::{command, recording, repository};
use std::path::Path;

/// Set to anything to write what the commands print into the page, after a change of their output.
const UPDATE: &str = "TYPHON_UPDATE_DOCS";

/// The words of a command line; single quotes keep words together.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// What a command prints, in a folder of its own with the corpus in it.
fn output(line: &str, folder: &Path) -> String {
    let words = words(line);
    assert_eq!(words[0], "typhon", "{line}");
    let output = command().args(&words[1..]).current_dir(folder).output().unwrap();
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_walk_through_prints_what_it_says() {
    let path = repository().join("docs/reading-a-trace.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("corpus")).unwrap();
    let copy = folder.path().join("corpus/anthill.typhon-trace");
    std::fs::copy(recording("anthill.typhon-trace"), copy).unwrap();
    let mut renewed = String::new();
    let mut lines = page.lines();
    let mut commands = 0;
    while let Some(line) = lines.next() {
        renewed.push_str(line);
        renewed.push('\n');
        if let Some(command) = line.strip_prefix("$ ") {
            commands += 1;
            renewed.push_str(&output(command, folder.path()));
            lines.by_ref().find(|line| *line == "```").expect("an end of the block");
            renewed.push_str("```\n");
        }
    }
    assert!(commands >= 8, "{commands}");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, renewed).unwrap();
        return;
    }
    for (number, (page, renewed)) in page.lines().zip(renewed.lines()).enumerate() {
        assert_eq!(page, renewed, "line {}; {UPDATE}=1 renews the page", number + 1);
    }
    assert_eq!(page, renewed);
}
