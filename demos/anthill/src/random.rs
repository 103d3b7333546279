//! Chance that can be repeated.

/// A stream of random numbers (xorshift, 32 bit). Every ant has its own, so that no ant's luck depends on which
/// worker moved the others first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Random(u32);

impl Random {
    /// Stream number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        // SplitMix64's finaliser: neighbouring streams share no bits.
        let mut mixed = seed ^ stream.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        // Zero is the one state that xorshift never leaves.
        Self(((mixed ^ (mixed >> 31)) as u32).max(1))
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// A number in 0.0..1.0.
    pub fn unit(&mut self) -> f32 {
        // 24 bits are what an f32 holds exactly.
        (self.next_u32() >> 8) as f32 / (1 << 24) as f32
    }

    /// The state, for the hash of a world.
    pub fn state(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_range_and_spread() {
        let mut random = Random::new(1, 2);
        let numbers: Vec<f32> = (0..10_000).map(|_| random.unit()).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        let mean = numbers.iter().sum::<f32>() / numbers.len() as f32;
        assert!((0.48..0.52).contains(&mean), "{mean}");
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let mut firsts: Vec<u32> = (0..1000).map(|stream| Random::new(7, stream).next_u32()).collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 1000);
    }
}
