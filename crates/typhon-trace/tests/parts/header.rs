use proptest::prelude::*;
use typhon_trace::TraceError;
use typhon_trace::header::{DatabaseId, FileHeader, FileOffsets, HEADER_BYTES, utc_ticks_from_unix_ns};

use super::{RECORDINGS, recording};

#[test]
fn reference_headers_read_back_byte_for_byte() {
    for name in RECORDINGS {
        let file = recording(name);
        assert_eq!(FileHeader::parse(&file).unwrap().encode()[..], file[..HEADER_BYTES], "{name}");
    }
}

#[test]
fn every_field_of_a_reference_header_has_its_known_value() {
    let header = FileHeader::parse(&recording("guide-shard")).unwrap();
    let expected = FileHeader {
        flags: 0,
        timestamp_frequency: 1_000_000_000,
        base_tick_rate: 60.0,
        worker_count: 1,
        system_count: 10,
        archetype_count: 10,
        component_type_count: 10,
        track_count: 3,
        dag_count: 2,
        created_utc_ticks: 639_315_870_044_133_855,
        sampling_session_start_qpc: 796_813_779_632,
        offsets: FileOffsets {
            file_table: 100_711,
            source_location_manifest: 105_927,
            query_source_string_table: 200_270,
            query_definition_table: 0,
            cpu_sample_section: 108_378,
        },
        database_id: header.database_id,
        database_name: "world-shard".into(),
        tsn_min: 14,
        tsn_max: 226,
        duration_ticks: 1_235_837_466,
        tick_count: 30,
        schema_fingerprint: 8_322_668_396_615_888_679,
        reserved0: 0,
        reserved1: 0,
    };
    assert_eq!(header, expected);
    assert_eq!(header.database_id.to_string(), "56114e58-272b-4e1e-a708-b250d4f89380");
    assert_eq!(header.created_utc_text().unwrap(), "2026-11-29T22:10:04.413385Z");
    assert!(!header.is_typhon_dialect());
}

#[test]
fn the_header_starts_as_in_the_worked_example() {
    let header = FileHeader { base_tick_rate: 60.0, worker_count: 4, ..FileHeader::new(0) };
    let start =
        [0x54, 0x59, 0x54, 0x52, 0x0c, 0, 0, 0, 0, 0xca, 0x9a, 0x3b, 0, 0, 0, 0, 0, 0, 0x70, 0x42, 0x04];
    assert_eq!(header.encode()[..start.len()], start);
}

#[test]
fn b28_magic_is_checked_before_version_and_version_before_length() {
    let mut bytes = FileHeader::new(0).encode();
    assert!(matches!(FileHeader::parse(b""), Err(TraceError::NotATrace { found }) if found.is_empty()));
    assert!(matches!(FileHeader::parse(b"TYT"), Err(TraceError::NotATrace { found }) if found == b"TYT"));
    for length in 4..HEADER_BYTES {
        let result = FileHeader::parse(&bytes[..length]);
        assert!(matches!(result, Err(TraceError::HeaderTruncated { found }) if found == length as u64));
    }
    bytes[4] = 11;
    assert!(matches!(FileHeader::parse(&bytes[..6]), Err(TraceError::UnsupportedVersion { found: 11 })));
    bytes[0] = b'X';
    assert!(matches!(FileHeader::parse(&bytes), Err(TraceError::NotATrace { found }) if found == b"XYTR"));
}

#[test]
fn a_clock_that_is_not_positive_is_an_error() {
    for frequency in [0, -1, i64::MIN] {
        let header = FileHeader { timestamp_frequency: frequency, ..FileHeader::new(0) };
        let result = FileHeader::parse(&header.encode());
        assert!(matches!(result, Err(TraceError::BadClockFrequency { found }) if found == frequency));
    }
}

#[test]
fn b31_any_close_time_field_marks_a_closed_file() {
    let open = FileHeader { tsn_min: 5, tick_count: 3, ..FileHeader::new(1) };
    assert!(!open.is_closed());
    assert!(FileHeader { tsn_max: 1, ..open.clone() }.is_closed());
    assert!(FileHeader { duration_ticks: 1, ..open.clone() }.is_closed());
    for field in 0..5 {
        let mut bytes = open.encode();
        bytes[47 + field * 8] = 1;
        assert!(FileHeader::parse(&bytes).unwrap().is_closed(), "offset field {field}");
    }
}

#[test]
fn a_name_is_cut_between_characters_and_may_fill_its_field() {
    let name_of = |name: &str| {
        let header = FileHeader { database_name: name.into(), ..FileHeader::new(0) };
        FileHeader::parse(&header.encode()).unwrap().database_name
    };
    let full = "n".repeat(64);
    assert_eq!(name_of(&full), full);
    assert_eq!(name_of(&format!("{full}x")), full);
    let ascii = "n".repeat(63);
    assert_eq!(name_of(&format!("{ascii}\u{20ac}")), ascii);
    let mut bytes = FileHeader::new(0).encode();
    bytes[103..106].copy_from_slice(b"a\xFFb");
    assert_eq!(FileHeader::parse(&bytes).unwrap().database_name, "a\u{FFFD}b");
}

#[test]
fn the_worker_count_saturates() {
    let mut header = FileHeader::new(0);
    for (workers, stored) in [(0, 0), (255, 255), (256, 255), (300, 255)] {
        header.set_worker_count(workers);
        assert_eq!(header.worker_count, stored);
    }
}

#[test]
fn database_ids_are_shown_in_guid_order() {
    let id = DatabaseId(std::array::from_fn(|index| index as u8));
    assert_eq!(id.to_string(), "03020100-0504-0706-0809-0a0b0c0d0e0f");
}

#[test]
fn creation_times_convert_in_both_directions() {
    let at = |ticks| FileHeader::new(ticks);
    assert_eq!(at(0).created_utc_text().unwrap(), "0001-01-01T00:00:00.000000Z");
    assert_eq!(at(utc_ticks_from_unix_ns(0)).created_utc_text().unwrap(), "1970-01-01T00:00:00.000000Z");
    let leap_day = 951_868_799_999_999_900;
    assert_eq!(
        at(utc_ticks_from_unix_ns(leap_day)).created_utc_text().unwrap(),
        "2000-02-29T23:59:59.999999Z"
    );
    assert_eq!(at(utc_ticks_from_unix_ns(leap_day)).created_unix_ns(), Some(leap_day));
    let last = at(3_155_378_975_999_999_999);
    assert_eq!(last.created_utc_text().unwrap(), "9999-12-31T23:59:59.999999Z");
    for absurd in [i64::MIN, -1, i64::MAX] {
        assert_eq!(at(absurd).created_utc_text(), None, "{absurd}");
    }
    assert_eq!(at(i64::MIN).created_unix_ns(), None);
}

proptest! {
    #[test]
    fn any_header_bytes_read_back(bytes in proptest::collection::vec(any::<u8>(), HEADER_BYTES - 6)) {
        let mut whole = FileHeader::new(0).encode();
        whole[6..].copy_from_slice(&bytes);
        if let Ok(header) = FileHeader::parse(&whole) {
            let again = FileHeader::parse(&header.encode()).unwrap();
            // Compared as bytes: a tick rate may be NaN.
            prop_assert_eq!(again.encode(), header.encode());
            let _ = (header.created_utc_text(), header.created_unix_ns());
        }
    }
}
