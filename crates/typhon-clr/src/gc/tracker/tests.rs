//! Pairing rules on hand-made event sequences. Times are ticks; the clock runs at 1,000 ticks a second.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::gc::{CommittedUsage, GcReason};

const TICKS_PER_SECOND: u64 = 1000;

/// Feeds events and collects the records.
struct Script {
    tracker: Tracker,
    records: Vec<GcRecord>,
    sequence: HashMap<u64, u32>,
}

impl Script {
    fn new() -> Self {
        Self { tracker: Tracker::new(TICKS_PER_SECOND), records: Vec::new(), sequence: HashMap::new() }
    }

    fn event(&mut self, timestamp: u64, thread: u64, event: GcEvent<'_>) -> &mut Self {
        self.event_after(Continuity::Contiguous, timestamp, thread, event)
    }

    fn event_after(
        &mut self,
        continuity: Continuity,
        timestamp: u64,
        thread: u64,
        event: GcEvent<'_>,
    ) -> &mut Self {
        let sequence = self.sequence.entry(thread).or_default();
        *sequence += 1;
        let header = EventHeader {
            timestamp,
            capture_thread: thread,
            thread,
            sequence: *sequence,
            processor: u32::MAX,
            stack_id: 0,
            activity_ids: [[0; 16]; 2],
            sorted: false,
            continuity,
        };
        self.tracker.on_event(&header, &event, &mut |record| self.records.push(record));
        self
    }

    fn suspend(&mut self, timestamp: u64, thread: u64, reason: u32) -> &mut Self {
        let begin = SuspendEeBegin { reason: SuspendReason(reason), count: 0 };
        self.event(timestamp, thread, GcEvent::SuspendEeBegin(begin))
    }

    fn suspended(&mut self, timestamp: u64, thread: u64) -> &mut Self {
        self.event(timestamp, thread, GcEvent::SuspendEeEnd)
    }

    fn restart(&mut self, timestamp: u64, thread: u64) -> &mut Self {
        self.event(timestamp, thread, GcEvent::RestartEeEnd)
    }

    fn start(&mut self, timestamp: u64, thread: u64, count: u32, kind: GcType) -> &mut Self {
        let start = GcStart { count, generation: 2, reason: GcReason::INDUCED, kind };
        self.event(timestamp, thread, GcEvent::Start(start))
    }

    fn end(&mut self, timestamp: u64, thread: u64, count: u32) -> &mut Self {
        self.event(timestamp, thread, GcEvent::End(GcEnd { count, generation: 2 }))
    }

    /// Statistics with 1,000 promoted bytes outside the pinned heap, and `size` as the size of generation 0.
    fn stats(&mut self, timestamp: u64, thread: u64, size: u64) -> &mut Self {
        let stats = HeapStats {
            size_bytes: [size, 0, 0, 0, 0],
            promoted_bytes: [100, 200, 300, 400, 0],
            finalization_promoted_bytes: 0,
            finalization_promoted_count: 0,
            pinned_objects: 0,
            sink_blocks: 0,
            handles: 0,
        };
        self.event(timestamp, thread, GcEvent::HeapStats(stats))
    }

    /// A 205 and its 204s, each with `pinned` surviving bytes in the pinned heap.
    fn report(&mut self, timestamp: u64, thread: u64, is_background: bool, pinned: &[u64]) -> &mut Self {
        self.global_report(timestamp, thread, is_background, pinned.len() as i32);
        for &bytes in pinned {
            self.heap_report(timestamp, thread, bytes);
        }
        self
    }

    fn global_report(&mut self, timestamp: u64, thread: u64, is_background: bool, heaps: i32) -> &mut Self {
        let mut payload = [0; 50];
        payload[8..12].copy_from_slice(&heaps.to_le_bytes());
        payload[24] = u8::from(is_background);
        self.decoded(timestamp, thread, 205, 4, &payload)
    }

    fn heap_report(&mut self, timestamp: u64, thread: u64, pinned: u64) -> &mut Self {
        let mut payload = vec![0; 82 + 4 + 5 * 80];
        payload[82] = 5;
        // Each heap was three times as large as what survived of its pinned objects.
        payload[86..][..8].copy_from_slice(&(pinned * 2).to_le_bytes());
        payload[86 + 4 * 80..][..8].copy_from_slice(&pinned.to_le_bytes());
        let pinned_survived = 86 + 4 * 80 + 7 * 8;
        payload[pinned_survived..][..8].copy_from_slice(&pinned.to_le_bytes());
        self.decoded(timestamp, thread, 204, 3, &payload)
    }

    fn decoded(
        &mut self,
        timestamp: u64,
        thread: u64,
        event_id: u32,
        version: u32,
        payload: &[u8],
    ) -> &mut Self {
        let metadata = std::sync::Arc::new(crate::nettrace::Metadata {
            metadata_id: 1,
            provider: crate::gc::RUNTIME_PROVIDER.to_owned(),
            event_id,
            event_name: String::new(),
            keywords: 1,
            version,
            level: 4,
            fields: None,
        });
        let header = header(timestamp, thread);
        let event = crate::nettrace::Event { metadata: &metadata, header, payload };
        let event = GcEvent::decode(&event, 8).unwrap().unwrap();
        self.event(timestamp, thread, event)
    }

    fn committed(&mut self, timestamp: u64, thread: u64, in_use: u64) -> &mut Self {
        let usage = CommittedUsage {
            version: 1,
            in_use,
            in_global_decommit: 7,
            in_free: 20,
            in_global_free: 3,
            bookkeeping: 9,
        };
        self.event(timestamp, thread, GcEvent::CommittedUsage(usage))
    }

    /// One blocking collection as a workstation runtime sends it: paused from `timestamp` to `timestamp + 10`.
    fn blocking(&mut self, timestamp: u64, thread: u64, count: u32, size: u64) -> &mut Self {
        self.suspend(timestamp, thread, 1)
            .suspended(timestamp + 1, thread)
            .start(timestamp + 2, thread, count, GcType::BLOCKING)
            .report(timestamp + 6, thread, false, &[50])
            .end(timestamp + 7, thread, count)
            .stats(timestamp + 8, thread, size)
            .event(timestamp + 9, thread, GcEvent::RestartEeBegin)
            .restart(timestamp + 10, thread)
    }

    fn finish(&mut self, timestamp: u64) -> &mut Self {
        self.tracker.finish(timestamp, &mut |record| self.records.push(record));
        self
    }

    fn ends(&self) -> Vec<Collection> {
        let end = |record: &GcRecord| if let GcRecord::End(end) = record { Some(*end) } else { None };
        self.records.iter().filter_map(end).collect()
    }

    fn end_of(&self, count: u32) -> Collection {
        self.ends().into_iter().find(|end| end.count == count).unwrap()
    }

    fn suspensions(&self) -> Vec<(u64, u64)> {
        let times = |record: &GcRecord| match record {
            GcRecord::Suspension(window) => Some((window.timestamp, window.duration_ticks)),
            _ => None,
        };
        self.records.iter().filter_map(times).collect()
    }

    fn losses(&self, kind: LossKind) -> u64 {
        let count = |record: &GcRecord| match record {
            GcRecord::Loss(loss) if loss.kind == kind => loss.count,
            _ => 0,
        };
        self.records.iter().map(count).sum()
    }
}

fn header(timestamp: u64, thread: u64) -> EventHeader {
    EventHeader {
        timestamp,
        capture_thread: thread,
        thread,
        sequence: 1,
        processor: u32::MAX,
        stack_id: 0,
        activity_ids: [[0; 16]; 2],
        sorted: false,
        continuity: Continuity::Contiguous,
    }
}

#[test]
fn g4_a_blocking_collection_gives_start_end_and_suspension() {
    let mut script = Script::new();
    script.committed(90, 1, 1000).blocking(100, 1, 7, 5000);
    let start = CollectionStart {
        timestamp: 102,
        count: 7,
        generation: 2,
        reason: GcReason::INDUCED,
        kind: GcType::BLOCKING,
    };
    let suspension = Suspension {
        timestamp: 100,
        duration_ticks: 10,
        time_to_suspend_ticks: Some(1),
        time_to_restart_ticks: Some(1),
        reason: SuspendReason::GC,
        capture_thread: 1,
    };
    let end = Collection {
        timestamp: 107,
        count: 7,
        generation: 2,
        start: Some(start),
        pause_ticks: 10,
        heap: Some(HeapSizes {
            size_bytes: [5000, 0, 0, 0, 0],
            promoted_bytes: 1050,
            promoted_is_complete: true,
            size_before_bytes: Some(150),
        }),
        committed_bytes: Some(1023),
    };
    assert_eq!(
        script.records,
        [GcRecord::Start(start), GcRecord::Suspension(suspension), GcRecord::End(end)]
    );
    assert_eq!(script.tracker.counters(), TrackerCounters::default());
}

#[test]
fn g6_suspensions_of_others_are_dropped_and_counted() {
    let mut script = Script::new();
    for reason in [0, 2, 3, 4, 5, 7, 8, 0x101, u32::MAX] {
        script.suspend(10, 1, reason).suspended(11, 1).restart(12, 1);
    }
    assert_eq!(script.records, []);
    assert_eq!(script.tracker.counters().non_gc_suspensions, 9);
    assert_eq!(script.tracker.counters().unmatched_restarts, 9);
}

#[test]
fn suspensions_of_sampler_and_collector_interleave_on_their_threads() {
    let mut script = Script::new();
    script
        .suspend(10, 1, 1)
        .suspend(11, 2, 0)
        .suspended(12, 1)
        .restart(15, 1)
        .suspended(16, 2)
        .restart(17, 2);
    assert_eq!(script.suspensions(), [(10, 5)]);
    assert_eq!(script.losses(LossKind::HalfOpenSuspension), 0);
}

#[test]
fn a_gap_on_the_thread_breaks_its_suspension() {
    for gap in [Continuity::Lost(3), Continuity::Restarted, Continuity::TimeReversed] {
        let mut script = Script::new();
        script.suspend(10, 1, 1).event_after(gap, 20, 1, GcEvent::RestartEeEnd);
        assert_eq!(script.suspensions(), []);
        assert_eq!(script.losses(LossKind::HalfOpenSuspension), 1);
        assert_eq!(script.losses(LossKind::Events), if gap == Continuity::Lost(3) { 3 } else { 0 });
        assert_eq!(script.tracker.counters().half_open_suspensions, 1);
    }
}

#[test]
fn a_gap_on_another_thread_breaks_nothing() {
    let mut script = Script::new();
    script.suspend(10, 1, 1).event_after(Continuity::Lost(3), 11, 2, GcEvent::RestartEeBegin).restart(20, 1);
    assert_eq!(script.suspensions(), [(10, 10)]);
}

#[test]
fn g12_a_suspension_open_at_the_end_is_dropped_and_counted() {
    let mut script = Script::new();
    script.suspend(10, 1, 1).suspend(12, 2, 6).finish(30);
    assert_eq!(script.suspensions(), []);
    assert_eq!(script.losses(LossKind::HalfOpenSuspension), 2);
}

#[test]
fn a_new_begin_discards_the_open_one_whatever_its_reason() {
    let mut script = Script::new();
    script
        .suspend(10, 1, 1)
        .suspend(20, 1, 1)
        .restart(25, 1)
        .suspend(30, 1, 1)
        .suspend(35, 1, 0)
        .restart(40, 1);
    assert_eq!(script.suspensions(), [(20, 5)]);
    assert_eq!(script.tracker.counters().half_open_suspensions, 2);
}

#[test]
fn background_pause_is_the_sum_of_its_suspensions() {
    let mut script = Script::new();
    script.suspend(10, 1, 1).suspended(11, 1).start(12, 1, 5, GcType::BACKGROUND).restart(14, 1);
    // A foreground collection runs complete inside it; its pause is its own.
    script
        .suspend(20, 1, 1)
        .suspended(21, 1)
        .start(22, 1, 6, GcType::FOREGROUND)
        .report(23, 1, false, &[8])
        .end(24, 1, 6)
        .stats(25, 1, 60)
        .restart(27, 1);
    script
        .suspend(30, 2, 6)
        .suspended(31, 2)
        .restart(35, 2)
        .report(40, 2, true, &[70])
        .end(41, 2, 5)
        .stats(42, 2, 50);
    assert_eq!((script.end_of(5).pause_ticks, script.end_of(6).pause_ticks), (4 + 5, 7));
    assert_eq!(script.end_of(5).heap.unwrap().promoted_bytes, 1070);
    assert_eq!(script.end_of(6).heap.unwrap().promoted_bytes, 1008);
    assert_eq!(script.suspensions(), [(10, 4), (20, 7), (30, 5)]);
}

#[test]
fn a_background_report_inside_a_foreground_suspension_stays_with_its_collection() {
    let mut script = Script::new();
    script.start(12, 1, 38, GcType::BACKGROUND);
    script.suspend(20, 1, 1).suspended(21, 1).start(22, 1, 39, GcType::FOREGROUND);
    script.report(23, 2, true, &[500]);
    script.report(24, 1, false, &[3]).end(25, 1, 39).stats(26, 1, 1).restart(27, 1);
    script.end(30, 2, 38).stats(31, 2, 2);
    assert_eq!(script.end_of(38).heap.unwrap().promoted_bytes, 1500);
    assert_eq!(script.end_of(39).heap.unwrap().promoted_bytes, 1003);
}

#[test]
fn server_background_reports_follow_the_end() {
    let mut script = Script::new();
    script.start(12, 1, 5, GcType::BACKGROUND).end(41, 2, 5).stats(42, 2, 50);
    assert_eq!(script.ends(), [], "its per-heap report is still to come");
    script.report(43, 2, true, &[70, 30]);
    let heap = script.end_of(5).heap.unwrap();
    assert_eq!((heap.promoted_bytes, heap.promoted_is_complete), (1100, true));
    assert_eq!(heap.size_before_bytes, Some(300), "all heaps, all generations");
}

#[test]
fn server_reports_of_blocking_collections_come_from_any_thread() {
    let mut script = Script::new();
    script.suspend(10, 1, 1).suspended(11, 1).start(12, 3, 5, GcType::BLOCKING).report(15, 4, false, &[1, 2]);
    script.end(16, 1, 5).stats(17, 1, 9).restart(18, 1);
    let end = script.end_of(5);
    assert_eq!((end.pause_ticks, end.heap.unwrap().promoted_bytes), (8, 1003));
}

#[test]
fn a_suspension_that_is_not_complete_when_a_collection_starts_is_not_its_own() {
    let mut script = Script::new();
    script.suspend(10, 1, 1).start(12, 2, 5, GcType::BLOCKING).suspended(13, 1).restart(18, 1);
    script.end(20, 2, 5).stats(21, 2, 9);
    assert_eq!((script.end_of(5).pause_ticks, script.suspensions()), (0, vec![(10, 8)]));
}

#[test]
fn an_announced_background_collection_may_run_blocking() {
    let mut script = Script::new();
    script.suspend(10, 1, 1).suspended(11, 1).start(12, 1, 3, GcType::BACKGROUND).report(13, 1, false, &[4]);
    script.end(14, 1, 3).stats(15, 1, 9).restart(20, 1);
    let end = script.end_of(3);
    assert_eq!((end.pause_ticks, end.heap.unwrap().promoted_bytes), (10, 1004));
}

#[test]
fn one_suspension_may_hold_two_collections() {
    let mut script = Script::new();
    script.suspend(10, 1, 1).suspended(11, 1).start(12, 1, 3, GcType::BACKGROUND);
    script
        .start(13, 1, 4, GcType::BLOCKING)
        .report(14, 1, false, &[4])
        .end(15, 1, 4)
        .stats(16, 1, 1)
        .restart(30, 1);
    script.report(40, 2, true, &[9]).end(41, 2, 3).stats(42, 2, 2);
    assert_eq!((script.end_of(3).pause_ticks, script.end_of(4).pause_ticks), (20, 20));
    assert_eq!(script.suspensions(), [(10, 20)]);
}

#[test]
fn a_preparation_suspension_without_background_collection_belongs_to_none() {
    let mut script = Script::new();
    script.suspend(10, 1, 6).suspended(11, 1).restart(14, 1).blocking(20, 1, 1, 0);
    assert_eq!(script.suspensions(), [(10, 4), (20, 10)]);
    assert_eq!(script.end_of(1).pause_ticks, 10);
}

#[test]
fn sizes_belong_to_their_own_collection_in_a_burst() {
    let mut script = Script::new();
    for count in 1..=20 {
        script.blocking(u64::from(count) * 10, 1, count, u64::from(count) * 1000);
    }
    let sizes = script.ends().iter().map(|end| end.heap.unwrap().size_bytes[0]).collect::<Vec<_>>();
    assert_eq!(sizes, (1..=20).map(|count| count * 1000).collect::<Vec<_>>());
}

#[test]
fn b5_an_end_without_sizes_is_reported_and_counted() {
    // The next end on the thread, a gap on it, a second of silence, the end of the stream: each ends the waiting.
    let next_end = |script: &mut Script| _ = script.blocking(50, 1, 2, 0);
    let gap =
        |script: &mut Script| _ = script.event_after(Continuity::Lost(1), 50, 1, GcEvent::RestartEeBegin);
    let silence = |script: &mut Script| {
        script.tracker.advance_to(7 + TICKS_PER_SECOND, &mut |record| panic!("too early: {record:?}"));
        script.tracker.advance_to(8 + TICKS_PER_SECOND, &mut |record| script.records.push(record));
    };
    let finish = |script: &mut Script| _ = script.finish(50);
    for (case, stop_waiting) in [next_end as fn(&mut Script), gap, silence, finish].into_iter().enumerate() {
        let mut script = Script::new();
        script.start(2, 1, 1, GcType::BLOCKING).end(7, 1, 1);
        assert_eq!(script.ends(), []);
        stop_waiting(&mut script);
        assert_eq!(script.end_of(1).heap, None, "case {case}");
        assert_eq!(script.losses(LossKind::EndWithoutSizes), 1, "case {case}");
        assert_eq!(script.tracker.counters().ends_without_sizes, 1);
    }
}

#[test]
fn known_sizes_are_kept_when_only_the_report_is_missing() {
    let mut script = Script::new();
    script.start(2, 1, 1, GcType::BACKGROUND).end(7, 2, 1).stats(8, 2, 77).finish(50);
    let heap = script.end_of(1).heap.unwrap();
    assert_eq!((heap.size_bytes[0], heap.promoted_bytes, heap.promoted_is_complete), (77, 1000, false));
    assert_eq!(heap.size_before_bytes, None);
    assert_eq!(script.losses(LossKind::EndWithoutSizes), 0);
}

#[test]
fn a_gap_discards_the_report_of_its_thread() {
    let mut script = Script::new();
    script.suspend(10, 1, 1).suspended(11, 1).start(12, 1, 1, GcType::BLOCKING).report(13, 1, false, &[50]);
    script.event_after(Continuity::Lost(2), 20, 1, GcEvent::RestartEeBegin).end(21, 1, 1).stats(22, 1, 5);
    let end = script.end_of(1);
    assert_eq!((end.heap.unwrap().promoted_bytes, end.pause_ticks), (1000, 0));
}

#[test]
fn a_report_cut_short_is_not_taken_for_another_collections() {
    let mut script = Script::new();
    script
        .suspend(10, 1, 1)
        .suspended(11, 1)
        .start(12, 1, 1, GcType::BLOCKING)
        .global_report(13, 1, false, 3);
    script.heap_report(14, 1, 5).end(15, 1, 1).stats(16, 1, 5).restart(17, 1);
    assert_eq!(script.end_of(1).heap.unwrap().promoted_bytes, 1000);
    // The missing parts of the first report arrive in the second collection.
    script.suspend(20, 1, 1).suspended(21, 1).heap_report(21, 1, 5).heap_report(21, 1, 5);
    script.start(22, 1, 2, GcType::BLOCKING).end(25, 1, 2).stats(26, 1, 5).restart(27, 1);
    assert_eq!(script.end_of(2).heap.unwrap().promoted_bytes, 1000);
}

#[test]
fn an_end_without_a_start_is_reported() {
    let mut script = Script::new();
    script.report(5, 1, false, &[9]).end(7, 1, 119).stats(8, 1, 44).restart(9, 1);
    let end = script.end_of(119);
    assert_eq!((end.start, end.pause_ticks, end.heap.unwrap().promoted_bytes), (None, 0, 1009));
    assert_eq!(script.tracker.counters().unmatched_restarts, 1);
}

#[test]
fn i2_no_collection_number_is_started_or_ended_twice() {
    let mut script = Script::new();
    script.blocking(10, 1, 5, 1).blocking(30, 1, 5, 2).blocking(50, 1, 6, 3);
    let starts = script.records.iter().filter(|record| matches!(record, GcRecord::Start(_))).count();
    assert_eq!((starts, script.ends().len()), (2, 2));
    assert_eq!(script.end_of(5).heap.unwrap().size_bytes[0], 1);
    assert_eq!(script.tracker.counters().repeated_counts, 2);
}

#[test]
fn memory_is_bounded_by_limits() {
    let mut script = Script::new();
    for number in 0..10_000u32 {
        let thread = u64::from(number);
        script.suspend(thread, thread, 1).start(thread, thread, number * 2, GcType::BACKGROUND);
        script.global_report(thread, thread, true, 9);
    }
    let tracker = &script.tracker;
    assert!(tracker.windows.len() <= MAX_WINDOWS && tracker.reports.len() <= MAX_WINDOWS);
    assert!(tracker.collections.len() <= MAX_COLLECTIONS);
    assert!(tracker.starts_seen.runs.len() <= MAX_COUNT_RUNS);
    assert!(tracker.counters().abandoned_starts > 9000 && tracker.counters().half_open_suspensions > 9000);
}

proptest! {
    /// I-1: whatever the interleaving, the suspensions that come out are those that are whole on their thread.
    #[test]
    fn i1_suspensions_are_the_whole_gc_windows_of_each_thread(
        steps in prop::collection::vec((0u64..3, 0u8..4, 0u32..9, any::<bool>()), 0..120)
    ) {
        let mut script = Script::new();
        let mut open: HashMap<u64, (u64, u32)> = HashMap::new();
        let mut expected = Vec::new();
        for (time, (thread, step, reason, gap)) in steps.into_iter().enumerate() {
            let time = time as u64;
            let continuity = if gap && step != 3 { Continuity::Lost(1) } else { Continuity::Contiguous };
            if continuity != Continuity::Contiguous {
                open.remove(&thread);
            }
            let event = match step {
                0 => {
                    open.remove(&thread);
                    if reason == 1 || reason == 6 {
                        open.insert(thread, (time, reason));
                    }
                    GcEvent::SuspendEeBegin(SuspendEeBegin { reason: SuspendReason(reason), count: 0 })
                }
                1 => GcEvent::SuspendEeEnd,
                2 => GcEvent::RestartEeBegin,
                _ => {
                    if let Some((begin, reason)) = open.remove(&thread) {
                        expected.push((thread, begin, time - begin, reason));
                    }
                    GcEvent::RestartEeEnd
                }
            };
            script.event_after(continuity, time, thread, event);
        }
        script.finish(1_000_000);
        let found = script.records.iter().filter_map(|record| match record {
            GcRecord::Suspension(window) => {
                Some((window.capture_thread, window.timestamp, window.duration_ticks, window.reason.0))
            }
            _ => None,
        });
        prop_assert_eq!(found.collect::<Vec<_>>(), expected);
        prop_assert_eq!(script.losses(LossKind::HalfOpenSuspension), script.tracker.counters().half_open_suspensions);
    }

    #[test]
    fn counts_are_remembered_exactly(counts in prop::collection::vec(0u32..60, 0..200)) {
        let mut set = CountSet::default();
        let mut model = std::collections::HashSet::new();
        for count in counts {
            prop_assert_eq!(set.insert(count), model.insert(count));
        }
        prop_assert!(set.insert(u32::MAX) && !set.insert(u32::MAX));
    }
}
