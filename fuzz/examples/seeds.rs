//! Writes the seeds of all fuzz targets, small pieces of the recordings in `corpus/`, to `fuzz/seeds/`.
//! Run by `cargo xtask fuzz-seeds`.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use typhon_analysis::session::{Session, SessionOptions};
use typhon_analysis::tile::{LaneRows, TileRequest};
use typhon_log::{Draft, FenceEnd, Options as LogOptions, Store};
use typhon_store::PoolIo;
use typhon_sync::Deadline;
use typhon_trace::header::HEADER_BYTES;
use typhon_trace::reader::{BlockBuffer, BlockIndex, ReadOptions, TraceFile};
use typhon_trace::repair::repair;
use typhon_trace::trailer::{CpuSamples, Section};

/// Records per seed: enough to mix kinds, few enough to mutate quickly.
const RECORDS_PER_SEED: usize = 12;

/// Every construct of the filter language once.
const FILTERS: &[&str] = &[
    "kind=BTree* dur>50us thread~Worker field.archetypeId=5",
    "id=20..25 | family=Ecs* !(slot!=3)",
    "name=\"a \\\"quoted\\\" name\" tick>=10 tick<=20",
    "ts=1.5s..2.5s self>100ns depth<4",
    "site~\"src/.*rs\" span=0x0100000000000149 parent=none",
    "trace=4bf92f3577b34da6a3ce929d0e0e4736",
    "system=Movement field.sizeBytes>64KiB field.count<2k",
    "(kind=TickStart | kind=TickEnd) Move",
    "!name~^x?y+$",
];

/// Two files and some variables, as the target `config` takes them: separated by zero bytes.
const CONFIGURATIONS: &[&str] = &[
    "{ \"Typhon\": { \"Profiler\": { \"Enabled\": true, \"Trace\": \"x.typhon-trace\", // comment\n \"Live\": 9100 } } }",
    "{ \"Typhon:Profiler:Storage\": { \"Enabled\": \"on\", \"PageCache\": { \"Enabled\": 1 }, }, }\0\
     {\"Typhon\": {\"Profiler\": {\"Kinds\": {\"Unsuppress\": [\"DataIndexBTreeSearch\", 50], \"Suppress\": \"4,Instant\"}}}}\0\
     TYPHON__PROFILER__ENABLED=true\0TYPHON__PROFILER__BUFFERBUDGETMIB=0\0typhon__profiler__trcae=x",
    "{\"Typhon\": {\"Profiler\": {\"ECS\": {\"Query\": {\"Constraint\": {\"Enabled\": {\"Enabled\": false}}}}}}}\0{}\0\
     TYPHON__PROFILER__GCTRACING__TARGET=listen:/run/x\0TYPHON__PROFILER__LIVEBIND=::1\0TYPHON__TELEMETRY__ENABLED=off",
    "{ \"budgetBytes\": 5, \"keepLatest\": 2, \"pinned\": [\"20260101-000000-000.typhon-trace\"] }",
];

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let all_kinds = Recording::open("all-kinds.typhon-trace")?;
    let guide = Recording::open("guide-shard.typhon-trace")?;
    for (number, records) in one_record_of_each_kind(&all_kinds)?.chunks(RECORDS_PER_SEED).enumerate() {
        write("record_walk", number, &records.concat())?;
        write("typed_decode", number, &records.concat())?;
    }
    write_query_records(&all_kinds)?;
    for (number, entry) in guide.index.entries.iter().skip(1).step_by(20).enumerate() {
        write("block", number, &guide.bytes()[entry.offset as usize..entry.end() as usize])?;
    }
    for (number, recording) in [&all_kinds, &guide].into_iter().enumerate() {
        let first_block = recording.index.entries.first().ok_or("a recording without blocks")?;
        write("header_tables", number, &recording.bytes()[..first_block.offset as usize])?;
    }
    for (number, text) in FILTERS.iter().enumerate() {
        write("filter", number, text.as_bytes())?;
    }
    for (number, text) in CONFIGURATIONS.iter().enumerate() {
        write("config", number, text.as_bytes())?;
    }
    write_sections(&all_kinds, &guide)?;
    write("live_frames", 0, &fs::read(corpus("guide-shard-live.bin"))?[..4096])?;
    write_event_streams()?;
    write_answers()?;
    write_index()?;
    write_logs()?;
    write_files(&all_kinds, &guide)
}

struct Recording {
    file: TraceFile<Vec<u8>>,
    index: BlockIndex,
}

impl Recording {
    fn open(name: &str) -> Outcome<Self> {
        let file = TraceFile::open(fs::read(corpus(name))?)?;
        let index = file.scan(ReadOptions::default())?;
        Ok(Self { file, index })
    }

    fn bytes(&self) -> &[u8] {
        self.file.data()
    }

    /// Calls `visit` with kind and bytes of each record.
    fn for_each_record(&self, mut visit: impl FnMut(u8, &[u8])) -> Outcome {
        let mut buffer = BlockBuffer::new();
        for entry in &self.index.entries {
            self.file.read_block(&self.index, entry, &mut buffer)?;
            buffer.events().for_each(|record| visit(record.kind(), record.bytes()));
        }
        Ok(())
    }
}

/// The index of a recording, and requests for its tiles.
fn write_index() -> Outcome {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("a.typhon-trace");
    fs::copy(corpus("guide-shard.typhon-trace"), &trace)?;
    let session = Session::open(&trace, SessionOptions { index_min_bytes: 0, ..SessionOptions::default() })?;
    session.wait_until_idle();
    write("sidecar", 0, &fs::read(session.index_path().ok_or("the index was not kept")?)?)?;
    for (number, level) in [4u8, 14, 22, 30].into_iter().enumerate() {
        let lanes = session.lanes()?;
        let lanes = lanes.iter().map(|lane| LaneRows { lane: lane.id, first_row: 0, row_count: 8 }).collect();
        let request = TileRequest { level, content: 31, tile_count: 8, lanes, ..TileRequest::default() };
        write("tiles", number, &request.encode())?;
    }
    Ok(())
}

/// Logs in several states, as the target `log_files` takes them: a byte that says whether checksums are made right, and
/// pieces of files.
fn write_logs() -> Outcome {
    let folder = tempfile::tempdir()?;
    let directory = folder.path().join("log");
    let open = || -> Outcome<Store> {
        let options = LogOptions { segment_bytes: 12 << 10, spare_segments: 1, ..LogOptions::small() };
        let opening = Store::open(Arc::new(PoolIo::new()), &directory, options, b"state")?;
        Ok(opening.start(b"state")?)
    };
    let mut states = Vec::new();
    let log = open()?;
    states.push(pieces(&directory)?);
    let mut last = log.watermarks().appended;
    for number in 0..5 {
        log.append(&Draft::fence_part(number, b"part"), Deadline::INFINITE)?;
        let end = FenceEnd { fence: number, tick: -1, parts: 1, records: 1 }.encode();
        log.append(&Draft::fence_end(&end), Deadline::INFINITE)?;
        last = log.commit(&Draft::commit(&[number as u8; 50]), Deadline::INFINITE)?.lsn;
    }
    states.push(pieces(&directory)?);
    log.checkpoint(last, b"other state")?;
    log.commit(&Draft::commit(&[9; 5000]), Deadline::INFINITE)?;
    states.push(pieces(&directory)?);
    drop(log);
    let log = open()?;
    log.commit(&Draft::commit(b"of the second open"), Deadline::INFINITE)?;
    states.push(pieces(&directory)?);
    drop(log);
    for (number, state) in states.iter().enumerate() {
        write("log_files", 2 * number, &[&[0], &state[..]].concat())?;
        write("log_files", 2 * number + 1, &[&[1], &state[..]].concat())?;
    }
    Ok(())
}

/// The pages of a log's files that are not zeros, without the zeros at their ends.
fn pieces(directory: &Path) -> Outcome<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Outcome<_>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let file = match path.extension().and_then(|extension| extension.to_str()) {
            Some("wal") => name.parse::<u8>()?,
            Some("spare") => name.parse::<u8>()? + 16,
            _ if name == "anchor" => 0,
            _ => continue,
        };
        for (page, bytes) in fs::read(&path)?.chunks(4096).enumerate() {
            let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            if length > 0 || page == 2 {
                pieces.extend([file, page as u8]);
                pieces.extend((length as u16).to_le_bytes());
                pieces.extend(&bytes[..length]);
            }
        }
    }
    Ok(pieces)
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name)
}

fn write(target: &str, number: usize, bytes: &[u8]) -> Outcome {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(format!("{number:03}")), bytes)?)
}

fn one_record_of_each_kind(recording: &Recording) -> Outcome<Vec<Vec<u8>>> {
    let mut seen = BTreeSet::new();
    let mut records = Vec::new();
    recording.for_each_record(|kind, bytes| {
        if seen.insert(kind) {
            records.push(bytes.to_vec());
        }
    })?;
    Ok(records)
}

/// Kinds 247 and 248, which have a codec of their own.
fn write_query_records(recording: &Recording) -> Outcome {
    let mut records = Vec::new();
    recording.for_each_record(|kind, bytes| {
        if matches!(kind, 247 | 248) {
            records.push(bytes.to_vec());
        }
    })?;
    records
        .iter()
        .take(RECORDS_PER_SEED)
        .enumerate()
        .try_for_each(|(number, bytes)| write("query_codec", number, bytes))
}

/// Sections without their magic, behind the byte that chooses the section in the target `trailers`.
fn write_sections(all_kinds: &Recording, guide: &Recording) -> Outcome {
    let offsets = &all_kinds.file.header().offsets;
    let (files, manifest) = (offsets.file_table as usize, offsets.source_location_manifest as usize);
    let strings = guide.file.header().offsets.query_source_string_table as usize;
    write("trailers", 0, b"\0\x02\0\x07\0\x03one\x09\0\x03two")?;
    write("trailers", 1, &[&[1], &all_kinds.bytes()[files + 4..manifest]].concat())?;
    write("trailers", 2, &[&[2], &all_kinds.bytes()[manifest + 4..]].concat())?;
    write("trailers", 3, &[&[3], &guide.bytes()[strings + 4..]].concat())?;
    let samples = guide.file.sections().cpu_samples.as_ref().ok_or("a recording without CPU samples")?;
    let few = CpuSamples { samples: samples.samples[..20].to_vec(), ..samples.clone() };
    let mut encoded = Vec::new();
    CpuSamples { frames: few.frames[..20].to_vec(), ..few }.encode(&mut encoded)?;
    write("trailers", 4, &[&[4], &encoded[Section::CpuSamples.magic().len()..]].concat())
}

/// Whole files: a header without tables, one cut in the tables, some with blocks, and one with checksums.
fn write_files(all_kinds: &Recording, guide: &Recording) -> Outcome {
    let starts: Vec<usize> = all_kinds.index.entries.iter().map(|entry| entry.offset as usize).collect();
    write("open_verify", 0, &all_kinds.bytes()[..HEADER_BYTES])?;
    write("open_verify", 1, &guide.bytes()[..1000])?;
    let whole_blocks = &all_kinds.bytes()[..starts[20]];
    write("open_verify", 2, whole_blocks)?;
    write("open_verify", 3, &all_kinds.bytes()[..starts[40] + 5])?;
    let (ours, _) =
        repair(&TraceFile::open(whole_blocks)?, ReadOptions::default(), Cursor::new(Vec::new()), |_| {})?;
    write("open_verify", 4, ours.get_ref())
}

/// The beginning of each recorded event stream up to the end of its first event block, behind the byte that says in what
/// pieces the target `nettrace` feeds it.
fn write_event_streams() -> Outcome {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(corpus("nettrace"))?.map(|entry| Ok(entry?.path())).collect::<Outcome<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "nettrace"));
    paths.sort();
    for (number, path) in paths.iter().enumerate() {
        let stream = fs::read(path)?;
        let mut decoder = typhon_clr::nettrace::Decoder::new();
        let mut events = 0;
        let end = stream.iter().position(|&byte| {
            decoder.feed(&[byte]);
            while let Ok(Some(item)) = decoder.next_item() {
                events += u32::from(matches!(item, typhon_clr::nettrace::Item::Event(_)));
            }
            events > 0 && decoder.pending_bytes() == 0
        });
        let end = end.ok_or("a recorded stream without events")?;
        write("nettrace", number, &[&[number as u8 * 50], &stream[..=end]].concat())?;
    }
    Ok(())
}

/// What a runtime may say: a session number, a refusal, process information, an introduction.
fn write_answers() -> Outcome {
    let answer = |id: u8, payload: &[u8]| {
        let size = (20 + payload.len() as u16).to_le_bytes();
        [&b"DOTNET_IPC_V1\0"[..], &size, &[0xff, id, 0, 0], payload].concat()
    };
    let text = |text: &str| -> Vec<u8> {
        let units = text.encode_utf16().chain([0]);
        let length = (units.clone().count() as u32).to_le_bytes();
        length.into_iter().chain(units.flat_map(u16::to_le_bytes)).collect()
    };
    let texts = ["dotnet app.dll", "Linux", "x64", "app", "8.0.4", "linux-x64"].map(text).concat();
    let info = [&[1, 0, 0, 0][..], &4711u64.to_le_bytes(), &[7; 16], &texts].concat();
    write("ipc", 0, &answer(0, &42u64.to_le_bytes()))?;
    write("ipc", 1, &answer(0xff, &0x8013_1385u32.to_le_bytes()))?;
    write("ipc", 2, &answer(0, &info))?;
    write("ipc", 3, &answer(0, &info[4..]))?;
    write("ipc", 4, &[&b"ADVR_V1\0"[..], &[7; 16], &4711u64.to_le_bytes(), &[0; 2]].concat())
}
