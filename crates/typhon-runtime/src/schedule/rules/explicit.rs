//! The order that the user gave.

use std::collections::HashMap;

use crate::SystemIndex;
use crate::graph::SystemNode;

/// Who was told to run before whom, directly or by way of others.
pub(super) struct ExplicitOrder {
    successors: Vec<Vec<SystemIndex>>,
    /// Everything that can be reached from a system: one bit per system, made when first asked for.
    reached: HashMap<SystemIndex, Vec<u64>>,
}

impl ExplicitOrder {
    pub(super) fn new(systems: &[SystemNode]) -> Self {
        let mut successors = vec![Vec::new(); systems.len()];
        for (at, system) in systems.iter().enumerate() {
            let index = SystemIndex::new(at as u16);
            for before in &system.explicit_after {
                successors[before.as_usize()].push(index);
            }
            successors[at].extend(&system.explicit_before);
        }
        for list in &mut successors {
            list.sort_unstable();
            list.dedup();
        }
        Self { successors, reached: HashMap::new() }
    }

    /// Every direct order, first the one that runs first.
    pub(super) fn edges(&self) -> Vec<(SystemIndex, SystemIndex)> {
        let from = self.successors.iter().enumerate();
        from.flat_map(|(at, list)| list.iter().map(move |&to| (SystemIndex::new(at as u16), to))).collect()
    }

    /// Is there an order between the two, whichever runs first?
    pub(super) fn is_given(&mut self, one: SystemIndex, other: SystemIndex) -> bool {
        self.reaches(one, other) || self.reaches(other, one)
    }

    fn reaches(&mut self, from: SystemIndex, to: SystemIndex) -> bool {
        let successors = &self.successors;
        let bits = self.reached.entry(from).or_insert_with(|| reachable(successors, from));
        bits[to.as_usize() / 64] & (1 << (to.as_usize() % 64)) != 0
    }
}

fn reachable(successors: &[Vec<SystemIndex>], from: SystemIndex) -> Vec<u64> {
    let mut bits = vec![0_u64; successors.len().div_ceil(64)];
    let mut open = vec![from];
    while let Some(system) = open.pop() {
        for &next in &successors[system.as_usize()] {
            let (word, bit) = (&mut bits[next.as_usize() / 64], 1 << (next.as_usize() % 64));
            if *word & bit == 0 {
                *word |= bit;
                open.push(next);
            }
        }
    }
    bits
}
