//! A set of event kinds.

use std::fmt;

/// 256 bits, one per kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KindMask([u64; 4]);

impl KindMask {
    /// No kind.
    pub const EMPTY: Self = Self([0; 4]);

    /// The mask with these words; bit `n` of word `w` is kind `64 w + n`.
    pub const fn from_words(words: [u64; 4]) -> Self {
        Self(words)
    }

    /// The mask's words; bit `n` of word `w` is kind `64 w + n`.
    pub const fn words(self) -> [u64; 4] {
        self.0
    }

    /// Is this kind in the set?
    pub const fn contains(self, kind: u8) -> bool {
        self.0[(kind >> 6) as usize] >> (kind & 63) & 1 != 0
    }

    /// Adds a kind.
    pub const fn insert(&mut self, kind: u8) {
        self.0[(kind >> 6) as usize] |= 1 << (kind & 63);
    }

    /// Takes a kind out.
    pub const fn remove(&mut self, kind: u8) {
        self.0[(kind >> 6) as usize] &= !(1 << (kind & 63));
    }

    /// Kinds of this set that are not in the other.
    pub fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Number of kinds.
    pub fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// No kind at all?
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// The kinds, ascending.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |&kind| self.contains(kind))
    }
}

impl FromIterator<u8> for KindMask {
    fn from_iter<I: IntoIterator<Item = u8>>(kinds: I) -> Self {
        let mut mask = Self::EMPTY;
        kinds.into_iter().for_each(|kind| mask.insert(kind));
        mask
    }
}

impl fmt::Debug for KindMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_set(left: BTreeSet<u8>, right: BTreeSet<u8>, kind: u8) {
            let mask: KindMask = left.iter().copied().collect();
            let other: KindMask = right.iter().copied().collect();
            prop_assert_eq!(mask.iter().collect::<BTreeSet<u8>>(), left.clone());
            prop_assert_eq!(mask.len(), left.len());
            prop_assert_eq!(mask.is_empty(), left.is_empty());
            prop_assert_eq!(mask.contains(kind), left.contains(&kind));
            let difference: BTreeSet<u8> = left.difference(&right).copied().collect();
            prop_assert_eq!(mask.minus(other).iter().collect::<BTreeSet<u8>>(), difference);
            let mut smaller = mask;
            smaller.remove(kind);
            prop_assert!(!smaller.contains(kind));
            prop_assert_eq!(KindMask::from_words(mask.words()), mask);
        }
    }
}
