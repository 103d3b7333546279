//! `BEHAVIOURS.md` is complete, and every test and fault that it names exists.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The ids of the page, in its order.
fn ids() -> Vec<String> {
    let numbered = |letter: &'static str, last| (1..=last).map(move |number| format!("{letter}-{number}"));
    let measured = ["W10", "W11", "W13"].map(str::to_owned);
    numbered("B", 36)
        .chain(numbered("I", 15))
        .chain(numbered("T", 28))
        .chain(measured)
        .chain(numbered("M", 45))
        .collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Id and last column of every row that has an id.
fn rows(page: &str) -> Vec<(String, String)> {
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = page.lines().filter(|line| line.starts_with("| ")).map(cells);
    rows.filter(|cells| !cells[0].is_empty()).map(|cells| (cells[0].clone(), cells[2].clone())).collect()
}

/// What stands between backticks.
fn named(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn sources(folder: &Path, wanted: &impl Fn(&Path) -> bool, texts: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, wanted, texts);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("behaviours.rs")
            && wanted(&path)
        {
            texts.push(std::fs::read_to_string(path).unwrap());
        }
    }
}

/// Names of all tests of this crate, and of the one of the chore that counts instructions: functions, and names in
/// lists of tests. Only those in the files that are wanted.
fn tests(wanted: impl Fn(&Path) -> bool) -> BTreeSet<String> {
    let mut texts = Vec::new();
    ["src", "tests", "../../xtask/src"]
        .iter()
        .for_each(|name| sources(&folder().join(name), &wanted, &mut texts));
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for text in &texts {
        for (marker, is_list) in [("#[test]", false), ("    (\"", true), ("[(\n    \"", true)] {
            names.extend(text.split(marker).skip(1).map(|rest| {
                let rest = if is_list { rest } else { rest.split_once("fn ").map_or("", |(_, rest)| rest) };
                rest.split(|c| !is_name(c)).next().unwrap_or_default().to_owned()
            }));
        }
    }
    names
}

#[test]
fn every_promise_has_its_tests_and_every_test_is_there() {
    let page = std::fs::read_to_string(folder().join("BEHAVIOURS.md")).unwrap();
    let rows = rows(&page);
    assert_eq!(rows.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), ids());
    let tests = tests(|_| true);
    let models = std::fs::read_to_string(folder().join("tests/loom_capture.rs")).unwrap();
    for (id, cell) in &rows {
        assert!(cell == "later" || named(cell).next().is_some(), "{id} has no test");
        for name in named(cell) {
            let is_there =
                if name.starts_with("Fault::") { models.contains(name) } else { tests.contains(name) };
            assert!(is_there, "{id}: {name} is not there");
        }
    }
}

#[test]
fn every_test_named_after_a_promise_and_every_fault_is_on_the_page() {
    let page = std::fs::read_to_string(folder().join("BEHAVIOURS.md")).unwrap();
    let listed: BTreeSet<&str> = named(&page).collect();
    let is_numbered = |name: &str| {
        let number = name.split('_').next().unwrap_or_default().strip_prefix(['b', 'i', 't', 'w']);
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    // The tests of .NET collections follow another design, with numbers of its own.
    let is_of_collections =
        |part: &str| part.starts_with("gc") || ["dotnet", "collections.rs"].contains(&part);
    let tests = tests(|path| !path.iter().any(|part| is_of_collections(part.to_str().unwrap_or_default())));
    let missing: Vec<&String> =
        tests.iter().filter(|name| is_numbered(name) && !listed.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");

    let sync = std::fs::read_to_string(folder().join("src/sync.rs")).unwrap();
    let faults = sync.split_once("pub enum Fault {").unwrap().1.split_once('}').unwrap().0;
    let faults = faults.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("///"));
    for fault in faults.map(|line| line.trim_end_matches(',').split(' ').next().unwrap()) {
        assert!(listed.contains(format!("Fault::{fault}").as_str()), "Fault::{fault} is not on the page");
    }
}
