//! Keys nobody reads: misspelt, obsolete, or of a part this version does not have.

use std::collections::BTreeSet;

use super::fault::{Fault, FaultCode};
use super::keys::{OPTIONS, OptionInfo, PROFILER, Part, ROOT, ValueType};
use super::nearest::nearest;
use super::reader::parse_flag;
use super::source::{Origin, Setting, Settings};
use crate::gates::{GateNode, GateTree};

/// Suggestions are searched for this many keys; a file with more mistakes has another problem.
const SUGGESTIONS_MAX: usize = 20;

/// Faults about keys that are not read. `enabled`: the profiler is on, so that options of missing parts matter.
pub(super) fn unread_keys(settings: &Settings, enabled: bool) -> Vec<Fault> {
    let catalogue = Catalogue::new();
    let mut faults = Vec::new();
    let mut missing_parts = Vec::new();
    let mut suggestions = 0..SUGGESTIONS_MAX;
    for (lower_key, setting) in settings.iter() {
        let option = catalogue.option(lower_key);
        if option.is_none() && !catalogue.gates.contains(lower_key) {
            faults.extend(catalogue.unknown(lower_key, setting, suggestions.next().is_some()));
        }
        faults.extend(option.and_then(|info| obsolete(info, setting)));
        let part = option.map(|info| info.part).or_else(|| part_of_gate(lower_key));
        if let Some(part) = part.filter(|&part| enabled || part == Part::Checks)
            && !missing_parts.contains(&part)
            && let Some(fault) = not_available(part, setting)
        {
            missing_parts.push(part);
            faults.push(fault);
        }
    }
    faults
}

/// The part whose own gate this lower-case key is.
fn part_of_gate(lower_key: &str) -> Option<Part> {
    let is_gate_of = |part: &Part| {
        let gate = part.gate().and_then(|path| GateTree::get().find(path));
        gate.is_some_and(|node| GateTree::get().nodes()[node].lower_key == lower_key)
    };
    OPTIONS.iter().map(|info| info.part).find(is_gate_of)
}

fn obsolete(info: &OptionInfo, setting: &Setting) -> Option<Fault> {
    let remedy = format!("remove it; {PROFILER}BufferBudgetMiB bounds the memory");
    let fault = Fault::new(FaultCode::Obsolete, &setting.origin, &setting.key, "ignored", remedy);
    (info.value == ValueType::Obsolete).then_some(fault)
}

/// A switch that is off asks for nothing.
fn not_available(part: Part, setting: &Setting) -> Option<Fault> {
    if part.is_built() || parse_flag(&setting.value) == Some(false) {
        return None;
    }
    let problem = format!("this version has no {}", part.name());
    let (code, remedy) = (FaultCode::NotAvailable, "remove it; it is ignored");
    Some(Fault::new(code, &setting.origin, &setting.key, problem, remedy))
}

/// All keys there are.
struct Catalogue {
    /// Lower-case full keys of options.
    options: Vec<(String, &'static OptionInfo)>,
    /// Lower-case full keys of gates, short forms included.
    gates: BTreeSet<String>,
    /// Full keys in their own spelling.
    spellings: Vec<String>,
}

impl Catalogue {
    fn new() -> Self {
        let nodes = GateTree::get().nodes();
        let full = |info: &OptionInfo| format!("{ROOT}{}", info.key);
        let short = nodes.iter().filter_map(GateNode::short_lower_key).map(str::to_owned);
        Self {
            options: OPTIONS.iter().map(|info| (full(info).to_lowercase(), info)).collect(),
            gates: nodes.iter().map(|node| node.lower_key.clone()).chain(short).collect(),
            spellings: OPTIONS.iter().map(full).chain(nodes.iter().map(GateNode::key)).collect(),
        }
    }

    /// The option a key belongs to: its own key, or an element of a list, or anything below a reserved section.
    fn option(&self, lower_key: &str) -> Option<&'static OptionInfo> {
        let belongs = |(key, info): &&(String, &OptionInfo)| match lower_key.strip_prefix(key.as_str()) {
            Some("") => true,
            Some(rest) => rest.strip_prefix(':').is_some_and(|below| match info.value {
                ValueType::Reserved => true,
                ValueType::Kinds => below.parse::<u32>().is_ok(),
                _ => false,
            }),
            None => false,
        };
        self.options.iter().find(belongs).map(|(_, info)| *info)
    }

    /// A key that is neither option nor gate. Outside the profiler's section others may have keys too, so there only
    /// a spelling close to one of ours is a mistake.
    fn unknown(&self, lower_key: &str, setting: &Setting, suggest: bool) -> Option<Fault> {
        let ours = lower_key.starts_with(&PROFILER.to_lowercase());
        let suggestion = if suggest { self.suggestion(setting) } else { None };
        if !ours && suggestion.is_none() {
            return None;
        }
        let remedy = match suggestion {
            Some(key) => format!("did you mean {}?", spelt_for(&setting.origin, &key)),
            None => "correct or remove it; it is ignored".to_owned(),
        };
        Some(Fault::new(FaultCode::UnknownKey, &setting.origin, &setting.key, "no such key", remedy))
    }

    fn suggestion(&self, setting: &Setting) -> Option<String> {
        let key = setting.key.as_str();
        let as_gate = format!("{key}:Enabled");
        let with_root = format!("{ROOT}{key}");
        let spellings = || self.spellings.iter().map(String::as_str);
        let exactly = |wanted: &str| spellings().find(|known| known.eq_ignore_ascii_case(wanted));
        let found = exactly(&as_gate).or_else(|| exactly(&with_root)).or_else(|| nearest(key, spellings()));
        found.map(str::to_owned).or_else(|| self.section_suggestion(key))
    }

    /// A misspelt section, whatever is below it.
    fn section_suggestion(&self, key: &str) -> Option<String> {
        let section_end = key.match_indices(':').nth(1).map_or(key.len(), |(at, _)| at);
        let (section, below) = key.split_at(section_end);
        let sections = ["Typhon:Profiler", "Typhon:Telemetry", "Typhon:Checks"];
        if below.is_empty() || sections.iter().any(|known| known.eq_ignore_ascii_case(section)) {
            return None;
        }
        nearest(section, sections).map(|section| format!("{section}{below}"))
    }
}

/// A key as its source writes keys.
fn spelt_for(origin: &Origin, key: &str) -> String {
    match origin {
        Origin::Environment(_) => key.replace(':', "__").to_uppercase(),
        _ => key.to_owned(),
    }
}
