//! From what was said about gates and kinds to what is recorded (brief 02 §5.3 and §5.5).

use typhon_trace::registry::{self, DefaultState};

use super::mask::KindMask;
use super::tree::{GateNode, GateTree, Rule, is_recordable};
use crate::config::{Fault, FaultCode, Origin, PROFILER, Reader, Setting};

/// What sources say about one gate: its own value and who wrote it. `None`: nobody said anything.
pub(crate) type OwnValue = Option<(bool, Origin)>;

/// Everything that decides about gates and kinds. [`resolve`](Self::resolve) is a pure function of it.
#[derive(Debug, Clone)]
pub(crate) struct GateValues {
    /// Per node of the tree. The master's is the outcome of its own rules.
    pub(crate) own: Vec<OwnValue>,
    /// Kinds switched off by name.
    pub(crate) suppress: KindMask,
    /// Kinds taken from the deny-list by name.
    pub(crate) unsuppress: KindMask,
    /// Sources of the names on the second list.
    unsuppressed_by: Vec<(u8, Setting)>,
    /// Kinds switched off while the program runs.
    pub(crate) off: KindMask,
}

impl GateValues {
    /// Reads every gate. The master comes in decided, since options decide about it.
    pub(crate) fn read(reader: &mut Reader<'_>, master: bool, decided_by: Option<&Origin>) -> Self {
        let own = |node: &GateNode, reader: &mut Reader<'_>| match node.rule {
            Rule::Master => decided_by.map(|origin| (master, origin.clone())),
            _ => own_value(node, reader),
        };
        let own = GateTree::get().nodes().iter().map(|node| own(node, reader)).collect();
        let (suppress, unsuppress) = reader.kind_lists();
        Self {
            own,
            suppress,
            unsuppress: unsuppress.iter().map(|(kind, _)| *kind).collect(),
            unsuppressed_by: unsuppress.into_iter().map(|(kind, setting)| (kind, setting.clone())).collect(),
            off: KindMask::EMPTY,
        }
    }

    /// The state of every gate and every kind.
    pub(crate) fn resolve(&self) -> Resolution {
        let mut on = Vec::with_capacity(self.own.len());
        for (node, own) in GateTree::get().nodes().iter().zip(&self.own) {
            let own = own.as_ref().map(|(value, _)| *value);
            let master = *on.first().unwrap_or(&false);
            on.push(match node.rule {
                Rule::Master => own.unwrap_or(false),
                Rule::Root => master && own.unwrap_or(false),
                Rule::Raw => master && own.unwrap_or(true),
                Rule::Inherited => on[node.parent] && own.unwrap_or(true),
            });
        }
        let mut kinds: Vec<Option<KindState>> =
            (0..=u8::MAX).map(|kind| registry::kind(kind).map(|info| self.kind_state(info, &on))).collect();
        without_lone_completions(&mut kinds);
        Resolution { own: self.own.clone(), on, kinds }
    }

    fn kind_state(&self, info: &registry::KindInfo, on: &[bool]) -> KindState {
        let tree = GateTree::get();
        let Some(node) = tree.of_kind(info.id) else { return KindState::NotRecordable };
        if !is_recordable(info.id) {
            return KindState::NotRecordable;
        }
        if let Some(gate) = self.closed_gate(info.default, node, on) {
            return KindState::GateOff(gate);
        }
        if self.off.contains(info.id) {
            return KindState::SwitchedOff;
        }
        if self.suppress.contains(info.id) {
            return KindState::Suppressed;
        }
        let gate_opened_explicitly = matches!(self.own[node], Some((true, _)));
        match info.default {
            _ if self.unsuppress.contains(info.id) => KindState::On,
            DefaultState::SuppressedUntilNamed => KindState::DenyListed { lifted_by_gate: false },
            DefaultState::SuppressedUntilGate if !gate_opened_explicitly => {
                KindState::DenyListed { lifted_by_gate: true }
            }
            _ => KindState::On,
        }
    }

    /// The gate that keeps a kind off: of those closed between the master and its own, the outermost.
    ///
    /// A kind that is on by default below the first level does not wait for its gate to be opened; it is off only if
    /// somebody closed its gate or one above by an explicit false.
    fn closed_gate(&self, default: DefaultState, node: usize, on: &[bool]) -> Option<usize> {
        let nodes = GateTree::get().nodes();
        let above = |from: usize| std::iter::successors(Some(from), |&n| (n != 0).then(|| nodes[n].parent));
        let rule = nodes[node].rule;
        let closed = |n: usize| match (rule, default) {
            (Rule::Raw, _) => (n == node || n == 0) && !on[n],
            (Rule::Inherited, DefaultState::On) if n != 0 => matches!(self.own[n], Some((false, _))),
            _ => !on[n],
        };
        above(node).filter(|&n| closed(n)).last()
    }

    /// Kinds that were named on the list of exceptions and are off all the same because their gate is closed.
    pub(crate) fn ineffective(&self, resolution: &Resolution) -> Vec<Fault> {
        if !resolution.on[0] {
            return Vec::new();
        }
        let nodes = GateTree::get().nodes();
        let fault = |(kind, setting): &(u8, Setting)| {
            let Some(KindState::GateOff(gate)) = resolution.kind(*kind) else { return None };
            let name = registry::kind(*kind).map_or("", |info| info.name);
            let problem =
                format!("{kind} {name} stays off because its gate {PROFILER}{} is off", nodes[gate].path);
            let remedy = format!("set {} = true", nodes[gate].key());
            Some(Fault::new(FaultCode::NoEffect, &setting.origin, &setting.key, problem, remedy))
        };
        self.unsuppressed_by.iter().filter_map(fault).collect()
    }
}

fn own_value(node: &GateNode, reader: &mut Reader<'_>) -> OwnValue {
    let own = reader.flag_at(&node.lower_key);
    let own = own.or_else(|| node.short_lower_key().and_then(|key| reader.flag_at(key)));
    own.map(|(value, origin)| (value, origin.clone()))
}

/// A completion says how a kick-off ended; without the kick-off it says nothing.
fn without_lone_completions(kinds: &mut [Option<KindState>]) {
    for info in registry::KINDS {
        if let Some(kickoff) = info.correlates_span_id
            && kinds[info.id as usize] == Some(KindState::On)
            && kinds[kickoff as usize] != Some(KindState::On)
        {
            kinds[info.id as usize] = Some(KindState::KickoffOff(kickoff));
        }
    }
}

/// Whether a kind is recorded, and what keeps it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindState {
    /// Recorded.
    On,
    /// This node of the gate tree is closed.
    GateOff(usize),
    /// On the deny-list.
    DenyListed {
        /// Opening its gate by name would be enough; otherwise the kind itself must be named.
        lifted_by_gate: bool,
    },
    /// Switched off by name in the configuration.
    Suppressed,
    /// Switched off by name while the program runs.
    SwitchedOff,
    /// It completes a span of this kind, which is off.
    KickoffOff(u8),
    /// Retired or removed: read from old files, never written.
    NotRecordable,
}

/// State of every gate and every kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    own: Vec<OwnValue>,
    on: Vec<bool>,
    kinds: Vec<Option<KindState>>,
}

impl Resolution {
    /// Is the gate on? `node` is an index into [`GateTree::nodes`]; 0 is the master.
    pub fn is_on(&self, node: usize) -> bool {
        self.on[node]
    }

    /// What was said about this very gate, and by whom.
    pub fn own(&self, node: usize) -> Option<(bool, &Origin)> {
        self.own[node].as_ref().map(|(value, origin)| (*value, origin))
    }

    /// State of a kind; `None` for unassigned ids.
    pub fn kind(&self, kind: u8) -> Option<KindState> {
        self.kinds[kind as usize]
    }

    /// Kinds to record.
    pub fn mask(&self) -> KindMask {
        (0..=u8::MAX).filter(|&kind| self.kinds[kind as usize] == Some(KindState::On)).collect()
    }
}
