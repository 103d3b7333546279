//! Declaring a schedule, and building it.

mod built;
mod priority;

pub use built::{BuiltSchedule, QueueDeclaration};
pub use priority::Priority;
