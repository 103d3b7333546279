//! Which workspace crate may depend on which: lower layers never know the upper ones.

use crate::workspace::Metadata;

/// Crates of the workspace, bottom first, each with the workspace crates it may name as a dependency of any sort
/// (normal, build or development).
const ALLOWED: &[(&str, &[&str])] = &[
    ("typhon-trace", &[]),
    ("typhon-clr", &[]),
    ("typhon-profiler", &["typhon-trace", "typhon-clr"]),
    ("typhon-sync", &["typhon-profiler", "typhon-trace"]),
    ("typhon-engine", &["typhon-trace", "typhon-profiler", "typhon-sync"]),
    ("typhon-runtime", &["typhon-trace", "typhon-profiler", "typhon-sync", "typhon-engine"]),
    ("typhon", &["typhon-trace", "typhon-profiler", "typhon-engine", "typhon-runtime"]),
    ("typhon-store", &[]),
    ("typhon-log", &["typhon-trace", "typhon-profiler", "typhon-sync", "typhon-store"]),
    ("typhon-analysis", &["typhon-trace"]),
    ("typhon-workbench", &["typhon-trace", "typhon-analysis"]),
    ("anthill", &["typhon"]),
    (
        "typhon-cli",
        &[
            "typhon-trace",
            "typhon-clr",
            "typhon-profiler",
            "typhon-sync",
            "typhon-store",
            "typhon-log",
            "typhon-analysis",
            "typhon-workbench",
            "typhon",
            "anthill",
        ],
    ),
    ("xtask", &["typhon-trace"]),
];

/// One line for every edge that the table does not allow, and for every crate that it does not know.
pub(crate) fn findings(metadata: &Metadata) -> Vec<String> {
    let members: Vec<&str> = metadata.members().map(|package| package.name.as_str()).collect();
    let mut found = Vec::new();
    for package in metadata.members() {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package.name) else {
            found.push(format!("{}: not in the table of allowed edges (xtask/src/edges.rs)", package.name));
            continue;
        };
        // A crate names itself to have its own features in its tests.
        let edges = package.dependencies.iter().map(|dependency| dependency.name.as_str());
        let others = edges.filter(|name| members.contains(name) && *name != package.name);
        for edge in others.filter(|name| !allowed.contains(name)) {
            found.push(format!("{} must not depend on {edge}", package.name));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{self, Dependency, Package};

    fn member(name: &str, dependencies: &[&str]) -> Package {
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "0.0.0".to_owned(),
            license: None,
            dependencies: dependencies.iter().map(|name| Dependency { name: (*name).to_owned() }).collect(),
        }
    }

    fn graph(packages: Vec<Package>) -> Metadata {
        Metadata {
            workspace_members: packages.iter().map(|package| package.id.clone()).collect(),
            packages,
            target_directory: "target".into(),
        }
    }

    #[test]
    fn workspace_has_no_edge_outside_the_table() {
        let metadata = workspace::metadata("Cargo.toml").unwrap();
        assert_eq!(findings(&metadata), Vec::<String>::new());
        let exists = |name: &str| metadata.members().any(|package| package.name == name);
        assert!(ALLOWED.iter().all(|(name, _)| exists(name)), "the table names a crate that is gone");
    }

    #[test]
    fn an_upward_edge_is_found() {
        let metadata = graph(vec![
            member("typhon-trace", &["typhon-analysis"]),
            member("typhon-analysis", &["typhon-trace"]),
        ]);
        assert_eq!(findings(&metadata), ["typhon-trace must not depend on typhon-analysis"]);
    }

    #[test]
    fn a_crate_outside_the_table_is_found() {
        let found = findings(&graph(vec![member("typhon-stray", &[])]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("typhon-stray: not in the table"), "{found:?}");
    }

    #[test]
    fn the_table_only_points_downwards() {
        for (position, (name, allowed)) in ALLOWED.iter().enumerate() {
            for lower in *allowed {
                assert!(ALLOWED[..position].iter().any(|(known, _)| known == lower), "{name} -> {lower}");
            }
        }
    }
}
