use super::*;
use crate::capture::chunk::RecordContext;
use crate::capture::producer::{Identity, Producer};
use typhon_trace::record::RecordWalk;

#[derive(Clone, Copy)]
struct Who<'c>(&'c Capture);

impl<'c> Identity<'c> for Who<'c> {
    fn capture(self) -> &'c Capture {
        self.0
    }

    fn label(self) -> Option<ThreadLabel> {
        Some(ThreadLabel::default())
    }

    fn now_ticks(self) -> u64 {
        1
    }
}

fn capture(chunks: u32) -> Capture {
    let capture = Capture::new(4, chunks);
    capture.pool().set_limit(chunks);
    capture
}

/// An instant of 100 bytes at a time.
fn emit<'c>(producer: &Producer<'c>, capture: &'c Capture, time: u64) {
    producer.emit(Who(capture), 0, 100, |context: RecordContext, bytes: &mut [u8]| {
        bytes.fill(0);
        bytes[..4].copy_from_slice(&[100, 0, 0, context.slot]);
        bytes[4..12].copy_from_slice(&time.to_le_bytes());
    });
}

/// Per batch, the (kind, slot, time) of its records.
fn shape(batches: &[Batch]) -> Vec<Vec<(u8, u8, i64)>> {
    let of = |batch: &Batch| {
        RecordWalk::new(batch.records())
            .map(|record| (record.kind(), record.slot(), record.timestamp()))
            .collect()
    };
    batches.iter().map(of).collect()
}

fn losses(batches: &[Batch]) -> u64 {
    let records = batches.iter().flat_map(|batch| RecordWalk::new(batch.records()));
    let markers = records.filter_map(|record| Marker::parse(record.bytes()));
    markers.filter(|(marker, _)| marker.is_loss()).map(|(_, value)| value as u64).sum()
}

#[test]
fn b17_no_batch_holds_two_owners_of_a_slot() {
    let capture = capture(4);
    let (map, mut batches) = (ClockMap::identity(), Vec::new());
    let mut drain = Drain::new(&capture);
    drain.begin_session(&ThreadLabel::default(), 0);
    for owner in 0..3u64 {
        let producer = Producer::new();
        emit(&producer, &capture, 100 + owner);
        producer.retire();
        // Read and freed, so that the next owner gets the same slot while the batch is still open.
        while drain.round(&map, 1_000, false, &mut |batch| batches.push(batch)).more {}
    }
    drain.cut(1_000, &mut |batch| batches.push(batch));
    assert_eq!(
        shape(&batches),
        [
            vec![(THREAD_INFO, CONSUMER_SLOT, 0), (THREAD_INFO, 0, 1), (0, 0, 100)],
            vec![(THREAD_INFO, 0, 1), (0, 0, 101)],
            vec![(THREAD_INFO, 0, 1), (0, 0, 102)],
        ]
    );
}

#[test]
fn b17_batches_are_cut_at_their_limits() {
    let capture = capture(64);
    let (map, mut batches) = (ClockMap::identity(), Vec::new());
    let mut drain = Drain::new(&capture);
    drain.begin_session(&ThreadLabel::default(), 0);
    let producer = Producer::new();
    (0..20_000).for_each(|time| emit(&producer, &capture, time));
    while drain.round(&map, 0, false, &mut |batch| batches.push(batch)).more {}
    drain.cut(0, &mut |batch| batches.push(batch));
    assert!(batches.iter().all(|batch| batch.records().len() <= MAX_BATCH_BYTES));
    let records: u32 = batches.iter().map(Batch::record_count).sum();
    assert_eq!(records, 20_000 + 2);
    assert!(batches.len() <= 20_000 * 100 / MAX_BATCH_BYTES + 2, "{} batches", batches.len());
}

#[test]
fn b17_a_round_takes_its_share_of_every_slot() {
    let capture = capture(64);
    let (map, mut batches) = (ClockMap::identity(), Vec::new());
    let mut drain = Drain::new(&capture);
    drain.begin_session(&ThreadLabel::default(), 0);
    let (quick, quiet) = (Producer::new(), Producer::new());
    (0..5_000).for_each(|time| emit(&quick, &capture, time));
    emit(&quiet, &capture, 7);
    drain.begin_pass();
    drain.round(&map, 9, false, &mut |batch| batches.push(batch));
    drain.cut(9, &mut |batch| batches.push(batch));
    let taken =
        |of: u8| shape(&batches).concat().iter().filter(|(kind, slot, _)| (*kind, *slot) == (0, of)).count();
    assert_eq!(taken(1), 1);
    assert!(taken(0) > 0 && taken(0) <= MAX_BATCH_BYTES / 2 / 100, "{}", taken(0));
}

#[test]
fn b19_the_last_drain_ends_when_its_time_is_over() {
    let mut rounds = 0;
    let endless = || {
        rounds += 1;
        assert!(rounds < 100, "the drain does not end");
        Round { bytes: 100, more: true, behind: true }
    };
    let mut looks = 0;
    let over = || {
        looks += 1;
        looks == 3
    };
    assert!(!last_rounds(endless, over));
    assert_eq!(looks, 3);
    let mut left = 4;
    let ending = || {
        left -= 1;
        Round { bytes: left, more: left > 0, behind: false }
    };
    assert!(last_rounds(ending, || false));
    assert_eq!(left, 0);
}

#[test]
fn b13_a_new_session_announces_every_claimed_slot_with_the_consumer_first() {
    let capture = capture(4);
    let mut batches = Vec::new();
    let mut drain = Drain::new(&capture);
    let (first, second) = (Producer::new(), Producer::new());
    emit(&first, &capture, 5);
    emit(&second, &capture, 6);
    second.retire();
    drain.begin_session(&ThreadLabel::default(), 50);
    drain.cut(50, &mut |batch| batches.push(batch));
    assert_eq!(shape(&batches), [vec![(THREAD_INFO, 0, 50), (THREAD_INFO, CONSUMER_SLOT, 50)]]);
    assert_eq!(drain.counts().late_records, 2);
}

#[test]
fn b19_a_stop_without_time_counts_what_is_left() {
    let capture = capture(2);
    let (map, mut batches) = (ClockMap::identity(), Vec::new());
    let mut drain = Drain::new(&capture);
    drain.begin_session(&ThreadLabel::default(), 0);
    let producer = Producer::new();
    let emitted = 2_000;
    (0..emitted).for_each(|time| emit(&producer, &capture, time));
    drain.give_up_rest(9, &mut |batch| batches.push(batch));
    drain.round(&map, 9, true, &mut |batch| batches.push(batch));
    drain.cut(9, &mut |batch| batches.push(batch));
    assert_eq!(losses(&batches), emitted);
    assert_eq!(drain.counts().records, 0);
    assert!(drain.counts().undrained_records > 1_000 && drain.counts().undrained_records < emitted);
}

#[test]
fn negative_duration_becomes_zero_and_is_counted() {
    let capture = capture(4);
    let (map, mut batches) = (ClockMap::identity(), Vec::new());
    let mut drain = Drain::new(&capture);
    drain.begin_session(&ThreadLabel::default(), 0);
    let producer = Producer::new();
    producer.emit_span(Who(&capture), 20, 37, |context: RecordContext, bytes: &mut [u8]| {
        let id = context.span_id;
        bytes.fill(0);
        bytes[..4].copy_from_slice(&[37, 0, 20, context.slot]);
        bytes[12..20].copy_from_slice(&(-7i64).to_le_bytes());
        bytes[20..28].copy_from_slice(&id.to_le_bytes());
    });
    drain.round(&map, 0, true, &mut |batch| batches.push(batch));
    drain.cut(0, &mut |batch| batches.push(batch));
    let records = batches.iter().flat_map(|batch| RecordWalk::new(batch.records()));
    let durations: Vec<i64> = records.filter_map(|record| record.span().map(|span| span.duration)).collect();
    assert_eq!((durations, drain.counts().clamped_durations), (vec![0], 1));
}

#[test]
fn b17_a_pass_ends_although_a_thread_is_faster() {
    let capture = capture(64);
    let map = ClockMap::identity();
    let mut drain = Drain::new(&capture);
    drain.begin_session(&ThreadLabel::default(), 0);
    let (quick, quiet) = (Producer::new(), Producer::new());
    (0..5_000).for_each(|time| emit(&quick, &capture, time));
    emit(&quiet, &capture, 7);
    drain.begin_pass();
    let mut rounds = 0;
    let round = || {
        rounds += 1;
        assert!(rounds < 100, "the pass does not end");
        // Twice as much as a round takes of one thread.
        (0..2_800).for_each(|time| emit(&quick, &capture, time));
        drain.round(&map, 9, false, &mut |_| ())
    };
    let found = pass(round, || false);
    assert!(found.more && !found.behind);
    assert!(rounds > 3, "what was there takes four rounds");
    assert!(drain.counts().records > 5_000);
    drain.begin_pass();
    assert!(drain.round(&map, 9, false, &mut |_| ()).behind);
}
