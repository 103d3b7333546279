//! An ant colony that ticks at 60 Hz.
#![forbid(unsafe_code)]

pub mod ant;
pub mod column;
pub mod food;
pub mod random;
pub mod spider;
pub mod systems;
pub mod terrain;
pub mod trail;
pub mod world;
