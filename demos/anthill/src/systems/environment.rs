//! What the colony does not decide: weather, growth, spiders.

use crate::food::SOURCE_RADIUS;
use crate::trail::FRESH;
use crate::world::World;

/// Ticks from one change of the weather to the next: ten seconds at 60 Hz.
const WEATHER_TICKS: i64 = 600;

/// It rains in every fourth stretch of weather.
pub fn turn_weather(world: &World, tick: i64) {
    *world.rain.borrow_mut() = (tick / WEATHER_TICKS) % 4 == 3;
}

/// New sources grow in the place of the empty ones, and all of them smell.
pub fn grow_food(world: &World) {
    let mut food = world.food.borrow_mut();
    world.tally.borrow_mut().grown += u64::from(food.regrow());
    for source in food.sources() {
        for cell in world.terrain.disc(source.at, SOURCE_RADIUS) {
            world.food_trail.lay(cell, FRESH);
        }
    }
}

/// Spiders walk to where most ants are.
pub fn hunt_for_ants(world: &World) {
    world.spiders.borrow_mut().walk(&world.traffic);
}
