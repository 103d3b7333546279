//! A nettrace stream in one piece and in many: the same verdict and the same records, of which none contradicts another.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use typhon_clr::gc::{GcItem, GcRecord, GcStream, GcStreamError};

fuzz_target!(|input: &[u8]| {
    let Some((&first, stream)) = input.split_first() else { return };
    let whole = decode(std::iter::once(stream));
    let piece_bytes = usize::from(first).max(1);
    assert_eq!(decode(stream.chunks(piece_bytes)), whole, "in pieces of {piece_bytes} bytes");
    check(&whole.0);
});

/// All records, and why decoding stopped if it did.
fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<GcRecord>, Option<GcStreamError>) {
    let mut records = Vec::new();
    let mut stream = GcStream::new();
    let mut out = |item: GcItem<'_>| {
        if let GcItem::Record(record) = item {
            records.push(record);
        }
    };
    for piece in pieces {
        if let Err(error) = stream.feed(piece, &mut out) {
            return (records, Some(error));
        }
    }
    stream.finish(&mut out);
    (records, None)
}

fn check(records: &[GcRecord]) {
    let (mut starts, mut ends) = (HashSet::new(), HashSet::new());
    for record in records {
        match record {
            GcRecord::Start(start) => assert!(starts.insert(start.count), "one start for each collection"),
            GcRecord::End(end) => {
                assert!(ends.insert(end.count), "one end for each collection");
                assert!(
                    end.start.is_none_or(|start| start.count == end.count && starts.contains(&end.count))
                );
            }
            GcRecord::Suspension(suspension) => {
                assert!(suspension.reason.is_gc());
                let parts = [suspension.time_to_suspend_ticks, suspension.time_to_restart_ticks];
                assert!(parts.into_iter().flatten().all(|part| part <= suspension.duration_ticks));
            }
            GcRecord::Loss(loss) => assert_ne!(loss.count, 0),
        }
    }
}
