//! Every ant takes a step and finds out what is there.

use crate::ant::events::{AntBitten, FoodDelivered, FoodReached};
use crate::ant::{Errand, PACE, Position, Task};
use crate::column::ANTS_PER_CHUNK;
use crate::world::World;

/// What an ant met on its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Food, and it has no load.
    Food(FoodReached),
    /// The nest, and it brought a load.
    Home(FoodDelivered),
    /// A spider.
    Spider(AntBitten),
}

/// Moves the ants of one chunk and reports what they met, in the order of the ants.
///
/// # Errors
/// Passes on the first error of `met`.
pub fn walk<E>(world: &World, chunk: usize, mut met: impl FnMut(Step) -> Result<(), E>) -> Result<(), E> {
    let mut positions = world.positions.write(chunk);
    let mut motions = world.motions.write(chunk);
    let mut tasks = world.tasks.write(chunk);
    let (food, spiders, nest) = (world.food.borrow(), world.spiders.borrow(), world.nest.borrow());
    let first_ant = (chunk * ANTS_PER_CHUNK) as u32;

    let ants = positions.iter_mut().zip(motions.iter_mut()).zip(tasks.iter_mut());
    for (ant, ((Position(at), motion), task)) in (first_ant..).zip(ants) {
        if !task.is_alive() {
            continue;
        }
        let [dx, dy] = motion.heading;
        let next = [at[0] + dx * PACE, at[1] + dy * PACE];
        if !world.terrain.contains(next) {
            motion.heading = [-dx, -dy];
        }
        *at = world.terrain.clamp(next);
        task.scent -= (task.scent >> 8).max(1).min(task.scent);

        let cell = world.terrain.cell_of(*at);
        if nest.contains(*at) {
            if task.errand == Errand::Carrying {
                motion.heading = motion.heading.map(|part| -part);
                met(Step::Home(FoodDelivered { ant }))?;
            }
            *task = Task::begin(Errand::Searching);
        } else if task.errand == Errand::Searching
            && let Some(source) = food.source_at(cell)
        {
            met(Step::Food(FoodReached { ant, source }))?;
        }
        if let Some(spider) = spiders.at(cell) {
            met(Step::Spider(AntBitten { ant, spider }))?;
        }
    }
    Ok(())
}
