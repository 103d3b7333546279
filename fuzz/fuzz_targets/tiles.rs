//! Tile requests: what decodes encodes to the same bytes, and its answer keeps to the limits of the protocol.
#![no_main]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use typhon_analysis::session::{Cancel, Session, SessionOptions, State};
use typhon_analysis::tile::{Content, Entries, MAX_ROW_ENTRIES, Tile, TileRequest};

static SESSION: LazyLock<Session> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/guide-shard.typhon-trace");
    let session = Session::open(&path, SessionOptions::default()).expect("a sound recording");
    assert_eq!(session.wait(), State::Ready);
    session
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(request) = TileRequest::decode(bytes) else { return };
    let mut again = request.encode();
    // The last byte of a lane is ignored.
    (0..request.lanes.len()).for_each(|lane| again[32 + 8 * lane + 7] = bytes[32 + 8 * lane + 7]);
    assert_eq!(again, bytes);
    let mut tiles = Vec::new();
    if SESSION.tiles(&request, &Cancel::new(), |tile| tiles.push(tile)).is_err() {
        return;
    }
    assert_eq!(tiles.last().map(|tile| tile.content), Some(Content::End));
    for tile in tiles {
        let mut frame = Vec::new();
        tile.encode(&mut frame);
        assert_eq!(Tile::decode(&frame).as_ref(), Ok(&tile));
        if let Entries::Spans(entries) = &tile.entries {
            let mut rows: BTreeMap<u8, usize> = BTreeMap::new();
            entries.iter().for_each(|entry| *rows.entry(entry.row).or_default() += 1);
            assert!(rows.values().all(|count| *count <= MAX_ROW_ENTRIES));
            assert!(entries.iter().all(|entry| entry.x0 < 512 && entry.x1 <= 512 && entry.x0 <= entry.x1));
        }
    }
});
