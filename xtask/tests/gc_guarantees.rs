//! Which tests hold up which promise of .NET GC tracing (brief 03). Every number in scope has at least one, and every test
//! named here exists.

#[path = "common/promises.rs"]
mod promises;

use promises::Promise;
use std::collections::BTreeSet;

/// Files that tests are named from, by a short name.
const FILES: &[(&str, &str)] = &[
    ("endpoint", "crates/typhon-clr/src/endpoint.rs"),
    ("clock", "crates/typhon-clr/src/clock.rs"),
    ("message", "crates/typhon-clr/src/ipc/message.rs"),
    ("reorder", "crates/typhon-clr/src/nettrace/reorder.rs"),
    ("sequence", "crates/typhon-clr/src/nettrace/sequence.rs"),
    ("tracker", "crates/typhon-clr/src/gc/tracker/tests.rs"),
    ("values", "crates/typhon-clr/src/gc/values.rs"),
    ("corpus", "crates/typhon-clr/tests/corpus.rs"),
    ("descriptors", "crates/typhon-clr/tests/descriptors.rs"),
    ("discovery", "crates/typhon-clr/tests/discovery.rs"),
    ("live", "crates/typhon-clr/tests/live.rs"),
    ("malformed", "crates/typhon-clr/tests/malformed.rs"),
    ("sessions", "crates/typhon-clr/tests/sessions.rs"),
    ("host", "crates/typhon-profiler/src/gc/host.rs"),
    ("ingest", "crates/typhon-profiler/src/gc/ingest.rs"),
    ("profiler", "crates/typhon-profiler/tests/gc.rs"),
    ("listen", "crates/typhon-profiler/tests/gc_listen.rs"),
    ("lifecycle", "crates/typhon-profiler/tests/lifecycle/collections.rs"),
    ("application", "crates/typhon-profiler/tests/dotnet/application.rs"),
    ("hosting", "crates/typhon-profiler/tests/dotnet/hosting.rs"),
    ("targets", "crates/typhon-profiler/tests/dotnet/targets.rs"),
    ("configuration", "crates/typhon-profiler/tests/configuration.rs"),
    ("cli", "crates/typhon-cli/tests/gc.rs"),
];

/// Number, what it promises, and tests that fail without it, as `file::test`. B-9, several targets at once, is left for
/// later by the brief itself.
const PROMISES: &[Promise] = &[
    (
        "G-1",
        "configuration alone starts the tracing",
        &[
            "listen::g1_a_configured_recording_has_the_collections_of_its_target",
            "hosting::g1_a_host_records_its_own_runtime_inside_its_spans",
        ],
    ),
    (
        "G-2",
        "on a thread and a slot of its own",
        &["profiler::g11_what_is_queued_is_recorded_at_its_own_time_on_its_own_slot"],
    ),
    ("G-3", "one way on Linux, macOS and Windows", &["endpoint::names_on_each_system"]),
    (
        "G-4",
        "three kinds of records with all their fields",
        &[
            "tracker::g4_a_blocking_collection_gives_start_end_and_suspension",
            "corpus::i7_records_and_counters",
        ],
    ),
    (
        "G-5",
        "suspensions have no parent and no trace",
        &[
            "profiler::g11_what_is_queued_is_recorded_at_its_own_time_on_its_own_slot",
            "hosting::g1_a_host_records_its_own_runtime_inside_its_spans",
        ],
    ),
    (
        "G-6",
        "suspensions for the collector only",
        &[
            "values::g6_only_reasons_1_and_6_are_gc_caused",
            "tracker::g6_suspensions_of_others_are_dropped_and_counted",
        ],
    ),
    ("G-7", "no cost at rest", &["profiler::g7_the_ingestion_thread_sleeps_while_nothing_happens"]),
    (
        "G-8",
        "a gate of its own, and nothing when it is off",
        &["targets::g8_a_gate_that_is_off_costs_nothing"],
    ),
    (
        "G-9",
        "the gate is read at start",
        &["lifecycle::g9_the_gate_is_read_once_for_all_recordings_of_a_process"],
    ),
    ("G-10", "feeds the gauges", &["profiler::g10_the_last_collection_feeds_the_gauges_while_it_is_traced"]),
    (
        "G-11",
        "records can be put in without a runtime",
        &["profiler::g11_what_is_queued_is_recorded_at_its_own_time_on_its_own_slot"],
    ),
    (
        "G-12",
        "a clean stop, open suspensions counted",
        &[
            "listen::g12_stopping_the_session_itself_ends_that_with_the_runtime_too",
            "tracker::g12_a_suspension_open_at_the_end_is_dropped_and_counted",
            "targets::g12_a_target_that_stands_still_does_not_hold_up_the_end",
        ],
    ),
    (
        "G-13",
        "a viewer's scale is known at once",
        &["cli::g13_a_viewer_knows_counts_lanes_and_scale_when_the_trace_is_open"],
    ),
    (
        "B-1",
        "self, a process, or who connects",
        &[
            "targets::b1_a_process_is_recorded_by_its_id_until_it_ends",
            "targets::b1_processes_that_connect_are_recorded_one_after_the_other",
            "hosting::g1_a_host_records_its_own_runtime_inside_its_spans",
        ],
    ),
    (
        "B-2",
        "a runtime may come late",
        &[
            "host::b2_a_runtime_is_looked_for_often_at_first_and_then_every_two_seconds",
            "hosting::b2_a_runtime_may_come_late",
            "hosting::b2_a_runtime_without_diagnostics_is_one_line",
        ],
    ),
    (
        "B-3",
        "a lost session costs a line and a marker",
        &[
            "listen::b3_a_malformed_stream_is_stopped_and_tried_once_more",
            "listen::b3_a_target_that_sends_only_nonsense_is_given_up",
            "targets::b3_a_target_that_is_killed_costs_a_line_and_a_marker",
            "sessions::b3_a_target_that_is_killed_leaves_all_complete_blocks",
        ],
    ),
    (
        "B-4",
        "in order of time, and soon",
        &[
            "reorder::i3_output_is_in_time_order",
            "sessions::b4_held_events_are_released_when_the_target_falls_silent",
        ],
    ),
    (
        "B-5",
        "every loss is counted and in the trace",
        &[
            "profiler::b5_a_full_queue_drops_the_newest_and_says_how_many",
            "profiler::b5_collections_without_a_slot_are_counted_and_the_next_ones_recorded",
            "tracker::b5_an_end_without_sizes_is_reported_and_counted",
            "cli::a_cut_stream_keeps_what_came_before_and_marks_what_is_missing",
        ],
    ),
    (
        "B-6",
        "the event's time on the trace's clock",
        &[
            "clock::b6_one_clock_needs_no_offset",
            "clock::b6_another_clock_is_placed_midway_and_narrowed_by_arrivals",
            "host::b6_times_and_lengths_of_a_record_become_nanoseconds_of_our_clock",
        ],
    ),
    (
        "B-7",
        "well-formed requests only",
        &[
            "sessions::b7_the_default_request_is_the_checked_in_one",
            "message::i11_requests_that_kill_runtimes_cannot_be_built",
        ],
    ),
    (
        "B-8",
        "stopped before it is closed",
        &[
            "sessions::b8_dropping_a_session_stops_it",
            "targets::b8_a_recorder_that_is_killed_leaves_its_target_unharmed",
        ],
    ),
    (
        "B-10",
        "a host may push, in place of the socket",
        &[
            "listen::b10_the_program_takes_over_and_hands_back",
            "listen::b10_a_bridge_ends_with_its_recording",
            "application::b10_an_application_pushes_its_collections_through_the_c_api",
        ],
    ),
    (
        "B-11",
        "reason and type are looked up by count",
        &["cli::g13_a_viewer_knows_counts_lanes_and_scale_when_the_trace_is_open"],
    ),
    (
        "I-1",
        "suspensions are the whole windows of a thread",
        &["tracker::i1_suspensions_are_the_whole_gc_windows_of_each_thread"],
    ),
    (
        "I-2",
        "counts are unique",
        &[
            "tracker::i2_no_collection_number_is_started_or_ended_twice",
            "malformed::flipped_bits_never_pair_wrongly",
        ],
    ),
    ("I-3", "in order of time", &["reorder::i3_output_is_in_time_order"]),
    (
        "I-4",
        "losses reported equal losses",
        &["sequence::i4_reported_losses_equal_drops", "malformed::i4_losses_reported_equal_events_dropped"],
    ),
    (
        "I-5",
        "any bytes give a verdict",
        &[
            "malformed::i5_any_bytes_decode_to_a_verdict",
            "malformed::i5_every_prefix_gives_a_prefix_of_the_events",
        ],
    ),
    (
        "I-6",
        "pieces of any size give the same",
        &["corpus::i6_one_byte_at_a_time_gives_the_same", "corpus::i6_random_chunks_give_the_same"],
    ),
    (
        "I-7",
        "recorded streams give what was in them",
        &[
            "corpus::i7_records_and_counters",
            "corpus::i7_gc_events_in_time_order_with_their_payloads",
            "cli::recorded_streams_become_sound_traces_with_exactly_the_expected_records",
        ],
    ),
    (
        "I-8",
        "a queue of n takes n",
        &[
            "ingest::i8_a_queue_of_n_takes_n_and_counts_the_rest",
            "ingest::i8_accepted_and_dropped_add_up_across_threads",
        ],
    ),
    (
        "I-9",
        "a stand-in runtime drives every way to end",
        &[
            "sessions::a_session_from_start_to_stop",
            "sessions::refusals_are_named",
            "sessions::an_answer_that_drips_does_not_extend_the_time",
            "sessions::stopping_reads_on_while_it_waits_for_the_answer",
            "sessions::reverse_connections_carry_a_session_from_the_start_of_the_process",
        ],
    ),
    (
        "I-10",
        "real runtimes",
        &[
            "live::live_net8_workstation_concurrent",
            "live::live_net8_server",
            "live::live_net31_counts_in_every_mode",
        ],
    ),
    (
        "I-11",
        "the request's bytes",
        &[
            "message::i11_default_session_request_bytes",
            "message::i11_requests_that_kill_runtimes_cannot_be_built",
        ],
    ),
    // Traps of the reference (§10), in the brief's order.
    (
        "T-1",
        "the reason is the first field of event 9",
        &["corpus::i7_gc_events_in_time_order_with_their_payloads"],
    ),
    (
        "T-2",
        "suspensions pair by thread",
        &["tracker::suspensions_of_sampler_and_collector_interleave_on_their_threads"],
    ),
    ("T-3", "sizes of the same collection", &["tracker::sizes_belong_to_their_own_collection_in_a_burst"]),
    (
        "T-4",
        "pauses in ticks of the trace",
        &["host::b6_times_and_lengths_of_a_record_become_nanoseconds_of_our_clock"],
    ),
    (
        "T-5",
        "all pauses of a background collection",
        &["tracker::background_pause_is_the_sum_of_its_suspensions"],
    ),
    (
        "T-6",
        "the event's time, not that of its arrival",
        &[
            "profiler::g11_what_is_queued_is_recorded_at_its_own_time_on_its_own_slot",
            "hosting::g1_a_host_records_its_own_runtime_inside_its_spans",
        ],
    ),
    ("T-7", "unknown reasons pass through", &["values::unknown_values_pass_through_as_numbers"]),
    (
        "T-8",
        "no free slot: said once, counted, tried again",
        &[
            "lifecycle::b5_a_lack_of_slots_is_said_once_and_ends_with_it",
            "profiler::b5_collections_without_a_slot_are_counted_and_the_next_ones_recorded",
        ],
    ),
    (
        "T-9",
        "drops of the queue reach the trace",
        &["profiler::b5_a_full_queue_drops_the_newest_and_says_how_many"],
    ),
    (
        "T-10",
        "one bad record does not end the thread",
        &["ingest::one_record_that_panics_is_counted_and_the_rest_recorded"],
    ),
    (
        "T-11",
        "what is not the collector's never gets into the queue",
        &[
            "tracker::g6_suspensions_of_others_are_dropped_and_counted",
            "listen::b10_the_program_takes_over_and_hands_back",
        ],
    ),
    // Traps of the target (§6), in the brief's order.
    (
        "T-12",
        "a malformed request kills the target",
        &["message::i11_requests_that_kill_runtimes_cannot_be_built"],
    ),
    (
        "T-13",
        "stopping without reading is a dead-lock",
        &["sessions::stopping_reads_on_while_it_waits_for_the_answer"],
    ),
    (
        "T-14",
        "an abandoned session crashes old runtimes",
        &[
            "sessions::b8_dropping_a_session_stops_it",
            "live::live_attaching_and_detaching_leaves_the_target_as_it_was",
            "descriptors::attaching_and_detaching_leaks_no_descriptor",
        ],
    ),
    ("T-15", "runtimes write single bytes", &["corpus::i6_one_byte_at_a_time_gives_the_same"]),
    (
        "T-16",
        "a session may begin inside a suspension",
        &["corpus::i7_records_and_counters", "tracker::an_end_without_a_start_is_reported"],
    ),
    // Faults (§6).
    (
        "F-1",
        "no socket: the path and the variables are named",
        &[
            "discovery::diagnostics_turned_off_is_one_clear_line",
            "discovery::containers_are_searched_through_their_root_with_their_own_id",
        ],
    ),
    (
        "F-2",
        "a stale socket is left alone",
        &[
            "sessions::a_stale_socket_is_told_from_a_missing_one_and_left_alone",
            "discovery::a_socket_of_an_earlier_process_of_the_same_id_is_not_taken",
        ],
    ),
    ("F-3", "permission denied names both users", &["discovery::permission_denied_names_both_users"]),
    (
        "F-4",
        "refusals are named, unknown commands fall back",
        &[
            "sessions::refusals_are_named",
            "sessions::an_unknown_command_falls_back_to_the_older_one",
            "live::live_sixty_four_sessions_and_no_more",
        ],
    ),
    (
        "F-5",
        "no reply in time",
        &[
            "sessions::a_silent_runtime_is_given_up_in_time",
            "live::live_a_target_that_stands_still_is_given_up_in_time",
        ],
    ),
    (
        "F-6",
        "the output fails in the middle",
        &[
            "cli::a_disk_that_fills_up_leaves_a_file_that_opens",
            "cli::a_folder_that_vanishes_costs_a_line_and_not_the_recording",
            "cli::a_recorder_that_is_killed_leaves_what_it_had",
        ],
    ),
    (
        "F-7",
        "options out of range",
        &[
            "configuration::gc_targets",
            "configuration::numbers_out_of_range_are_the_default_and_one_line_each",
        ],
    ),
];

#[test]
fn every_promise_has_tests_that_exist() {
    promises::check(PROMISES, FILES);
}

#[test]
fn every_number_in_scope_is_here_once() {
    let all =
        |letter: &str, last: u32| (1..=last).map(|number| format!("{letter}-{number}")).collect::<Vec<_>>();
    let mut expected: BTreeSet<String> =
        [all("G", 13), all("B", 11), all("I", 11), all("T", 16), all("F", 7)].concat().into_iter().collect();
    expected.remove("B-9");
    let found: BTreeSet<String> = PROMISES.iter().map(|(number, ..)| (*number).to_owned()).collect();
    assert_eq!((found, PROMISES.len()), (expected.clone(), expected.len()));
}
