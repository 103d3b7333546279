//! Counts the records of every kind, follows the most deeply nested span up to its root, and prints the last gauges.
//!
//! ```sh
//! cargo run --release -p typhon-trace --example summary -- corpus/anthill.typhon-trace
//! ```

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fs::File;

use typhon_trace::event::{EventView, Gauge};
use typhon_trace::reader::{ReadAt, ReadOptions, StreamReader};
use typhon_trace::record::Record;
use typhon_trace::registry;

/// A span may end, and so be written, before its parent: what connects them is looked up after the last block.
#[derive(Clone, Copy)]
struct Span {
    kind: u8,
    parent: u64,
    duration: i64,
}

#[derive(Default)]
struct Summary {
    counts: BTreeMap<u8, u64>,
    spans: HashMap<u64, Span>,
    gauges: BTreeMap<u16, Gauge>,
}

impl Summary {
    fn add(&mut self, record: &Record<'_>) {
        *self.counts.entry(record.kind()).or_default() += 1;
        if let Some(head) = record.span() {
            let span = Span { kind: record.kind(), parent: head.parent_span_id, duration: head.duration };
            self.spans.insert(head.span_id, span);
        }
        if let Some(EventView::PerTickSnapshot(snapshot)) = EventView::new(record) {
            // Gauges that never change, such as capacities, are in one snapshot only: the last value stands.
            self.gauges.extend(snapshot.gauges().map(|gauge| (gauge.id, gauge)));
        }
    }

    /// From a span to its root, as far as the file has them.
    fn path(&self, span_id: u64) -> impl Iterator<Item = Span> {
        // Damaged files can hold parents in a circle, but no path is longer than there are spans.
        std::iter::successors(self.spans.get(&span_id).copied(), |span| self.spans.get(&span.parent).copied())
            .take(self.spans.len())
    }

    fn deepest(&self) -> Option<u64> {
        self.spans.keys().copied().max_by_key(|&id| (self.path(id).count(), std::cmp::Reverse(id)))
    }
}

/// Reads a whole trace, as far as it is whole; gives the clock's ticks per second as well.
fn summarize(file: impl ReadAt) -> Result<(Summary, i64), Box<dyn Error>> {
    let mut reader = StreamReader::from_file(file, ReadOptions::default())?;
    let frequency = reader.preamble().header.timestamp_frequency;
    let mut summary = Summary::default();
    while let Some(block) = reader.next_delivered()? {
        block.payload.events().for_each(|record| summary.add(&record));
    }
    for notice in reader.finish()?.notices {
        eprintln!("{}: {}", notice.code, notice.message);
    }
    Ok((summary, frequency))
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: summary FILE")?;
    let (summary, frequency) = summarize(File::open(path)?)?;
    for (&kind, count) in &summary.counts {
        println!("{count:>8}  {}", kind_name(kind));
    }
    let deepest = summary.deepest().into_iter().flat_map(|id| summary.path(id));
    let path = deepest.map(|span| {
        format!("{} ({:.3} ms)", kind_name(span.kind), span.duration as f64 / frequency as f64 * 1e3)
    });
    println!("{}", path.collect::<Vec<_>>().join(" in "));
    for gauge in summary.gauges.values() {
        let name = registry::gauge(gauge.id).map_or("unknown gauge", |info| info.name);
        println!("{name} = {}", gauge.value.as_i128());
    }
    Ok(())
}

fn kind_name(kind: u8) -> &'static str {
    registry::kind(kind).map_or("unknown kind", |info| info.name)
}

#[test]
fn counts_parents_and_gauges_of_a_recording() -> Result<(), Box<dyn Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/guide-shard.typhon-trace");
    let (summary, frequency) = summarize(File::open(path)?)?;
    assert_eq!(frequency, 1_000_000_000);
    assert_eq!(summary.counts.values().sum::<u64>(), 4194);
    let deepest = summary.deepest().ok_or("no spans")?;
    let path: Vec<_> = summary.path(deepest).map(|span| kind_name(span.kind)).collect();
    assert_eq!(
        path,
        ["DataIndexBTreeBulkInsert", "BTreeInsert", "DataTransactionValidate", "TransactionCommit"]
    );
    assert!(!summary.gauges.is_empty());
    Ok(())
}
