//! Every ant smells what is ahead of it and turns.

use crate::ant::{Errand, Motion, Position};
use crate::terrain::{Vector, turn, unit};
use crate::trail::FRESH;
use crate::world::World;

/// How far ahead an ant smells, in cells.
const SMELL: f32 = 3.0;
/// Its feelers point 40° to the left, ahead, and 40° to the right (cosine and sine).
const FEELERS: [(f32, f32); 3] = [(0.766_044_4, 0.642_787_6), (1.0, 0.0), (0.766_044_4, -0.642_787_6)];
/// Tangent of the largest turn that an ant makes by chance.
const WOBBLE: f32 = 0.25;
/// An ant whose scent is weaker than this has searched in vain for long. It goes home to begin anew; without that,
/// ants walk old trails in circles for ever.
const LOST: u32 = FRESH / 16;

/// Turns the ants of one chunk.
pub fn steer(world: &World, chunk: usize) {
    let positions = world.positions.read(chunk);
    let tasks = world.tasks.read(chunk);
    let mut motions = world.motions.write(chunk);
    let nest = world.nest.borrow().at;

    // Ants count their steps, so they know where home is and follow scents only on the way out.
    let home = |at: Vector| unit([nest[0] - at[0], nest[1] - at[1]]);
    let scent_of_food = |cell| i64::from(world.food_trail.strength(cell));
    for ((motion, &Position(at)), task) in motions.iter_mut().zip(positions.iter()).zip(tasks.iter()) {
        let direction = match task.errand {
            Errand::Unborn => continue,
            Errand::Searching if task.scent >= LOST => {
                follow(world, at, motion.heading, motion.heading, scent_of_food)
            }
            Errand::Searching | Errand::Carrying => follow(world, at, home(at), motion.heading, |_| 0),
        };
        motion.heading = wobble(direction, motion);
    }
}

/// `wanted`, or the feeler's direction that smells best: of what `scent` says, and least of alarm.
fn follow(
    world: &World,
    at: Vector,
    wanted: Vector,
    heading: Vector,
    scent: impl Fn(usize) -> i64,
) -> Vector {
    let cell_towards = |direction: Vector| {
        world.terrain.cell_of([at[0] + direction[0] * SMELL, at[1] + direction[1] * SMELL])
    };
    let smell = |direction| {
        let cell = cell_towards(direction);
        scent(cell) - i64::from(world.alarm.strength(cell))
    };
    let mut best = (smell(wanted), wanted);
    for feeler in FEELERS {
        let direction = turn(heading, feeler);
        let strength = smell(direction);
        if strength > best.0 {
            best = (strength, direction);
        }
    }
    best.1
}

fn wobble(direction: Vector, motion: &mut Motion) -> Vector {
    let tangent = (motion.random.unit() - 0.5) * 2.0 * WOBBLE;
    unit(turn(direction, (1.0, tangent)))
}
