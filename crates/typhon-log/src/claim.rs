//! Position and sequence number in one atomic step.
//!
//! A batch gets both at once, so that their orders agree. They are folded into one 64-bit word: the position, in
//! units of 8 bytes, plus the sequence number times 2³², modulo 2⁶⁴. One `fetch_add` of (size, 0 or 1) then advances
//! both, and takes no retry. Unfolding needs a lower bound of each that is less than 2³² units and 2³² numbers behind:
//! the low half of the word is the position modulo 2³²; subtracting the whole position leaves the sequence number in
//! the high half, whatever the carries were.
//!
//! The bounds are the position and number up to which the ring has been drained. Claims are at most one ring ahead of
//! them (at most 512 MiB, 2²⁶ units, 2²⁴ frames), far inside both windows.

use crate::sync::{AtomicU64, Fault, Ordering, planted};

/// Positions are multiples of this.
pub(crate) const UNIT_BYTES: u64 = 8;

/// A position and the sequence number that a claim there would get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Byte position in the stream.
    pub(crate) position: u64,
    /// Next sequence number.
    pub(crate) tsn: u64,
}

impl Place {
    const fn fold(self) -> u64 {
        (self.position / UNIT_BYTES).wrapping_add(self.tsn << 32)
    }

    /// The place that folds to `folded`, given one that is not after it.
    const fn unfold(folded: u64, floor: Self) -> Self {
        let floor_units = floor.position / UNIT_BYTES;
        let ahead = (folded as u32).wrapping_sub(floor_units as u32);
        let units = floor_units + ahead as u64;
        let tsn_low = (folded.wrapping_sub(units) >> 32) as u32;
        let tsn = floor.tsn + tsn_low.wrapping_sub(floor.tsn as u32) as u64;
        Self { position: units * UNIT_BYTES, tsn }
    }
}

/// Where the next claim begins.
#[derive(Debug)]
pub(crate) struct Claims {
    folded: AtomicU64,
    /// For the mutant that takes two steps.
    #[cfg(any(loom, feature = "mutants"))]
    apart: AtomicU64,
}

impl Claims {
    pub(crate) fn new(start: Place) -> Self {
        Self {
            folded: AtomicU64::new(start.fold()),
            #[cfg(any(loom, feature = "mutants"))]
            apart: AtomicU64::new(start.tsn),
        }
    }

    /// Takes `bytes`, and a sequence number if asked. `floor` is called after the step: what it returns must not be
    /// after the claim, and not a window behind.
    pub(crate) fn claim(&self, bytes: u64, takes_tsn: bool, floor: impl FnOnce() -> Place) -> Place {
        #[cfg(any(loom, feature = "mutants"))]
        if planted(Fault::TwoAtomics) {
            return self.claim_in_two_steps(bytes, takes_tsn, floor);
        }
        debug_assert!(!planted(Fault::TwoAtomics));
        let step = (bytes / UNIT_BYTES).wrapping_add(u64::from(takes_tsn) << 32);
        // Acquire and release: whoever claims later also sees the drained positions that earlier claimers saw.
        Place::unfold(self.folded.fetch_add(step, Ordering::AcqRel), floor())
    }

    #[cfg(any(loom, feature = "mutants"))]
    fn claim_in_two_steps(&self, bytes: u64, takes_tsn: bool, floor: impl FnOnce() -> Place) -> Place {
        let tsn = self.apart.fetch_add(u64::from(takes_tsn), Ordering::AcqRel);
        let folded = self.folded.fetch_add(bytes / UNIT_BYTES, Ordering::AcqRel);
        Place { tsn, ..Place::unfold(folded, floor()) }
    }

    /// Where the next claim would begin. `floor` must have been read before.
    pub(crate) fn next(&self, floor: Place) -> Place {
        Place::unfold(self.folded.load(Ordering::Acquire), floor)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the carries: a claim unfolds to the exact position and number, from any floor inside the windows.
        #[test]
        fn a_folded_place_unfolds_exactly(
            units in 0..1_u64 << 60,
            tsn in 0..1_u64 << 47,
            behind_units in 0..1_u64 << 31,
            behind_tsns in 0..1_u64 << 31,
        ) {
            let place = Place { position: units * 8, tsn };
            let floor = Place {
                position: units.saturating_sub(behind_units) * 8,
                tsn: tsn.saturating_sub(behind_tsns),
            };
            prop_assert_eq!(Place::unfold(place.fold(), floor), place);
        }

        #[test]
        fn claims_are_dense_in_both_numbers(
            start in (0..1_u64 << 60, 0..1_u64 << 47),
            steps in proptest::collection::vec((1..1_u64 << 24, any::<bool>()), 1..50),
        ) {
            let mut expected = Place { position: start.0 * 8, tsn: start.1 };
            let claims = Claims::new(expected);
            for (units, takes_tsn) in steps {
                let floor = expected;
                prop_assert_eq!(claims.claim(units * 8, takes_tsn, || floor), expected);
                expected.position += units * 8;
                expected.tsn += u64::from(takes_tsn);
                prop_assert_eq!(claims.next(floor), expected);
            }
        }
    }
}
