//! The numbered rules of the design, and whether each has a test.
//!
//! A test says which rules it guards at the beginning of its name, `b13_b14_…`, `b10_to_b15_…` or `trap5_…`, or in the
//! title of one of its cases, `"B-13, trap 15: …"`. A rule that does not apply yet is listed with the part that it waits
//! for; once it has a test, the entry has to go.

use std::collections::BTreeSet;

use crate::workspace;

/// A rule: its sort and its number.
type Rule = (Sort, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Behaviour,
    Trap,
}

/// Rules that tests of some crates guard.
struct Scope {
    title: &'static str,
    folders: &'static [&'static str],
    /// The numbers of both sorts begin at 1.
    last_behaviour: u32,
    last_trap: u32,
    /// What the rules that have no test wait for.
    absent: &'static [(&'static str, &'static [Rule])],
}

const B: Sort = Sort::Behaviour;
const T: Sort = Sort::Trap;

const SCOPES: &[Scope] = &[
    Scope {
        title: "the tick loop",
        folders: &["crates/typhon-runtime/", "crates/typhon-engine/", "crates/typhon/", "demos/"],
        last_behaviour: 78,
        last_trap: 26,
        absent: &[
            (
                "storage: the fence, its flush, opening and seeding",
                &[(B, 21), (B, 22), (B, 75), (B, 77), (T, 25), (T, 26)],
            ),
            ("transactions and their errors", &[(B, 44), (B, 72), (B, 73)]),
            ("components: the check of declared writes", &[(B, 74)]),
            (
                "queries: tiers, change filters, chunks of entities, budgets",
                &[(B, 7), (B, 37), (B, 41), (B, 53), (T, 8), (T, 9), (T, 10), (T, 11)],
            ),
            ("realms", &[(B, 23)]),
            ("timers of entities", &[(B, 48)]),
            ("clients", &[(B, 55)]),
            ("a bridge to OpenTelemetry", &[(B, 70)]),
        ],
    },
    Scope {
        title: "waiting, locks, epochs and timers",
        folders: &["crates/typhon-sync/"],
        last_behaviour: 26,
        last_trap: 0,
        absent: &[(
            "the store: memory, maps, bitmaps and checksums",
            &[(B, 17), (B, 18), (B, 19), (B, 20), (B, 22), (B, 23), (B, 24), (B, 25)],
        )],
    },
];

/// One line for every rule without a test, and for every rule that has one and is listed as absent.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn findings(files: &[String]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for scope in SCOPES {
        let mut guarded = BTreeSet::new();
        let is_in = |file: &&String| {
            file.ends_with(".rs") && scope.folders.iter().any(|in_it| file.starts_with(in_it))
        };
        for file in files.iter().filter(is_in) {
            let path = workspace::root().join(file);
            let text = std::fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
            guarded.extend(text.lines().flat_map(guarded_by));
        }
        found.extend(scope.findings(&guarded));
    }
    Ok(found)
}

impl Scope {
    fn findings(&self, guarded: &BTreeSet<Rule>) -> Vec<String> {
        let numbers = |sort, last| (1..=last).map(move |number| (sort, number));
        let rules = numbers(B, self.last_behaviour).chain(numbers(T, self.last_trap));
        let finding = |rule: Rule| {
            let waits_for = self.absent.iter().find(|(_, rules)| rules.contains(&rule)).map(|(part, _)| part);
            match (guarded.contains(&rule), waits_for) {
                (false, None) => Some(format!("{}: no test guards {}", self.title, name(rule))),
                (true, Some(part)) => Some(format!(
                    "{}: {} has a test and is listed as waiting for {part}",
                    self.title,
                    name(rule)
                )),
                _ => None,
            }
        };
        rules.filter_map(finding).collect()
    }
}

fn name((sort, number): Rule) -> String {
    match sort {
        B => format!("B-{number}"),
        T => format!("trap {number}"),
    }
}

/// Rules that a line of source code claims to guard: by the name of a test function, or the title of a case.
fn guarded_by(line: &str) -> Vec<Rule> {
    let line = line.trim_start();
    if let Some(title) = line.strip_prefix('"').and_then(|text| text.split_once(": ")) {
        return title.0.split(", ").map_while(rule_of_title).collect();
    }
    let Some(function) = line.strip_prefix("fn ") else { return Vec::new() };
    let mut rules: Vec<Rule> = Vec::new();
    let mut is_range = false;
    for word in function.split(['_', '(']) {
        match (rule_of_word(word), rules.last().copied()) {
            (Some(rule), Some(first)) if is_range => {
                rules.extend((first.1 + 1..=rule.1).map(|number| (rule.0, number)))
            }
            (Some(rule), _) => rules.push(rule),
            (None, Some(_)) if word == "to" => {}
            _ => break,
        }
        is_range = word == "to";
    }
    rules
}

/// `b13`, `trap5`.
fn rule_of_word(word: &str) -> Option<Rule> {
    let (sort, number) = match word.strip_prefix("trap") {
        Some(number) => (T, number),
        None => (B, word.strip_prefix('b')?),
    };
    Some((sort, number.parse().ok()?))
}

/// `B-13`, `trap 5`.
fn rule_of_title(text: &str) -> Option<Rule> {
    let (sort, number) = match text.strip_prefix("trap ") {
        Some(number) => (T, number),
        None => (B, text.strip_prefix("B-")?),
    };
    Some((sort, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_test_or_waits_for_something() {
        let files = workspace::tracked_files().expect("the tree is under version control");
        assert_eq!(findings(&files).expect("files can be read"), Vec::<String>::new());
    }

    #[test]
    fn names_and_titles_say_what_they_guard() {
        let rules = |line| guarded_by(line).into_iter().map(name).collect::<Vec<_>>().join(" ");
        assert_eq!(rules("    fn b10_to_b12_conflicts() {"), "B-10 B-11 B-12");
        assert_eq!(rules("fn trap5_b9_b8_to_write() {"), "trap 5 B-9 B-8");
        assert_eq!(rules("fn b8_b9_to_b11(seed: u64) {"), "B-8 B-9 B-10 B-11");
        assert_eq!(rules("            \"B-11, trap 15: a system\","), "B-11 trap 15");
        for other in ["fn before_b5() {", "// fn b5_x() {", "\"B-11 alone\"", "fn busy() {"] {
            assert_eq!(rules(other), "", "{other}");
        }
    }

    #[test]
    fn what_is_missing_and_what_is_no_longer_missing_is_said() {
        let scope = Scope {
            title: "it",
            folders: &[],
            last_behaviour: 3,
            last_trap: 1,
            absent: &[("that", &[(B, 2), (B, 3)])],
        };
        assert_eq!(
            scope.findings(&BTreeSet::from([(T, 1), (B, 3)])),
            ["it: no test guards B-1", "it: B-3 has a test and is listed as waiting for that"]
        );
    }
}
