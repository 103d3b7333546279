//! Many threads, every use of the locks at once, some of them given up: what is guarded is never seen half done, and in
//! the end nobody holds or waits.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use typhon_sync::lock::{LockError, ReadersWriterLock, ResourceAccessControl, Variety};
use typhon_sync::{CancelToken, WaitContext};

const THREADS: u64 = 6;
const ROUNDS: u64 = 30_000;

/// Numbers that are the same for every thread in every run.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Two numbers that a writer changes one after the other.
#[derive(Default)]
struct Twice(AtomicU64, AtomicU64);

impl Twice {
    fn add(&self) {
        let (one, two) = (self.0.load(Ordering::Relaxed), self.1.load(Ordering::Relaxed));
        assert_eq!(one, two, "a writer is not alone");
        self.0.store(one + 1, Ordering::Relaxed);
        std::hint::spin_loop();
        self.1.store(two + 1, Ordering::Relaxed);
    }

    fn look(&self) {
        assert_eq!(self.0.load(Ordering::Relaxed), self.1.load(Ordering::Relaxed), "a reader sees half");
    }
}

/// Contexts of all sorts.
fn context<'a>(random: &mut Random, token: &'a CancelToken) -> WaitContext<'a> {
    match random.below(4) {
        0 => WaitContext::NO_WAIT,
        1 => WaitContext::with_timeout(Duration::from_micros(random.below(200))),
        2 => WaitContext::INFINITE.cancelled_by(token),
        _ => WaitContext::INFINITE,
    }
}

fn is_given_up(error: LockError) -> bool {
    matches!(error, LockError::TimedOut { .. } | LockError::Cancelled { .. })
}

fn readers_and_writers<V: Variety>()
where
    ReadersWriterLock<V>: Sync,
{
    let (lock, guarded, written) = (ReadersWriterLock::<V>::new(), Twice::default(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 1..=THREADS {
            let (lock, guarded, written) = (&lock, &guarded, &written);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                let write = || {
                    guarded.add();
                    written.fetch_add(1, Ordering::Relaxed);
                };
                for _ in 0..ROUNDS {
                    let token = CancelToken::new();
                    if random.below(2) == 0 {
                        token.cancel();
                    }
                    let context = context(&mut random, &token);
                    let result = match random.below(4) {
                        0 => lock.exclusive(&context).map(|alone| {
                            write();
                            let _share = alone.demote().unwrap();
                            guarded.look();
                        }),
                        1 => lock.shared(&context).and_then(|share| match share.promote(&context) {
                            Ok(_alone) => {
                                write();
                                Ok(())
                            }
                            Err((_share, LockError::PromotionInProgress | LockError::SharedByOthers)) => {
                                guarded.look();
                                Ok(())
                            }
                            Err((_share, error)) => Err(error),
                        }),
                        _ => lock.shared(&context).map(|_share| guarded.look()),
                    };
                    assert!(result.map_or_else(is_given_up, |()| true));
                }
            });
        }
    });
    assert_eq!(guarded.0.into_inner(), written.into_inner());
    assert_eq!((lock.readers(), lock.waiting_writers(), lock.owner()), (0, 0, None));
}

#[test]
fn i6_access_control_under_stress() {
    readers_and_writers::<typhon_sync::lock::Fair>();
}

#[test]
fn i6_access_control_small_under_stress() {
    readers_and_writers::<typhon_sync::lock::Compact>();
}

#[test]
fn i6_resource_access_control_under_stress() {
    for round in 0..20 {
        let (lock, guarded, ended) = (ResourceAccessControl::new(), Twice::default(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for seed in 1..=THREADS {
                let (lock, guarded, ended) = (&lock, &guarded, &ended);
                scope.spawn(move || {
                    let mut random = Random::new(round * THREADS + seed);
                    for turn in 0.. {
                        let token = CancelToken::new();
                        token.cancel();
                        let context = context(&mut random, &token);
                        let result = match random.below(8) {
                            0 if turn > ROUNDS / 100 => lock.destroy(&context).inspect(|()| {
                                ended.fetch_add(1, Ordering::Relaxed);
                            }),
                            0 | 1 => lock.modify(&context).map(|_change| guarded.add()),
                            2 => lock.access(&context).and_then(|using| {
                                using
                                    .promote(&context)
                                    .map(|_change| guarded.add())
                                    .map_err(|(_, error)| error)
                            }),
                            _ => lock.access(&context).map(|_using| {
                                assert_eq!(ended.load(Ordering::Relaxed), 0, "used after the end");
                            }),
                        };
                        match result {
                            Err(LockError::Destroyed) => break,
                            Err(LockError::PromotionInProgress | LockError::DestructionInProgress)
                            | Ok(()) => {}
                            Err(error) => assert!(is_given_up(error), "{error}"),
                        }
                    }
                });
            }
        });
        guarded.look();
        assert_eq!((ended.into_inner(), lock.accessors(), lock.is_destroyed()), (1, 0, true));
    }
}
