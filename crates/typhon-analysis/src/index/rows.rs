//! Which row of its lane a span gets (brief 11 B-11).
//!
//! Spans come in the order of nesting. One that lies inside the innermost open span gets the row below it; one that
//! overlaps it without nesting, and every span of a lane that does not nest, gets the first *overflow* row that is
//! free. Rows are given once and for the whole file, so they do not move when the view does.
//!
//! **Invariants**
//! - Spans of a row do not overlap, except in the last nested and the last overflow row when there are too many.
//! - The rows depend on the spans of the lane only.

/// Rows of a lane that nest, at most. The last of them takes everything deeper.
pub(crate) const NESTED_ROWS_MAX: usize = 61_440;
/// Overflow rows of a lane, at most. The last of them takes everything that finds no other.
pub(crate) const OVERFLOW_ROWS_MAX: usize = 4_094;

/// A row before the number of nested rows is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// By depth.
    Nested(usize),
    /// By first fit.
    Overflow(usize),
}

/// Gives rows to the spans of one lane.
#[derive(Debug)]
pub(crate) struct RowAssigner {
    nests: bool,
    /// Ends of the open spans, outermost first.
    open: Vec<i64>,
    overflow: FirstFit,
}

impl RowAssigner {
    /// For a lane whose spans nest, or for one in which they only stand beside each other.
    pub(crate) fn new(nests: bool) -> Self {
        Self { nests, open: Vec::new(), overflow: FirstFit::default() }
    }

    /// The row of the next span. A `detached` one never nests.
    #[inline]
    pub(crate) fn place(&mut self, start: i64, end: i64, detached: bool) -> Place {
        if !self.nests || detached {
            return self.overflow.place(start, end);
        }
        while self.open.pop_if(|open| *open <= start).is_some() {}
        if self.open.last().is_some_and(|open| *open < end) {
            return self.overflow.place(start, end);
        }
        self.open.push(end);
        Place::Nested((self.open.len() - 1).min(NESTED_ROWS_MAX - 1))
    }
}

/// The first row whose last span has ended, found in a tree of minima.
#[derive(Debug, Default)]
struct FirstFit {
    /// A complete binary tree: node n has the children 2n and 2n + 1, the leaves are the second half. A node holds the
    /// smallest end below it.
    ends: Vec<i64>,
    rows: usize,
}

impl FirstFit {
    fn place(&mut self, start: i64, end: i64) -> Place {
        let row = match self.first_free(start) {
            Some(row) => row,
            None if self.rows == OVERFLOW_ROWS_MAX => self.rows - 1,
            None => self.grow(),
        };
        let mut node = self.ends.len() / 2 + row;
        self.ends[node] = self.ends[node].max(end);
        while node > 1 {
            node /= 2;
            self.ends[node] = self.ends[2 * node].min(self.ends[2 * node + 1]);
        }
        self.rows = self.rows.max(row + 1);
        Place::Overflow(row)
    }

    /// Rows that have never been used hold `i64::MIN` and count as free.
    fn first_free(&self, start: i64) -> Option<usize> {
        let leaves = self.ends.len() / 2;
        if leaves == 0 || self.ends[1] > start {
            return None;
        }
        let mut node = 1;
        while node < leaves {
            node = if self.ends[2 * node] <= start { 2 * node } else { 2 * node + 1 };
        }
        let row = node - leaves;
        (row < OVERFLOW_ROWS_MAX).then_some(row)
    }

    /// Doubles the leaves and gives the first new one.
    fn grow(&mut self) -> usize {
        let leaves = self.ends.len() / 2;
        let grown = (2 * leaves).max(1);
        let mut ends = vec![i64::MIN; 2 * grown];
        ends[grown..grown + leaves].copy_from_slice(&self.ends[leaves..]);
        for node in (1..grown).rev() {
            ends[node] = ends[2 * node].min(ends[2 * node + 1]);
        }
        self.ends = ends;
        leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// First fit by trying one row after the other.
    fn naive_first_fit(spans: &[(i64, i64)]) -> Vec<usize> {
        let mut ends: Vec<i64> = Vec::new();
        let place = |(start, end): &(i64, i64)| {
            let row = ends.iter().position(|last| last <= start).unwrap_or(ends.len());
            ends.resize(ends.len().max(row + 1), i64::MIN);
            ends[row] = *end;
            row
        };
        spans.iter().map(place).collect()
    }

    proptest! {
        #[test]
        fn b11_overflow_rows_are_first_fit(mut spans in prop::collection::vec((0i64..200, 0i64..60), 0..200)) {
            spans.sort_by_key(|(start, length)| (*start, std::cmp::Reverse(*length)));
            let spans: Vec<(i64, i64)> = spans.iter().map(|(start, length)| (*start, start + length)).collect();
            let mut rows = RowAssigner::new(false);
            let placed: Vec<Place> = spans.iter().map(|(start, end)| rows.place(*start, *end, false)).collect();
            let expected: Vec<Place> = naive_first_fit(&spans).into_iter().map(Place::Overflow).collect();
            prop_assert_eq!(placed, expected);
        }

        #[test]
        fn b11_rows_never_overlap(mut spans in prop::collection::vec((0i64..200, 0i64..60), 0..200)) {
            spans.sort_by_key(|(start, length)| (*start, std::cmp::Reverse(*length)));
            let mut rows = RowAssigner::new(true);
            let mut ends = std::collections::HashMap::new();
            for (start, length) in spans {
                let (row, beside) = match rows.place(start, start + length, false) {
                    Place::Nested(row) => (row, false),
                    Place::Overflow(row) => (row, true),
                };
                let last = ends.insert((row, beside), start + length);
                prop_assert!(last.is_none_or(|last| last <= start));
            }
        }
    }

    #[test]
    fn b11_containment_decides_the_depth() {
        let mut rows = RowAssigner::new(true);
        let placed = [(0, 100), (10, 50), (20, 30), (40, 60), (50, 90), (100, 120)]
            .map(|(start, end)| rows.place(start, end, false));
        use Place::{Nested, Overflow};
        assert_eq!(placed, [Nested(0), Nested(1), Nested(2), Overflow(0), Nested(1), Nested(0)]);
    }

    #[test]
    fn b11_what_is_nested_too_deep_shares_the_last_row() {
        let mut rows = RowAssigner::new(true);
        for depth in 0..NESTED_ROWS_MAX as i64 + 10 {
            let expected = (depth as usize).min(NESTED_ROWS_MAX - 1);
            assert_eq!(rows.place(depth, 1_000_000 - depth, false), Place::Nested(expected));
        }
    }

    #[test]
    fn b11_what_overlaps_too_often_shares_the_last_overflow_row() {
        let mut rows = RowAssigner::new(false);
        for turn in 0..OVERFLOW_ROWS_MAX + 10 {
            assert_eq!(rows.place(5, 9, false), Place::Overflow(turn.min(OVERFLOW_ROWS_MAX - 1)));
        }
    }
}
