//! A configuration in words (brief 02 §5.6): what is on, what is off and why.

use std::fmt::Write;

use typhon_trace::registry;

use super::fault::printable;
use super::keys::{PROFILER, Part};
use super::{Resolved, TracePath};
use crate::gates::{GateNode, GateTree, KindState, Resolution, Rule};

/// The configuration of this process, gate by gate and kind by kind, with who decided what.
pub fn explain() -> String {
    super::process().explain()
}

impl Resolved {
    /// One line for the log when the profiler starts.
    pub fn headline(&self) -> String {
        let state = on_off(self.options.enabled);
        format!("profiler {state}: {} kinds, {}", self.mask().len(), self.output())
    }

    /// The configuration at a glance. `clock` names the clock in use.
    pub fn summary(&self, clock: &str) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:<18} {value}");
        };
        line("files", self.files_text());
        line("master", state_with_origin(&self.gates, 0));
        for (index, node) in first_level() {
            line(node.path, root_text(&self.gates, index));
        }
        line("suppressed", suppressed_text(&self.gates));
        line("output", self.output());
        line("buffers", self.buffers());
        line("clock", clock.to_owned());
        text
    }

    /// The headline, the files, then every gate with its kinds. What is wrong is in [`faults`](Self::faults).
    pub fn explain(&self) -> String {
        format!("{}\nfiles: {}\n\n{}", self.headline(), self.files_text(), self.gates.explain())
    }

    fn files_text(&self) -> String {
        let files: Vec<String> = self.files.iter().map(|path| printable(&path.to_string_lossy())).collect();
        if files.is_empty() { "none".to_owned() } else { files.join(", ") }
    }

    fn output(&self) -> String {
        let live = self.options.live.port.map(|port| match Part::Live.is_built() {
            true => format!("live stream on {}:{port}", self.options.live.bind),
            false => "no live stream in this version".to_owned(),
        });
        let file = match &self.options.trace {
            TracePath::Explicit(path) => format!("file {}", printable(&path.to_string_lossy())),
            TracePath::None => "no file (Trace = none)".to_owned(),
            TracePath::Automatic if live.is_some() => "no file (Live is set)".to_owned(),
            TracePath::Automatic => "automatic file below the database directory, if there is one".to_owned(),
        };
        [Some(file), live].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn buffers(&self) -> String {
        let options = &self.options;
        format!(
            "{} MiB capture, {} batches per exporter",
            options.buffer_budget_bytes >> 20,
            options.exporter_queue_batches
        )
    }
}

impl Resolution {
    /// Every gate, indented by depth, with its state and who decided it; below it its kinds, and why those that are
    /// off are off.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for (index, node) in GateTree::get().nodes().iter().enumerate() {
            let indent = "  ".repeat(node.depth());
            let name = if index == 0 { PROFILER.trim_end_matches(':') } else { node.name() };
            let label = format!("{indent}{name}");
            let _ = writeln!(text, "{label:<40} {}", state_with_origin(self, index));
            for &kind in &node.kinds {
                let name = registry::kind(kind).map_or("", |info| info.name);
                let label = format!("{indent}  {kind:>3} {name}");
                let _ = writeln!(text, "{label:<40} {}", self.kind_text(kind));
            }
        }
        text
    }

    /// State of a kind, with the reason if it is off.
    pub fn kind_text(&self, kind: u8) -> String {
        let nodes = GateTree::get().nodes();
        match self.kind(kind) {
            None => "no such kind".to_owned(),
            Some(KindState::On) => "on".to_owned(),
            Some(KindState::GateOff(gate)) => format!("off: {} is not true", nodes[gate].key()),
            Some(KindState::DenyListed { lifted_by_gate: true }) => match GateTree::get().of_kind(kind) {
                Some(gate) => format!("off: very frequent; {} = true turns it on", nodes[gate].key()),
                None => "off".to_owned(),
            },
            Some(KindState::DenyListed { lifted_by_gate: false }) => {
                format!("off: very frequent; name it in {PROFILER}Kinds:Unsuppress")
            }
            Some(KindState::Suppressed) => format!("off: named in {PROFILER}Kinds:Suppress"),
            Some(KindState::SwitchedOff) => "off: switched off at run time".to_owned(),
            Some(KindState::KickoffOff(kickoff)) => format!("off: it completes kind {kickoff}, which is off"),
            Some(KindState::NotRecordable) => "never recorded, only read from old files".to_owned(),
        }
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn first_level() -> impl Iterator<Item = (usize, &'static GateNode)> {
    GateTree::get().nodes().iter().enumerate().filter(|(_, node)| node.rule == Rule::Root)
}

/// "on" or "off", and where that comes from.
fn state_with_origin(gates: &Resolution, node: usize) -> String {
    let state = on_off(gates.is_on(node));
    match gates.own(node) {
        Some((own, _)) if own != gates.is_on(node) => {
            let own = if own { "true" } else { "false" };
            format!("{state} (its own value is {own}, but a gate above is off)")
        }
        Some((_, origin)) => format!("{state} ({origin})"),
        None => state.to_owned(),
    }
}

/// State of a first-level gate and how many of the kinds below it are recorded.
fn root_text(gates: &Resolution, root: usize) -> String {
    let nodes = GateTree::get().nodes();
    let below = |node: &GateNode| {
        let rest = node.path.strip_prefix(nodes[root].path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    let kinds = nodes.iter().filter(|node| below(node)).flat_map(|node| &node.kinds);
    let states: Vec<_> = kinds.filter_map(|&kind| gates.kind(kind)).collect();
    let recordable = states.iter().filter(|state| **state != KindState::NotRecordable).count();
    let on = states.iter().filter(|state| **state == KindState::On).count();
    let state = state_with_origin(gates, root);
    if recordable == 0 { state } else { format!("{state}: {on} of {recordable} kinds") }
}

/// Kinds whose gate is open and that are off all the same.
fn suppressed_text(gates: &Resolution) -> String {
    let is_held_back = |kind: &u8| {
        matches!(
            gates.kind(*kind),
            Some(KindState::DenyListed { .. } | KindState::Suppressed | KindState::SwitchedOff)
        )
    };
    let name = |kind: u8| format!("{kind} {}", registry::kind(kind).map_or("", |info| info.name));
    let held_back: Vec<String> = (0..=u8::MAX).filter(is_held_back).map(name).collect();
    if held_back.is_empty() { "none".to_owned() } else { held_back.join(", ") }
}
