//! Programs that speak `tracing` or `log`, recorded without a change at their call sites.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::{Arc, Mutex};

use common::{Recorded, Row, session};
use tracing::{info, info_span, trace, warn};
use tracing_subscriber::layer::SubscriberExt;
use typhon_profiler::bridge::{ProfilerLayer, ProfilerLogger};
use typhon_profiler::export::names;

const INSTANT: u8 = 6;
const NAMED_SPAN: u8 = 246;

/// What `work` says through `tracing`.
fn traced(layer: ProfilerLayer, work: impl FnOnce()) -> Recorded {
    let subscriber = tracing_subscriber::registry().with(layer);
    session(&[INSTANT, NAMED_SPAN], || tracing::subscriber::with_default(subscriber, work)).0
}

fn span_names(recorded: &Recorded) -> Vec<String> {
    recorded.of_kind(NAMED_SPAN).iter().map(span_name).collect()
}

fn span_name(row: &Row) -> String {
    String::from_utf8(row.payload.split(|&byte| byte == 0).next().unwrap().to_vec()).unwrap()
}

fn named(recorded: &Recorded, name: &str) -> Row {
    let rows: Vec<Row> =
        recorded.of_kind(NAMED_SPAN).into_iter().filter(|row| span_name(row) == name).collect();
    assert_eq!(rows.len(), 1, "{name} in {:?}", span_names(recorded));
    rows[0].clone()
}

/// Name and value of every instant.
fn instants(recorded: &Recorded) -> Vec<(String, i32)> {
    let of_row = |row: &Row| {
        let word = |at: usize| i32::from_le_bytes(row.payload[at..at + 4].try_into().unwrap());
        let id = word(0) as u32;
        (names(id, id + 1)[0].1.to_owned(), word(4))
    };
    recorded.of_kind(INSTANT).iter().map(of_row).collect()
}

#[test]
fn spans_keep_their_nesting_and_fields() {
    let recorded = traced(ProfilerLayer::new(), || {
        let _request = info_span!("request", method = "GET", size = 52, secure = true).entered();
        info_span!("query").in_scope(|| info_span!("parse", text = ?"x y").in_scope(|| ()));
    });
    let request = named(&recorded, "request{method=GET size=52 secure=true}");
    let query = named(&recorded, "query");
    let parse = named(&recorded, "parse{text=\"x y\"}");
    assert_eq!([request.parent, query.parent, parse.parent], [0, request.id, query.id]);
    assert!(request.start <= query.start && query.start <= parse.start);
    assert!(parse.end() <= query.end() && query.end() <= request.end());
    assert!(recorded.spans().iter().all(|row| row.site.is_none()));
}

#[test]
fn every_stay_in_a_span_is_a_span_of_its_thread() {
    let recorded = traced(ProfilerLayer::new(), || {
        let task = info_span!("task");
        task.in_scope(|| ());
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        std::thread::scope(|scope| {
            scope.spawn(|| tracing::dispatcher::with_default(&dispatch, || task.in_scope(|| ())));
        });
    });
    let stays = recorded.of_kind(NAMED_SPAN);
    assert_eq!(span_names(&recorded), ["task", "task"]);
    assert_ne!(stays[0].slot, stays[1].slot);
    assert_ne!(stays[0].id, stays[1].id);
}

#[test]
fn fields_recorded_later_are_in_the_name() {
    let recorded = traced(ProfilerLayer::new(), || {
        let span = info_span!("load", rows = tracing::field::Empty, file = "a").entered();
        span.record("rows", 7);
    });
    assert_eq!(span_names(&recorded), ["load{file=a rows=7}"]);
}

#[test]
fn span_fields_can_be_left_out() {
    let recorded = traced(ProfilerLayer::new().without_span_fields(), || {
        let span = info_span!("load", rows = tracing::field::Empty, file = "a").entered();
        span.record("rows", 7);
    });
    assert_eq!(span_names(&recorded), ["load"]);
}

#[test]
fn spans_left_in_any_order_and_entered_twice_are_each_recorded_once() {
    let recorded = traced(ProfilerLayer::new(), || {
        let (first, second) = (info_span!("first"), info_span!("second"));
        let (in_first, in_second) = (first.enter(), second.enter());
        let again = first.enter();
        drop(in_first);
        drop(in_second);
        drop(again);
        info_span!("after").in_scope(|| ());
    });
    let mut names = span_names(&recorded);
    names.sort();
    assert_eq!(names, ["after", "first", "first", "second"]);
    assert_eq!(named(&recorded, "after").parent, 0, "nothing is open any more");
}

#[test]
fn a_long_name_is_cut_at_255_bytes() {
    let recorded = traced(ProfilerLayer::new(), || {
        info_span!("big", text = "é".repeat(300)).in_scope(|| ());
    });
    let name = &span_names(&recorded)[0];
    assert!(name.starts_with("big{text=éé") && (254..=255).contains(&name.len()), "{}", name.len());
}

#[test]
fn events_are_instants_with_level_target_message_and_a_number() {
    let recorded = traced(ProfilerLayer::new(), || {
        info!("plain");
        warn!(target: "db", retries = 3, "slow {}", "answer");
        info!(a = -5_i64, b = 7_u64, c = "x", d = ?Some(1), "fields");
        trace!(count = u64::MAX);
        trace!(count = i64::MIN);
    });
    let expected = [
        ("INFO bridges: plain", 0),
        ("WARN db: slow answer retries=#", 3),
        ("INFO bridges: fields a=# b=7 c=x d=Some(1)", -5),
        ("TRACE bridges: count=#", i32::MAX),
        ("TRACE bridges: count=#", i32::MIN),
    ];
    assert_eq!(instants(&recorded), expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn messages_that_differ_each_time_do_not_use_up_the_names() {
    let recorded = traced(ProfilerLayer::new(), || {
        for n in 0..1_000 {
            info!("request {n} done");
        }
    });
    let instants = instants(&recorded);
    assert_eq!(instants.len(), 1_000, "each is recorded");
    assert_eq!(instants[31].0, "INFO bridges: request 31 done");
    let rest = &instants[32].0;
    assert!(rest.starts_with("INFO bridges (") && rest.contains("bridges.rs:"), "{rest}");
    assert!(instants[32..].iter().all(|(name, _)| name == rest));
}

#[test]
fn instrumented_functions_are_recorded() {
    #[tracing::instrument]
    fn add(left: i32, right: i32) -> i32 {
        left + right
    }
    let recorded = traced(ProfilerLayer::new(), || assert_eq!(add(2, 3), 5));
    assert_eq!(span_names(&recorded), ["add{left=2 right=3}"]);
}

#[test]
fn b7_a_span_entered_while_off_is_not_recorded_and_one_entered_while_on_is() {
    use typhon_profiler::session::set_mask;
    let recorded = traced(ProfilerLayer::new(), || {
        let (before, during) = (info_span!("before"), info_span!("during", n = 1));
        let in_before = before.enter();
        set_mask(common::mask(&[]));
        let in_during = during.enter();
        info!("unheard");
        set_mask(common::mask(&[INSTANT, NAMED_SPAN]));
        drop(in_during);
        drop(in_before);
    });
    assert_eq!(span_names(&recorded), ["before"]);
    assert_eq!(instants(&recorded), []);
}

#[test]
fn a_panic_in_a_span_ends_it() {
    let recorded = traced(ProfilerLayer::new(), || {
        let panic = std::panic::catch_unwind(|| {
            info_span!("outer").in_scope(|| std::panic::resume_unwind(Box::new(1)))
        });
        assert!(panic.is_err());
        info_span!("after").in_scope(|| ());
    });
    assert_eq!(span_names(&recorded), ["outer", "after"]);
    assert_eq!(named(&recorded, "after").parent, 0);
}

/// Keeps the lines it gets; wants warnings only.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl log::Log for Lines {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        self.0.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {
        self.0.lock().unwrap().push("flushed".to_owned());
    }
}

#[test]
fn log_records_are_instants_and_go_on_to_the_logger_behind() {
    let lines = Lines::default();
    ProfilerLogger::in_front_of(Box::new(lines.clone())).install(log::LevelFilter::Info).unwrap();
    // No session of another test may hear this.
    let turn = common::turn();
    log::warn!("nobody listens yet");
    drop(turn);
    let (recorded, _) = session(&[INSTANT], || {
        log::info!("ready");
        log::warn!(target: "disk", "{} % full", 93);
        log::debug!("below the level");
        log::logger().flush();
    });
    let expected = [("INFO bridges: ready", 0), ("WARN disk: 93 % full", 0)];
    assert_eq!(instants(&recorded), expected.map(|(name, value)| (name.to_owned(), value)));
    assert_eq!(*lines.0.lock().unwrap(), ["nobody listens yet", "93 % full", "flushed"]);
    let _turn = common::turn();
    assert!(log::log_enabled!(log::Level::Warn));
    assert!(
        !log::log_enabled!(log::Level::Info),
        "the profiler is off and the other logger does not want it"
    );
}

/// A value whose text is made by a program that goes on using `tracing`, and the very span that gets the value.
struct Busy(tracing::Span);

impl std::fmt::Debug for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let _entered = self.0.enter();
        self.0.record("inner", 5);
        info!("inside of a value");
        f.write_str("busy")
    }
}

#[test]
fn values_may_use_the_span_that_they_are_for() {
    let (sender, done) = std::sync::mpsc::channel();
    // A thread of its own, so that a lock that it waits for itself is a failure and not the end of all tests.
    let work = move || {
        let recorded = traced(ProfilerLayer::new(), || {
            let span = info_span!("outer", value = tracing::field::Empty, inner = tracing::field::Empty);
            span.record("value", tracing::field::debug(Busy(span.clone())));
            span.in_scope(|| ());
        });
        sender.send(span_names(&recorded)).unwrap();
    };
    std::thread::spawn(work);
    let Ok(names) = done.recv_timeout(std::time::Duration::from_secs(60)) else {
        // It has the turn of the other tests, which would wait for ever.
        eprintln!("the thread waits for itself");
        std::process::exit(101);
    };
    assert_eq!(names, ["outer{inner=5}", "outer{inner=5 value=busy}"]);
}

/// A value without a text.
struct Broken;

impl std::fmt::Debug for Broken {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::panic::resume_unwind(Box::new("planned"))
    }
}

#[test]
fn a_value_that_panics_leaves_its_span_usable() {
    let recorded = traced(ProfilerLayer::new(), || {
        let span = info_span!("outer", value = tracing::field::Empty);
        let record = || span.in_scope(|| _ = span.record("value", tracing::field::debug(Broken)));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(record)).is_err());
        span.record("value", 7);
        span.in_scope(|| ());
    });
    assert_eq!(span_names(&recorded), ["outer", "outer{value=7}"]);
}
