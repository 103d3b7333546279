//! Streams that no recorded file shows: unusual but valid forms, limits, and every sort of damage.

#![allow(clippy::unwrap_used)] // a panic is a report

mod common;

use std::collections::{HashMap, HashSet};

use common::writer::{Blob, Writer, block_header, compressed};
use common::{NAMES, stream};
use proptest::prelude::*;
use typhon_clr::gc::{GcEvent, GcItem, GcRecord, GcStream, GcStreamError, Suspension};
use typhon_clr::nettrace::{Continuity, Decoder, Item, MAX_BLOCK_BYTES, NettraceFault};

/// GCRestartEEEnd, version 1, and its metadata id in the streams written here.
const RESTART: (u32, u32) = (3, 1);

fn restart(thread: u64, sequence: u32, timestamp: u64) -> Blob {
    Blob { metadata_id: RESTART.0, thread, sequence, timestamp, sorted: false, payload: vec![0; 2] }
}

fn writer() -> Writer {
    let mut writer = Writer::new();
    writer.metadata(RESTART.0, 3, RESTART.1);
    writer
}

/// (thread, sequence, timestamp, events lost before) of all events, then losses of sequence points.
type Seen = (Vec<(u64, u32, u64, u32)>, Vec<(u64, u32)>);

fn decode(bytes: &[u8]) -> Result<Seen, NettraceFault> {
    let mut decoder = Decoder::new();
    decoder.feed(bytes);
    let (mut events, mut losses) = (Vec::new(), Vec::new());
    loop {
        match decoder.next_item().map_err(|error| error.fault)? {
            None => return Ok((events, losses)),
            Some(Item::Event(event)) => {
                let header = event.header;
                let lost = if let Continuity::Lost(count) = header.continuity { count } else { 0 };
                events.push((header.capture_thread, header.sequence, header.timestamp, lost));
            }
            Some(Item::SequencePoint(point)) => {
                losses.extend(point.lost.iter().map(|loss| (loss.capture_thread, loss.count)));
            }
            Some(_) => {}
        }
    }
}

fn fault_of(bytes: &[u8]) -> NettraceFault {
    decode(bytes).unwrap_err()
}

#[test]
fn uncompressed_headers_say_the_same_as_compressed_ones() {
    let blobs = [restart(7, 1, 500), Blob { sorted: true, ..restart(8, 1, 400) }, restart(7, 2, 600)];
    let (mut plain, mut packed) = (writer(), writer());
    plain.uncompressed_events(&blobs);
    packed.events(&blobs);
    let (plain, packed) = (decode(&plain.end()).unwrap(), decode(&packed.end()).unwrap());
    assert_eq!(plain, packed);
    assert_eq!(plain.0, [(7, 1, 500, 0), (8, 1, 400, 0), (7, 2, 600, 0)]);
}

#[test]
fn unknown_blocks_are_skipped_by_their_size() {
    let mut writer = writer();
    writer.block("StackBlock", &[1; 77]);
    writer.block("NewerBlock", &[5, 6, 1]);
    writer.events(&[restart(7, 1, 500)]);
    assert_eq!(decode(&writer.end()).unwrap().0.len(), 1);
}

#[test]
fn longer_block_headers_and_version_5_are_tolerated() {
    let mut body = vec![0; 16];
    body.extend([1_000u64, 10_000_000].map(u64::to_le_bytes).concat());
    body.extend([4u32, 1, 2, 3].map(u32::to_le_bytes).concat());
    let mut writer = Writer::without_trace();
    writer.object("Trace", 5, 5, &body);
    writer.metadata(RESTART.0, 3, RESTART.1);
    let mut content = block_header(true, 0, 900);
    content[0] = 24;
    content.extend([0xee; 4]);
    content.extend(compressed(&[restart(7, 1, 500)]));
    writer.block("EventBlock", &content);
    assert_eq!(decode(&writer.end()).unwrap().0.len(), 1);
}

#[test]
fn other_major_versions_are_named() {
    let version_6 = [&b"Nettrace"[..], &[0; 4], &6u32.to_le_bytes(), &0u32.to_le_bytes()].concat();
    assert_eq!(fault_of(&version_6), NettraceFault::UnsupportedVersion(6));
    let mut old = Writer::without_trace();
    old.object("Trace", 3, 0, &[0; 48]);
    assert_eq!(fault_of(&old.end()), NettraceFault::UnsupportedVersion(3));
    let mut newer = Writer::without_trace();
    newer.object("Trace", 7, 7, &[0; 48]);
    assert_eq!(fault_of(&newer.end()), NettraceFault::UnsupportedVersion(7));
    // Format 0 begins without the magic.
    assert_eq!(fault_of(b"\x14\0\0\0!FastSerialization.1"), NettraceFault::NotNettrace);
    assert_eq!(fault_of(b"Nettrace\x14\0\0\0!FastSerialization.2"), NettraceFault::BadSerializationHeader);
}

#[test]
fn objects_for_newer_readers_are_refused() {
    let mut writer = writer();
    writer.object("EventBlock", 9, 3, &[0; 4]);
    let fault = NettraceFault::ReaderTooOld { name: "EventBlock".to_owned(), needed: 3, known: 2 };
    assert_eq!(fault_of(&writer.end()), fault);
}

#[test]
fn the_trace_object_comes_first_and_once() {
    assert_eq!(fault_of(&Writer::without_trace().end()), NettraceFault::TraceObjectMisplaced);
    let mut late = Writer::without_trace();
    late.block("StackBlock", &[]);
    assert_eq!(fault_of(&late.end()), NettraceFault::TraceObjectMisplaced);
    let mut twice = Writer::new();
    twice.object("Trace", 4, 4, &[0; 48]);
    assert_eq!(fault_of(&twice.end()), NettraceFault::TraceObjectMisplaced);
    let mut no_clock = Writer::without_trace();
    no_clock.object("Trace", 4, 4, &[0; 48]);
    assert_eq!(fault_of(&no_clock.end()), NettraceFault::BadTraceField("clock frequency"));
}

#[test]
fn sizes_out_of_range_are_refused_before_anything_is_allocated() {
    for size in [-1, i32::MIN, MAX_BLOCK_BYTES as i32 + 1, i32::MAX] {
        let mut writer = writer();
        writer.object("EventBlock", 2, 2, &size.to_le_bytes());
        let limit = MAX_BLOCK_BYTES as i64;
        let fault = NettraceFault::LimitExceeded { what: "block size", value: size.into(), limit };
        assert_eq!(fault_of(&writer.end()), fault);
    }
    let mut long_name = writer();
    long_name.object(&"N".repeat(65), 2, 2, &[]);
    assert!(matches!(
        fault_of(&long_name.end()),
        NettraceFault::LimitExceeded { what: "type name length", .. }
    ));
    let mut threads = writer();
    threads.block("SPBlock", &[&5u64.to_le_bytes()[..], &1000u32.to_le_bytes(), &[0; 12]].concat());
    assert!(matches!(fault_of(&threads.end()), NettraceFault::LimitExceeded { value: 1000, limit: 1, .. }));
    for header_bytes in [0u8, 19, 21] {
        let mut header = writer();
        let mut content = block_header(true, 0, 0);
        content[0] = header_bytes;
        header.block("EventBlock", &content);
        assert!(matches!(
            fault_of(&header.end()),
            NettraceFault::LimitExceeded { what: "block header size", .. }
        ));
    }
}

#[test]
fn metadata_takes_bounded_memory() {
    const RECORD_BYTES: usize = 4 << 20;
    let with = |ids: &[u32]| {
        let mut writer = writer();
        ids.iter().for_each(|id| writer.long_metadata(*id, 3, 1, RECORD_BYTES));
        writer.end()
    };
    // A record that replaces another one takes its place.
    assert!(decode(&with(&[2; 8])).is_ok());
    let what = "bytes of metadata records";
    assert!(
        matches!(fault_of(&with(&[2, 3, 4, 5])), NettraceFault::LimitExceeded { what: it, .. } if it == what)
    );
}

#[test]
fn blobs_past_the_end_of_their_block_are_refused() {
    let mut content = [block_header(true, 0, 900), compressed(&[restart(7, 1, 500)])].concat();
    content.pop();
    let mut writer = writer();
    writer.block("EventBlock", &content);
    let fault = NettraceFault::LimitExceeded { what: "payload length", value: 2, limit: 1 };
    assert_eq!(fault_of(&writer.end()), fault);
}

#[test]
fn events_without_metadata_or_outside_their_block_are_refused() {
    for metadata_id in [0, 99] {
        let mut unknown = writer();
        unknown.events(&[Blob { metadata_id, ..restart(7, 1, 500) }]);
        assert_eq!(fault_of(&unknown.end()), NettraceFault::UnknownMetadata(metadata_id));
    }
    let mut outside = writer();
    let content = [block_header(true, 100, 400), compressed(&[restart(7, 1, 500)])].concat();
    outside.block("EventBlock", &content);
    let fault = NettraceFault::TimestampOutsideBlock { timestamp: 500, min: 100, max: 400 };
    assert_eq!(fault_of(&outside.end()), fault);
}

#[test]
fn an_error_stays_and_names_its_place() {
    let mut bytes = writer().bytes;
    let place = bytes.len() as u64;
    bytes.push(0x77);
    let mut decoder = Decoder::new();
    decoder.feed(&bytes);
    let error = loop {
        match decoder.next_item() {
            Ok(item) => assert!(item.is_some()),
            Err(error) => break error,
        }
    };
    assert_eq!(error.offset, place);
    assert!(matches!(error.fault, NettraceFault::UnexpectedTag { found: 0x77, .. }));
    decoder.feed(&[1]);
    assert_eq!(decoder.next_item().unwrap_err(), error);
}

#[test]
fn bytes_after_the_end_are_refused() {
    let mut bytes = writer().end();
    bytes.push(0);
    assert_eq!(fault_of(&bytes), NettraceFault::TrailingBytes);
}

#[test]
fn a_payload_that_is_too_short_stops_the_stream_there() {
    let mut writer = writer();
    let short = Blob { payload: vec![0], ..restart(7, 2, 600) };
    writer.events(&[restart(7, 1, 500), short, restart(7, 3, 700)]);
    let mut events = 0;
    let mut stream = GcStream::new();
    let result =
        stream.feed(&writer.end(), &mut |item| events += u32::from(matches!(item, GcItem::Event(..))));
    let Err(GcStreamError::Payload { error, .. }) = result else { panic!("{result:?}") };
    assert_eq!((error.event_id, error.version, error.payload_bytes), (3, 1, 1));
    assert_eq!(events, 1, "what came before is kept");
}

#[test]
fn longer_payloads_of_newer_versions_are_read() {
    let mut writer = Writer::new();
    writer.metadata(1, 1, 9);
    let payload = [&[5u32, 2, 1, 0].map(u32::to_le_bytes).concat()[..], &[0; 10], &[0xee; 40]].concat();
    writer.events(&[Blob { metadata_id: 1, thread: 7, sequence: 1, timestamp: 500, sorted: false, payload }]);
    let mut counts = Vec::new();
    let mut out = |item: GcItem<'_>| {
        if let GcItem::Event(_, GcEvent::Start(start)) = item {
            counts.push((start.count, start.generation));
        }
    };
    GcStream::new().feed(&writer.end(), &mut out).unwrap();
    assert_eq!(counts, [(5, 2)]);
}

/// Events of three threads, of which some are dropped.
fn events_with_drops() -> impl Strategy<Value = Vec<(u64, bool)>> {
    prop::collection::vec((0u64..3, prop::bool::weighted(0.8)), 1..60)
}

proptest! {
    /// I-4 over the whole way from bytes to records: what was dropped is what is reported.
    #[test]
    fn i4_losses_reported_equal_events_dropped(events in events_with_drops(), cut in any::<prop::sample::Index>()) {
        let mut sent = HashMap::new();
        let (mut kept, mut dropped) = (Vec::new(), 0);
        for (time, &(thread, keep)) in events.iter().enumerate() {
            let sequence = sent.entry(thread).or_insert(0);
            *sequence += 1;
            if keep {
                kept.push(restart(thread, *sequence, 1000 + time as u64));
            } else {
                dropped += 1;
            }
        }
        let cut = cut.index(kept.len() + 1);
        let mut writer = writer();
        writer.events(&kept[..cut]);
        writer.events(&kept[cut..]);
        writer.sequence_point(5000, &sent.into_iter().collect::<Vec<_>>());
        let bytes = writer.end();
        let (seen, losses) = decode(&bytes).unwrap();
        let lost_before: u32 = seen.iter().map(|event| event.3).sum();
        let lost_at_point: u32 = losses.iter().map(|loss| loss.1).sum();
        prop_assert_eq!(lost_before + lost_at_point, dropped);
        let recorded: u64 = common::records([&bytes[..]])
            .iter()
            .map(|record| if let GcRecord::Loss(loss) = record { loss.count } else { 0 })
            .sum();
        prop_assert_eq!(recorded, u64::from(dropped));
    }
}

/// What a possibly damaged stream gives: records, and the error if there is one.
fn outcome(bytes: &[u8]) -> (Vec<GcRecord>, Vec<u64>, Option<GcStreamError>) {
    let (mut records, mut times) = (Vec::new(), Vec::new());
    let mut stream = GcStream::new();
    let mut out = |item: GcItem<'_>| match item {
        GcItem::Record(record) => records.push(record),
        GcItem::Event(header, _) => times.push(header.timestamp),
        GcItem::Trace(_) => {}
    };
    let result = stream.feed(bytes, &mut out);
    stream.finish(&mut out);
    (records, times, result.err())
}

#[test]
fn i5_every_prefix_gives_a_prefix_of_the_events() {
    for name in NAMES {
        let bytes = stream(name);
        let mut whole = Decoder::new();
        whole.feed(&bytes);
        let mut all = Vec::new();
        while let Some(item) = whole.next_item().unwrap() {
            if let Item::Event(event) = item {
                all.push((event.header, event.payload.to_vec()));
            }
        }
        // Byte by byte: after each one, what has come so far is what a stream cut there gives.
        let mut decoder = Decoder::new();
        let mut found = 0;
        for byte in bytes.chunks(1) {
            decoder.feed(byte);
            while let Some(item) = decoder.next_item().unwrap() {
                if let Item::Event(event) = item {
                    assert_eq!((event.header, event.payload), (all[found].0, &all[found].1[..]), "{name}");
                    found += 1;
                }
            }
        }
        assert_eq!(found, all.len());
        // And cutting ends no stream with an error or with records that the whole one does not have.
        let (all_records, _, _) = outcome(&bytes);
        for cut in (0..bytes.len()).step_by(bytes.len() / 40) {
            let (records, _, error) = outcome(&bytes[..cut]);
            assert_eq!(error, None, "{name} cut at {cut}");
            let known: HashSet<String> = all_records.iter().map(|record| format!("{record:?}")).collect();
            for record in records {
                let is_whole = matches!(record, GcRecord::Start(_) | GcRecord::Suspension(_));
                assert!(
                    !is_whole || known.contains(&format!("{record:?}")),
                    "{name} cut at {cut}: {record:?}"
                );
            }
        }
    }
}

/// The suspensions of a stream by the simplest rule: begin and restart follow each other on one thread, no gap between.
fn naive_suspensions(bytes: &[u8]) -> HashSet<(u64, u64, u64, u32)> {
    let mut decoder = Decoder::new();
    decoder.feed(bytes);
    let mut open = HashMap::new();
    let mut found = HashSet::new();
    while let Ok(Some(item)) = decoder.next_item() {
        let Item::Event(event) = item else { continue };
        let thread = event.header.capture_thread;
        if event.header.continuity != Continuity::Contiguous {
            open.remove(&thread);
        }
        match GcEvent::decode(&event, 8) {
            Ok(Some(GcEvent::SuspendEeBegin(begin))) => {
                open.insert(thread, (event.header.timestamp, begin.reason));
            }
            Ok(Some(GcEvent::RestartEeEnd)) => {
                if let Some((begin, reason)) = open.remove(&thread) {
                    found.insert((thread, begin, event.header.timestamp - begin, reason.0));
                }
            }
            _ => {}
        }
    }
    found
}

fn check_damaged(bytes: &[u8]) -> Result<(), TestCaseError> {
    let (records, _, _) = outcome(bytes);
    let naive = naive_suspensions(bytes);
    let (mut starts, mut ends) = (HashSet::new(), HashSet::new());
    for record in records {
        match record {
            GcRecord::Start(start) => prop_assert!(starts.insert(start.count), "I-2"),
            GcRecord::End(end) => {
                prop_assert!(ends.insert(end.count), "I-2");
                prop_assert!(end.start.is_none_or(|start| start.count == end.count));
            }
            GcRecord::Suspension(Suspension {
                timestamp, duration_ticks, reason, capture_thread, ..
            }) => {
                prop_assert!(reason.is_gc(), "I-1");
                let key = (capture_thread, timestamp, duration_ticks, reason.0);
                prop_assert!(naive.contains(&key), "wrong pairing: {key:?}");
            }
            GcRecord::Loss(loss) => prop_assert!(loss.count > 0),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn flipped_bits_never_pair_wrongly(
        name in prop::sample::select(&NAMES[..]),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..4),
    ) {
        let mut bytes = stream(name);
        for (place, bit) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
        }
        check_damaged(&bytes)?;
    }

    #[test]
    fn removed_and_repeated_pieces_never_pair_wrongly(
        name in prop::sample::select(&NAMES[..]),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
        length in 1usize..3000,
    ) {
        let bytes = stream(name);
        let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
        let piece = &bytes[from..(from + length).min(bytes.len())];
        check_damaged(&[&bytes[..to], piece, &bytes[to..]].concat())?;
        check_damaged(&[&bytes[..from], &bytes[from + piece.len()..]].concat())?;
    }

    #[test]
    fn i5_any_bytes_decode_to_a_verdict(bytes: Vec<u8>) {
        outcome(&bytes);
        outcome(&[&writer().bytes[..], &bytes].concat());
    }
}
