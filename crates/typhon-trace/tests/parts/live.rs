use proptest::collection::vec;
use proptest::prelude::*;
use typhon_trace::header::{FileHeader, HEADER_BYTES};
use typhon_trace::live::*;
use typhon_trace::record::RecordWalk;
use typhon_trace::tables::Tables;
use typhon_trace::trailer::{FileTable, SourceLocation, SourceManifest, SpanNames};

use super::corpus;

/// All frames in a stream that arrives in pieces.
fn frames<'p>(direction: Direction, pieces: impl IntoIterator<Item = &'p [u8]>) -> Vec<(u8, Vec<u8>)> {
    let mut decoder = FrameDecoder::new(direction);
    let mut found = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(frame) = decoder.next_frame().unwrap() {
            found.push((frame.kind, frame.payload.to_vec()));
        }
    }
    assert_eq!(decoder.partial_bytes(), 0);
    found
}

#[test]
fn l1_the_recorded_stream_has_its_frames_in_order() {
    let stream = corpus("guide-shard-live.bin");
    let frames = frames(Direction::FromServer, stream.chunks(1_000));
    let kinds: Vec<u8> = frames.iter().map(|frame| frame.0).collect();
    assert_eq!(kinds[..3], [frame_type::INIT, frame_type::FILE_TABLE, frame_type::SOURCE_MANIFEST]);
    assert_eq!(kinds[3..141], [frame_type::BLOCK; 138]);
    assert_eq!(kinds[141..], [frame_type::SHUTDOWN]);
    let mut records = 0;
    let mut buffer = Vec::new();
    for (kind, payload) in &frames {
        match ServerMessage::parse(Frame { kind: *kind, payload }).unwrap() {
            ServerMessage::Init(init) => {
                assert_eq!(init.header.database_name, "world-shard");
                assert_eq!(init.tables.tables.systems.len(), 10);
                assert!(!init.header.is_closed());
            }
            ServerMessage::Block(block) => {
                let decoded = block.header.decompress(block.data, &mut buffer).unwrap();
                records += RecordWalk::new(decoded).count();
            }
            ServerMessage::FileTable(read) => assert!(!read.cut && !read.value.files.is_empty()),
            ServerMessage::SourceManifest(read) => assert!(!read.cut && !read.value.entries.is_empty()),
            ServerMessage::Shutdown => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(records, 7_634);
}

#[test]
fn init_and_blocks_of_the_stream_are_a_trace() {
    let stream = corpus("guide-shard-live.bin");
    let frames = frames(Direction::FromServer, [&stream[..]]);
    let payload_of = |kinds: &[u8]| {
        let parts = frames.iter().filter(|frame| kinds.contains(&frame.0));
        parts.flat_map(|frame| frame.1.clone()).collect::<Vec<u8>>()
    };
    let file = payload_of(&[frame_type::INIT, frame_type::BLOCK]);
    FileHeader::parse(&file).unwrap();
    let mut rest = &file[HEADER_BYTES..];
    assert_eq!(Tables::read(&mut rest).unwrap().cut, None);
    assert_eq!(rest, payload_of(&[frame_type::BLOCK]));
}

#[test]
fn l5_frame_lengths_beyond_the_limit_close_the_connection() {
    let limits = [(Direction::FromServer, 8 << 20), (Direction::FromClient, 64 << 10)];
    for (direction, limit) in limits {
        for length in [limit + 1, i32::MAX, -1, i32::MIN] {
            let mut decoder = FrameDecoder::new(direction);
            decoder.push(&[9]);
            decoder.push(&length.to_le_bytes());
            let expected = LiveError::BadLength { kind: 9, length, limit: limit as usize };
            assert_eq!(decoder.next_frame(), Err(expected.clone()));
            decoder.push(&[3, 0, 0, 0, 0]);
            assert_eq!(decoder.next_frame(), Err(expected), "nothing after it is believed");
        }
        let whole = [&[9][..], &limit.to_le_bytes(), &vec![7; limit as usize]].concat();
        assert_eq!(frames(direction, [&whole[..]]).len(), 1, "the limit itself is allowed");
    }
}

#[test]
fn frames_above_the_limit_cannot_be_built() {
    let payload = vec![0; (8 << 20) + 1];
    Outgoing::block(&payload[1..]).unwrap();
    let refused = Outgoing::block(&payload);
    let limit = 8 << 20;
    assert_eq!(refused, Err(LiveError::TooLarge { kind: frame_type::BLOCK, length: limit + 1, limit }));
    assert!(Outgoing::auth(&"t".repeat(65_534)).is_ok());
    assert!(matches!(Outgoing::auth(&"t".repeat(65_535)), Err(LiveError::TooLarge { .. })));
}

fn message(frame: &Outgoing) -> ServerMessage<'_> {
    let payload = &frame.bytes()[FRAME_HEADER_BYTES..];
    ServerMessage::parse(Frame { kind: frame.bytes()[0], payload }).unwrap()
}

#[test]
fn every_server_message_round_trips() {
    let header = FileHeader { database_name: "db".into(), ..FileHeader::new(77) };
    let tables = super::tables_of("anthill");
    let init = Outgoing::init(&header, &tables).unwrap();
    let ServerMessage::Init(read) = message(&init) else { panic!() };
    assert_eq!((&read.header, &read.tables.tables), (&header, &tables));

    let mut names = SpanNames::default();
    names.push(7, "lap");
    let frame = Outgoing::span_names(&names).unwrap();
    let ServerMessage::SpanNames(read) = message(&frame) else { panic!() };
    assert_eq!(read.value, names);

    let texts =
        vec![QueryString { id: 0, text: String::new() }, QueryString { id: 900, text: "a.rs".into() }];
    let frame = Outgoing::query_strings(&texts).unwrap();
    let ServerMessage::QueryStrings(read) = message(&frame) else { panic!() };
    assert_eq!(read, texts);

    let manifest = SourceManifest {
        entries: vec![SourceLocation { id: 1, file_id: 2, line: 3, kind: 0, method: "m".into() }],
    };
    let frame = Outgoing::source_manifest(&manifest).unwrap();
    let ServerMessage::SourceManifest(read) = message(&frame) else { panic!() };
    assert_eq!(read.value, manifest);

    let frame = Outgoing::file_table(&FileTable::default()).unwrap();
    assert!(
        matches!(message(&frame), ServerMessage::FileTable(read) if read.value.files.is_empty() && !read.cut)
    );

    for status in 0..=5 {
        let status = ReplyStatus::from_wire(status);
        let reply = Reply { request_kind: 128, status, message: "no".into() };
        let frame = Outgoing::reply(&reply);
        let ServerMessage::Reply(read) = message(&frame) else { panic!() };
        assert_eq!(read, reply);
    }
    assert!(matches!(message(&Outgoing::shutdown()), ServerMessage::Shutdown));
}

#[test]
fn every_client_message_round_trips_and_is_read_strictly() {
    let mask = std::array::from_fn(|index| index as u8);
    let messages = [
        (Outgoing::auth("secret").unwrap(), ClientMessage::Auth { token: "secret".into() }),
        (Outgoing::set_kinds(&mask), ClientMessage::SetKinds { mask }),
        (Outgoing::arm_ticks(500), ClientMessage::ArmTicks { count: 500 }),
        (Outgoing::dump(), ClientMessage::Dump),
    ];
    for (frame, expected) in messages {
        let (kind, payload) = (frame.bytes()[0], &frame.bytes()[FRAME_HEADER_BYTES..]);
        assert_eq!(ClientMessage::parse(Frame { kind, payload }), Ok(expected));
        let longer = [payload, &[0]].concat();
        let malformed = |payload: &[u8]| {
            matches!(ClientMessage::parse(Frame { kind, payload }), Err(LiveError::Malformed { .. }))
        };
        assert!(malformed(&longer));
        assert!((0..payload.len()).all(|cut| malformed(&payload[..cut])));
    }
    let not_utf_8 = Frame { kind: frame_type::AUTH, payload: &[1, 0, 0xFF] };
    assert!(matches!(ClientMessage::parse(not_utf_8), Err(LiveError::Malformed { .. })));
}

#[test]
fn unknown_types_are_kept_apart_not_refused() {
    let frame = Frame { kind: 99, payload: b"later version" };
    assert!(matches!(ServerMessage::parse(frame), Ok(ServerMessage::Unknown { kind: 99 })));
    assert_eq!(ClientMessage::parse(frame), Ok(ClientMessage::Unknown { kind: 99 }));
}

#[test]
fn l5_an_init_that_cannot_be_read_is_incompatible() {
    let init = Outgoing::init(&FileHeader::new(0), &Tables::default()).unwrap();
    let payload = &init.bytes()[FRAME_HEADER_BYTES..];
    for cut in 0..payload.len() {
        let result = ServerMessage::parse(Frame { kind: frame_type::INIT, payload: &payload[..cut] });
        assert!(matches!(result, Err(LiveError::Incompatible { .. })), "cut at {cut}");
    }
    let mut other_version = payload.to_vec();
    other_version[4] = 13;
    let result = ServerMessage::parse(Frame { kind: frame_type::INIT, payload: &other_version });
    assert!(matches!(result, Err(LiveError::Incompatible { reason }) if reason.contains("13")));
}

#[test]
fn malformed_server_frames_are_told_apart() {
    let block = typhon_trace::block::encode_literal_only(&[12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1);
    let bad: [(u8, &[u8]); 6] = [
        (frame_type::BLOCK, &block[..11]),
        (frame_type::BLOCK, &block[..block.len() - 1]),
        (frame_type::BLOCK, &[&block[..], &[0]].concat()),
        (frame_type::BLOCK, &[0; 12]),
        (frame_type::QUERY_STRINGS, &[1, 0, 5, 0, b'x']),
        (frame_type::REPLY, &[128, 0, 9, 0]),
    ];
    for (kind, payload) in bad {
        let result = ServerMessage::parse(Frame { kind, payload });
        assert!(matches!(result, Err(LiveError::Malformed { .. })), "{kind}: {result:?}");
    }
}

#[test]
fn l4_a_started_frame_is_sent_to_its_end_and_others_can_be_dropped() {
    let mut outbox = Outbox::default();
    assert_eq!(outbox.drop_unstarted(), 0);
    for count in 0..3 {
        outbox.push(Outgoing::arm_ticks(count));
    }
    outbox.advance(4);
    assert_eq!(outbox.drop_unstarted(), 2);
    assert_eq!(outbox.pending(), &Outgoing::arm_ticks(0).bytes()[4..]);
    outbox.advance(5);
    assert!(outbox.is_empty() && outbox.pending().is_empty());
    outbox.push(Outgoing::dump());
    assert_eq!(outbox.drop_unstarted(), 1);
    assert!(outbox.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_split_of_the_stream_gives_the_same_frames(
        sent in vec((any::<u8>(), vec(any::<u8>(), 0..200)), 0..20),
        takes in vec(1_usize..64, 1..50),
    ) {
        let mut outbox = Outbox::default();
        for (kind, payload) in &sent {
            outbox.push(Outgoing::new(Direction::FromClient, *kind, payload).unwrap());
        }
        let mut takes = takes.iter().cycle();
        let mut pieces = Vec::new();
        while !outbox.is_empty() {
            let pending = outbox.pending();
            let count = pending.len().min(*takes.next().unwrap());
            pieces.push(pending[..count].to_vec());
            outbox.advance(count);
        }
        prop_assert_eq!(frames(Direction::FromClient, pieces.iter().map(|piece| &piece[..])), sent);
    }

    #[test]
    fn b34_any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..300), kind in 0_u8..9) {
        let _ = ServerMessage::parse(Frame { kind, payload: &bytes });
        let _ = ClientMessage::parse(Frame { kind: kind + 126, payload: &bytes });
        let mut decoder = FrameDecoder::new(Direction::FromServer);
        decoder.push(&bytes);
        while let Ok(Some(_)) = decoder.next_frame() {}
        prop_assert!(decoder.partial_bytes() <= bytes.len());
    }
}
