//! The gate tree, derived from the registry (brief 02 §5.4).

use std::collections::BTreeSet;
use std::sync::OnceLock;

use typhon_trace::registry::{self, Status};

use crate::config::PROFILER;

/// Gates that belong to no kind, so that the registry cannot know them: the CPU sampler's samples are a section of
/// the file, and the three statistics of the scheduler are fields of other records.
const GATES_WITHOUT_KINDS: [&str; 4] = [
    "CpuSampling",
    "Scheduler:Gauges:StragglerGap",
    "Scheduler:Gauges:TransitionLatency",
    "Scheduler:Gauges:WorkerUtilization",
];

/// Gates that default to on and do not ask their parents.
const RAW_GATES: [&str; 4] = [
    "Scheduler:ArchetypeTouches",
    "Scheduler:Gauges:StragglerGap",
    "Scheduler:Gauges:TransitionLatency",
    "Scheduler:Gauges:WorkerUtilization",
];

/// How the state of a gate follows from the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The master: on if said so, or if an explicit destination asks for it.
    Master,
    /// First level: off unless its own key says otherwise.
    Root,
    /// Deeper: as its parent unless its own key is false.
    Inherited,
    /// On with the master unless its own key is false; other ancestors do not count.
    Raw,
}

/// One node of the tree.
#[derive(Debug)]
pub struct GateNode {
    /// Path below `Typhon:Profiler:`; empty for the master.
    pub path: &'static str,
    /// Index of the parent, always smaller than the node's own; the master is its own parent.
    pub parent: usize,
    /// How its state is found.
    pub rule: Rule,
    /// Kinds it governs directly, ascending. Empty for nodes that only group others.
    pub kinds: Vec<u8>,
    /// Lower-case full key that holds the node's value.
    pub(crate) lower_key: String,
}

impl GateNode {
    /// Full key that holds the node's value.
    pub fn key(&self) -> String {
        match self.path {
            "" => format!("{PROFILER}Enabled"),
            path => format!("{PROFILER}{path}:Enabled"),
        }
    }

    /// Last part of the path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit(':').next().unwrap_or_default()
    }

    /// 0 for the master, 1 for the first level.
    pub fn depth(&self) -> usize {
        if self.path.is_empty() { 0 } else { self.path.split(':').count() }
    }

    /// Lower-case key whose value counts for this node when [`lower_key`](Self::lower_key) is absent: raw gates are
    /// also written without `:Enabled`, and one leaf is itself named `Enabled`, so that its parent's key and its own
    /// short form are the same.
    pub(crate) fn short_lower_key(&self) -> Option<&str> {
        let short = self.rule == Rule::Raw || self.name() == "Enabled";
        if short { self.lower_key.strip_suffix(":enabled") } else { None }
    }
}

/// All gates; parents before children, index 0 is the master.
#[derive(Debug)]
pub struct GateTree {
    nodes: Vec<GateNode>,
    /// Node of each kind.
    of_kind: [Option<u16>; 256],
}

impl GateTree {
    /// The tree of the registry this version was built with.
    pub fn get() -> &'static Self {
        static TREE: OnceLock<GateTree> = OnceLock::new();
        TREE.get_or_init(Self::from_registry)
    }

    /// All nodes.
    pub fn nodes(&self) -> &[GateNode] {
        &self.nodes
    }

    /// Index of a node by its path below `Typhon:Profiler:`, letters in any case.
    pub fn find(&self, path: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.path.eq_ignore_ascii_case(path))
    }

    /// Index of the node that governs a kind; `None` for unassigned ids.
    pub fn of_kind(&self, kind: u8) -> Option<usize> {
        self.of_kind[kind as usize].map(usize::from)
    }

    fn from_registry() -> Self {
        let mut paths = BTreeSet::from([""]);
        let leaves = registry::KINDS.iter().map(|info| path_of(info.gate)).chain(GATES_WITHOUT_KINDS);
        for leaf in leaves {
            let ancestors = leaf.match_indices(':').map(|(end, _)| &leaf[..end]);
            paths.extend(ancestors.chain([leaf]));
        }
        // A path sorts after each of its prefixes, so parents come before children.
        let paths: Vec<&'static str> = paths.into_iter().collect();
        let index_of = |path: &str| paths.binary_search(&path).unwrap_or_default();
        let mut nodes: Vec<GateNode> =
            paths.iter().map(|path| node(path, index_of(parent_of(path)))).collect();
        let mut of_kind = [None; 256];
        for info in registry::KINDS {
            let index = index_of(path_of(info.gate));
            nodes[index].kinds.push(info.id);
            of_kind[info.id as usize] = u16::try_from(index).ok();
        }
        Self { nodes, of_kind }
    }
}

/// The registry writes gates below `Typhon:`, the tree below `Typhon:Profiler:`.
fn path_of(gate: &'static str) -> &'static str {
    gate.strip_prefix("Profiler:").unwrap_or("")
}

fn parent_of(path: &str) -> &str {
    path.rsplit_once(':').map_or("", |(parent, _)| parent)
}

fn node(path: &'static str, parent: usize) -> GateNode {
    let rule = match path {
        "" => Rule::Master,
        _ if RAW_GATES.contains(&path) => Rule::Raw,
        _ if parent_of(path).is_empty() => Rule::Root,
        _ => Rule::Inherited,
    };
    let mut node = GateNode { path, parent, rule, kinds: Vec::new(), lower_key: String::new() };
    node.lower_key = node.key().to_lowercase();
    node
}

/// May this kind be recorded at all? Retired and removed kinds are only ever read.
pub(crate) fn is_recordable(kind: u8) -> bool {
    registry::kind(kind).is_some_and(|info| info.status == Status::Live)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_exactly_one_gate_and_parents_come_first() {
        let tree = GateTree::get();
        for info in registry::KINDS {
            let owners = tree.nodes().iter().filter(|node| node.kinds.contains(&info.id)).count();
            assert_eq!(owners, 1, "kind {}", info.id);
            let node = &tree.nodes()[tree.of_kind(info.id).unwrap()];
            assert_eq!(path_of(info.gate), node.path);
        }
        for (index, node) in tree.nodes().iter().enumerate() {
            assert!(node.parent < index || index == 0, "{}", node.path);
            assert_eq!(tree.find(&node.path.to_uppercase()), Some(index));
        }
    }

    #[test]
    fn raw_gates_and_the_leaf_named_enabled_have_a_short_key() {
        let tree = GateTree::get();
        let short: Vec<_> = tree
            .nodes()
            .iter()
            .filter(|node| node.short_lower_key().is_some())
            .map(|node| node.path)
            .collect();
        assert_eq!(
            short,
            [
                "ECS:Query:Constraint:Enabled",
                "Scheduler:ArchetypeTouches",
                "Scheduler:Gauges:StragglerGap",
                "Scheduler:Gauges:TransitionLatency",
                "Scheduler:Gauges:WorkerUtilization"
            ]
        );
    }
}
