//! What a file says of the program that was recorded, whenever the program was described.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod common;

use common::turn;
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use typhon_profiler::events::{SchedulerChunk, TransactionCommit};
use typhon_profiler::export::FileExporter;
use typhon_profiler::session::{self, SessionOptions};
use typhon_profiler::{Program, Ticks, describe, emit_system_span, span};
use typhon_trace::header::FileHeader;
use typhon_trace::reader::{
    FileVerdict, ReadOptions, Sections, StreamReader, TraceFile, VerifyOptions, verify,
};
use typhon_trace::repair::repair;
use typhon_trace::tables::{Dag, System, Tables, Track};

const MOVEMENT: u16 = 7;

fn start(path: &Path) {
    let exporters: Vec<Box<dyn typhon_profiler::export::Exporter>> = vec![Box::new(FileExporter::new(path))];
    session::start(SessionOptions { mask: common::mask(common::ALL), exporters, ..Default::default() })
        .unwrap();
}

fn tables() -> Tables {
    let system = |index: u16| System { index, name: format!("System{index}"), ..System::default() };
    Tables {
        systems: vec![system(0), system(MOVEMENT)],
        tracks: vec![Track { name: "Main".into(), ..Track::default() }],
        dags: vec![Dag { id: 1, name: "Simulation".into(), ..Dag::default() }],
        ..Tables::default()
    }
}

/// A program, and the line where its system is registered.
fn program() -> (Program, u32) {
    let here = std::panic::Location::caller();
    let header = FileHeader { base_tick_rate: 60.0, database_name: "world".into(), ..FileHeader::new(0) };
    (
        Program::new(tables()).with_header(header).with_system_source(MOVEMENT, "demo::movement", here),
        here.line(),
    )
}

fn work() {
    drop(span!(TransactionCommit::default()));
    let start = Ticks::now();
    emit_system_span(MOVEMENT, start, Ticks::now(), SchedulerChunk::default);
}

fn open(path: &Path) -> TraceFile<File> {
    TraceFile::open(File::open(path).unwrap()).unwrap()
}

fn is_sound(path: &Path) -> bool {
    let reader = StreamReader::from_file(File::open(path).unwrap(), ReadOptions::default()).unwrap();
    verify(reader, VerifyOptions { deep: true }, |_| ()).unwrap().verdict == FileVerdict::Sound
}

/// The line that the span of the system names, and its method.
fn place_of_system(trace: &TraceFile<File>) -> (u32, String) {
    let mut reader = trace.stream(ReadOptions::default()).unwrap();
    let mut site = None;
    while let Some(block) = reader.next_delivered().unwrap() {
        let mut chunks = block.payload.events().filter(|record| record.kind() == 10);
        site = site.or_else(|| chunks.find_map(|record| record.span().unwrap().site));
    }
    assert_eq!(site, Some(0x8000 | MOVEMENT));
    let place = trace.sections().source_manifest.as_ref().unwrap().get(0x8000 | MOVEMENT).unwrap();
    let files = trace.sections().file_table.as_ref().unwrap();
    assert!(files.path(place.file_id).unwrap().ends_with("tests/program.rs"));
    (place.line, place.method.clone())
}

#[test]
fn program_described_before_the_start_stands_in_front() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("before.typhon-trace");
    let (program, line) = program();
    describe(program);
    start(&path);
    work();
    session::stop().unwrap();
    describe(Program::default());
    let reader = StreamReader::from_file(File::open(&path).unwrap(), ReadOptions::default()).unwrap();
    assert_eq!(reader.preamble().tables, tables());
    let trace = open(&path);
    assert_eq!((trace.header().base_tick_rate, trace.header().system_count), (60.0, 2));
    assert_eq!(trace.header().database_name, "world");
    assert_eq!(place_of_system(&trace), (line, "demo::movement".to_owned()));
    assert!(is_sound(&path));
}

#[test]
fn program_described_while_recording_is_in_the_closed_file_and_in_front_of_its_copy() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late.typhon-trace");
    start(&path);
    work();
    assert!(session::flush(Duration::from_secs(60)));
    let (program, line) = program();
    describe(program);
    session::stop().unwrap();
    describe(Program::default());
    let trace = open(&path);
    assert_eq!(trace.tables(), &tables());
    assert_eq!((trace.header().base_tick_rate, trace.header().database_name.as_str()), (60.0, "world"));
    assert_eq!(place_of_system(&trace), (line, "demo::movement".to_owned()));
    assert!(is_sound(&path));

    let copy = folder.path().join("copy.typhon-trace");
    let sink = File::options().read(true).write(true).create(true).truncate(true).open(&copy).unwrap();
    repair(&trace, ReadOptions::default(), sink, |_| ()).unwrap();
    let reader = StreamReader::from_file(File::open(&copy).unwrap(), ReadOptions::default()).unwrap();
    assert_eq!(reader.preamble().tables, tables());
    assert_eq!(reader.preamble().header.system_count, 2);
    assert!(is_sound(&copy));
}

#[test]
fn program_described_while_recording_is_beside_the_open_file() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("open.typhon-trace");
    let beside = folder.path().join("open.typhon-trace.sites");
    start(&path);
    work();
    let (program, line) = program();
    describe(program);
    assert!(session::flush(Duration::from_secs(60)));
    // What a kill would leave at this moment.
    let (killed, killed_sites) = (folder.path().join("killed"), folder.path().join("killed.sites"));
    std::fs::copy(&path, &killed).unwrap();
    std::fs::copy(&beside, &killed_sites).unwrap();
    session::stop().unwrap();
    describe(Program::default());
    assert!(!beside.exists() && !folder.path().join("open.typhon-trace.sites.new").exists());

    let (sections, notices) = Sections::read_beside(File::open(&killed_sites).unwrap()).unwrap();
    assert!(notices.is_empty());
    let trace = open(&killed).with_beside(&sections, notices);
    assert!(!trace.header().is_closed());
    assert_eq!(trace.tables(), &tables());
    assert_eq!(place_of_system(&trace), (line, "demo::movement".to_owned()));
}
