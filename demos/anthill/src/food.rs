//! Food: sources that ants empty and that grow anew elsewhere.

use crate::random::Random;
use crate::terrain::{Terrain, Vector, distance_squared};

/// Radius of a source, in cells.
pub const SOURCE_RADIUS: f32 = 3.0;

/// One source of food.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Source {
    /// Its middle.
    pub at: Vector,
    /// Loads that are left.
    pub loads: u32,
}

/// All sources, and which cells belong to them.
#[derive(Debug)]
pub struct Food {
    terrain: Terrain,
    sources: Vec<Source>,
    /// 0, or the number of the cell's source plus one.
    source_of_cell: Vec<u16>,
    loads_when_grown: u32,
    random: Random,
}

impl Food {
    /// Sources for so many ants, away from the nest.
    pub fn new(terrain: Terrain, ants: u32, seed: u64) -> Self {
        let count = (ants / 2000).clamp(4, 256);
        let mut food = Self {
            terrain,
            sources: Vec::new(),
            source_of_cell: vec![0; terrain.cell_count()],
            loads_when_grown: (ants / 8).max(50),
            random: Random::new(seed, u64::from(u32::MAX)),
        };
        for _ in 0..count {
            let source = food.sprout();
            food.sources.push(source);
        }
        food.stamp();
        food
    }

    /// All sources.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The source with food left that a cell belongs to.
    pub fn source_at(&self, cell: usize) -> Option<u16> {
        self.source_of_cell[cell].checked_sub(1).filter(|&source| self.sources[usize::from(source)].loads > 0)
    }

    /// Takes one load. False: somebody else had the last one.
    pub fn take(&mut self, source: u16) -> bool {
        let loads = &mut self.sources[usize::from(source)].loads;
        let taken = *loads > 0;
        *loads -= u32::from(taken);
        taken
    }

    /// Lets new sources grow in the place of the empty ones, and says how many did.
    pub fn regrow(&mut self) -> u32 {
        let mut grown = 0;
        for source in 0..self.sources.len() {
            if self.sources[source].loads == 0 {
                self.sources[source] = self.sprout();
                grown += 1;
            }
        }
        if grown > 0 {
            self.stamp();
        }
        grown
    }

    /// A source somewhere, an eighth of the world or more away from the nest.
    fn sprout(&mut self) -> Source {
        let side = self.terrain.side() as f32;
        loop {
            let at = [self.random.unit() * side, self.random.unit() * side];
            if distance_squared(at, self.terrain.centre()) > (side / 8.0) * (side / 8.0) {
                return Source { at, loads: self.loads_when_grown };
            }
        }
    }

    fn stamp(&mut self) {
        self.source_of_cell.fill(0);
        for (source, number) in self.sources.iter().zip(1..) {
            for cell in self.terrain.disc(source.at, SOURCE_RADIUS) {
                self.source_of_cell[cell] = number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_load_is_taken_once_and_the_source_grows_elsewhere() {
        let mut food = Food::new(Terrain::for_ants(100), 100, 1);
        let old = food.sources()[2];
        let taken = (0..old.loads + 10).filter(|_| food.take(2)).count();
        assert_eq!(taken as u32, old.loads);
        assert_eq!(food.regrow(), 1);
        assert_ne!(food.sources()[2].at, old.at);
        assert_eq!(food.sources()[2].loads, old.loads);
        let cell = Terrain::for_ants(100).cell_of(food.sources()[2].at);
        assert!(food.source_at(cell).is_some());
    }

    #[test]
    fn nothing_grows_beside_the_nest() {
        let terrain = Terrain::for_ants(100_000);
        let food = Food::new(terrain, 100_000, 5);
        assert_eq!(food.sources().len(), 50);
        let side = terrain.side() as f32;
        let near = |source: &&Source| distance_squared(source.at, terrain.centre()) < side * side / 64.0;
        assert_eq!(food.sources().iter().find(near), None);
    }
}
