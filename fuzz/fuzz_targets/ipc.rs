//! Whatever answers on a runtime's socket: headers, refusals, process information, introductions on a reverse port.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typhon_clr::ipc::message::{ADVERTISE_BYTES, AnswerHeader, HEADER_BYTES, parse_session_id};
use typhon_clr::ipc::{Advertise, ProcessInfo, ProcessInfoVersion};

fuzz_target!(|input: &[u8]| {
    if let Some(introduction) = input.first_chunk::<ADVERTISE_BYTES>() {
        let _ = Advertise::parse(introduction);
    }
    let Some((header, payload)) = input.split_first_chunk::<HEADER_BYTES>() else { return };
    let Ok(header) = AnswerHeader::parse(header) else { return };
    assert!(header.payload_bytes <= usize::from(u16::MAX) - HEADER_BYTES);
    if header.check(payload).is_err() {
        return;
    }
    assert_eq!(parse_session_id(payload).is_ok(), payload.len() >= 8);
    for version in [ProcessInfoVersion::V1, ProcessInfoVersion::V2, ProcessInfoVersion::V3] {
        if let Ok(info) = ProcessInfo::parse(version, payload) {
            let characters = info.command_line.len() + info.operating_system.len() + info.architecture.len();
            assert!(characters <= payload.len() * 3 / 2, "no text is longer than what carried it");
        }
    }
});
