//! Switching gates and kinds while the program runs (brief 02 §11.1).

use std::fmt;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;
use typhon_trace::registry;

use super::mask::KindMask;
use super::resolve::{GateValues, KindState, Resolution};
use super::tree::GateTree;
use crate::config::{Origin, PROFILER, Resolved, nearest, parse_kind};

/// One change of the effective mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskChange {
    /// Kinds recorded from now on.
    pub mask: KindMask,
    /// Kinds that were not recorded before.
    pub turned_on: KindMask,
    /// Kinds that were recorded before.
    pub turned_off: KindMask,
}

/// Why a gate or a kind could not be switched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GateError {
    /// There is no such gate or kind.
    #[error("there is no gate and no kind named \"{name}\"{}", did_you_mean(*suggestion))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest existing name.
        suggestion: Option<&'static str>,
    },
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

type Publish = dyn Fn(&MaskChange) + Send + Sync;

/// The gates of a running program. Changes are serialised: each one is published before the next one is computed.
pub struct Gates {
    state: Mutex<State>,
    publish: Box<Publish>,
}

#[derive(Debug)]
struct State {
    values: GateValues,
    resolution: Resolution,
}

impl Gates {
    /// Starts from a configuration. `publish` gets every change that turns at least one kind on or off; it must
    /// note the change for the trace before it stores the mask (brief 02 B-36), and must not call back into the gates.
    pub fn new(resolved: &Resolved, publish: impl Fn(&MaskChange) + Send + Sync + 'static) -> Self {
        let state = State { values: resolved.gate_values.clone(), resolution: resolved.gates.clone() };
        Self { state: Mutex::new(state), publish: Box::new(publish) }
    }

    /// Kinds recorded now.
    pub fn mask(&self) -> KindMask {
        self.resolution().mask()
    }

    /// State of all gates and kinds now.
    pub fn resolution(&self) -> Resolution {
        self.lock().resolution.clone()
    }

    /// Switches a gate (path below `Typhon:Profiler:`; `Profiler` or nothing for the master) or a kind (name or
    /// number), letters in any case.
    ///
    /// A gate gets the value as if the configuration had said so: gates below follow unless they have a value of
    /// their own, and gates above still have to be open. A kind switched off stays off until it is switched on again;
    /// switching one on also takes it from the deny-list, but does not open its gate. The state after the change, with
    /// the reason if kinds stay off, is in [`resolution`](Self::resolution).
    pub fn set(&self, gate_or_kind: &str, on: bool) -> Result<MaskChange, GateError> {
        let path = below_profiler(gate_or_kind);
        if let Some(node) = GateTree::get().find(path) {
            return Ok(self.change(|values| values.own[node] = Some((on, Origin::Runtime))));
        }
        let Some(kind) = parse_kind(gate_or_kind) else { return Err(unknown(gate_or_kind)) };
        Ok(self.set_kind(kind, on))
    }

    /// Switches one kind; see [`set`](Self::set).
    pub fn set_kind(&self, kind: u8, on: bool) -> MaskChange {
        self.change(|values| {
            if on {
                values.off.remove(kind);
                values.suppress.remove(kind);
                values.unsuppress.insert(kind);
            } else {
                values.off.insert(kind);
            }
        })
    }

    /// Publishes the mask as it is: for a publisher that could not take earlier changes.
    pub(crate) fn publish_mask(&self) {
        let state = self.lock();
        let (mask, none) = (state.resolution.mask(), KindMask::EMPTY);
        (self.publish)(&MaskChange { mask, turned_on: none, turned_off: none });
    }

    /// State of one kind; `None` for unassigned ids.
    pub fn kind(&self, kind: u8) -> Option<KindState> {
        self.lock().resolution.kind(kind)
    }

    fn change(&self, apply: impl FnOnce(&mut GateValues)) -> MaskChange {
        let mut state = self.lock();
        let before = state.resolution.mask();
        apply(&mut state.values);
        state.resolution = state.values.resolve();
        let mask = state.resolution.mask();
        let change = MaskChange { mask, turned_on: mask.minus(before), turned_off: before.minus(mask) };
        if mask != before {
            (self.publish)(&change);
        }
        change
    }

    /// A panic in `publish` leaves complete values behind, so a poisoned lock is as good as any.
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gates").field("mask", &self.mask()).finish_non_exhaustive()
    }
}

/// A gate's path however much of its key is given: `Typhon:Profiler:A:B`, `Profiler:A:B`, `A:B`.
fn below_profiler(name: &str) -> &str {
    let short = &PROFILER["Typhon:".len()..];
    [PROFILER, short, PROFILER.trim_end_matches(':'), short.trim_end_matches(':')]
        .iter()
        .find_map(|prefix| {
            let start = name.get(..prefix.len())?;
            let rest = &name[prefix.len()..];
            let whole_part = prefix.ends_with(':') || rest.is_empty();
            (whole_part && start.eq_ignore_ascii_case(prefix)).then_some(rest)
        })
        .unwrap_or(name)
}

fn unknown(name: &str) -> GateError {
    let gates = GateTree::get().nodes().iter().map(|node| node.path);
    let kinds = registry::KINDS.iter().map(|info| info.name);
    let suggestion = nearest(below_profiler(name), gates.chain(kinds));
    GateError::Unknown { name: name.to_owned(), suggestion }
}
