//! Ticks of programs that have a loop of their own.
#![forbid(unsafe_code)]

use crate::clock::Ticks;
use crate::event::{is_recorded, put_instant};
use crate::{gauges, session};
use std::marker::PhantomData;
use typhon_trace::event::{OverloadLevel, TickEnd, TickStart};

/// A tick that has begun; it ends when the guard is dropped. Made by [`tick`]; stays on its thread.
#[must_use = "a tick ends when its guard is dropped"]
#[derive(Debug)]
pub struct Tick {
    number: u32,
    /// What is said about the tick at its end; `None` when its start was not recorded.
    end: Option<TickEnd>,
    /// The session that it began in; of another one it says nothing.
    session: u32,
    not_send: PhantomData<*mut ()>,
}

/// Begins a tick of the program's main loop: kind 0 now, kind 1 when the guard is dropped, and right after it the
/// values of all gauges (kind 76) if they are on. `number` is the program's own count of its ticks; it is in the trace
/// with the gauges.
///
/// ```
/// for number in 0..3 {
///     let _tick = typhon_profiler::tick(number);
///     // … the work of the tick …
/// }
/// ```
pub fn tick(number: u32) -> Tick {
    let is_on = is_recorded::<TickStart>();
    // The question may have started the session; the record may fall into a later one, and then has no end.
    let session = session::number();
    let is_recorded = is_on && put_instant(Ticks::now(), &TickStart {});
    let end = TickEnd { overload_level: OverloadLevel::NORMAL, tick_multiplier: 1 };
    Tick { number, end: is_recorded.then_some(end), session, not_send: PhantomData }
}

impl Tick {
    /// The overload level in force during the tick; normal if nothing is said.
    pub fn set_overload_level(&mut self, level: OverloadLevel) {
        if let Some(end) = &mut self.end {
            end.overload_level = level;
        }
    }

    /// The factor by which the tick was stretched; 1 if nothing is said.
    pub fn set_multiplier(&mut self, multiplier: u8) {
        if let Some(end) = &mut self.end {
            end.tick_multiplier = multiplier;
        }
    }
}

impl Drop for Tick {
    fn drop(&mut self) {
        if self.session != session::number() {
            return;
        }
        if let Some(end) = self.end.take()
            && is_recorded::<TickEnd>()
        {
            put_instant(Ticks::now(), &end);
        }
        gauges::tick_ended(self.number);
    }
}
