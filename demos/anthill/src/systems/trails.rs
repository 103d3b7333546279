//! Ants with food leave a scent, and the ground forgets it.

use crate::ant::{Errand, Position};
use crate::world::World;

/// The ants of one chunk mark the cells that they stand on, and are counted there.
pub fn lay_trails(world: &World, chunk: usize) {
    let positions = world.positions.read(chunk);
    let tasks = world.tasks.read(chunk);
    for (&Position(at), task) in positions.iter().zip(tasks.iter()) {
        let cell = world.terrain.cell_of(at);
        if task.errand == Errand::Carrying {
            world.food_trail.lay(cell, task.scent);
        }
        if task.is_alive() {
            world.traffic.add(cell);
        }
    }
}

/// The scents of one band of ground fade, in rain four times as fast.
pub fn decay_trails(world: &World, band: u32) {
    let shift = if *world.rain.borrow() { 6 } else { 8 };
    world.alarm.decay(world.band(band), shift);
    world.food_trail.decay(world.band(band), shift);
}

/// Forgets who walked over one band of ground in the last tick.
pub fn clear_traffic(world: &World, band: u32) {
    world.traffic.clear(world.band(band));
}
