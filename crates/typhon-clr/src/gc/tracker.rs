use std::collections::{BTreeMap, HashMap};

use super::{
    Collection, CollectionStart, GcEnd, GcEvent, GcRecord, GcStart, GcType, GlobalHeapHistory, HeapSizes,
    HeapStats, Loss, LossKind, PerHeapHistory, SuspendEeBegin, SuspendReason, Suspension,
};
use crate::nettrace::{Continuity, EventHeader};

/// Suspensions open at once on different threads; real processes have one or two.
const MAX_WINDOWS: usize = 256;
/// Collections begun and not reported; real processes have two or three.
const MAX_COLLECTIONS: usize = 64;
/// Runs of consecutive collection numbers remembered for the uniqueness check.
const MAX_COUNT_RUNS: usize = 4096;
/// Heap number of the pinned object heap.
const PINNED: usize = 4;

/// Pairs the collector's events into collections and suspensions.
///
/// Feed it events in time order (per capture thread in stream order). Its memory is bounded whatever it is fed.
///
/// The rules that matter:
/// - Suspensions pair **per capture thread**: a sampler's and the collector's interleave on different threads.
/// - After a gap on a thread nothing from before it pairs with anything after it.
/// - Heap sizes follow their collection's end directly on the same thread.
/// - Per-heap reports say themselves whether they are a background collection's.
#[derive(Debug)]
pub struct Tracker {
    give_up_ticks: u64,
    windows: HashMap<u64, Window>,
    /// Begun or ended, not reported yet; in order of their start.
    collections: Vec<Open>,
    /// Thread to number of the collection that ended there last and still waits for something.
    ended_on: HashMap<u64, u32>,
    reports: HashMap<u64, Report>,
    /// Complete report of the blocking collection that ends next.
    blocking_report: Option<Report>,
    committed_bytes: Option<u64>,
    starts_seen: CountSet,
    ends_seen: CountSet,
    counters: TrackerCounters,
}

/// What a [`Tracker`] left out, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrackerCounters {
    /// Suspensions of the collector dropped because one of their ends is missing.
    pub half_open_suspensions: u64,
    /// Suspensions dropped because the collector did not cause them.
    pub non_gc_suspensions: u64,
    /// Restarts without an open suspension on their thread: those of the above, and of one that began before the session.
    pub unmatched_restarts: u64,
    /// Collections reported without sizes.
    pub ends_without_sizes: u64,
    /// Starts and ends dropped because their collection number came before; never so in a healthy stream.
    pub repeated_counts: u64,
    /// Collections whose end never came, given up to bound memory.
    pub abandoned_starts: u64,
}

/// A suspension of the collector that has not ended.
#[derive(Debug)]
struct Window {
    reason: SuspendReason,
    begin: u64,
    suspended: Option<u64>,
    restarting: Option<u64>,
    /// Numbers of the collections that it belongs to.
    owners: Vec<u32>,
}

#[derive(Debug)]
struct Open {
    count: u32,
    start: Option<CollectionStart>,
    pause_ticks: u64,
    open_windows: u32,
    end: Option<Ended>,
}

#[derive(Debug)]
struct Ended {
    timestamp: u64,
    thread: u64,
    generation: u32,
    stats: Option<HeapStats>,
    reported: Option<ReportedBytes>,
    /// Background collections of server GC send their report after their end.
    awaits_report: bool,
    committed_bytes: Option<u64>,
}

/// What a collection's per-heap reports add up to.
#[derive(Debug, Clone, Copy, Default)]
struct ReportedBytes {
    pinned_survived: u64,
    size_before: u64,
}

/// A collection's per-heap report while its parts arrive.
#[derive(Debug)]
struct Report {
    thread: u64,
    is_background: bool,
    missing_heaps: u32,
    bytes: ReportedBytes,
    /// Set when the collection ended before its report began.
    owner: Option<u32>,
}

impl Tracker {
    /// A tracker for a stream whose clock runs at `ticks_per_second`.
    pub fn new(ticks_per_second: u64) -> Self {
        Self {
            give_up_ticks: ticks_per_second,
            windows: HashMap::new(),
            collections: Vec::new(),
            ended_on: HashMap::new(),
            reports: HashMap::new(),
            blocking_report: None,
            committed_bytes: None,
            starts_seen: CountSet::default(),
            ends_seen: CountSet::default(),
            counters: TrackerCounters::default(),
        }
    }

    /// What was left out so far.
    pub fn counters(&self) -> TrackerCounters {
        self.counters
    }

    /// Takes the next event of the collector and passes on what became certain by it.
    pub fn on_event(&mut self, header: &EventHeader, event: &GcEvent<'_>, out: &mut impl FnMut(GcRecord)) {
        let EventHeader { timestamp: now, capture_thread: thread, .. } = *header;
        self.advance_to(now, out);
        self.on_gap(header, out);
        match event {
            GcEvent::SuspendEeBegin(begin) => self.on_suspend(thread, *begin, now, out),
            GcEvent::SuspendEeEnd => {
                if let Some(window) = self.windows.get_mut(&thread) {
                    window.suspended = Some(now);
                }
            }
            GcEvent::RestartEeBegin => {
                if let Some(window) = self.windows.get_mut(&thread) {
                    window.restarting = Some(now);
                }
            }
            GcEvent::RestartEeEnd => self.on_restart(thread, now, out),
            GcEvent::Start(start) => self.on_start(start, now, out),
            GcEvent::End(end) => self.on_end(end, thread, now, out),
            GcEvent::HeapStats(stats) => self.on_heap_stats(stats, thread, now, out),
            GcEvent::GlobalHeapHistory(history) => self.on_report(history, thread, now, out),
            GcEvent::PerHeapHistory(history) => self.on_heap_report(history, thread, now, out),
            GcEvent::CommittedUsage(usage) => self.committed_bytes = Some(usage.total_bytes()),
            _ => {}
        }
    }

    /// Takes note of what the header of any event, the collector's or not, says is missing before it.
    pub fn on_gap(&mut self, header: &EventHeader, out: &mut impl FnMut(GcRecord)) {
        let EventHeader { timestamp: now, capture_thread: thread, .. } = *header;
        match header.continuity {
            Continuity::Contiguous => {}
            Continuity::Lost(count) => self.on_lost_events(thread, count, now, out),
            Continuity::Restarted | Continuity::TimeReversed => self.forget_thread(thread, now, out),
        }
    }

    /// The runtime dropped `count` events of a thread right before `now`.
    pub fn on_lost_events(&mut self, thread: u64, count: u32, now: u64, out: &mut impl FnMut(GcRecord)) {
        let kind = LossKind::Events;
        out(GcRecord::Loss(Loss { timestamp: now, capture_thread: thread, kind, count: u64::from(count) }));
        self.forget_thread(thread, now, out);
    }

    /// Reports collections whose sizes are overdue at `now` (one second after their end).
    pub fn advance_to(&mut self, now: u64, out: &mut impl FnMut(GcRecord)) {
        if self.ended_on.is_empty() {
            return;
        }
        let deadline = now.saturating_sub(self.give_up_ticks);
        let overdue = |open: &Open| open.end.as_ref().is_some_and(|end| end.timestamp < deadline);
        while let Some(index) = self.collections.iter().position(overdue) {
            self.report(index, now, out);
        }
    }

    /// The stream ended: reports what has an end, drops and counts what is half open.
    pub fn finish(&mut self, now: u64, out: &mut impl FnMut(GcRecord)) {
        let mut threads: Vec<u64> = self.windows.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            self.discard_window(thread, now, out);
        }
        while let Some(index) = self.collections.iter().position(|open| open.end.is_some()) {
            self.report(index, now, out);
        }
        self.collections.clear();
        self.reports.clear();
        self.blocking_report = None;
    }

    fn on_suspend(&mut self, thread: u64, begin: SuspendEeBegin, now: u64, out: &mut impl FnMut(GcRecord)) {
        self.discard_window(thread, now, out);
        if !begin.reason.is_gc() {
            self.counters.non_gc_suspensions += 1;
            return;
        }
        if self.windows.len() >= MAX_WINDOWS
            && let Some(oldest) =
                self.windows.iter().min_by_key(|(_, window)| window.begin).map(|(&thread, _)| thread)
        {
            self.discard_window(oldest, now, out);
        }
        let mut owners = Vec::new();
        if begin.reason == SuspendReason::GC_PREPARATION {
            // A background collection in progress stops the world again for its final marking.
            for open in self.collections.iter_mut().filter(|open| open.is_running_in_background()) {
                open.open_windows += 1;
                owners.push(open.count);
            }
        }
        self.windows.insert(
            thread,
            Window { reason: begin.reason, begin: now, suspended: None, restarting: None, owners },
        );
    }

    fn on_restart(&mut self, thread: u64, now: u64, out: &mut impl FnMut(GcRecord)) {
        let Some(window) = self.windows.remove(&thread) else {
            self.counters.unmatched_restarts += 1;
            return;
        };
        let duration_ticks = now.saturating_sub(window.begin);
        out(GcRecord::Suspension(Suspension {
            timestamp: window.begin,
            duration_ticks,
            time_to_restart_ticks: window.restarting.map(|at| now.saturating_sub(at)),
            time_to_suspend_ticks: window.suspended.map(|at| at.saturating_sub(window.begin)),
            reason: window.reason,
            capture_thread: thread,
        }));
        self.close_window(&window, duration_ticks, now, out);
    }

    fn on_start(&mut self, start: &GcStart, now: u64, out: &mut impl FnMut(GcRecord)) {
        let GcStart { count, generation, reason, kind } = *start;
        if !self.starts_seen.insert(count) {
            self.counters.repeated_counts += 1;
            return;
        }
        let start = CollectionStart { timestamp: now, count, generation, reason, kind };
        out(GcRecord::Start(start));
        // A report left over from an earlier collection belongs to nobody any more.
        self.blocking_report = None;
        self.make_room(now, out);
        let mut open = Open { count, start: Some(start), pause_ticks: 0, open_windows: 0, end: None };
        let suspended = self.windows.values_mut().filter(|window| window.suspended.is_some());
        if let Some(window) = suspended.max_by_key(|window| window.suspended) {
            window.owners.push(count);
            open.open_windows = 1;
        }
        self.collections.push(open);
    }

    fn on_end(&mut self, end: &GcEnd, thread: u64, now: u64, out: &mut impl FnMut(GcRecord)) {
        if let Some(&previous) = self.ended_on.get(&thread) {
            self.report_count(previous, now, out);
        }
        if !self.ends_seen.insert(end.count) {
            self.counters.repeated_counts += 1;
            return;
        }
        let position = self.collections.iter().position(|open| open.count == end.count);
        let index = position.unwrap_or_else(|| {
            self.make_room(now, out);
            self.collections.push(Open::without_start(end.count));
            self.collections.len() - 1
        });
        let announced = self.collections[index].start.map(|start| start.kind);
        let (reported, awaits_report) = self.take_report(thread, announced, end.count);
        self.collections[index].end = Some(Ended {
            timestamp: now,
            thread,
            generation: end.generation,
            stats: None,
            reported,
            awaits_report,
            committed_bytes: self.committed_bytes,
        });
        self.ended_on.insert(thread, end.count);
    }

    /// The report that belongs to a collection that ends now on `thread`: bytes, and whether it is still to come.
    fn take_report(
        &mut self,
        thread: u64,
        announced: Option<GcType>,
        count: u32,
    ) -> (Option<ReportedBytes>, bool) {
        let runs_blocking = self.windows.contains_key(&thread);
        let may_be_background = !runs_blocking && announced.is_none_or(|kind| kind == GcType::BACKGROUND);
        if may_be_background
            && let Some(report) = self.reports.get_mut(&thread).filter(|report| report.is_background)
        {
            if report.missing_heaps > 0 {
                report.owner = Some(count);
                return (None, true);
            }
            let bytes = report.bytes;
            self.reports.remove(&thread);
            return (Some(bytes), false);
        }
        if may_be_background && announced.is_some() {
            return (None, true);
        }
        (self.blocking_report.take().map(|report| report.bytes), false)
    }

    fn on_heap_stats(&mut self, stats: &HeapStats, thread: u64, now: u64, out: &mut impl FnMut(GcRecord)) {
        let Some(&count) = self.ended_on.get(&thread) else { return };
        if let Some(end) = self.ended_mut(count) {
            end.stats = Some(*stats);
        }
        self.report_if_complete(count, now, out);
    }

    fn on_report(
        &mut self,
        history: &GlobalHeapHistory<'_>,
        thread: u64,
        now: u64,
        out: &mut impl FnMut(GcRecord),
    ) {
        let is_background = history.is_background();
        let ended = self.ended_on.get(&thread).copied();
        let owner = ended
            .filter(|&count| is_background && self.ended_mut(count).is_some_and(|end| end.awaits_report));
        let missing_heaps = u32::try_from(history.heaps).unwrap_or(0);
        if self.reports.len() >= MAX_WINDOWS {
            self.reports.clear();
        }
        let bytes = ReportedBytes::default();
        self.reports.insert(thread, Report { thread, is_background, missing_heaps, bytes, owner });
        if missing_heaps == 0 {
            self.complete_report(thread, now, out);
        }
    }

    fn on_heap_report(
        &mut self,
        history: &PerHeapHistory<'_>,
        thread: u64,
        now: u64,
        out: &mut impl FnMut(GcRecord),
    ) {
        let Some(report) = self.reports.get_mut(&thread).filter(|report| report.missing_heaps > 0) else {
            return;
        };
        report.missing_heaps -= 1;
        if let Some(pinned) = history.generation(PINNED) {
            let survived = pinned.pinned_survived.saturating_add(pinned.non_pinned_survived);
            report.bytes.pinned_survived = report.bytes.pinned_survived.saturating_add(survived);
        }
        for generation in (0..history.generation_count()).filter_map(|index| history.generation(index)) {
            report.bytes.size_before = report.bytes.size_before.saturating_add(generation.size_before);
        }
        if report.missing_heaps == 0 {
            self.complete_report(thread, now, out);
        }
    }

    fn complete_report(&mut self, thread: u64, now: u64, out: &mut impl FnMut(GcRecord)) {
        let Some(report) = self.reports.remove(&thread) else { return };
        match report.owner {
            Some(count) => {
                if let Some(end) = self.ended_mut(count) {
                    end.reported = Some(report.bytes);
                    end.awaits_report = false;
                }
                self.report_if_complete(count, now, out);
            }
            // Waits for the end on this thread.
            None if report.is_background => {
                self.reports.insert(thread, report);
            }
            None => self.blocking_report = Some(report),
        }
    }

    /// Nothing from before this moment on `thread` may pair with anything after it.
    fn forget_thread(&mut self, thread: u64, now: u64, out: &mut impl FnMut(GcRecord)) {
        self.discard_window(thread, now, out);
        self.reports.remove(&thread);
        if self.blocking_report.as_ref().is_some_and(|report| report.thread == thread) {
            self.blocking_report = None;
        }
        if let Some(&count) = self.ended_on.get(&thread) {
            self.report_count(count, now, out);
        }
    }

    fn discard_window(&mut self, thread: u64, now: u64, out: &mut impl FnMut(GcRecord)) {
        let Some(window) = self.windows.remove(&thread) else { return };
        self.counters.half_open_suspensions += 1;
        let kind = LossKind::HalfOpenSuspension;
        out(GcRecord::Loss(Loss { timestamp: now, capture_thread: thread, kind, count: 1 }));
        self.close_window(&window, 0, now, out);
    }

    fn close_window(&mut self, window: &Window, pause_ticks: u64, now: u64, out: &mut impl FnMut(GcRecord)) {
        for &count in &window.owners {
            if let Some(open) = self.collections.iter_mut().find(|open| open.count == count) {
                open.pause_ticks = open.pause_ticks.saturating_add(pause_ticks);
                open.open_windows = open.open_windows.saturating_sub(1);
                self.report_if_complete(count, now, out);
            }
        }
    }

    fn ended_mut(&mut self, count: u32) -> Option<&mut Ended> {
        self.collections.iter_mut().find(|open| open.count == count)?.end.as_mut()
    }

    fn report_if_complete(&mut self, count: u32, now: u64, out: &mut impl FnMut(GcRecord)) {
        let is_complete = |open: &Open| {
            open.open_windows == 0
                && open.end.as_ref().is_some_and(|end| end.stats.is_some() && !end.awaits_report)
        };
        let position = self.collections.iter().position(|open| open.count == count);
        if let Some(index) = position.filter(|&index| is_complete(&self.collections[index])) {
            self.report(index, now, out);
        }
    }

    fn report_count(&mut self, count: u32, now: u64, out: &mut impl FnMut(GcRecord)) {
        if let Some(index) = self.collections.iter().position(|open| open.count == count) {
            self.report(index, now, out);
        }
    }

    /// Passes on an ended collection with what is known about it, and forgets it.
    fn report(&mut self, index: usize, now: u64, out: &mut impl FnMut(GcRecord)) {
        let open = self.collections.remove(index);
        let Some(end) = open.end else { return };
        self.ended_on.remove(&end.thread);
        if end.stats.is_none() {
            self.counters.ends_without_sizes += 1;
            let kind = LossKind::EndWithoutSizes;
            out(GcRecord::Loss(Loss { timestamp: now, capture_thread: end.thread, kind, count: 1 }));
        }
        out(GcRecord::End(Collection {
            timestamp: end.timestamp,
            count: open.count,
            generation: end.generation,
            start: open.start,
            pause_ticks: open.pause_ticks,
            heap: end.stats.map(|stats| heap_sizes(&stats, end.reported)),
            committed_bytes: end.committed_bytes,
        }));
    }

    fn make_room(&mut self, now: u64, out: &mut impl FnMut(GcRecord)) {
        if self.collections.len() >= MAX_COLLECTIONS {
            self.counters.abandoned_starts += u64::from(self.collections[0].end.is_none());
            self.report(0, now, out);
        }
    }
}

impl Open {
    fn without_start(count: u32) -> Self {
        Self { count, start: None, pause_ticks: 0, open_windows: 0, end: None }
    }

    fn is_running_in_background(&self) -> bool {
        self.end.is_none() && self.start.is_some_and(|start| start.kind == GcType::BACKGROUND)
    }
}

fn heap_sizes(stats: &HeapStats, reported: Option<ReportedBytes>) -> HeapSizes {
    let others = stats.promoted_bytes[..PINNED].iter().fold(0u64, |sum, &bytes| sum.saturating_add(bytes));
    // Runtimes leave the pinned heap out of the statistics; the per-heap reports have it.
    let pinned = stats.promoted_bytes[PINNED].max(reported.map_or(0, |bytes| bytes.pinned_survived));
    HeapSizes {
        size_bytes: stats.size_bytes,
        promoted_bytes: others.saturating_add(pinned),
        promoted_is_complete: reported.is_some(),
        size_before_bytes: reported.map(|bytes| bytes.size_before),
    }
}

/// A set of collection numbers, kept as runs because numbers follow one another.
#[derive(Debug, Default)]
struct CountSet {
    /// First to last number of each run.
    runs: BTreeMap<u32, u32>,
}

impl CountSet {
    /// Adds a number; `false` if it was there.
    fn insert(&mut self, count: u32) -> bool {
        let (mut first, mut last) = (count, count);
        if let Some((&run_first, &run_last)) = self.runs.range(..=count).next_back() {
            if count <= run_last {
                return false;
            }
            if run_last + 1 == count {
                first = run_first;
            }
        }
        if let Some(run_last) = count.checked_add(1).and_then(|next| self.runs.remove(&next)) {
            last = run_last;
        }
        self.runs.insert(first, last);
        if self.runs.len() > MAX_COUNT_RUNS {
            self.runs.pop_first();
        }
        true
    }
}

#[cfg(test)]
mod tests;
