//! Trailer sections: the first byte chooses one. Whatever is read can be written, and from then on nothing changes.
//! (The first writing may: texts that are no UTF-8 grow when they are replaced, and are then cut.)
#![no_main]

use libfuzzer_sys::fuzz_target;
use typhon_trace::trailer::{
    CpuSamples, FileTable, QueryDefinitions, QueryStrings, SourceManifest, SpanNames,
};

/// Reads a section, writes it, reads and writes that, and compares.
macro_rules! round_trip {
    ($section:ty, $body:expr) => {{
        let read = <$section>::read(&mut &$body[..]).expect("reading from memory has no I/O errors");
        assert!(read.bytes <= $body.len() as u64);
        let mut written = Vec::new();
        if read.value.encode(&mut written).is_ok() && !written.is_empty() {
            let again = <$section>::read(&mut &written[4..]).expect("reading from memory has no I/O errors");
            assert!(!again.cut, "our own section is whole");
            assert_eq!(again.bytes, written.len() as u64 - 4);
            let mut twice = Vec::new();
            again.value.encode(&mut twice).expect("what was encoded once encodes again");
            assert_eq!(twice, written);
        }
    }};
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, body)) = input.split_first() else { return };
    match choice % 6 {
        0 => round_trip!(SpanNames, body),
        1 => round_trip!(FileTable, body),
        2 => round_trip!(SourceManifest, body),
        3 => round_trip!(QueryStrings, body),
        4 => round_trip!(CpuSamples, body),
        _ => {
            let read = QueryDefinitions::read(&mut &body[..]).expect("reading from memory has no I/O errors");
            assert!(read.bytes <= body.len() as u64);
        }
    }
});
