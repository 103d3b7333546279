//! Where threads run.
//!
//! A kernel wakes a thread where it ran last, unless it has a better idea. Linux on a virtual machine takes a processor
//! that has gone to sleep for one that is not there, and wakes a helper on the driver's processor, behind the driver,
//! while the other one sleeps on. So a helper that finds itself there stays away from it from then on.

use std::io;

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Binds the calling thread to the processor at this place among those that it may use, counted round and round.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to_nth_allowed(place: usize) -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let processors: Vec<usize> =
        (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor)).collect();
    let mut own = CpuSet::new();
    own.set(processors[place % processors.len().max(1)]);
    Ok(sched_setaffinity(None, &own)?)
}

/// Not a thing that this system offers.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to_nth_allowed(_place: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The processor that the calling thread runs on, if the system tells.
#[inline]
pub(crate) fn current_processor() -> Option<u32> {
    #[cfg(target_os = "linux")]
    return u32::try_from(sched_getcpu()).ok();
    #[cfg(not(target_os = "linux"))]
    None
}

/// The processors that a thread may use, as it was when it started.
#[derive(Debug, Clone)]
pub(crate) struct Allowed {
    #[cfg(target_os = "linux")]
    processors: Option<CpuSet>,
}

impl Allowed {
    /// Those of the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            processors: sched_getaffinity(None).ok(),
        }
    }

    /// Has the calling thread run on any of them but this one, from now on; nothing if there is no other.
    #[cold]
    pub(crate) fn stay_away_from(&self, processor: u32) {
        #[cfg(target_os = "linux")]
        if let Some(mut others) = self.processors
            && others.count() > 1
        {
            others.unset(processor as usize);
            // A thread that cannot move stays where it is, which costs time and nothing else.
            let _ = sched_setaffinity(None, &others);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = processor;
    }
}
