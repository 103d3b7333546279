//! Code generation from the event registry, `crates/typhon-trace/registry/kinds.json`.
//!
//! Generated files are committed. A test compares them with what the generator produces now, so that neither the
//! registry nor a generated file can change alone.

mod docs;
mod events;
mod model;
mod names;
mod rustfmt;
mod statics;
mod typescript;

use std::{
    fs,
    path::{Path, PathBuf},
};

use model::Registry;

/// Writing to a `String` cannot fail; this keeps the calls below short.
macro_rules! put {
    ($out:expr, $($argument:tt)*) => {
        $out.write_fmt(format_args!($($argument)*)).expect("a String takes any text")
    };
}
use put;

/// One generated file.
struct Output {
    /// Path from the root of the repository.
    path: String,
    text: String,
}

/// Runs the task: writes every stale file, or with `--check` only fails when there is one.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    match arguments {
        [] => write(),
        [argument] if argument == "--check" => check(),
        _ => Err(format!("codegen takes --check or nothing, not {arguments:?}")),
    }
}

fn write() -> Result<(), String> {
    for output in stale()? {
        let path = root().join(&output.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        fs::write(&path, output.text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        println!("wrote {}", output.path);
    }
    Ok(())
}

/// Fails when a generated file is stale.
fn check() -> Result<(), String> {
    let stale: Vec<String> = stale()?.into_iter().map(|output| output.path).collect();
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("stale generated files: {}; run `cargo xtask codegen`", stale.join(", ")))
}

/// Generated files that differ from what is on disk.
fn stale() -> Result<Vec<Output>, String> {
    let outputs = generate(&Registry::load(&root().join("crates/typhon-trace/registry/kinds.json"))?)?;
    let differs = |output: &Output| {
        !fs::read_to_string(root().join(&output.path)).is_ok_and(|committed| committed == output.text)
    };
    Ok(outputs.into_iter().filter(differs).collect())
}

fn generate(registry: &Registry) -> Result<Vec<Output>, String> {
    let config = root().join("rustfmt.toml");
    let source = |path: String, text: String| match rustfmt::format(&text, &config) {
        Ok(text) => Ok(Output { path, text }),
        Err(error) => Err(format!("{path}: {error}")),
    };
    let rust = |name: &str, text: String| source(format!("crates/typhon-trace/src/{name}.rs"), text);
    events::check_modules(registry)?;
    let mut outputs = vec![
        Output { path: "docs/event-kinds.md".into(), text: docs::generate(registry) },
        Output { path: "workbench-ui/src/generated/kinds.ts".into(), text: typescript::generate(registry) },
        rust("registry/generated", statics::generate(registry))?,
        rust("event/enums", events::enums(registry))?,
        rust("event/all", events::all(registry))?,
        source("crates/typhon-profiler/src/event/setters.rs".into(), events::setters(registry))?,
    ];
    for module in events::MODULES {
        outputs.push(rust(&format!("event/{}", module.name), events::module(registry, module))?);
    }
    Ok(outputs)
}

/// Root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_files_are_current() {
        assert_eq!(super::check(), Ok(()));
    }
}
