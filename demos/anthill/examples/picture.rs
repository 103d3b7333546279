//! The colony without a recording and without a clock: so many ticks, one after the other, and what it looks like then.
//!
//! `cargo run --release -p anthill --example picture -- [ANTS] [TICKS] [SEED]`

use anthill::{Colony, Report};
use std::error::Error;
use std::time::Duration;
use typhon::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |otherwise: u32| arguments.next().map_or(Ok(otherwise), |text| text.parse());
    let (ants, ticks, seed) = (next(20_000)?, next(600)?, next(1)?);

    let engine = Engine::builder().build()?;
    let colony = Colony::new(ants, seed.into());
    let runtime = Runtime::create(&engine, |schedule| colony.declare(schedule))?;
    for tick in 1..=ticks {
        // Sixty ticks a second, as far as the colony can tell.
        runtime.step(Duration::from_nanos(16_666_667) * tick)?;
    }
    runtime.shutdown()?;

    let Report { tally, .. } = colony.report();
    print!("{}", colony.picture());
    println!("{ants} ants, seed {seed}, hash {:016x} after {ticks} ticks", colony.world().hash());
    println!(
        "{} picked up, {} delivered;  {} ants died, {} born",
        tally.picked_up, tally.delivered, tally.died, tally.born
    );
    Ok(())
}
