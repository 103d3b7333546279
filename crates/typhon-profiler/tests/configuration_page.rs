//! `docs/configuration.md` lists every option and gate there is, and its examples mean what it says.
//!
//! `UPDATE_PAGES=1 cargo test -p typhon-profiler --test configuration_page` rewrites the generated tables.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::PathBuf;

use typhon_profiler::config::{OPTIONS, Resolved, Settings, resolve};
use typhon_profiler::gates::{GateTree, Rule};
use typhon_trace::registry::{DefaultState, Status, kind};

fn page_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md")
}

fn options_table() -> String {
    let mut table = String::from("| Key below `Typhon:` | Value | Default | Effect |\n|---|---|---|---|\n");
    for info in OPTIONS {
        let (value, default) = (info.value.expected().replace('<', "&lt;"), info.value.default_text());
        let missing = match info.part.is_built() {
            true => String::new(),
            false => format!(" *This version has no {}.*", info.part.name()),
        };
        writeln!(table, "| `{}` | {value} | {default} | {}{missing} |", info.key, info.summary).unwrap();
    }
    table
}

fn gates_table() -> String {
    let mut table = String::from("| Gate | Kinds | |\n|---|---|---|\n");
    for node in GateTree::get().nodes() {
        let path = if node.path.is_empty() { "(master)".to_owned() } else { format!("`{}`", node.path) };
        let kinds: Vec<String> = node.kinds.iter().map(|&id| kind_cell(id)).collect();
        let raw = if node.rule == Rule::Raw { "raw" } else { "" };
        writeln!(table, "| {path} | {} | {raw} |", kinds.join(", ")).unwrap();
    }
    table
}

fn kind_cell(id: u8) -> String {
    let info = kind(id).unwrap();
    let mark = match info.default {
        DefaultState::SuppressedUntilNamed => "†",
        DefaultState::SuppressedUntilGate => "‡",
        DefaultState::On | DefaultState::Off => "",
    };
    match info.status {
        Status::Live => format!("{id} {}{mark}", info.name),
        Status::Retired | Status::Removed => format!("({id} {})", info.name),
    }
}

/// The page with the text between the markers of `name` replaced.
fn with_table(page: &str, name: &str, table: &str) -> String {
    let start = page.find(&format!("<!-- generated: {name} ")).unwrap();
    let start = start + page[start..].find('\n').unwrap() + 1;
    let end = start + page[start..].find("<!-- end -->").unwrap();
    format!("{}\n{table}\n{}", &page[..start], &page[end..])
}

#[test]
fn the_page_lists_every_option_and_gate() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let expected = with_table(&page, "options", &options_table());
    let expected = with_table(&expected, "gates", &gates_table());
    if std::env::var_os("UPDATE_PAGES").is_some() {
        // The other tests read the page meanwhile: never show them half of it.
        let new_page = page_path().with_extension("new");
        std::fs::write(&new_page, expected).unwrap();
        std::fs::rename(new_page, page_path()).unwrap();
    } else {
        assert!(page == expected, "docs/configuration.md is stale: run this test with UPDATE_PAGES=1");
    }
}

/// The JSON examples of the page, in order.
fn examples() -> Vec<Resolved> {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let blocks = page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks
        .map(|text| resolve(&Settings::builder().file_text("typhon.telemetry.json", text).build()))
        .collect()
}

#[test]
fn the_examples_do_what_the_page_says() {
    let [first, concurrency, kinds, _retention] = &examples()[..] else {
        panic!("the page has other examples")
    };
    for example in [first, concurrency, kinds] {
        assert!(example.faults.is_empty(), "{:?}", example.faults);
        assert!(example.options.enabled);
    }
    assert!(first.mask().contains(150));
    assert!((90..=112).all(|kind| concurrency.mask().contains(kind)));
    assert!((113..=116).all(|kind| !concurrency.mask().contains(kind)));
    assert!(kinds.mask().contains(180) && !kinds.mask().contains(178) && !kinds.mask().contains(22));
}

#[test]
fn the_messages_on_the_page_are_the_real_ones() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let settings = Settings::builder()
        .environment([("TYPHON__PROFILER__GAUGES__ENABLED", "yes")])
        .file_text("typhon.telemetry.json", r#"{"Typhon": {"Profiler": {"Trcae": "x"}}}"#);
    let faults = resolve(&settings.build()).faults;
    assert_eq!(faults.len(), 2);
    for fault in faults {
        assert!(page.contains(&format!("typhon-profiler: {fault}\n")), "{fault}");
    }
}

#[test]
fn the_retention_example_is_valid() {
    use typhon_profiler::destination::RetentionPolicy;
    let page = std::fs::read_to_string(page_path()).unwrap();
    let text = page.rsplit("```json\n").next().unwrap().split("```").next().unwrap();
    let mut faults = Vec::new();
    let policy = RetentionPolicy::parse(text.as_bytes(), &page_path(), &mut faults);
    assert!(faults.is_empty(), "{faults:?}");
    let default = RetentionPolicy::default();
    assert_eq!((policy.budget_bytes, policy.keep_latest), (default.budget_bytes, default.keep_latest));
    assert_eq!(policy.pinned.len(), 1);
}
