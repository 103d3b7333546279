//! The C header says what the library exports: names, parameters and their types.
#![allow(clippy::unwrap_used, reason = "these are tests")]

const HEADER: &str = include_str!("../include/typhon_profiler.h");
const SOURCE: &str = include_str!("../src/c_api.rs");

/// `name(type name, …) -> type` of every function, in C's words.
fn exported() -> Vec<String> {
    let mut functions = Vec::new();
    for rest in SOURCE.split("pub extern \"C\" fn ").skip(1) {
        let (signature, _) = rest.split_once(" {").unwrap();
        let (name, rest) = signature.split_once('(').unwrap();
        let (parameters, result) = rest.rsplit_once(')').unwrap();
        let result = result.trim().strip_prefix("-> ").map_or("void", c_type);
        let parameters = parameters.split(',').map(str::trim).filter(|parameter| !parameter.is_empty());
        let parameters = parameters.map(|parameter| {
            let (name, rust) = parameter.split_once(": ").unwrap();
            // `type` is a word of Rust's.
            format!("{} {}", c_type(rust), if name == "gc_type" { "type" } else { name })
        });
        let parameters: Vec<String> = parameters.collect();
        let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
        functions.push(format!("{result} {name}({parameters})"));
    }
    functions
}

fn c_type(rust: &str) -> &'static str {
    match rust {
        "i32" => "int32_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        other => panic!("{other} has no counterpart yet"),
    }
}

/// Every prototype of the header, its blanks made one.
fn declared() -> Vec<String> {
    let mut text = HEADER.to_owned();
    while let (Some(start), Some(end)) = (text.find("/*"), text.find("*/")) {
        text.replace_range(start..end + 2, "");
    }
    let statements = text.split(';').filter(|statement| statement.contains('('));
    let statements = statements.map(|statement| {
        let code = statement.lines().filter(|line| !line.starts_with('#') && !line.starts_with("extern"));
        code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    });
    statements.collect()
}

#[test]
fn the_header_declares_exactly_what_is_exported() {
    let (mut exported, mut declared) = (exported(), declared());
    assert!(exported.len() >= 9, "{exported:?}");
    exported.sort();
    declared.sort();
    assert_eq!(declared, exported);
}
