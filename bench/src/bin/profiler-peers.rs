//! Begin and end of a span in other recorders, each beside the same floor, in one run.
//!
//! Every recorder is set up as its page says for recording with little cost, and what it collects is taken away between
//! rounds, outside the measured time, where it would otherwise grow or stop. Rounds are short, since some keep only
//! some ten thousand spans.

use bench::Pair;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use typhon_profiler::events::CheckpointWrite;
use typhon_profiler::session::{self, SessionOptions};
use typhon_profiler::{Ticks, span};

const SPANS: usize = 5_000;
const ROUNDS: usize = 1_000;
/// Bytes of a span with parent and site.
const SPAN_BYTES: usize = 39;

/// Two reads of the clock, a record's bytes, and a release store for each span.
struct Floor {
    memory: Vec<u8>,
    at: usize,
    published: AtomicU32,
}

impl Floor {
    fn spans(&mut self) {
        for _ in 0..SPANS {
            let (start, end) = (Ticks::now().raw(), Ticks::now().raw());
            if self.at + SPAN_BYTES > self.memory.len() {
                self.at = 0;
            }
            let record: &mut [u8; SPAN_BYTES] =
                (&mut self.memory[self.at..][..SPAN_BYTES]).try_into().expect("the size is right");
            record[..4].copy_from_slice(&(SPAN_BYTES as u32).to_le_bytes());
            record[4..12].copy_from_slice(&start.to_le_bytes());
            record[12..20].copy_from_slice(&(end - start).to_le_bytes());
            record[20..].fill(7);
            self.at += SPAN_BYTES;
            self.published.store(self.at as u32, Ordering::Release);
        }
    }
}

/// Measures one recorder; `after` runs after each round, unmeasured.
fn compare(name: &str, rounds: usize, mut spans: impl FnMut(), mut after: impl FnMut()) {
    let mut floor = Floor { memory: vec![0; 128 * 1024], at: 0, published: AtomicU32::new(0) };
    let pair = Pair::measure_with(rounds, &mut after, || floor.spans(), &mut spans);
    println!("{}", pair.report(name, SPANS as f64, "spans/s"));
}

fn typhon() {
    let mask = (0..=255).collect();
    session::start(SessionOptions { mask, ..Default::default() }).expect("the session starts");
    compare(
        "typhon-profiler",
        ROUNDS,
        || {
            for _ in 0..SPANS {
                let _span = span!(CheckpointWrite::default());
                black_box(());
            }
        },
        || (),
    );
    let report = session::stop().expect("the session runs");
    assert_eq!(report.dropped_records, 0);
}

fn tracy() {
    let _client = tracy_client::Client::start();
    compare(
        "tracy-client",
        ROUNDS,
        || {
            for _ in 0..SPANS {
                let _span = tracy_client::span!("checkpoint write");
                black_box(());
            }
        },
        || (),
    );
}

fn fastrace() {
    struct Nowhere;
    impl ::fastrace::collector::Reporter for Nowhere {
        fn report(&mut self, spans: Vec<::fastrace::collector::SpanRecord>) {
            black_box(spans);
        }
    }
    ::fastrace::set_reporter(Nowhere, ::fastrace::collector::Config::default());
    compare(
        "fastrace",
        ROUNDS,
        || {
            let root = ::fastrace::Span::root("round", ::fastrace::collector::SpanContext::random());
            let _guard = root.set_local_parent();
            for _ in 0..SPANS {
                let _span = ::fastrace::local::LocalSpan::enter_with_local_parent("checkpoint write");
                black_box(());
            }
        },
        ::fastrace::flush,
    );
}

fn puffin() {
    ::puffin::set_scopes_on(true);
    compare(
        "puffin",
        ROUNDS,
        || {
            ::puffin::profile_scope!("round");
            for _ in 0..SPANS {
                ::puffin::profile_scope!("checkpoint write");
                black_box(());
            }
        },
        || ::puffin::GlobalProfiler::lock().new_frame(),
    );
}

fn perfetto() {
    perfetto_recorder::start().expect("the recorder starts");
    compare(
        "perfetto-recorder",
        ROUNDS,
        || {
            for _ in 0..SPANS {
                perfetto_recorder::scope!("checkpoint write");
                black_box(());
            }
        },
        || drop(perfetto_recorder::ThreadTraceData::take_current_thread()),
    );
}

fn tracing_chrome() {
    use tracing_subscriber::prelude::*;
    let path = std::env::temp_dir().join("profiler-peers.json");
    let (chrome, guard) = tracing_chrome::ChromeLayerBuilder::new().file(&path).build();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(chrome), || {
        compare(
            "tracing + tracing-chrome",
            // It writes 200 bytes of text for each span.
            ROUNDS / 20,
            || {
                for _ in 0..SPANS {
                    let _span = tracing::info_span!("checkpoint write").entered();
                    black_box(());
                }
            },
            || guard.flush(),
        );
    });
    drop(guard);
    std::fs::remove_file(&path).expect("the file can be removed");
}

fn main() {
    typhon();
    tracy();
    fastrace();
    puffin();
    perfetto();
    tracing_chrome();
}
