//! Pheromone: what ants tell each other by walking.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Strength of a fresh trail. An ant's scent fades with every step, so a trail is strongest where it
/// leads to.
pub const FRESH: u32 = 1 << 16;

/// One kind of pheromone on every cell.
///
/// Many ants lay on one cell at once. The cell keeps the strongest trail, and the maximum is the same in whatever
/// order they come, so the ground does not depend on the number of workers.
#[derive(Debug)]
pub struct Trail {
    cells: Vec<AtomicU32>,
}

impl Trail {
    /// Ground without a scent.
    pub fn new(cell_count: usize) -> Self {
        Self { cells: (0..cell_count).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Strength on one cell, 0..=[`FRESH`].
    pub fn strength(&self, cell: usize) -> u32 {
        self.cells[cell].load(Relaxed)
    }

    /// An ant walks over a cell.
    pub fn lay(&self, cell: usize, strength: u32) {
        // Most cells of a busy trail are stronger already, and a load costs a tenth of a read-modify-write.
        if self.strength(cell) < strength {
            self.cells[cell].fetch_max(strength, Relaxed);
        }
    }

    /// A little of the scent on these cells is lost: one part in 2^`shift`, at least one unit.
    pub fn decay(&self, cells: std::ops::Range<usize>, shift: u32) {
        for cell in &self.cells[cells] {
            let strength = cell.load(Relaxed);
            if strength > 0 {
                cell.store(strength - (strength >> shift).max(1), Relaxed);
            }
        }
    }
}

/// Ants that walked over each cell since the counts were last cleared. Sums, like maxima, have no order.
#[derive(Debug)]
pub struct Traffic {
    cells: Vec<AtomicU32>,
}

impl Traffic {
    /// Ground that nobody walked on.
    pub fn new(cell_count: usize) -> Self {
        Self { cells: (0..cell_count).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Ants counted on one cell.
    pub fn count(&self, cell: usize) -> u32 {
        self.cells[cell].load(Relaxed)
    }

    /// Counts an ant.
    pub fn add(&self, cell: usize) {
        self.cells[cell].fetch_add(1, Relaxed);
    }

    /// Forgets the counts of these cells.
    pub fn clear(&self, cells: std::ops::Range<usize>) {
        for cell in &self.cells[cells] {
            cell.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_trail_stays_and_fades_to_nothing() {
        let trail = Trail::new(2);
        trail.lay(0, 100);
        trail.lay(0, 40);
        assert_eq!((trail.strength(0), trail.strength(1)), (100, 0));
        let mut ticks = 0;
        while trail.strength(0) > 0 {
            let before = trail.strength(0);
            trail.decay(0..2, 6);
            assert!(trail.strength(0) < before);
            ticks += 1;
        }
        assert!(ticks <= 100);
        trail.decay(0..2, 6);
        assert_eq!(trail.strength(0), 0);
    }
}
