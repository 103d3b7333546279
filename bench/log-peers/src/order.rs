//! Who comes when in a round.

/// The numbers up to `count` in an order of the round's own, the same in each run. In a fixed cycle everybody would always
/// follow the same one, and pay for what that leaves behind: pages to be written, time that the host takes back.
pub fn shuffled(count: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    // Multiplied by the golden ratio, and mixed as by the generator of xorshift.
    let mut state = (round as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for last in (1..count).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order
}
