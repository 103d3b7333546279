//! The index file of a recording: whatever it holds, the recording opens, and what is asked of it has an answer or an
//! error. Checksums are not looked at in this build, so that changes get past them.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use typhon_analysis::index::EventId;
use typhon_analysis::session::{Cancel, Direction, Place, Session, SessionOptions, SpanOrder, State};
use typhon_analysis::stats::GroupBy;
use typhon_analysis::tile::{LaneRows, TileRequest};

/// Bytes that say which trace the index is for; with others the file is not looked at.
const IDENTITY_BYTES: usize = 56;
/// Lanes and rows that are asked about.
const LANES_MAX: usize = 24;

struct Recording {
    _folder: TempDir,
    trace: PathBuf,
    identity: Vec<u8>,
}

fn options() -> SessionOptions {
    SessionOptions { index_min_bytes: 0, ..SessionOptions::default() }
}

static RECORDING: LazyLock<Recording> = LazyLock::new(|| {
    // In memory where there is such a folder: a refused index is built anew and synced every time.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("made");
    let trace = folder.path().join("a.typhon-trace");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/guide-shard.typhon-trace");
    fs::copy(corpus, &trace).expect("copied");
    let session = Session::open(&trace, options()).expect("a sound recording");
    assert_eq!(session.wait_until_idle(), State::Ready);
    let index = fs::read(session.index_path().expect("kept")).expect("there");
    Recording { _folder: folder, trace, identity: index[..IDENTITY_BYTES].to_vec() }
});

fuzz_target!(|bytes: &[u8]| {
    let mut index = bytes.to_vec();
    if let Some(identity) = index.get_mut(..IDENTITY_BYTES) {
        // The number of sections is no identity.
        let sections = [identity[6], identity[7]];
        identity.copy_from_slice(&RECORDING.identity);
        identity[6..8].copy_from_slice(&sections);
    }
    let path = RECORDING.trace.with_extension("typhon-index");
    fs::write(&path, &index).expect("written");
    let session = Session::open(&RECORDING.trace, options()).expect("the recording is sound");
    assert_eq!(session.wait_until_idle(), State::Ready);
    // One that was refused has been replaced by a sound one, which other tests ask.
    if fs::read(&path).is_ok_and(|now| now == index) {
        ask(&session);
    }
});

/// Asks for everything; errors are answers.
fn ask(session: &Session) {
    let cancel = Cancel::new();
    let meta = session.meta().expect("ready");
    let lanes = session.lanes().expect("ready");
    let _ = (session.names(), session.ticks(0..1_000), session.collections(0..1_000), session.survey());
    for lane in lanes.iter().take(LANES_MAX) {
        for level in [0, 9, 17, 25, 48] {
            let tile = meta.end_ns >> (level + 10);
            let rows = vec![LaneRows { lane: lane.id, first_row: 0, row_count: LANES_MAX as u8 }];
            let request = TileRequest {
                level,
                content: 31,
                first_tile: tile,
                tile_count: 2,
                lanes: rows,
                ..TileRequest::default()
            };
            let _ = session.tiles(&request, &cancel, |_| {});
        }
        for row in (0..lane.rows.min(LANES_MAX) as u16).map(Some).chain([None]) {
            let place = Place { lane: lane.id, row, index: 1 };
            let _ = (session.event_at(place).and_then(|id| session.event(id)), session.parents(place));
            let _ = (session.children(place, 0..10), session.nearest(lane.id, row, meta.end_ns / 2));
        }
        let _ = session.siblings(Place { lane: lane.id, row: Some(0), index: 0 }, &cancel);
    }
    for group_by in [GroupBy::Name, GroupBy::System, GroupBy::Thread] {
        let window = session.window(meta.end_ns / 4..meta.end_ns / 2).expect("ready");
        let _ = session.stats(group_by, Some(&window), 0, &cancel);
    }
    let _ = session.top_spans(SpanOrder::Own, None, 0, 20, &cancel);
    let _ = session.event(EventId { block: 1, record: 1 });
    if let Ok(filter) = session.add_filter("dur>1us", &cancel, |_| {}) {
        let _ = session.matches(filter.id, None, Direction::Backward, 10);
    }
}
