//! The time stamp counter of x86-64.
//!
//! The only unsafe code here is the instruction itself.
#![allow(unsafe_code)]

use std::arch::x86_64::{__cpuid, _rdtsc};

/// The counter's value now. Not ordered with the loads and stores around it, which costs half as much and moves a
/// time by less than the clock can tell.
#[inline(always)]
pub(super) fn read() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; Linux lets user code run it.
    unsafe { _rdtsc() }
}

/// Does the processor promise a counter that runs at one rate through frequency changes and sleep states?
pub(super) fn is_invariant() -> bool {
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    __cpuid(0x8000_0000).eax >= POWER_MANAGEMENT && __cpuid(POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
}
