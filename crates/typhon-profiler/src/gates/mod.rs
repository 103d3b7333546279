//! Gates: a tree of switches over groups of kinds, resolved into the 256-bit mask a call site tests.
//!
//! A gate is on if its parent is on and its own key is not false; gates of the first level must be turned on. Kinds on
//! the deny-list stay off behind an open gate until they are asked for. [`Resolution`] holds the answer with its
//! reasons, [`Gates`] changes it while the program runs.
//!
//! **Invariants**
//! - The tree is derived from the event registry; every kind has exactly one gate.
//! - The mask is a pure function of the values given; it contains live kinds only.

mod mask;
mod resolve;
mod runtime;
mod tree;

pub use mask::KindMask;
pub use resolve::{KindState, Resolution};
pub use runtime::{GateError, Gates, MaskChange};
pub use tree::{GateNode, GateTree, Rule};

pub(crate) use resolve::GateValues;
