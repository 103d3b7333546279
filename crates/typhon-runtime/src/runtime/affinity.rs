//! Binding threads to processors.

use std::io;

/// Binds the calling thread to the processor at this place among those that it may use, counted round and round.
#[cfg(target_os = "linux")]
pub(super) fn pin_to_nth_allowed(place: usize) -> io::Result<()> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let allowed = sched_getaffinity(None)?;
    let processors: Vec<usize> =
        (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor)).collect();
    let mut own = CpuSet::new();
    own.set(processors[place % processors.len().max(1)]);
    Ok(sched_setaffinity(None, &own)?)
}

/// Not a thing that this system offers.
#[cfg(not(target_os = "linux"))]
pub(super) fn pin_to_nth_allowed(_place: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
