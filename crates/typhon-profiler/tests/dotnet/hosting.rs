//! A program that hosts a .NET runtime sees the runtime's collections inside the spans that caused them.

use crate::child::{CONFIG, HOST};
use crate::process::{Home, NET_8, Program, TRACE};
use crate::recording::{Recording, Row};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("g1_a_host_records_its_own_runtime_inside_its_spans", its_own_runtime),
    ("g6_background_collections_of_a_host_have_both_sorts_of_suspension", background),
    ("b2_a_runtime_may_come_late", late),
    ("b2_a_runtime_without_diagnostics_is_one_line", without_diagnostics),
];

/// Numbers of `hosted.cs`, and the generation and the reason that they mean.
const INDUCED: [(&str, u8, u8); 4] = [("0", 0, 1), ("1", 1, 1), ("2", 2, 1), ("3", 2, 10)];

fn host(home: &Home, is_concurrent: bool, environment: &[(&str, &str)]) -> Program {
    let config = home.runtime_config(NET_8, &format!(r#""System.GC.Concurrent":{is_concurrent},"#));
    let mut environment = environment.to_vec();
    environment.push((CONFIG, config.to_str().unwrap()));
    let mut program = home.child(HOST, "self", &environment);
    program.says("ready");
    program
}

/// Induces a collection; gives how many there have been in the process.
#[track_caller]
fn collect(host: &mut Program, kind: &str) -> u32 {
    host.tell(kind);
    host.says("collected ").parse().unwrap()
}

fn its_own_runtime() {
    let home = Home::new();
    let mut host = host(&home, false, &[]);
    host.tell("go");
    host.says("hosting");
    host.notes("tracing the collections of the .NET runtime in this process");
    let rounds: Vec<_> = INDUCED.into_iter().cycle().take(20).collect();
    let counts: Vec<u32> = rounds.iter().map(|(kind, ..)| collect(&mut host, kind)).collect();
    host.ends_well();

    let recording = Recording::read(&home.path(TRACE));
    let spans = recording.spans();
    assert_eq!(spans.len(), rounds.len());
    let [starts, ends, suspensions] = [7, 8, 75].map(|kind| recording.of_kind(kind));
    for ((count, (kind, generation, reason)), (name, span)) in counts.iter().zip(&rounds).zip(&spans) {
        assert_eq!(name, kind);
        let is_it = |row: &&&Row| row.count() == *count;
        let start = starts.iter().find(is_it).unwrap();
        assert_eq!(start.as_start().generation(), Some(*generation));
        assert_eq!(start.as_start().reason().map(|reason| reason.0), Some(*reason));
        let end = ends.iter().find(is_it).unwrap();
        assert!(
            start.is_within(span) && end.is_within(span) && start.start < end.start,
            "{start:?} {end:?} {span:?}"
        );
        let view = end.as_end();
        assert!(end.heap_bytes() > 16 << 20 && view.loh_size_after() > Some(16 << 20));
        assert!(view.total_committed_bytes() >= Some(end.heap_bytes()));
        let around: Vec<_> = suspensions.iter().filter(|window| start.is_within(window)).collect();
        let [window] = around[..] else { panic!("one suspension holds collection {count}: {around:?}") };
        assert!(window.is_within(span), "{window:?} {span:?}");
        // The window went through the counter's ticks and back.
        let difference = view.pause_duration_ticks().unwrap() - (window.end - window.start);
        assert!(difference.abs() < 1_000, "{difference} ns");
    }
    for row in starts.iter().chain(&ends).chain(&suspensions) {
        assert_eq!(row.parent, 0, "G-5");
        assert_eq!(recording.threads_of(row.slot), ["Typhon.GcIngest"], "G-2");
    }
    assert_eq!(recording.marked("typhon.gc_session_lost"), 0, "G-12");
}

fn background() {
    let home = Home::new();
    let mut host = host(&home, true, &[]);
    host.tell("go");
    host.says("hosting");
    host.notes("tracing the collections of the .NET runtime in this process");
    let count = collect(&mut host, "4");
    // A blocking one waits for the end of that in the background.
    collect(&mut host, "2");
    host.ends_well();
    let recording = Recording::read(&home.path(TRACE));
    let spans = recording.spans();
    let starts = recording.of_kind(7);
    let start = starts.iter().find(|start| start.count() == count).unwrap();
    assert_eq!(start.as_start().gc_type().map(|it| it.0), Some(1));
    assert!(start.is_within(spans[0].1));
    let ends = recording.of_kind(8);
    let end = ends.iter().find(|end| end.count() == count).unwrap();
    assert!(end.end <= spans[1].1.end);
    let windows = recording.of_kind(75);
    let reasons: Vec<u8> =
        windows.iter().filter_map(|window| window.as_suspension().reason()).map(|reason| reason.0).collect();
    assert!([1, 6].iter().all(|reason| reasons.contains(reason)), "{reasons:?}");
    assert!(reasons.iter().all(|reason| [1, 6].contains(reason)), "{reasons:?}");
    let own =
        windows.iter().filter(|window| window.start <= end.start).map(|window| window.end - window.start);
    let pause = end.as_end().pause_duration_ticks().unwrap();
    // A nanosecond may be lost in each window.
    assert!(pause > 0 && pause <= own.sum::<i64>() + 1_000);
}

fn late() {
    let home = Home::new();
    let mut host = host(&home, false, &[]);
    let line = host.notes("GcTracing: still waiting for a .NET runtime: ");
    for part in ["dotnet-diagnostic-", home.path("").to_str().unwrap(), "DOTNET_EnableDiagnostics=0"] {
        assert!(line.contains(part), "{line}");
    }
    host.tell("go");
    host.says("hosting");
    host.notes("tracing the collections of the .NET runtime in this process");
    let count = collect(&mut host, "2");
    assert_eq!(host.ends_well(), Vec::<String>::new(), "and nothing more is said");
    let recording = Recording::read(&home.path(TRACE));
    assert!(recording.of_kind(8).iter().any(|end| end.count() == count));
}

fn without_diagnostics() {
    let home = Home::new();
    let mut host = host(&home, false, &[("DOTNET_EnableDiagnostics", "0")]);
    host.tell("go");
    host.says("hosting");
    collect(&mut host, "2");
    host.notes("GcTracing: still waiting for a .NET runtime: ");
    collect(&mut host, "2");
    assert_eq!(host.ends_well(), Vec::<String>::new(), "one line is enough");
    let recording = Recording::read(&home.path(TRACE));
    assert_eq!((recording.spans().len(), recording.of_kind(7).len()), (2, 0));
}
