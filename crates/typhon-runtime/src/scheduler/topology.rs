//! The graph as dispatch needs it: numbers in few arrays.

use std::ops::Range;

/// One track.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    /// Its systems, as a range of the topological order.
    pub(crate) order: Range<usize>,
    /// Those without predecessors.
    pub(crate) roots: Vec<u16>,
}

/// Who follows whom.
#[derive(Debug)]
pub(crate) struct Topology {
    successors: Box<[u16]>,
    /// Where the successors of each system begin, and the end of the last.
    successor_starts: Box<[u32]>,
    predecessor_counts: Box<[u16]>,
    /// All systems, every one after its predecessors, track by track.
    order: Box<[u16]>,
    tracks: Box<[Track]>,
    /// Systems that no failure of others aborts.
    exempt: Box<[bool]>,
    /// Systems that may have several chunks.
    shared: Box<[bool]>,
}

impl Topology {
    /// `tracks` are ranges of `order`; edges within a track only.
    pub(crate) fn new(
        order: Vec<u16>,
        tracks: impl IntoIterator<Item = Range<usize>>,
        successors: impl Fn(u16) -> Vec<u16>,
        is_exempt: impl Fn(u16) -> bool,
        may_be_shared: impl Fn(u16) -> bool,
    ) -> Self {
        let count = order.len() as u16;
        let mut predecessor_counts = vec![0; usize::from(count)];
        let (mut starts, mut flat) = (vec![0], Vec::new());
        for system in 0..count {
            flat.extend(successors(system));
            starts.push(flat.len() as u32);
        }
        flat.iter().for_each(|&successor| predecessor_counts[usize::from(successor)] += 1);
        let is_root = |system: &u16| predecessor_counts[usize::from(*system)] == 0;
        let track = |range: Range<usize>| Track {
            roots: order[range.clone()].iter().copied().filter(is_root).collect(),
            order: range,
        };
        let tracks = tracks.into_iter().map(track).filter(|track| !track.order.is_empty()).collect();
        Self {
            successors: flat.into(),
            successor_starts: starts.into(),
            tracks,
            predecessor_counts: predecessor_counts.into(),
            exempt: (0..count).map(is_exempt).collect(),
            shared: (0..count).map(may_be_shared).collect(),
            order: order.into(),
        }
    }

    pub(crate) fn systems(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn order(&self) -> &[u16] {
        &self.order
    }

    /// Tracks that have systems, in the order in which they run.
    pub(crate) fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    #[inline(always)]
    pub(crate) fn successors(&self, system: usize) -> &[u16] {
        let (start, end) = (self.successor_starts[system], self.successor_starts[system + 1]);
        &self.successors[start as usize..end as usize]
    }

    #[inline(always)]
    pub(crate) fn predecessor_count(&self, system: usize) -> u32 {
        u32::from(self.predecessor_counts[system])
    }

    /// May several workers run chunks of the system at once?
    pub(crate) fn may_be_shared(&self, system: usize) -> bool {
        self.shared[system]
    }

    pub(crate) fn is_exempt(&self, system: usize) -> bool {
        self.exempt[system]
    }
}
