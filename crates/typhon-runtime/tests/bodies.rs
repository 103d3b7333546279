//! What closures become: the bodies and gates that execution calls.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use common::{build, sim};
use typhon_runtime::event_queue::Outboxes;
use typhon_runtime::schedule::BuiltSchedule;
use typhon_runtime::system::{
    BindError, ChunkCtx, ChunkedBody, Chunks, Invocation, SystemBody, SystemCtx, SystemResult, TickInfo,
};
use typhon_runtime::{SystemIndex, WorkerId};

const TICK: TickInfo =
    TickInfo { number: 7, delta_seconds: 0.5, measured_delta_seconds: 0.25, fixed_delta_seconds: 0.5 };

/// Runs system 0 as chunk 2 of 3.
fn run(built: &mut BuiltSchedule) -> SystemResult {
    let outboxes = RefCell::new(Outboxes::default());
    let graph = Arc::clone(&built.graph);
    let system = SystemIndex::new(0);
    let invocation = Invocation {
        tick: &TICK,
        system,
        node: graph.system(system),
        worker: WorkerId::new(1),
        outboxes: &outboxes,
        chunk: 2,
        chunk_count: 3,
    };
    match &mut built.bodies[0] {
        SystemBody::Callback(run) => run(&mut SystemCtx::new(invocation)),
        SystemBody::Chunked(body) => (body.run)(&ChunkCtx::new(invocation)),
        SystemBody::Pipeline(run) => run(2, 3),
    }
}

fn chunked(built: &BuiltSchedule) -> &ChunkedBody {
    match &built.bodies[0] {
        SystemBody::Chunked(body) => body,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bodies_return_nothing_or_any_error() {
    let seen = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&seen);
    let mut nothing = build(|schedule| {
        sim(schedule).callback_system("Count", move |ctx| {
            count.fetch_add(ctx.chunk + ctx.chunk_count + ctx.tick_number() as u32, Relaxed);
        });
    });
    run(nothing.as_mut().unwrap()).unwrap();
    assert_eq!(seen.load(Relaxed), 12);

    let mut io_error = build(|schedule| {
        sim(schedule).chunked_system("Load", 3, |ctx| -> Result<(), io::Error> {
            Err(io::Error::other(format!("chunk {} of \"{}\"", ctx.chunk, ctx.node.name)))
        });
    });
    assert_eq!(run(io_error.as_mut().unwrap()).unwrap_err().to_string(), "chunk 2 of \"Load\"");

    let mut any_error = build(|schedule| {
        sim(schedule).pipeline_system("Sum", 3, |chunk, total| -> SystemResult {
            "x".parse::<u32>()?;
            Err(format!("{chunk}/{total}").into())
        });
    });
    let error = run(any_error.as_mut().unwrap()).unwrap_err();
    assert!(error.is::<std::num::ParseIntError>(), "{error}");
}

#[test]
fn gates_are_kept_in_order_and_may_fail() {
    let mut built = build(|schedule| {
        let system = sim(schedule).callback_system("Move", |_| {});
        system.run_if(|tick| tick.number > 7).run_if(|_| "x".parse::<bool>());
    })
    .unwrap();
    assert!(built.graph.systems()[0].is_gated);
    let gates = &mut built.gates[0];
    assert_eq!(gates.len(), 2);
    assert!(!gates[0](&TICK).unwrap());
    assert!(gates[1](&TICK).is_err());
}

#[test]
fn b8_a_context_is_bound_once_with_its_type_and_reaches_chunks_and_hooks() {
    let mut built = build(|schedule| {
        let system = sim(schedule).chunked_system_with(
            "Fill",
            3,
            |factor: &u32, ctx: &ChunkCtx<'_>| -> SystemResult {
                Err(format!("{}", factor * ctx.chunk).into())
            },
        );
        system.should_run(|factor| *factor > 20).prepare(|factor| Chunks::Count(*factor));
    })
    .unwrap();
    assert!(built.graph.systems()[0].is_gated);

    let context = chunked(&built).context.clone().unwrap();
    assert_eq!((context.is_bound(), context.type_name()), (false, "u32"));
    let unbound = BindError::Unbound { declared: "u32" };
    assert_eq!(run(&mut built).unwrap_err().downcast_ref::<BindError>(), Some(&unbound));
    let hooks = |built: &BuiltSchedule| {
        let body = chunked(built);
        (body.should_run.as_ref().unwrap()(), body.prepare.as_ref().unwrap()())
    };
    let (should_run, prepare) = hooks(&built);
    assert!(should_run.is_err() && prepare.is_err());

    assert_eq!(context.bind(1_i64), Err(BindError::WrongType { declared: "u32", given: "i64" }));
    assert_eq!(context.bind(21_u32), Ok(()));
    assert_eq!(context.bind(22_u32), Err(BindError::AlreadyBound { declared: "u32" }));
    assert_eq!(run(&mut built).unwrap_err().to_string(), "42");
    let (should_run, prepare) = hooks(&built);
    assert!(should_run.unwrap());
    assert_eq!(prepare.unwrap(), Chunks::Count(21));
}
