//! Who gets the food, and who is eaten: events decide in their order, one after the other.

use crate::ant::events::{AntBitten, AntDied, FoodPickedUp, FoodReached};
use crate::ant::{Errand, Task};
use crate::trail::FRESH;
use crate::world::World;

/// How far the scent of an eaten ant reaches, in cells.
const ALARM_RADIUS: f32 = 4.0;

/// Gives a load to an ant that stands on food, if there is one left. It turns around and carries it home.
pub fn harvest(world: &World, reached: FoodReached) -> Option<FoodPickedUp> {
    let FoodReached { ant, source } = reached;
    if !world.food.borrow_mut().take(source) {
        return None;
    }
    world.tasks.update(ant, |task| *task = Task::begin(Errand::Carrying));
    world.motions.update(ant, |motion| motion.heading = motion.heading.map(|part| -part));
    world.tally.borrow_mut().picked_up += 1;
    Some(FoodPickedUp { ant })
}

/// Feeds an ant to a spider, if the spider is hungry.
pub fn bite(world: &World, bitten: AntBitten) -> Option<AntDied> {
    let AntBitten { ant, spider } = bitten;
    if !world.spiders.borrow_mut().eat(spider) {
        return None;
    }
    let load_lost = world.tasks.get(ant).errand == Errand::Carrying;
    world.tasks.update(ant, |task| *task = Task::default());
    for cell in world.terrain.disc(world.positions.get(ant).0, ALARM_RADIUS) {
        world.alarm.lay(cell, FRESH);
    }
    let mut tally = world.tally.borrow_mut();
    tally.died += 1;
    tally.lost += u64::from(load_lost);
    Some(AntDied { ant, load_lost })
}
