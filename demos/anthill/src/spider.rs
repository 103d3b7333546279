//! Spiders: they walk to where many ants are, and eat one at a time.

use crate::random::Random;
use crate::terrain::{Terrain, Vector, turn, unit};
use crate::trail::Traffic;

/// How far a spider reaches, in cells.
pub const REACH: f32 = 1.5;
/// Ticks in which a spider digests and eats nothing.
pub const DIGESTION_TICKS: u16 = 90;
/// Cells that a spider walks in a tick.
const PACE: f32 = 0.3;
/// How far a spider looks around for ants, in cells.
const SIGHT: f32 = 6.0;
/// The eight directions that it looks in: quarter turns of two vectors.
const LOOKS: [Vector; 8] = {
    const D: f32 = std::f32::consts::FRAC_1_SQRT_2;
    [[1.0, 0.0], [D, D], [0.0, 1.0], [-D, D], [-1.0, 0.0], [-D, -D], [0.0, -1.0], [D, -D]]
};

/// One spider.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spider {
    /// Where it is.
    pub at: Vector,
    /// Where it goes, length 1.
    pub heading: Vector,
    /// Ticks until it is hungry again.
    pub digesting_ticks: u16,
    random: Random,
}

/// All spiders, and which cells they reach.
#[derive(Debug)]
pub struct Spiders {
    terrain: Terrain,
    all: Vec<Spider>,
    /// 0, or the number of the spider that reaches the cell plus one.
    spider_of_cell: Vec<u16>,
}

impl Spiders {
    /// Spiders for so many ants: one for every two thousand.
    pub fn new(terrain: Terrain, ants: u32, seed: u64) -> Self {
        let count = (ants / 2000).clamp(1, 512);
        let side = terrain.side() as f32;
        let spider = |number: u32| {
            let mut random = Random::new(seed, (1 << 40) + u64::from(number));
            let at = [random.unit() * side, random.unit() * side];
            Spider { at, heading: LOOKS[number as usize % 8], digesting_ticks: 0, random }
        };
        let mut spiders = Self {
            terrain,
            all: (0..count).map(spider).collect(),
            spider_of_cell: vec![0; terrain.cell_count()],
        };
        spiders.stamp(true);
        spiders
    }

    /// All spiders.
    pub fn all(&self) -> &[Spider] {
        &self.all
    }

    /// The spider that reaches a cell, hungry or not.
    pub fn at(&self, cell: usize) -> Option<u16> {
        self.spider_of_cell[cell].checked_sub(1)
    }

    /// A spider catches an ant. False: it is still digesting the last one.
    pub fn eat(&mut self, spider: u16) -> bool {
        let spider = &mut self.all[usize::from(spider)];
        let eats = spider.digesting_ticks == 0;
        if eats {
            spider.digesting_ticks = DIGESTION_TICKS;
        }
        eats
    }

    /// All spiders take a step: towards the most ants if they are hungry, anywhere if not.
    pub fn walk(&mut self, traffic: &Traffic) {
        self.stamp(false);
        for spider in &mut self.all {
            spider.walk(self.terrain, traffic);
        }
        self.stamp(true);
    }

    /// Enters all spiders in the map of cells, or takes them out: cheaper than clearing the map.
    fn stamp(&mut self, present: bool) {
        for (spider, number) in self.all.iter().zip(1..) {
            for cell in self.terrain.disc(spider.at, REACH) {
                self.spider_of_cell[cell] = if present { number } else { 0 };
            }
        }
    }
}

impl Spider {
    fn walk(&mut self, terrain: Terrain, traffic: &Traffic) {
        self.digesting_ticks = self.digesting_ticks.saturating_sub(1);
        let ants = |look: &Vector| traffic.count(terrain.cell_of(self.ahead(*look, SIGHT)));
        // The last of the best looks wins, so the order of LOOKS decides between equals, not chance.
        let best =
            LOOKS.into_iter().max_by_key(ants).filter(|look| ants(look) > 0 && self.digesting_ticks == 0);
        self.heading = match best {
            Some(look) => look,
            None => unit(turn(self.heading, (1.0, (self.random.unit() - 0.5) * 0.5))),
        };
        let next = self.ahead(self.heading, PACE);
        if !terrain.contains(next) {
            self.heading = self.heading.map(|part| -part);
        }
        self.at = terrain.clamp(next);
    }

    fn ahead(&self, direction: Vector, distance: f32) -> Vector {
        [self.at[0] + direction[0] * distance, self.at[1] + direction[1] * distance]
    }

    /// The random stream, for the hash of a world.
    pub fn random(&self) -> Random {
        self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spider_eats_once_and_digests() {
        let terrain = Terrain::for_ants(100);
        let mut spiders = Spiders::new(terrain, 100, 1);
        let traffic = Traffic::new(terrain.cell_count());
        assert!(spiders.eat(0));
        for _ in 0..DIGESTION_TICKS {
            assert!(!spiders.eat(0));
            spiders.walk(&traffic);
        }
        assert!(spiders.eat(0));
    }

    #[test]
    fn a_hungry_spider_walks_to_the_ants_and_the_map_follows_it() {
        let terrain = Terrain::for_ants(100);
        let mut spiders = Spiders::new(terrain, 100, 1);
        spiders.stamp(false);
        spiders.all[0].at = [32.5, 32.5];
        spiders.stamp(true);
        let traffic = Traffic::new(terrain.cell_count());
        traffic.add(terrain.cell_of([38.5, 32.5]));
        spiders.walk(&traffic);
        assert!(spiders.all()[0].at[0] > 32.5);
        let reached: Vec<_> = (0..terrain.cell_count()).filter(|&cell| spiders.at(cell).is_some()).collect();
        assert_eq!(reached, terrain.disc(spiders.all()[0].at, REACH).collect::<Vec<_>>());
    }
}
