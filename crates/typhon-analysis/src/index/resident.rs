//! What an index takes in memory, besides its pieces.

use super::Index;
use super::group::GroupHead;
use super::lane::Lane;
use super::pyramid::{LevelHead, Pyramid};
use super::row::Row;
use super::series::Series;

/// Bytes of the elements of a list.
fn of<T>(list: &[T]) -> usize {
    size_of_val(list)
}

fn levels(levels: &[Vec<LevelHead>]) -> usize {
    levels.iter().map(|level| of(level) + size_of::<Vec<LevelHead>>()).sum()
}

impl Index {
    /// About so many bytes.
    pub(crate) fn resident_bytes(&self) -> usize {
        let survey = &self.survey;
        let threads = survey.threads.all();
        let names: usize = self.names.list().iter().map(|name| name.text.len()).sum();
        let notices: usize = self.notices.iter().map(|placed| placed.notice.message.len()).sum();
        size_of::<Self>()
            + self.lanes.iter().map(lane).sum::<usize>()
            + of(&self.blocks.blocks)
            + of(&self.tick_ends)
            + self.ticks.resident_bytes()
            + of(&survey.ticks.starts)
            + of(&survey.ticks.ends)
            + of(&survey.ticks.offsets)
            + of(threads)
            + threads.iter().filter_map(|thread| thread.name.as_ref()).map(String::len).sum::<usize>()
            + of(self.names.list())
            + names
            + of(&self.gc)
            + of(&self.losses)
            + of(&self.capped)
            + of(&self.notices)
            + notices
    }
}

fn lane(of_lane: &Lane) -> usize {
    let series = |series: &Series| of(&series.groups) + levels(&series.levels);
    size_of::<Lane>()
        + of_lane.rows.iter().chain([&of_lane.instants]).map(Row::resident_bytes).sum::<usize>()
        + of_lane.series.as_ref().map_or(0, series)
}

impl Row {
    /// About so many bytes.
    pub(crate) fn resident_bytes(&self) -> usize {
        let groups = |groups: &[GroupHead]| size_of_val(groups);
        let pyramid = |pyramid: &Pyramid| {
            let classes: usize = pyramid.classes.iter().map(|class| groups(&class.groups)).sum();
            size_of::<Pyramid>() + levels(&pyramid.levels) + classes + of(&pyramid.classes)
        };
        size_of::<Self>() + groups(&self.groups) + self.pyramid.as_deref().map_or(0, pyramid)
    }
}
