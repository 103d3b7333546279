//! How long systems take, as far as experience tells, and what follows for dispatch: which system is urgent (B-34), and
//! whether help pays.

use super::sync::{AtomicU32, Ordering};
use super::topology::{Topology, Track};

/// Weight of the latest run: one eighth.
const WEIGHT_SHIFT: u32 = 3;
/// Ticks after which urgency and the benefit of help are worked out anew.
const INTERVAL: u32 = 32;

/// What the driver has learnt.
#[derive(Debug)]
pub(crate) struct Estimates {
    /// Nanoseconds of all chunks of a run together, by system.
    work_ns: Vec<u32>,
    /// Nanoseconds from the start of a system to the end of everything that follows it.
    path_ns: Vec<u32>,
    /// What help saves in a track, nanoseconds.
    gain_ns: Vec<u64>,
    ranking: Vec<u16>,
    ticks_until_next: u32,
}

impl Estimates {
    pub(crate) fn new(topology: &Topology) -> Self {
        let systems = topology.systems();
        Self {
            work_ns: vec![0; systems],
            path_ns: vec![0; systems],
            gain_ns: vec![0; topology.tracks().len()],
            ranking: topology.order().to_vec(),
            // The first ticks say the most.
            ticks_until_next: 2,
        }
    }

    /// A system ran for so long, all chunks together.
    #[inline(always)]
    pub(crate) fn learn(&mut self, system: usize, ns: u64) {
        let ns = ns.min(u64::from(u32::MAX)) as i64;
        let before = i64::from(self.work_ns[system]);
        // Nothing is known before the first run.
        let after = if before == 0 { ns } else { before + ((ns - before) >> WEIGHT_SHIFT) };
        self.work_ns[system] = after.max(1) as u32;
    }

    /// A tick is over. True if there is something new to be learnt from [`Self::ranking`].
    pub(crate) fn tick_is_over(&mut self, topology: &Topology, paths: &[AtomicU32], workers: u64) -> bool {
        if workers < 2 {
            return false;
        }
        self.ticks_until_next -= 1;
        if self.ticks_until_next > 0 {
            return false;
        }
        self.ticks_until_next = INTERVAL;
        let Self { work_ns, path_ns, gain_ns, .. } = self;
        for (gain, track) in gain_ns.iter_mut().zip(topology.tracks()) {
            *gain = gain_of(topology, track, work_ns, path_ns, workers);
        }
        for (published, &path) in paths.iter().zip(&*path_ns) {
            published.store(path, Ordering::Relaxed);
        }
        let pays = gain_ns.iter().any(|&gain| gain > 0);
        if pays {
            self.ranking.sort_by_key(|&system| std::cmp::Reverse(path_ns[usize::from(system)]));
        }
        pays
    }

    /// All systems, the most urgent first; equally urgent ones as before.
    pub(crate) fn ranking(&self) -> &[u16] {
        &self.ranking
    }

    /// By how much helpers that were awake would shorten the track, nanoseconds.
    pub(crate) fn gain_ns(&self, track: usize) -> u64 {
        self.gain_ns[track]
    }
}

/// No schedule beats the longest path, nor an even division of the work.
fn gain_of(topology: &Topology, track: &Track, work_ns: &[u32], path_ns: &mut [u32], workers: u64) -> u64 {
    let (mut total, mut longest) = (0_u64, 0_u64);
    for &system in topology.order()[track.order.clone()].iter().rev() {
        let system = usize::from(system);
        let successors = topology.successors(system).iter();
        let rest = successors.map(|&successor| path_ns[usize::from(successor)]).max().unwrap_or(0);
        let own = if topology.may_be_shared(system) {
            work_ns[system].div_ceil(workers as u32)
        } else {
            work_ns[system]
        };
        path_ns[system] = own.saturating_add(rest);
        total += u64::from(work_ns[system]);
        longest = longest.max(u64::from(path_ns[system]));
    }
    total - total.min(longest.max(total.div_ceil(workers)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;

    const US: u64 = 1_000;

    /// What two workers save, if systems 0.. take these times with these edges.
    fn gain_us(work_us: &[u64], edges: &[(u16, u16)]) -> u64 {
        let successors = |system| edges.iter().filter(|edge| edge.0 == system).map(|edge| edge.1).collect();
        let order = (0..work_us.len() as u16).collect();
        let topology = Topology::new(order, iter::once(0..work_us.len()), successors, |_| false, |_| false);
        let mut estimates = Estimates::new(&topology);
        let paths: Vec<_> = work_us.iter().map(|_| AtomicU32::new(0)).collect();
        for _ in 0..2 {
            work_us.iter().enumerate().for_each(|(system, us)| estimates.learn(system, us * US));
            estimates.tick_is_over(&topology, &paths, 2);
        }
        assert!(paths.iter().all(|path| path.load(Ordering::Relaxed) > 0));
        estimates.gain_ns(0) / US
    }

    #[test]
    fn help_does_not_pay_for_a_chain_and_does_for_independent_systems() {
        assert_eq!(gain_us(&[100; 4], &[(0, 1), (1, 2), (2, 3)]), 0);
        assert_eq!(gain_us(&[100; 4], &[]), 200);
        assert_eq!(gain_us(&[300, 50, 50], &[]), 100, "the longest system is the limit");
    }

    #[test]
    fn b34_the_longest_way_to_the_end_is_the_most_urgent() {
        let successors = |system| if system == 1 { vec![2] } else { Vec::new() };
        let topology = Topology::new(vec![0, 1, 2], iter::once(0..3), successors, |_| false, |_| false);
        let mut estimates = Estimates::new(&topology);
        let paths: Vec<_> = (0..3).map(|_| AtomicU32::new(0)).collect();
        for _ in 0..2 {
            [30, 20, 20].iter().enumerate().for_each(|(system, us)| estimates.learn(system, us * US));
            estimates.tick_is_over(&topology, &paths, 2);
        }
        assert_eq!(estimates.ranking(), [1, 0, 2]);
    }

    #[test]
    fn experience_follows_slowly() {
        let topology = Topology::new(vec![0], iter::once(0..1), |_| Vec::new(), |_| false, |_| false);
        let mut estimates = Estimates::new(&topology);
        estimates.learn(0, 800);
        assert_eq!(estimates.work_ns[0], 800, "the first run says all there is to know");
        estimates.learn(0, 1600);
        assert_eq!(estimates.work_ns[0], 900);
        estimates.learn(0, 0);
        assert!((780..800).contains(&estimates.work_ns[0]));
    }
}
