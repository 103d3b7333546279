//! Crashes, by the thousand: what was acknowledged is recovered, and nothing that was not appended.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod common;

use common::{How, first_violation, random_world};
use std::panic::catch_unwind;
use typhon_log::{Fault, plant};

/// Fewer than in `examples/crash_sweep.rs`, which goes on as long as it is told to.
const WORLDS: u64 = 1_000;

#[test]
fn i6_random_worlds_recover_the_acknowledged_prefix() {
    let mut crashes = 0;
    for seed in 0..WORLDS {
        match random_world(seed, How::default()) {
            Ok(count) => crashes += count,
            Err((violation, story)) => panic!("seed {seed}: {violation:?}\n{}", story.join("\n")),
        }
    }
    assert!(crashes > 2 * WORLDS, "{crashes} crashes are too few to mean anything");
}

/// Worlds that once went wrong, and why.
const REGRESSIONS: [(u64, &str); 3] = [
    (1_004_659, "the rename of a new anchor survived, and took the remains of an older attempt with it"),
    (1_004_726, "the checksum of a block did not notice a whole older frame in place of a new one"),
    (1_116_851, "a spare of whose header two bytes had been written was taken for a foreign file"),
];

#[test]
fn worlds_that_once_went_wrong_do_not() {
    for (seed, why) in REGRESSIONS {
        if let Err((violation, story)) = random_world(seed, How::default()) {
            panic!("{why}: seed {seed}: {violation:?}\n{}", story.join("\n"));
        }
    }
}

#[test]
fn a_disk_that_lies_about_syncs_is_noticed() {
    let (seed, violation, _) =
        first_violation(0..WORLDS, How { lies: true, ..How::default() }).expect("the oracle sees no loss");
    println!("seed {seed}: {violation:?}");
}

/// Each mistake breaks the promise in some world, or an invariant that is checked on the way.
fn is_noticed(faults: &[Fault], worlds: u64) {
    plant(faults);
    // Where numbers are issued twice on purpose, that alone is not what is looked for.
    let how =
        How { is_lenient: faults.len() > 1, is_aligned: faults == [Fault::ListUnchecked], ..How::default() };
    let found = catch_unwind(|| first_violation(0..worlds, how));
    plant(&[]);
    let Ok(found) = found else { return println!("{faults:?}: an invariant is broken") };
    let (seed, violation, _) = found.unwrap_or_else(|| panic!("{faults:?} not noticed in {worlds} worlds"));
    println!("{faults:?}: seed {seed}: {violation:?}");
}

macro_rules! mutants {
    ($($name:ident: [$($fault:ident),+] in $worlds:expr;)*) => {$(
        #[test]
        fn $name() {
            is_noticed(&[$(Fault::$fault),+], $worlds);
        }
    )*};
}

mutants! {
    t1_acknowledging_before_the_sync: [AckBeforeSync] in 500;
    t14_acknowledging_before_the_directory_sync: [AckBeforeDirSync] in 500;
    t1_syncing_only_the_newest_file: [SyncNewestOnly] in 3_000;
    t3_no_seal: [NoSeal] in 500;
    ruling_28_the_epoch_durable_too_late: [EpochLate] in 500;
    ruling_28_continuing_an_old_segment: [ContinueSegment] in 500;
    l4_the_list_of_frames_unchecked: [ListUnchecked] in 3_000;
    l4_bodies_unchecked: [BodyUnchecked] in 3_000;
    t15_a_failed_sync_tried_again: [RetrySync] in 3_000;
    t2_a_header_that_is_not_durable: [HeaderNotDurable] in 3_000;
    t2_scanning_past_a_gap: [ScanPastGap] in 3_000;
    b29_orphan_parts_of_a_fence_applied: [OrphanParts] in 500;
    t37_a_stale_next_sequence_number: [StaleNextTsn] in 500;
    i9_positions_of_lost_frames_issued_again: [ReusePositions] in 3_000;
    i9_sequence_numbers_of_lost_frames_issued_again: [ReuseTsns] in 3_000;
    rulings_1_7_the_cache_taken_for_the_disk: [TrustCache] in 6_000;
    rulings_1_6_recycling_before_the_base_is_durable: [RecycleEarly] in 3_000;
    l6_the_anchor_written_in_place: [AnchorInPlace] in 500;
    rulings_1_9_drained_bytes_not_zeroed: [NoZero] in 500;
    rulings_1_7_the_seal_only_after_a_torn_tail: [SealOnlyIfTorn] in 500;
}
