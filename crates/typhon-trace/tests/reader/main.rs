//! Reading whole traces: the recordings in `corpus/`, files written here, and damage of every kind to both.
#![allow(clippy::unwrap_used)] // a panic is a report

mod checksums;
mod corpus;
mod damage;
mod fixture;
mod flips;
mod repair;
