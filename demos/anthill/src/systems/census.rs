//! Counts the whole world, and checks that nothing came from nowhere.

use crate::ant::Errand;
use crate::world::World;

/// The colony at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// Ants that look for food.
    pub searching: u64,
    /// Ants that carry a load.
    pub carrying: u64,
    /// Ants that wait to be born.
    pub unborn: u64,
    /// Loads in the nest.
    pub stores: u64,
}

/// What does not add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CensusError {
    /// Loads were made or lost without a trace.
    #[error("{picked_up} loads were picked up, but {accounted} are accounted for")]
    Loads {
        /// Loads taken from sources.
        picked_up: u64,
        /// Loads carried, delivered and lost.
        accounted: u64,
    },
    /// An ant is both dead and alive, or neither.
    #[error("{dead} ants died and were not born again, but {unborn} wait to be born")]
    Ants {
        /// Deaths without a birth.
        dead: u64,
        /// Ants that wait.
        unborn: u64,
    },
}

/// Counts everybody.
///
/// # Errors
/// The counts contradict the tally: two systems ran at once that must not.
pub fn census(world: &World) -> Result<Census, CensusError> {
    let mut census = Census { stores: world.nest.borrow().stores, ..Census::default() };
    for chunk in 0..world.tasks.chunk_count() {
        for task in world.tasks.read(chunk).iter() {
            match task.errand {
                Errand::Unborn => census.unborn += 1,
                Errand::Searching => census.searching += 1,
                Errand::Carrying => census.carrying += 1,
            }
        }
    }
    let tally = *world.tally.borrow();
    let accounted = census.carrying + tally.delivered + tally.lost;
    if accounted != tally.picked_up {
        return Err(CensusError::Loads { picked_up: tally.picked_up, accounted });
    }
    let dead = tally.died - tally.born;
    if dead != census.unborn {
        return Err(CensusError::Ants { dead, unborn: census.unborn });
    }
    Ok(census)
}
