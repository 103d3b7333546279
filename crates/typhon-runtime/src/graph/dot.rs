//! The graph as a picture.

use std::fmt::Write;

use super::Graph;
use crate::SystemIndex;

impl Graph {
    /// The graph in the DOT language of Graphviz: a box for each DAG, every edge with its reasons.
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("digraph schedule {\n  rankdir=LR;\n  node [shape=box];\n");
        for (at, dag) in self.dags.iter().enumerate() {
            let track = &self.track(dag.track).name;
            let label = quoted(&format!("{track} / {}", dag.name));
            let _ = writeln!(dot, "  subgraph cluster_{at} {{\n    label={label};");
            for index in dag.systems.clone() {
                let system = self.system(SystemIndex::new(index));
                let phase = &dag.phases[system.phase.as_usize()];
                let label = quoted(&format!("{}\n{phase}", system.name));
                let _ = writeln!(dot, "    s{index} [label={label}];");
            }
            dot.push_str("  }\n");
        }
        for edge in &self.edges {
            let _ = writeln!(dot, "  s{} -> s{} [label=\"{}\"];", edge.from, edge.to, edge.reasons);
        }
        dot.push_str("}\n");
        dot
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
