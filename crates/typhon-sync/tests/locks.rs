//! What the locks promise, one promise at a time.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use typhon_sync::lock::{AccessControl, AccessControlSmall, LockError, ResourceAccessControl};
use typhon_sync::{CancelToken, WaitContext};

const FOREVER: WaitContext<'static> = WaitContext::INFINITE;
const NO_WAIT: WaitContext<'static> = WaitContext::NO_WAIT;
const AT_ONCE: LockError = LockError::TimedOut { waited: Duration::ZERO };

/// Spins until another thread has come to where it waits.
fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

#[test]
fn b8_b9_b10_sizes() {
    assert_eq!(size_of::<AccessControl>(), 8);
    assert_eq!(size_of::<AccessControlSmall>(), 4);
    assert_eq!(size_of::<ResourceAccessControl>(), 4);
}

#[test]
fn b8_many_share_or_one_owns() {
    let lock = AccessControl::new();
    let (one, two) = (lock.try_shared().unwrap(), lock.try_shared().unwrap());
    assert_eq!((lock.readers(), lock.owner()), (2, None));
    assert_eq!(lock.try_exclusive().err(), Some(AT_ONCE));
    drop((one, two));
    let alone = lock.try_exclusive().unwrap();
    assert_eq!((lock.readers(), lock.owner()), (0, Some(typhon_profiler::thread::current_id())));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(lock.try_shared().err(), Some(AT_ONCE));
            assert_eq!(lock.try_exclusive().err(), Some(AT_ONCE));
        });
    });
    drop(alone);
    assert_eq!(lock.owner(), None);
    assert!(!lock.was_contended(), "attempts do not contend");
}

#[test]
fn b8_a_new_reader_stays_behind_a_waiting_writer() {
    let lock = AccessControl::new();
    let share = lock.try_shared().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| drop(lock.exclusive(&FOREVER).unwrap()));
        until(|| lock.waiting_writers() == 1);
        assert_eq!(lock.try_shared().err(), Some(AT_ONCE));
        drop(share);
        writer.join().unwrap();
    });
    assert!(lock.try_shared().is_ok());
    assert!(lock.was_contended());
    lock.reset_contended();
    assert!(!lock.was_contended());
}

#[test]
fn b9_a_new_reader_joins_others_in_spite_of_a_waiting_writer() {
    let lock = AccessControlSmall::new();
    let share = lock.try_shared().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| drop(lock.exclusive(&FOREVER).unwrap()));
        until(|| lock.was_contended());
        assert!(lock.try_shared().is_ok());
        drop(share);
        writer.join().unwrap();
    });
}

#[test]
fn b8_promotion_and_demotion_are_in_place() {
    let lock = AccessControl::new();
    let alone = lock.try_shared().unwrap().promote(&NO_WAIT).unwrap();
    assert!(lock.owner().is_some());
    let share = alone.demote().unwrap();
    assert_eq!((lock.readers(), lock.owner()), (1, None));
    let other = lock.try_shared().unwrap();
    let (share, error) = share.promote(&NO_WAIT).unwrap_err();
    assert_eq!((error, lock.readers()), (AT_ONCE, 2), "the share is kept");
    drop((share, other));
}

#[test]
fn b8_promoter_waits_for_readers_keeps_new_ones_out_and_goes_before_a_writer() {
    let lock = AccessControl::new();
    let share = lock.try_shared().unwrap();
    let is_promoted = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (lock, is_promoted) = (&lock, &is_promoted);
        let promoter = scope.spawn(move || {
            let promoted = lock.shared(&FOREVER).unwrap().promote(&FOREVER).unwrap();
            is_promoted.store(true, Ordering::Relaxed);
            drop(promoted);
        });
        until(|| lock.was_contended());
        let writer = scope.spawn(move || {
            let _alone = lock.exclusive(&FOREVER).unwrap();
            assert!(is_promoted.load(Ordering::Relaxed));
        });
        until(|| lock.waiting_writers() == 1);
        assert_eq!(lock.try_shared().err(), Some(AT_ONCE));
        let (share, error) = share.promote(&FOREVER).unwrap_err();
        assert_eq!(error, LockError::PromotionInProgress, "at once, although it could wait");
        drop(share);
        promoter.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn b9_only_a_sole_reader_is_promoted_and_nobody_waits() {
    let lock = AccessControlSmall::new();
    let (one, two) = (lock.try_shared().unwrap(), lock.try_shared().unwrap());
    let (one, error) = one.promote(&FOREVER).unwrap_err();
    assert_eq!(error, LockError::SharedByOthers);
    drop(two);
    assert!(one.promote(&FOREVER).is_ok());
}

#[test]
fn b9_misuse_is_an_error_in_every_build() {
    let lock = AccessControlSmall::new();
    assert_eq!(lock.exit_shared(), Err(LockError::NotShared));
    assert_eq!(lock.exit_exclusive(), Err(LockError::NotOwner));
    assert_eq!(lock.promote(&NO_WAIT), Err(LockError::NotShared));
    assert_eq!(lock.demote(), Err(LockError::NotOwner));
    lock.enter_exclusive(&FOREVER).unwrap();
    assert_eq!(lock.enter_exclusive(&FOREVER), Err(LockError::AlreadyOwned));
    assert_eq!(lock.enter_shared(&FOREVER), Err(LockError::AlreadyOwned));
    assert_eq!(lock.promote(&FOREVER), Err(LockError::AlreadyOwned));
    assert_eq!(lock.exit_shared(), Err(LockError::NotShared));
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(lock.exit_exclusive(), Err(LockError::NotOwner)));
    });
    lock.exit_exclusive().unwrap();
    lock.enter_shared(&FOREVER).unwrap();
    assert_eq!(lock.exit_exclusive(), Err(LockError::NotOwner));
    lock.exit_shared().unwrap();
    assert!(lock.try_exclusive().is_ok(), "nothing of it has left a trace");
}

#[test]
fn b11_more_readers_than_can_be_counted_are_refused() {
    let lock = AccessControlSmall::new();
    (0..AccessControlSmall::MAX_READERS).for_each(|_| lock.enter_shared(&NO_WAIT).unwrap());
    assert_eq!(lock.enter_shared(&NO_WAIT), Err(LockError::TooManyHolders { limit: 32_767 }));
    assert_eq!((lock.readers(), lock.owner()), (32_767, None));
    (0..AccessControlSmall::MAX_READERS).for_each(|_| lock.exit_shared().unwrap());
    assert!(lock.try_exclusive().is_ok());
}

#[test]
fn b5_a_wait_that_times_out_says_how_long_it_was_and_leaves_nothing() {
    let lock = AccessControl::new();
    let _alone = lock.try_exclusive().unwrap();
    let wait = || {
        let begun = Instant::now();
        let error = lock.exclusive(&WaitContext::with_timeout(Duration::from_millis(1))).unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }));
        assert!(error.waited() <= begun.elapsed());
        assert_eq!(lock.waiting_writers(), 0);
        error.waited()
    };
    // A thread that is kept from running until its deadline has not waited.
    std::thread::scope(|scope| _ = scope.spawn(|| while wait().is_zero() {}));
}

#[test]
fn b5_a_cancelled_wait_ends() {
    let lock = AccessControl::new();
    let _alone = lock.try_exclusive().unwrap();
    let token = CancelToken::new();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| lock.shared(&FOREVER.cancelled_by(&token)).err());
        until(|| lock.was_contended());
        token.cancel();
        assert!(matches!(waiter.join().unwrap(), Some(LockError::Cancelled { .. })));
    });
}

#[test]
fn b10_modify_enters_beside_accessors_and_excludes_its_like() {
    let lock = ResourceAccessControl::new();
    let using = lock.access(&NO_WAIT).unwrap();
    let change = lock.modify(&NO_WAIT).unwrap();
    let also_using = lock.access(&NO_WAIT).unwrap();
    assert_eq!((lock.accessors(), lock.is_modified()), (2, true));
    assert_eq!(lock.modify(&FOREVER).err(), Some(LockError::AlreadyOwned));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(lock.modify(&NO_WAIT).err(), Some(AT_ONCE));
            assert_eq!(lock.destroy(&NO_WAIT), Err(AT_ONCE));
            assert_eq!(lock.exit_modify(), Err(LockError::NotOwner));
        });
    });
    drop((using, change, also_using));
    assert_eq!(lock.exit_accessing(), Err(LockError::NotShared));
    assert_eq!(lock.promote(&NO_WAIT), Err(LockError::NotShared));
}

#[test]
fn b10_a_modifier_that_waits_keeps_new_accessors_out() {
    let lock = ResourceAccessControl::new();
    let change = lock.modify(&NO_WAIT).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| drop(lock.modify(&FOREVER).unwrap()));
        until(|| lock.was_contended());
        assert_eq!(lock.access(&NO_WAIT).err(), Some(AT_ONCE));
        drop(change);
        other.join().unwrap();
    });
    assert!(lock.access(&NO_WAIT).is_ok());
}

#[test]
fn b10_promotion_drains_accessors_and_then_lets_new_ones_in() {
    let lock = ResourceAccessControl::new();
    let using = lock.access(&NO_WAIT).unwrap();
    std::thread::scope(|scope| {
        let promoter = scope.spawn(|| {
            let change = lock.access(&FOREVER).unwrap().promote(&FOREVER).unwrap();
            assert_eq!(lock.accessors(), 0);
            drop(lock.access(&NO_WAIT).unwrap());
            drop(change);
        });
        until(|| lock.was_contended());
        assert_eq!(lock.access(&NO_WAIT).err(), Some(AT_ONCE));
        assert_eq!(using.promote(&FOREVER).unwrap_err().1, LockError::PromotionInProgress);
        promoter.join().unwrap();
    });
}

#[test]
fn b10_destruction_is_for_good_and_a_failed_one_is_not() {
    let lock = ResourceAccessControl::new();
    let using = lock.access(&NO_WAIT).unwrap();
    assert_eq!(lock.destroy(&NO_WAIT), Err(AT_ONCE));
    let token = CancelToken::new();
    std::thread::scope(|scope| {
        let destroyer = scope.spawn(|| lock.destroy(&FOREVER.cancelled_by(&token)));
        until(|| lock.was_contended());
        assert_eq!(lock.access(&NO_WAIT).err(), Some(AT_ONCE), "entries wait while a destroyer does");
        assert_eq!(lock.modify(&NO_WAIT).err(), Some(AT_ONCE));
        assert_eq!(lock.destroy(&FOREVER), Err(LockError::DestructionInProgress));
        token.cancel();
        assert!(matches!(destroyer.join().unwrap(), Err(LockError::Cancelled { .. })));
    });
    assert!(lock.access(&NO_WAIT).is_ok() && !lock.is_destroyed());
    drop(using);
    lock.destroy(&NO_WAIT).unwrap();
    assert!(lock.is_destroyed());
    for error in [lock.access(&FOREVER).err(), lock.modify(&FOREVER).err(), lock.destroy(&FOREVER).err()] {
        assert_eq!(error, Some(LockError::Destroyed));
    }
}

#[test]
fn b12_a_thread_without_an_id_is_told_so() {
    static LOCK: AccessControl = AccessControl::new();
    static SEEN: AtomicBool = AtomicBool::new(false);
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            // The id was given back already: it was claimed later.
            let error = LOCK.try_exclusive().err();
            SEEN.store(error == Some(LockError::ThreadIdsExhausted), Ordering::Relaxed);
        }
    }
    std::thread_local!(static LAST: Last = const { Last });
    let work = || {
        LAST.with(|_| ());
        drop(LOCK.try_exclusive().unwrap());
    };
    std::thread::spawn(work).join().unwrap();
    assert!(SEEN.load(Ordering::Relaxed));
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Share,
    EndShare,
    Own,
    EndOwnership,
    Promote,
    Demote,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    use Step::*;
    let step =
        prop_oneof![Just(Share), Just(EndShare), Just(Own), Just(EndOwnership), Just(Promote), Just(Demote)];
    proptest::collection::vec(step, 0..200)
}

/// What one thread that never waits can see of a lock.
#[derive(Default)]
struct Naive {
    shares: u32,
    owned: bool,
}

impl Naive {
    fn apply(&mut self, step: Step, sharing: LockError) -> Result<(), LockError> {
        let Self { shares, owned } = *self;
        match step {
            Step::Share if owned => return Err(LockError::AlreadyOwned),
            Step::Share => self.shares += 1,
            Step::EndShare if shares == 0 => return Err(LockError::NotShared),
            Step::EndShare => self.shares -= 1,
            Step::Own if owned => return Err(LockError::AlreadyOwned),
            Step::Own if shares > 0 => return Err(AT_ONCE),
            Step::Own => self.owned = true,
            Step::EndOwnership | Step::Demote if !owned => return Err(LockError::NotOwner),
            Step::EndOwnership => self.owned = false,
            Step::Demote => *self = Self { shares: 1, owned: false },
            Step::Promote if owned => return Err(LockError::AlreadyOwned),
            Step::Promote if shares == 0 => return Err(LockError::NotShared),
            Step::Promote if shares > 1 => return Err(sharing),
            Step::Promote => *self = Self { shares: 0, owned: true },
        }
        Ok(())
    }
}

macro_rules! apply {
    ($lock:expr, $step:expr) => {
        match $step {
            Step::Share => $lock.enter_shared(&NO_WAIT),
            Step::EndShare => $lock.exit_shared(),
            Step::Own => $lock.enter_exclusive(&NO_WAIT),
            Step::EndOwnership => $lock.exit_exclusive(),
            Step::Promote => $lock.promote(&NO_WAIT),
            Step::Demote => $lock.demote(),
        }
    };
}

proptest! {
    #[test]
    fn b8_b9_any_steps_of_one_thread_are_as_a_naive_lock(steps in steps()) {
        let (fair, small) = (AccessControl::new(), AccessControlSmall::new());
        let (mut naive_fair, mut naive_small) = (Naive::default(), Naive::default());
        for step in steps {
            prop_assert_eq!(apply!(fair, step), naive_fair.apply(step, AT_ONCE));
            prop_assert_eq!(apply!(small, step), naive_small.apply(step, LockError::SharedByOthers));
            prop_assert_eq!((fair.readers(), fair.owner().is_some()), (naive_fair.shares, naive_fair.owned));
            prop_assert_eq!((small.readers(), small.owner().is_some()), (naive_small.shares, naive_small.owned));
        }
    }
}
