//! The table against its definition, computed the slow way.

use super::*;
use crate::clock::Clock;
use proptest::prelude::*;
use std::collections::BTreeMap;
use typhon_trace::record::Record;
use typhon_trace::registry::{self, id};
use typhon_trace::tables::Tables;

/// A record of the test: `duration` is `None` for instants.
#[derive(Debug, Clone)]
struct Sample {
    kind: u8,
    slot: u8,
    start: i64,
    duration: Option<i64>,
    span_id: u64,
}

impl Sample {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0, 0, self.kind, self.slot];
        bytes.extend_from_slice(&self.start.to_le_bytes());
        if let Some(duration) = self.duration {
            bytes.extend_from_slice(&duration.to_le_bytes());
            bytes.extend_from_slice(&self.span_id.to_le_bytes());
            bytes.extend_from_slice(&[0; 9]);
        }
        bytes[0] = bytes.len() as u8;
        bytes
    }
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let span_kinds = prop::sample::select(vec![
        id::BTREE_INSERT,
        id::BTREE_DELETE,
        id::TRANSACTION_COMMIT,
        id::PAGE_CACHE_DISK_READ,
        id::PAGE_CACHE_DISK_READ_COMPLETED,
    ]);
    let span = (span_kinds, 0u8..3, 0i64..400, 0i64..90).prop_map(|(kind, slot, start, duration)| Sample {
        kind,
        slot,
        start,
        duration: Some(duration),
        span_id: 0,
    });
    let instant_kinds = prop::sample::select(vec![id::TICK_START, id::TICK_END, id::SYSTEM_READY, 255u8]);
    let instant = (instant_kinds, 0u8..3, 0i64..400).prop_map(|(kind, slot, start)| Sample {
        kind,
        slot,
        start,
        duration: None,
        span_id: 0,
    });
    prop::collection::vec(prop_oneof![4 => span, 1 => instant], 0..120).prop_map(|mut samples| {
        for (index, sample) in samples.iter_mut().enumerate() {
            sample.span_id = index as u64 + 1;
        }
        samples
    })
}

/// (key, count, total, self, min, p50, p95, p99, max) by key.
type Table = BTreeMap<String, (u64, u64, u64, u64, [u64; 3], u64)>;

fn naive(samples: &[Sample]) -> Table {
    let end = |sample: &Sample| sample.start + sample.duration.unwrap_or(0);
    let mut self_ticks: Vec<i64> = samples.iter().map(|sample| sample.duration.unwrap_or(0)).collect();
    for slot in 0..3 {
        let is_in_lane = |sample: &Sample| {
            sample.slot == slot
                && sample.duration.is_some()
                && sample.kind != id::PAGE_CACHE_DISK_READ_COMPLETED
        };
        let mut order: Vec<usize> = (0..samples.len()).filter(|item| is_in_lane(&samples[*item])).collect();
        order.sort_by_key(|item| (samples[*item].start, -end(&samples[*item]), samples[*item].span_id));
        let mut nested: Vec<usize> = Vec::new();
        for item in order {
            let open = |around: &&usize| end(&samples[**around]) > samples[item].start;
            let around: Vec<usize> = nested.iter().filter(open).copied().collect();
            if around.iter().any(|around| end(&samples[*around]) < end(&samples[item])) {
                continue;
            }
            if let Some(parent) = around.last() {
                self_ticks[*parent] -= samples[item].duration.unwrap_or(0);
            }
            nested.push(item);
        }
    }
    let mut groups: BTreeMap<String, (u64, Vec<u64>, u64)> = BTreeMap::new();
    for (sample, self_ticks) in samples.iter().zip(self_ticks) {
        let key =
            registry::kind(sample.kind).map_or(format!("kind {}", sample.kind), |kind| kind.name.to_owned());
        let group = groups.entry(key).or_default();
        group.0 += 1;
        if let Some(duration) = sample.duration {
            group.1.push(duration as u64);
            group.2 += self_ticks as u64;
        }
    }
    let summed = groups.into_iter().map(|(key, (count, mut durations, own))| {
        durations.sort_unstable();
        let rank = |percent: usize| match durations.len() {
            0 => 0,
            n => durations[(n * percent).div_ceil(100).max(1) - 1],
        };
        let (first, last) = (durations.first().copied(), durations.last().copied());
        let total = durations.iter().sum();
        (key, (count, total, own, first.unwrap_or(0), [50, 95, 99].map(rank), last.unwrap_or(0)))
    });
    summed.collect()
}

fn table(samples: &[Sample], block_records: usize, max_pending: usize) -> (Table, u64) {
    let tables = Tables::default();
    let context = TraceContext {
        tables: &tables,
        clock: Clock::new(1_000_000_000),
        origin_ticks: 0,
        own_dialect: true,
        file_table: None,
        source_manifest: None,
        mark_names: None,
    };
    let query = StatsQuery { group_by: GroupBy::Kind, filter: None, window: None, context, survey: None };
    let mut collector = StatsCollector::new(query)
        .with_limits(StatsLimits { pending_spans: max_pending, ..StatsLimits::default() });
    for block in samples.chunks(block_records) {
        let bytes: Vec<Vec<u8>> = block.iter().map(Sample::bytes).collect();
        collector.absorb(query.digest(
            bytes.iter().map(|bytes| Record::parse(bytes).unwrap()),
            block.len(),
            &[],
        ));
    }
    let stats = collector.finish();
    let rows = stats.rows.iter().map(|row| {
        (row.key.clone(), (row.count, row.total_ns, row.self_ns, row.min_ns, row.p50_p95_p99_ns, row.max_ns))
    });
    (rows.collect(), stats.inexact_self_times)
}

proptest! {
    #[test]
    fn rows_equal_the_naive_computation(samples in samples(), block_records in 1usize..20) {
        prop_assert_eq!(table(&samples, block_records, usize::MAX), (naive(&samples), 0));
    }

    /// Recorders write spans in order of their end; then nothing is lost by settling early.
    #[test]
    fn settling_early_changes_nothing_in_recording_order(mut samples in samples(), max_pending in 1usize..40) {
        samples.sort_by_key(|sample| sample.start + sample.duration.unwrap_or(0));
        let (rows, inexact) = table(&samples, 7, max_pending);
        prop_assert!(rows == naive(&samples) || inexact > 0);
    }

    #[test]
    fn blocks_and_records_may_come_in_any_order(samples in samples().prop_shuffle()) {
        prop_assert_eq!(table(&samples, 5, usize::MAX).0, naive(&samples));
    }
}
