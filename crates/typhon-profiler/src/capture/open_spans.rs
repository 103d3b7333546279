//! The spans that are open on one thread: who is the parent of what begins now.
#![forbid(unsafe_code)]

/// Open spans that can be parents; deeper ones are recorded with the deepest of these as parent.
pub(crate) const MAX_OPEN: usize = 64;
/// Places for ids: a power of two above [`MAX_OPEN`], so that a mask stands in for a bounds check.
const PLACES: usize = 128;

/// Ids of the open spans, outermost first. Closing in any order is correct: a span that closes before one inside it
/// leaves a hole, and the holes at the top vanish with the last of them.
pub(crate) struct OpenSpans {
    /// Place 0 is always 0, the parent of spans that have none.
    ids: [u64; PLACES],
    /// Place of the innermost open span, at most [`MAX_OPEN`].
    depth: usize,
}

/// Place of a span in [`OpenSpans`], to close it with. Above [`MAX_OPEN`] for one that was too deep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position(usize);

impl Position {
    /// The position among the spans that can be parents, from 0; `None` for a deeper one.
    pub(crate) fn index(self) -> Option<usize> {
        Some(self.0 - 1).filter(|index| *index < MAX_OPEN)
    }
}

impl OpenSpans {
    pub(crate) const fn new() -> Self {
        Self { ids: [0; PLACES], depth: 0 }
    }

    /// Id of the innermost open span, 0 when none is open.
    #[inline(always)]
    pub(crate) fn innermost(&self) -> u64 {
        self.ids[self.depth % PLACES]
    }

    /// Opens a span; below the 64th level it does not become a parent.
    #[inline(always)]
    pub(crate) fn open(&mut self, id: u64) -> Position {
        let place = self.depth + 1;
        if place <= MAX_OPEN {
            self.ids[place % PLACES] = id;
            self.depth = place;
        }
        Position(place)
    }

    /// Closes the span that was opened with `id` at `position`.
    #[inline(always)]
    pub(crate) fn close(&mut self, position: Position, id: u64) {
        let place = position.0;
        if place == self.depth && self.ids[place % PLACES] == id {
            // The innermost span, nearly always; below it there may be holes.
            self.depth = place - 1;
            if self.ids[(place - 1) % PLACES] == 0 && place > 1 {
                self.drop_holes();
            }
        } else if place < self.depth {
            self.make_hole(place, id);
        }
    }

    #[cold]
    #[inline(never)]
    fn drop_holes(&mut self) {
        while self.depth > 0 && self.ids[self.depth] == 0 {
            self.depth -= 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn make_hole(&mut self, place: usize, id: u64) {
        if self.ids[place] == id {
            self.ids[place] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn i5_out_of_order_close_leaves_the_enclosing_span() {
        let mut spans = OpenSpans::new();
        let x = spans.open(1);
        let y = spans.open(2);
        spans.close(x, 1);
        assert_eq!(spans.innermost(), 2);
        spans.close(y, 2);
        assert_eq!(spans.innermost(), 0);
        let z = spans.open(3);
        assert_eq!(z.index(), Some(0));
    }

    #[test]
    fn spans_deeper_than_64_do_not_become_parents() {
        let mut spans = OpenSpans::new();
        let positions: Vec<_> = (1..=70).map(|id| (spans.open(id), id)).collect();
        assert_eq!(spans.innermost(), 64);
        for (position, id) in positions.into_iter().rev() {
            spans.close(position, id);
        }
        assert_eq!((spans.innermost(), spans.depth), (0, 0));
    }

    proptest! {
        /// Against the plain list of the open spans among the first 64 levels.
        #[test]
        fn i5_innermost_is_always_an_open_span(closes in proptest::collection::vec((any::<bool>(), 0usize..80), 1..300)) {
            let mut spans = OpenSpans::new();
            let mut open: Vec<(Position, u64)> = Vec::new();
            let mut next = 0;
            for (opens, which) in closes {
                if opens || open.is_empty() {
                    next += 1;
                    open.push((spans.open(next), next));
                } else {
                    let (position, id) = open.remove(which % open.len());
                    spans.close(position, id);
                }
                let expected = open.iter().rfind(|(position, _)| position.index().is_some()).map_or(0, |(_, id)| *id);
                prop_assert_eq!(spans.innermost(), expected);
            }
        }
    }
}
