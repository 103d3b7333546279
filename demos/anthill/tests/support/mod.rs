//! The colony without a runtime: one system after the other, in the order that the schedule promises.

use std::convert::Infallible;

use anthill::ant::events::{AntDied, FoodDelivered};
use anthill::systems::{self, Step};
use anthill::world::World;

/// One tick of the world.
pub(crate) fn tick(world: &World, number: i64) {
    for band in 0..world.ground_bands() {
        systems::clear_traffic(world, band);
    }
    let chunks = world.ant_chunks() as usize;
    (0..chunks).for_each(|chunk| systems::steer(world, chunk));

    let mut met = Vec::new();
    for chunk in 0..chunks {
        let step = systems::walk::<Infallible>(world, chunk, |step| {
            met.push(step);
            Ok(())
        });
        let Ok(()) = step;
    }
    let mut delivered: Vec<FoodDelivered> = Vec::new();
    let mut died: Vec<AntDied> = Vec::new();
    for step in &met {
        if let Step::Food(reached) = step {
            systems::harvest(world, *reached);
        }
    }
    for step in &met {
        match step {
            Step::Spider(bitten) => died.extend(systems::bite(world, *bitten)),
            Step::Home(delivery) => delivered.push(*delivery),
            Step::Food(_) => {}
        }
    }
    systems::bring_in(world, delivered.iter(), died.iter());
    systems::hatch(world);

    (0..chunks).for_each(|chunk| systems::lay_trails(world, chunk));
    (0..world.ground_bands()).for_each(|band| systems::decay_trails(world, band));
    systems::turn_weather(world, number);
    systems::grow_food(world);
    systems::hunt_for_ants(world);
}
