//! Ants and their nest: what a system may know about each of them.

use std::collections::VecDeque;

use crate::random::Random;
use crate::terrain::{Terrain, Vector, distance_squared};
use crate::trail::FRESH;

/// Cells that an ant walks in a tick.
pub const PACE: f32 = 0.5;

/// How an ant moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Errand {
    /// It waits in the nest to be born.
    #[default]
    Unborn,
    /// It looks for food.
    Searching,
    /// It carries a load home and leaves a trail that leads to the food.
    Carrying,
}

/// Where an ant is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position(pub Vector);

/// Where an ant goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Motion {
    /// Direction, of length 1.
    pub heading: Vector,
    /// Its luck.
    pub random: Random,
}

/// What an ant does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Task {
    /// What it is after.
    pub errand: Errand,
    /// Its strength of scent; fades from [`FRESH`] with every step of the errand.
    pub scent: u32,
}

impl Task {
    /// An ant that has just begun an errand.
    pub fn begin(errand: Errand) -> Self {
        Self { errand, scent: FRESH }
    }

    /// Is it in the world?
    pub fn is_alive(self) -> bool {
        self.errand != Errand::Unborn
    }
}

/// Events of ants; every one of them has an event queue of its own.
pub mod events {
    /// An ant without a load stands on food.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct FoodReached {
        /// Number of the ant.
        pub ant: u32,
        /// Number of the source.
        pub source: u16,
    }

    /// An ant took a load.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct FoodPickedUp {
        /// Number of the ant.
        pub ant: u32,
    }

    /// An ant brought its load home.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct FoodDelivered {
        /// Number of the ant.
        pub ant: u32,
    }

    /// A spider can reach an ant.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct AntBitten {
        /// Number of the ant.
        pub ant: u32,
        /// Number of the spider.
        pub spider: u16,
    }

    /// An ant was eaten.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct AntDied {
        /// Number of the ant.
        pub ant: u32,
        /// It carried a load, which is lost.
        pub load_lost: bool,
    }
}

/// The nest: stores, and the ants that wait to be born.
#[derive(Debug)]
pub struct Nest {
    /// Its middle.
    pub at: Vector,
    /// Radius, in cells.
    pub radius: f32,
    /// Loads in store. Each ant that is born costs one.
    pub stores: u64,
    /// Ants that died and are born again when there is food, the longest dead first.
    pub unborn: VecDeque<u32>,
}

impl Nest {
    /// The nest in the middle of the world.
    pub fn new(terrain: Terrain) -> Self {
        Self { at: terrain.centre(), radius: 4.0, stores: 0, unborn: VecDeque::new() }
    }

    /// Is a point inside?
    pub fn contains(&self, point: Vector) -> bool {
        distance_squared(point, self.at) <= self.radius * self.radius
    }
}
