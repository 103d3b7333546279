//! Declaring the DAGs of a track.

use super::draft::DagDraft;
use super::{DagBuilder, Schedule};

/// A track of a schedule that is being declared.
#[derive(Clone, Copy)]
pub struct TrackBuilder<'s> {
    schedule: &'s Schedule,
    track: usize,
}

impl<'s> TrackBuilder<'s> {
    pub(super) fn new(schedule: &'s Schedule, track: usize) -> Self {
        Self { schedule, track }
    }

    /// A new DAG. Its name must be new in this track, and not empty.
    pub fn declare_dag(self, name: impl Into<String>) -> DagBuilder<'s> {
        let dag = DagDraft { name: name.into(), track: self.track, phases: Vec::new(), default_phase: None };
        let mut draft = self.schedule.edit();
        draft.dags.push(dag);
        DagBuilder::new(self.schedule, draft.dags.len() - 1)
    }
}
