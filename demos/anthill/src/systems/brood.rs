//! The nest: loads come in, ants are born.

use crate::ant::events::{AntDied, FoodDelivered};
use crate::ant::{Errand, Position, Task};
use crate::world::World;

/// Takes in what this tick brought: loads into the stores, the dead into the brood.
pub fn bring_in<'a>(
    world: &World,
    delivered: impl Iterator<Item = &'a FoodDelivered>,
    died: impl Iterator<Item = &'a AntDied>,
) {
    let mut nest = world.nest.borrow_mut();
    let loads = delivered.count() as u64;
    nest.stores += loads;
    world.tally.borrow_mut().delivered += loads;
    nest.unborn.extend(died.map(|death| death.ant));
}

/// Lets as many ants be born as there are loads for, the longest dead first.
pub fn hatch(world: &World) {
    let mut nest = world.nest.borrow_mut();
    while nest.stores > 0
        && let Some(ant) = nest.unborn.pop_front()
    {
        nest.stores -= 1;
        world.positions.update(ant, |at| *at = Position(nest.at));
        world.tasks.update(ant, |task| *task = Task::begin(Errand::Searching));
        world.tally.borrow_mut().born += 1;
    }
}
