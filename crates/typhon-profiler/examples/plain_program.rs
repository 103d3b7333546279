//! A plain program: it searches for numbers with a long way down to 1, and says with two spans and one mark where its
//! time goes. Nothing in it mentions files or settings.
//!
//! ```sh
//! TYPHON__PROFILER__TRACE=plain.typhon-trace cargo run --release -p typhon-profiler --example plain_program
//! cargo run -p typhon-cli -- trace stats plain.typhon-trace
//! ```

use typhon_profiler::events::NamedSpan;
use typhon_profiler::{NameError, mark, name, span};

fn main() -> Result<(), NameError> {
    let _program = span!(NamedSpan { name: "program" });
    let record = name("new record")?;
    let mut longest = 0;
    for first in (1..1_000_000).step_by(10_000) {
        let _block = span!(NamedSpan { name: "block" });
        for number in first..first + 10_000 {
            let steps = steps_to_one(number);
            if steps > longest {
                longest = steps;
                mark(record, steps);
            }
        }
    }
    println!("the longest way down from below a million has {longest} steps");
    Ok(())
}

/// Steps to 1 when even numbers are halved, and odd ones tripled and increased.
fn steps_to_one(mut number: u64) -> i32 {
    let mut steps = 0;
    while number != 1 {
        number = if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}
