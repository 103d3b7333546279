//! Tables of promises: which tests hold up which, and whether they exist.

use std::path::Path;

/// Number, what it promises, and tests that fail without it, as `file::test`.
pub(crate) type Promise = (&'static str, &'static str, &'static [&'static str]);

/// Panics with every test that is named and does not exist. `files` gives short names to paths.
pub(crate) fn check(promises: &[Promise], files: &[(&str, &str)]) {
    let mut missing = Vec::new();
    for (number, what, tests) in promises {
        assert!(!tests.is_empty(), "{number} ({what}) has no test");
        for test in *tests {
            let (file, name) = test.split_once("::").expect("file::test");
            let (_, path) = files.iter().find(|(short, _)| *short == file).expect("a known file");
            if !is_test(&read(path), name) {
                missing.push(format!("{number} ({what}): no test {name} in {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A function of the test harness, a name in a table of tests, or one from which a macro makes a test.
fn is_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let function = format!("fn {name}(");
    let is_marked = |at: usize| {
        let mut above = lines[..at].iter().rev().take_while(|line| line.starts_with('#'));
        above.any(|line| *line == "#[test]")
    };
    let has_function = (0..lines.len()).any(|at| lines[at].starts_with(&function) && is_marked(at));
    let is_made = text.contains("#[test]\n        fn $name()") && text.contains(&format!("    {name}: ["));
    has_function || is_made || text.contains(&format!("(\"{name}\", "))
}

#[test]
fn a_name_alone_is_no_test() {
    assert!(is_test("    #[cfg(unix)]\n    #[test]\n    fn a_b() {", "a_b"));
    assert!(is_test("    (\"a_b\", run),", "a_b"));
    assert!(is_test("#[test]\n        fn $name() {}\n    a_b: [Fault] in 5;", "a_b"));
    assert!(!is_test("    a_b: [Fault] in 5;", "a_b"));
    assert!(!is_test("    fn a_b() {", "a_b"));
    assert!(!is_test("// a_b\n#[test]\nfn a_b_c() {", "a_b"));
}
