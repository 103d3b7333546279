//! What recording costs a program: begin and end of a span, an instant, a kind that is off; on one and two threads,
//! with the consumer running.
//!
//! The floor of a span is two reads of the clock, the bytes of its record stored one after the other, and one release
//! store; that of an instant one read, its bytes and the store; that of a kind that is off an empty loop.

use bench::Pair;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use typhon_profiler::events::{CheckpointWrite, TransactionCommit, TransactionRollback};
use typhon_profiler::session::{self, SessionOptions};
use typhon_profiler::{Ticks, mark, name, span};

/// Short rounds, so that the fastest of many fits between two interruptions.
const SPANS: usize = 10_000;
const ROUNDS: usize = 2_000;
/// Work between two meetings of the twins, which take long by comparison.
const TWIN_ROUNDS: usize = 20;
/// Bytes of the records below: a span with parent and site, without payload; one with nine bytes of it; an instant.
const SPAN_BYTES: usize = 39;
const COMMIT_BYTES: usize = 48;
const INSTANT_BYTES: usize = 20;

/// Memory that the floor writes to, as large as two chunks, and what it publishes.
struct Floor {
    memory: Vec<u8>,
    at: usize,
    published: AtomicU32,
}

impl Floor {
    fn new() -> Self {
        Self { memory: vec![0; 128 * 1024], at: 0, published: AtomicU32::new(0) }
    }

    #[inline(always)]
    fn store<const BYTES: usize>(&mut self, start: u64, duration: u64) {
        if self.at + BYTES > self.memory.len() {
            self.at = 0;
        }
        let record: &mut [u8; BYTES] =
            (&mut self.memory[self.at..][..BYTES]).try_into().expect("the size is BYTES");
        record[..4].copy_from_slice(&(BYTES as u32).to_le_bytes());
        record[4..12].copy_from_slice(&start.to_le_bytes());
        record[12..20].copy_from_slice(&duration.to_le_bytes());
        record[20..].fill(7);
        self.at += BYTES;
        self.published.store(self.at as u32, Ordering::Release);
    }

    fn spans<const BYTES: usize>(&mut self) {
        for _ in 0..SPANS {
            let start = Ticks::now().raw();
            let end = Ticks::now().raw();
            self.store::<BYTES>(start, end - start);
        }
    }

    fn spans_around_calls(&mut self) {
        for _ in 0..SPANS {
            let start = Ticks::now().raw();
            call(start);
            let end = Ticks::now().raw();
            self.store::<COMMIT_BYTES>(start, end - start);
        }
    }

    fn long(&mut self) {
        (0..TWIN_ROUNDS).for_each(|_| self.spans::<SPAN_BYTES>());
    }

    fn instants(&mut self) {
        for _ in 0..SPANS {
            let now = Ticks::now().raw();
            self.store::<INSTANT_BYTES>(now, 5);
        }
    }
}

fn spans() {
    for _ in 0..SPANS {
        let _span = span!(CheckpointWrite::default());
        black_box(());
    }
}

fn commits() {
    for tsn in 0..SPANS as i64 {
        drop(span!(TransactionCommit { tsn, ..Default::default() }));
    }
}

/// Work that the compiler knows nothing of; it might panic.
#[inline(never)]
fn call(value: u64) {
    assert_ne!(black_box(value), 0);
}

fn commits_around_calls() {
    for tsn in 0..SPANS as i64 {
        let _span = span!(TransactionCommit { tsn, ..Default::default() });
        call(1);
    }
}

fn off() {
    for tsn in 0..SPANS as i64 {
        drop(span!(TransactionRollback { tsn: black_box(tsn), ..Default::default() }));
    }
}

fn off_around_calls() {
    for tsn in 0..SPANS as i64 {
        let _span = span!(TransactionRollback { tsn, ..Default::default() });
        call(1);
    }
}

fn calls() {
    for _ in 0..SPANS {
        call(1);
    }
}

fn empty_loop() {
    for tsn in 0..SPANS as i64 {
        black_box(tsn);
    }
}

/// Two threads that do the same work at the same time, whenever they are asked to.
struct Twins {
    begin: Arc<Barrier>,
    end: Arc<Barrier>,
}

impl Twins {
    fn new<S: 'static>(make: fn() -> S, work: fn(&mut S)) -> Self {
        let twins = Self { begin: Arc::new(Barrier::new(3)), end: Arc::new(Barrier::new(3)) };
        for _ in 0..2 {
            let (begin, end) = (Arc::clone(&twins.begin), Arc::clone(&twins.end));
            std::thread::spawn(move || {
                let mut state = make();
                loop {
                    begin.wait();
                    work(&mut state);
                    end.wait();
                }
            });
        }
        twins
    }

    fn run(&self) {
        self.begin.wait();
        self.end.wait();
    }
}

fn main() {
    let mask = [6, 20, 77, <CheckpointWrite as typhon_profiler::events::Event>::KIND].into_iter().collect();
    session::start(SessionOptions { mask, ..Default::default() }).expect("the session starts");
    let frame = name("frame").expect("the name is free");
    let mut floor = Floor::new();
    let work = SPANS as f64;

    let pair = Pair::measure(ROUNDS, || floor.spans::<SPAN_BYTES>(), spans);
    println!("{}", pair.report("span, parent and site, no payload", work, "spans/s"));
    let pair = Pair::measure(ROUNDS, || floor.spans::<COMMIT_BYTES>(), commits);
    println!("{}", pair.report("span with nine bytes of payload", work, "spans/s"));
    let pair = Pair::measure(ROUNDS, || floor.spans_around_calls(), commits_around_calls);
    println!("{}", pair.report("the same around a call", work, "spans/s"));
    let pair =
        Pair::measure(ROUNDS, || floor.instants(), || (0..SPANS as i32).for_each(|value| mark(frame, value)));
    println!("{}", pair.report("instant with name and value", work, "instants/s"));
    let pair = Pair::measure(ROUNDS, empty_loop, off);
    println!("{}", pair.report("span of a kind that is off", work, "spans/s"));
    let pair = Pair::measure(ROUNDS, calls, off_around_calls);
    println!("{}", pair.report("the same around a call", work, "spans/s"));
    let floors = Twins::new(Floor::new, Floor::long);
    let subjects = Twins::new(|| (), |()| (0..TWIN_ROUNDS).for_each(|_| spans()));
    let pair = Pair::measure(ROUNDS / TWIN_ROUNDS, || floors.run(), || subjects.run());
    println!("{}", pair.report("span on two threads", (2 * TWIN_ROUNDS) as f64 * work, "spans/s"));

    let report = session::stop().expect("the session runs");
    println!("{} records, {} lost, clock {}", report.records, report.dropped_records, report.clock_source);
}
