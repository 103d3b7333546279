//! Threads that do everything a log lets them do, at the same time, on logs of every kind: whatever they do, each of them
//! gets an answer, and what was acknowledged is there afterwards.
//!
//! `TYPHON_CHAOS=10000 TYPHON_CHAOS_FROM=500 cargo test -p typhon-log --test chaos` tries as many worlds, from that seed on.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod slow;

use slow::Slow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use typhon_log::{Draft, LogError, Lsn, Options, Store};
use typhon_store::sim::{Faults, Random, SimIo};
use typhon_sync::Deadline;

const DIRECTORY: &str = "/db";
const THREADS: u64 = 4;
const STEPS: u64 = 60;
/// Longer than anything takes that does not hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// What goes wrong besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Nothing,
    /// Room on the disk comes and goes.
    NoSpace,
    /// At some time a write or a sync fails.
    Errors,
    /// A few segments at most: whoever finds no room has to wait for a checkpoint.
    Tight,
}

const TROUBLES: [Trouble; 4] = [Trouble::Nothing, Trouble::NoSpace, Trouble::Errors, Trouble::Tight];

/// A log and what was acknowledged of it.
struct World {
    seed: u64,
    io: SimIo,
    log: Store,
    trouble: Trouble,
    /// Bodies by the position after them, of what somebody was told is durable.
    acknowledged: Mutex<BTreeMap<Lsn, Vec<u8>>>,
    /// The base of the last checkpoint that may have been made.
    base: AtomicU64,
}

fn options(random: &mut Random, trouble: Trouble) -> Options {
    let (waiters_write, writer_thread) = *random.pick(&[(true, true), (true, false), (false, true)]);
    let segment_bytes = 4096 * (2 + random.below(10));
    let ring_bytes = 4096 << random.below(4);
    Options {
        ring_bytes,
        segment_bytes,
        block_bytes: 4096 << random.below(3),
        spare_segments: random.below(3) as usize,
        group_interval: Duration::from_micros(1 + random.below(3000)),
        max_bytes: if trouble == Trouble::Tight {
            2 * segment_bytes.max(8192 + ring_bytes / 2)
        } else {
            1 << 30
        },
        waiters_write,
        writer_thread,
        ..Options::small()
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let trouble = *random.pick(&TROUBLES);
        let options = options(&mut random, trouble);
        let io = SimIo::new(seed);
        let sync_time = Duration::from_micros(*random.pick(&[0, 0, 0, 50, 200]));
        let slow = Arc::new(Slow { io: io.process(), sync_time, when_created: || {} });
        let log = Store::open(slow, Path::new(DIRECTORY), options, b"").unwrap().start(b"").unwrap();
        let faults = match trouble {
            Trouble::NoSpace => Faults { no_space: 200_000, short_write: 100_000, ..Faults::default() },
            Trouble::Errors => Faults { write_error: 2_000, sync_error: 2_000, ..Faults::default() },
            Trouble::Nothing | Trouble::Tight => Faults::default(),
        };
        io.set_faults(faults);
        let base = log.anchor().base;
        Self { seed, io, log, trouble, acknowledged: Mutex::default(), base: AtomicU64::new(base.0) }
    }

    /// Not to get what one asked for is right only where something stands in its way.
    fn refused(&self, error: &LogError) {
        let is_right = match error {
            LogError::BackPressure { .. } | LogError::Uncertain { .. } => true,
            LogError::Full { .. } => matches!(self.trouble, Trouble::NoSpace | Trouble::Tight),
            LogError::Failed { .. } => {
                self.trouble == Trouble::Errors && !error.to_string().contains("panicked")
            }
            _ => false,
        };
        assert!(is_right, "seed {}: {error}", self.seed);
    }

    fn wait(&self, lsn: Lsn, body: Vec<u8>, deadline: Deadline) {
        match self.log.wait_durable(lsn, deadline) {
            Ok(()) => {
                assert!(self.log.watermarks().durable >= lsn);
                self.acknowledged.lock().unwrap().insert(lsn, body);
            }
            Err(error) => self.refused(&error),
        }
    }

    /// One thing of all that can be done.
    fn step(&self, random: &mut Random) {
        // Who waits for as long as it takes needs somebody who makes room.
        let may_starve = self.trouble == Trouble::Tight;
        let deadline = match random.below(if may_starve { 2 } else { 3 }) {
            0 => Deadline::EXPIRED,
            1 => Deadline::from_timeout(Duration::from_micros(random.below(2000))),
            _ => Deadline::INFINITE,
        };
        let limit = self.log.frame_bytes_max() - 32;
        let bytes = if random.chance(100_000) { limit } else { random.below(limit.min(900)) };
        let body = vec![random.next_u64() as u8; bytes as usize];
        let draft = Draft::commit(&body);
        match random.below(12) {
            0..=3 => match self.log.append(&draft, deadline) {
                Ok(appended) => self.wait(appended.lsn, body, deadline),
                Err(error) => self.refused(&error),
            },
            // Nobody waits.
            4..=6 => match self.log.append(&draft, deadline) {
                Ok(_) if random.chance(500_000) => self.log.group(),
                Ok(_) => {}
                Err(error) => self.refused(&error),
            },
            7 => match self.log.reserve(draft.span_bytes(), deadline) {
                Ok(credits) if random.chance(500_000) => drop(credits),
                Ok(mut credits) => drop(credits.append(&draft)),
                Err(error) => self.refused(&error),
            },
            8 => match self.log.reserve_fence(draft.span_bytes(), deadline) {
                Ok(mut credits) => drop(credits.append(&draft)),
                Err(error) => self.refused(&error),
            },
            9 => self.log.request_flush(),
            10 => drop(self.log.size_bytes()),
            _ => self.checkpoint(),
        }
    }

    fn checkpoint(&self) {
        let durable = self.log.watermarks().durable;
        self.base.fetch_max(durable.0, Ordering::AcqRel);
        match self.log.checkpoint(durable, b"") {
            Ok(_) | Err(LogError::Covered { .. }) => {}
            Err(error) if self.trouble == Trouble::Errors => drop(error),
            Err(error) => self.refused(&error),
        }
    }

    fn end(self) {
        self.io.set_faults(Faults::default());
        let appended = self.log.watermarks().appended;
        // What was appended becomes durable when nothing stands in its way any more.
        let patience = Deadline::from_timeout(PATIENCE / 2);
        loop {
            // As often as it takes: what waits in the ring may need more segments than there may be at one time.
            self.checkpoint();
            match self.log.wait_durable(appended, Deadline::from_timeout(PATIENCE / 1000)) {
                Ok(()) | Err(LogError::Failed { .. }) => break,
                Err(error) => {
                    assert!(!patience.is_expired(), "seed {}: {error}, {:?}", self.seed, self.trouble)
                }
            }
        }
        drop(self.log);
        let opening =
            Store::open(Arc::new(self.io.process()), Path::new(DIRECTORY), Options::small(), b"").unwrap();
        let base = opening.report().base;
        assert!(base.0 <= self.base.into_inner(), "nobody made a checkpoint at {base}");
        let mut acknowledged = self.acknowledged.into_inner().unwrap().split_off(&Lsn(base.0 + 1));
        let mut frames = opening.frames();
        while let Some(frame) = frames.next_frame().unwrap() {
            if let Some(body) = acknowledged.remove(&frame.lsn) {
                assert!(frame.body == body, "seed {}: another body at {}", self.seed, frame.lsn);
            }
        }
        assert!(acknowledged.is_empty(), "seed {}: lost {:?}", self.seed, acknowledged.keys());
    }
}

fn live(seed: u64) {
    let world = World::new(seed);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let world = &world;
            scope.spawn(move || {
                let mut random = Random::new(seed << 8 | thread);
                (0..STEPS).for_each(|_| world.step(&mut random));
            });
        }
    });
    world.end();
}

/// A number that the environment gives.
fn given(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |number| number.parse().unwrap())
}

#[test]
fn whatever_threads_do_at_the_same_time_none_of_them_hangs() {
    let from = given("TYPHON_CHAOS_FROM", 0);
    for seed in from..from + given("TYPHON_CHAOS", 150) {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            live(seed);
            sender.send(())
        });
        match receiver.recv_timeout(PATIENCE) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("seed {seed} hangs"),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                std::panic::resume_unwind(thread.join().unwrap_err())
            }
        }
    }
}
