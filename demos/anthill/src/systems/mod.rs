//! What happens to the world, one function per system. They know the world and nothing of schedules; what they touch
//! is declared in [`colony`](crate::colony).

mod brood;
mod census;
mod environment;
mod settle;
mod steer;
mod trails;
mod walk;

pub use brood::{bring_in, hatch};
pub use census::{Census, CensusError, census};
pub use environment::{grow_food, hunt_for_ants, turn_weather};
pub use settle::{bite, harvest};
pub use steer::steer;
pub use trails::{clear_traffic, decay_trails, lay_trails};
pub use walk::{Step, walk};
