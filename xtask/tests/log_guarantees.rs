//! Which tests hold up which promise of the log (brief 06 §2.9 to 2.11, §7 and §9, and the core rulings). Every number of
//! those sections is here once: with tests that exist, or with the part of the database that it is about.

#[path = "common/promises.rs"]
mod promises;

use promises::Promise;
use std::collections::BTreeSet;

/// Files that tests are named from, by a short name.
const FILES: &[(&str, &str)] = &[
    ("behaviours", "crates/typhon-log/tests/behaviours.rs"),
    ("claim", "crates/typhon-log/src/claim.rs"),
    ("cli", "crates/typhon-cli/tests/db_log.rs"),
    ("crash", "crates/typhon-log/tests/crash.rs"),
    ("events", "crates/typhon-log/tests/events.rs"),
    ("fences", "crates/typhon-log/src/fences.rs"),
    ("format", "crates/typhon-log/tests/format.rs"),
    ("full", "crates/typhon-log/tests/full_disk.rs"),
    ("gates", "crates/typhon-sync/tests/loom_gates.rs"),
    ("inspect", "crates/typhon-log/tests/inspect.rs"),
    ("kills", "crates/typhon-log/tests/kills.rs"),
    ("loom", "crates/typhon-log/tests/loom_log.rs"),
    ("permissions", "crates/typhon-log/tests/permissions.rs"),
    ("refusals", "crates/typhon-log/tests/refusals.rs"),
    ("sweep", "crates/typhon-log/tests/sweep.rs"),
];

const PROMISES: &[Promise] = &[
    (
        "B-32",
        "no log without a disk; one in memory through the seam",
        &["crash::i6_random_worlds_recover_the_acknowledged_prefix"],
    ),
    (
        "B-33",
        "one atomic step, drained in the order of positions",
        &[
            "claim::claims_are_dense_in_both_numbers",
            "behaviours::b33_b34_t12_t18_many_threads_through_a_small_ring_all_get_through_in_one_order",
            "loom::s4_no_wake_is_lost_and_the_orders_are_one",
        ],
    ),
    (
        "B-34",
        "a full ring makes producers wait, up to a deadline",
        &[
            "refusals::b34_a_frame_larger_than_half_the_ring_is_refused_at_once",
            "refusals::t19_back_pressure_says_how_long_it_waited",
            "loom::s4_who_waits_for_space_is_woken",
            "loom::s4_who_waits_for_space_finds_the_writer_free",
            "behaviours::a_fence_that_needs_room_has_it_made",
        ],
    ),
    (
        "B-35",
        "rotation, and segments of their own size",
        &[
            "behaviours::b35_t23_a_frame_larger_than_a_segment_gets_one_of_its_size_and_nothing_lies_beyond_a_declared_size",
        ],
    ),
    (
        "B-36",
        "what is covered, durable and not pinned is reclaimed",
        &[
            "refusals::a_log_that_has_reached_its_size_asks_for_a_checkpoint",
            "crash::rulings_1_6_recycling_before_the_base_is_durable",
        ],
    ),
    (
        "B-37",
        "numbers go on above everything",
        &[
            "behaviours::b37_t24_t25_numbers_go_on_above_everything_and_the_durable_position_begins_there",
            "format::numbers_go_on_above_everything_by_the_steps_of_the_page",
        ],
    ),
    (
        "B-45",
        "unknown kinds are skipped, other versions refused",
        &[
            "fences::another_frame_drops_pending_parts_and_unknown_kinds_do_nothing",
            "refusals::other_versions_are_refused_with_both_numbers",
        ],
    ),
    (
        "I-1",
        "checkpoint, durable, appended: in this order",
        &[
            "behaviours::i1_the_durable_position_is_never_beyond_the_appended_one_and_neither_goes_back",
            "refusals::a_position_beyond_the_end_is_an_error_and_not_a_wait",
        ],
    ),
    (
        "I-2",
        "durable is written and synced, and a prefix",
        &[
            "crash::t1_acknowledging_before_the_sync",
            "crash::a_disk_that_lies_about_syncs_is_noticed",
            "sweep::every_call_stopped_in_every_way_then_once_more",
        ],
    ),
    (
        "I-6",
        "recovered is the fold of the durable prefix",
        &[
            "crash::i6_random_worlds_recover_the_acknowledged_prefix",
            "sweep::recovery_stopped_at_every_pair_of_calls",
            "kills::what_a_killed_process_was_told_is_durable_is_there",
        ],
    ),
    (
        "I-9",
        "no number is issued twice",
        &[
            "crash::i9_positions_of_lost_frames_issued_again",
            "crash::i9_sequence_numbers_of_lost_frames_issued_again",
            "kills::what_a_killed_process_was_told_is_durable_is_there",
        ],
    ),
    (
        "S-4",
        "the ring, with mutants",
        &[
            "loom::s4_no_wake_is_lost_and_the_orders_are_one",
            "loom::s4_whoever_gives_the_writer_back_wakes_the_next",
            "loom::s4_space_comes_back_whole",
            "loom::s4_who_waits_for_space_is_woken",
            "loom::s4_who_waits_for_space_finds_the_writer_free",
            "loom::s4_who_is_served_finds_it_durable",
        ],
    ),
    (
        "T-1",
        "no watermark before its sync",
        &["crash::t1_acknowledging_before_the_sync", "crash::t1_syncing_only_the_newest_file"],
    ),
    (
        "T-2",
        "no silent holes",
        &[
            "crash::t2_a_header_that_is_not_durable",
            "crash::t2_scanning_past_a_gap",
            "format::t2_a_middle_block_that_is_lost_ends_the_log_or_is_damage",
            "format::blocks_in_a_file_without_a_header_are_evidence",
        ],
    ),
    (
        "T-3",
        "a torn tail does not come back",
        &[
            "crash::t3_no_seal",
            "crash::ruling_28_the_epoch_durable_too_late",
            "crash::ruling_28_continuing_an_old_segment",
            "format::ruling_28_a_segment_of_another_open_does_not_count",
        ],
    ),
    (
        "T-7",
        "nothing but a checkpoint bounds the log",
        &["refusals::t7_the_log_stays_bounded_when_it_is_checkpointed"],
    ),
    (
        "T-8",
        "sequence numbers of torn frames are not used again",
        &["crash::i9_sequence_numbers_of_lost_frames_issued_again"],
    ),
    (
        "T-12",
        "a wake of its own for each waiter",
        &[
            "loom::s4_no_wake_is_lost_and_the_orders_are_one",
            "behaviours::b33_b34_t12_t18_many_threads_through_a_small_ring_all_get_through_in_one_order",
        ],
    ),
    (
        "T-13",
        "groups share a sync",
        &[
            "behaviours::t13_frames_of_a_group_share_one_sync",
            "events::k217_tells_that_a_group_was_closed_by_its_time",
            "loom::a_frame_of_a_group_is_never_left_without_a_time",
        ],
    ),
    ("T-14", "names are durable", &["crash::t14_acknowledging_before_the_directory_sync"]),
    (
        "T-15",
        "nothing is accepted after a failure, and no sync is tried again",
        &[
            "refusals::t15_after_a_failed_write_nothing_is_accepted_and_what_was_acknowledged_stays",
            "crash::t15_a_failed_sync_tried_again",
            "sweep::every_call_gone_wrong_in_every_way_then_stopped",
        ],
    ),
    (
        "T-17",
        "position and sequence number in one step",
        &["loom::s4_no_wake_is_lost_and_the_orders_are_one"],
    ),
    (
        "T-18",
        "who waits for space waits on a number that only grows",
        &[
            "loom::s4_who_waits_for_space_is_woken",
            "behaviours::b33_b34_t12_t18_many_threads_through_a_small_ring_all_get_through_in_one_order",
        ],
    ),
    ("T-19", "back-pressure says how long", &["refusals::t19_back_pressure_says_how_long_it_waited"]),
    ("T-20", "closing writes everything", &["behaviours::t20_closing_writes_whatever_is_left_however_large"]),
    (
        "T-21",
        "checksums cover frames of any size",
        &[
            "crash::l4_the_list_of_frames_unchecked",
            "crash::l4_bodies_unchecked",
            "format::l4_a_whole_frame_in_place_of_another_is_noticed",
        ],
    ),
    ("T-22", "padding does not end the log", &["inspect::a_whole_log_shows_every_frame_and_no_problem"]),
    (
        "T-23",
        "nothing lies beyond a declared size",
        &[
            "behaviours::b35_t23_a_frame_larger_than_a_segment_gets_one_of_its_size_and_nothing_lies_beyond_a_declared_size",
        ],
    ),
    (
        "T-24",
        "positions go on after any open",
        &["behaviours::b37_t24_t25_numbers_go_on_above_everything_and_the_durable_position_begins_there"],
    ),
    (
        "T-25",
        "the durable position is seeded",
        &["behaviours::b37_t24_t25_numbers_go_on_above_everything_and_the_durable_position_begins_there"],
    ),
    ("T-37", "the next sequence number is not stale", &["crash::t37_a_stale_next_sequence_number"]),
    (
        "T-38",
        "damage is not replayed past",
        &[
            "inspect::damage_before_durable_frames_is_a_problem_and_the_prefix_is_still_shown",
            "format::damage_can_be_accepted_by_an_option",
        ],
    ),
    (
        "T-50",
        "workloads cross the base, write after recovery, and find files through the seam",
        &["sweep::every_call_stopped_in_every_way_then_once_more"],
    ),
    (
        "T-51",
        "each invariant has a mutant that fails",
        &[
            "crash::b29_orphan_parts_of_a_fence_applied",
            "crash::rulings_1_7_the_cache_taken_for_the_disk",
            "crash::l6_the_anchor_written_in_place",
            "crash::rulings_1_9_drained_bytes_not_zeroed",
            "crash::rulings_1_7_the_seal_only_after_a_torn_tail",
            "format::rulings_1_7_the_prefix_does_not_end_before_the_base",
        ],
    ),
    // The issue, and §6 of the brief.
    (
        "F-1",
        "a full disk",
        &[
            "full::a_full_file_system_loses_nothing_and_goes_on_when_there_is_space",
            "full::a_file_system_that_is_full_at_the_open_says_so_and_keeps_everything",
            "full::a_limit_on_files_is_no_room_either",
        ],
    ),
    (
        "F-2",
        "files of others, locks, missing files",
        &[
            "refusals::a_second_open_is_told_that_the_log_is_locked",
            "refusals::files_that_are_not_ours_are_left_alone",
            "refusals::a_segment_of_another_database_is_refused",
            "refusals::a_missing_segment_is_refused",
            "refusals::a_foreign_anchor_a_short_one_and_a_missing_one_are_three_things",
        ],
    ),
    (
        "F-3",
        "missing rights",
        &[
            "permissions::a_directory_that_may_not_be_written_names_the_lock_and_the_remedy",
            "permissions::a_segment_that_may_not_be_written_is_named",
            "permissions::a_directory_that_may_not_be_read_is_named_also_when_it_is_looked_at",
        ],
    ),
    (
        "F-4",
        "an open says why, and changes nothing",
        &["cli::nothing_is_written", "inspect::looking_changes_nothing"],
    ),
    // Core rulings, section 1.1: the gates of slice E1.
    ("G-1", "one tick or freeze at a time", &["gates::rank1_one_tick_or_freeze_at_a_time"]),
    ("G-3", "sets of latches", &["gates::rank3_sets_of_latches_neither_overlap_nor_wait_for_each_other"]),
    ("G-4", "tickets and windows", &["gates::rank4_nobody_has_a_ticket_inside_the_window"]),
    ("G-5", "the watermark of sequence numbers", &["gates::seq_the_watermark_is_the_longest_filled_prefix"]),
];

/// What the other numbers of these sections are about; their tests come with it.
const ELSEWHERE: &[(&str, &[u32], &str)] = &[
    ("B", &[38, 39, 40], "checkpoints of pages"),
    ("B", &[41, 42, 43, 44, 46, 47], "redo, by the engine"),
    ("I", &[3, 4, 5, 7, 8], "visibility, pages and records, which the log does not know"),
    ("S", &[1, 2, 3, 5], "models of checkpoints, transactions and pages"),
    ("T", &[4, 5, 6, 9, 10, 11, 16], "publishing, fences, clean shutdown and bulk loads"),
    ("T", &[26, 27, 28, 29, 30, 31, 32, 33, 34], "checkpoints and pages"),
    ("T", &[35, 36, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49], "redo, schema and transactions"),
];

#[test]
fn every_promise_has_tests_that_exist() {
    promises::check(PROMISES, FILES);
}

#[test]
fn every_number_of_the_sections_is_here_once() {
    let all = |letter: &str, first: u32, last: u32| -> Vec<String> {
        (first..=last).map(|number| format!("{letter}-{number}")).collect()
    };
    let sections = [all("B", 32, 47), all("I", 1, 9), all("S", 1, 5), all("T", 1, 51)].concat();
    let ours = PROMISES.iter().map(|(number, ..)| (*number).to_owned());
    let others = ELSEWHERE
        .iter()
        .flat_map(|(letter, numbers, _)| numbers.iter().map(move |number| format!("{letter}-{number}")));
    let found: Vec<String> = ours.filter(|number| !number.starts_with(['F', 'G'])).chain(others).collect();
    assert_eq!(found.len(), sections.len());
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), sections.into_iter().collect());
}
