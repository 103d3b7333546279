//! The first matches of a search, before the others are known (brief 11 §8: first hits in 100 ms).
//!
//! Groups of all rows are gone through in the order of their starts. What starts before the next group cannot be
//! preceded by anything that is still to come.

use super::event::RelatedSpan;
use super::matching::{Decider, Found, Matcher, Open, Part, parts_of_threads};
use super::{Cancel, Place, Session, SessionError, Shared};
use crate::filter;
use crate::index::group::{GroupHead, GroupReader};
use std::time::{Duration, Instant};
use typhon_trace::reader::BlockBuffer;

impl Session {
    /// The first `limit` matches of a filter in order of time, as [`Session::matches`] would list them: as many as are found
    /// in the time given. Empty for filters of self times and depths, which need all records in order.
    ///
    /// # Errors
    /// Those of [`Session::add_filter`].
    pub fn first_matches(
        &self,
        text: &str,
        limit: usize,
        within: Duration,
        cancel: &Cancel,
    ) -> Result<Vec<RelatedSpan>, SessionError> {
        // A time beyond the end of the clock is no limit.
        let until = Instant::now().checked_add(within);
        let filter = filter::parse(text)?;
        let index = self.index()?;
        if filter.needs_places() || limit == 0 {
            return Ok(Vec::new());
        }
        let matcher = self.shared.matcher(&index, &filter);
        let found = self.shared.nothing_found(&matcher)?;
        let mut first = First { matcher: &matcher, found: &found, limit, matches: Vec::new() };
        let is_over = || until.is_some_and(|until| Instant::now() >= until);
        first.find(&self.shared, is_over, cancel)?;
        self.shared.check_length()?;
        Ok(first.matches.into_iter().map(|(_, span)| span).collect())
    }
}

struct First<'m> {
    matcher: &'m Matcher<'m>,
    found: &'m Found,
    limit: usize,
    /// The earliest so far, by start in ticks and record number; `limit` at most.
    matches: Vec<((i64, u64), RelatedSpan)>,
}

impl First<'_> {
    fn find(
        &mut self,
        shared: &Shared,
        mut is_over: impl FnMut() -> bool,
        cancel: &Cancel,
    ) -> Result<(), SessionError> {
        let index = self.matcher.index;
        let parts = parts_of_threads(index);
        let mut groups: Vec<(&Part<'_>, &GroupHead)> =
            parts.iter().flat_map(|part| part.groups.iter().map(move |head| (part, head))).collect();
        groups.retain(|(part, head)| self.found.rest.may_match(part.row.is_some(), head));
        groups.sort_by_key(|(_, head)| head.first_start);
        let (mut decider, mut reader) = (Decider::new(self.matcher), GroupReader::default());
        let (open, mut buffer) = (Open::new(index), BlockBuffer::new());
        let mut is_read = vec![false; index.blocks.blocks.len()];
        for (part, head) in groups {
            cancel.check()?;
            let is_full = self.matches.len() == self.limit;
            let is_settled = |last: &((i64, u64), _)| last.0.0 < head.first_start;
            if is_full && self.matches.last().is_some_and(is_settled) {
                return Ok(());
            }
            if is_over() {
                self.matches.retain(is_settled);
                return Ok(());
            }
            if !decider.group(part, head, &self.found.bits, &open, cancel)? {
                continue;
            }
            for block in open.blocks() {
                if std::mem::replace(&mut is_read[block as usize], true) {
                    continue;
                }
                // Of a thread that does little, one group may lie in all blocks of the file.
                cancel.check()?;
                if is_over() {
                    self.matches.retain(is_settled);
                    return Ok(());
                }
                shared.match_block(self.matcher, block, &mut buffer, &self.found.bits)?;
            }
            self.take(part, head, &mut reader)?;
        }
        Ok(())
    }

    /// Takes the matches of a group.
    fn take(
        &mut self,
        part: &Part<'_>,
        head: &GroupHead,
        reader: &mut GroupReader,
    ) -> Result<(), SessionError> {
        let index = self.matcher.index;
        for (entry, at) in reader.read(&index.store, head)?.iter().zip(head.first_index..) {
            if self.found.bits.get(entry.reference) {
                let place = Place { lane: part.lane, row: part.row, index: at };
                let span = index.related(place, entry);
                self.matches.extend(span.map(|span| ((entry.start, entry.reference), span)));
            }
        }
        self.matches.sort_by_key(|(key, _)| *key);
        self.matches.truncate(self.limit);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Direction, SessionOptions, State};
    use std::path::PathBuf;

    #[test]
    fn time_is_looked_at_before_each_block_and_what_is_found_until_then_is_right() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/anthill.typhon-trace");
        let session = Session::open(&path, SessionOptions::default()).expect("opens");
        assert_eq!(session.wait(), State::Ready);
        let (text, cancel) = ("field.chunkIdx>=0", Cancel::new());
        let info = session.add_filter(text, &cancel, |_| ()).expect("a filter");
        let listed = session.matches(info.id, None, Direction::Forward, usize::MAX).expect("ready");
        let (index, filter) = (session.index().expect("ready"), filter::parse(text).expect("a filter"));
        let matcher = session.shared.matcher(&index, &filter);
        // How many are found in how many looks at the time.
        let find = |looks_max: usize| {
            let found = session.shared.nothing_found(&matcher).expect("room");
            let mut first =
                First { matcher: &matcher, found: &found, limit: usize::MAX, matches: Vec::new() };
            let mut looks = 0;
            let is_over = || {
                looks += 1;
                looks > looks_max
            };
            first.find(&session.shared, is_over, &cancel).expect("found");
            let spans: Vec<RelatedSpan> = first.matches.into_iter().map(|(_, span)| span).collect();
            assert!(listed.starts_with(&spans), "after {looks_max} looks");
            (looks, spans.len())
        };
        let (looks, all) = find(usize::MAX);
        let parts = parts_of_threads(&index);
        let groups: usize = parts.iter().map(|part| part.groups.len()).sum();
        assert_eq!(all, listed.len());
        assert!(looks > groups, "{looks} looks, {groups} groups");
        (0..looks).step_by(11).for_each(|looks| _ = find(looks));
    }
}
