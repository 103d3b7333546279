//! The whole state of a colony.

use atomic_refcell::AtomicRefCell;

use crate::ant::{Errand, Motion, Nest, Position, Task};
use crate::column::Column;
use crate::food::Food;
use crate::random::Random;
use crate::spider::Spiders;
use crate::terrain::{Terrain, Vector, unit};
use crate::trail::{Traffic, Trail};

/// What happened since the world began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Loads that ants took from sources.
    pub picked_up: u64,
    /// Loads that arrived in the nest.
    pub delivered: u64,
    /// Loads that were lost because their ant died.
    pub lost: u64,
    /// Ants eaten.
    pub died: u64,
    /// Ants born again.
    pub born: u64,
    /// Sources that grew.
    pub grown: u64,
}

/// Ants, ground, food and enemies.
///
/// Every part is guarded by itself, so that systems which touch different parts run side by side. Nothing here knows
/// the order of systems: that follows from what the schedule declares.
#[derive(Debug)]
pub struct World {
    /// The ground.
    pub terrain: Terrain,
    /// Where each ant is.
    pub positions: Column<Position>,
    /// Where each ant goes.
    pub motions: Column<Motion>,
    /// What each ant does.
    pub tasks: Column<Task>,
    /// The scent of food, and the trails of ants that carry some.
    pub food_trail: Trail,
    /// The scent of ants that were eaten, which others avoid.
    pub alarm: Trail,
    /// Ants on each cell, this tick.
    pub traffic: Traffic,
    /// Sources of food.
    pub food: AtomicRefCell<Food>,
    /// Enemies.
    pub spiders: AtomicRefCell<Spiders>,
    /// Stores, and ants to be born.
    pub nest: AtomicRefCell<Nest>,
    /// Does it rain? Rain washes trails away.
    pub rain: AtomicRefCell<bool>,
    /// What happened so far.
    pub tally: AtomicRefCell<Tally>,
}

impl World {
    /// A colony of `ants` ants that leave their nest in all directions. The same seed gives the same world.
    pub fn new(ants: u32, seed: u64) -> Self {
        let terrain = Terrain::for_ants(ants);
        let nest = Nest::new(terrain);
        let motion = |ant: usize| {
            let mut random = Random::new(seed, ant as u64);
            let heading = unit([random.unit() - 0.5, random.unit() - 0.5]);
            Motion { heading, random }
        };
        Self {
            terrain,
            positions: Column::new(ants as usize, |_| Position(nest.at)),
            motions: Column::new(ants as usize, motion),
            tasks: Column::new(ants as usize, |_| Task::begin(Errand::Searching)),
            food_trail: Trail::new(terrain.cell_count()),
            alarm: Trail::new(terrain.cell_count()),
            traffic: Traffic::new(terrain.cell_count()),
            food: AtomicRefCell::new(Food::new(terrain, ants, seed)),
            spiders: AtomicRefCell::new(Spiders::new(terrain, ants, seed)),
            nest: AtomicRefCell::new(nest),
            rain: AtomicRefCell::new(false),
            tally: AtomicRefCell::default(),
        }
    }

    /// Number of ants, born or not.
    pub fn ant_count(&self) -> u32 {
        self.positions.len() as u32
    }

    /// Chunks of ants: what one run of a system on ants covers.
    pub fn ant_chunks(&self) -> u32 {
        self.positions.chunk_count() as u32
    }

    /// Bands of ground: what one run of a system on cells covers.
    pub fn ground_bands(&self) -> u32 {
        self.terrain.side() / ROWS_PER_BAND
    }

    /// The cells of one band.
    pub fn band(&self, band: u32) -> std::ops::Range<usize> {
        let cells = (ROWS_PER_BAND * self.terrain.side()) as usize;
        let first = band as usize * cells;
        first..first + cells
    }

    /// A number that is equal for equal worlds, and only by a 1 in 2⁶⁴ chance for others.
    pub fn hash(&self) -> u64 {
        let mut hash = Fold::default();
        for chunk in 0..self.positions.chunk_count() {
            self.positions.read(chunk).iter().for_each(|at| hash.vector(at.0));
            for motion in self.motions.read(chunk).iter() {
                hash.vector(motion.heading);
                hash.number(u64::from(motion.random.state()));
            }
            for task in self.tasks.read(chunk).iter() {
                hash.number(task.errand as u64 | u64::from(task.scent) << 8);
            }
        }
        for cell in 0..self.terrain.cell_count() {
            let trails =
                u64::from(self.alarm.strength(cell)) << 32 | u64::from(self.food_trail.strength(cell));
            hash.number(trails);
            hash.number(u64::from(self.traffic.count(cell)));
        }
        for source in self.food.borrow().sources() {
            hash.vector(source.at);
            hash.number(u64::from(source.loads));
        }
        for spider in self.spiders.borrow().all() {
            hash.vector(spider.at);
            hash.vector(spider.heading);
            hash.number(u64::from(spider.digesting_ticks) << 32 | u64::from(spider.random().state()));
        }
        let nest = self.nest.borrow();
        hash.number(nest.stores);
        nest.unborn.iter().for_each(|ant| hash.number(u64::from(*ant)));
        hash.number(u64::from(*self.rain.borrow()));
        let tally = *self.tally.borrow();
        [tally.picked_up, tally.delivered, tally.lost, tally.died, tally.born, tally.grown]
            .into_iter()
            .for_each(|number| hash.number(number));
        hash.0
    }
}

/// Rows of cells in a band.
pub const ROWS_PER_BAND: u32 = 32;

/// Fowler–Noll–Vo, a word at a time.
struct Fold(u64);

impl Default for Fold {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fold {
    fn number(&mut self, number: u64) {
        // The rotation brings high bits down, which the multiplication alone never does.
        self.0 = (self.0.rotate_left(29) ^ number).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn vector(&mut self, [x, y]: Vector) {
        self.number(u64::from(x.to_bits()) << 32 | u64::from(y.to_bits()));
    }
}
