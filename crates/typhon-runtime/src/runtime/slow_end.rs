//! Handlers of an orderly end that do not return: whoever shuts down hears of it, and can wait again.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use super::{Runtime, ShutdownError, Terminal};
use std::sync::mpsc;
use std::time::Duration;
use typhon_engine::Engine;

#[test]
fn b59_a_handler_of_the_end_that_hangs_is_named_and_can_be_waited_for_again() {
    let engine = Engine::builder().build().unwrap();
    let mut runtime = Runtime::create(&engine, |schedule| {
        schedule.public_track().declare_dag("Sim").callback_system("Tick", |_| {});
    })
    .unwrap();
    runtime.join_window = Duration::from_millis(20);
    let (let_go, gate) = mpsc::channel::<()>();
    runtime.on_shutdown(move |_| {
        // An error, once nobody holds it up any more.
        let _ = gate.recv();
    });
    runtime.start().unwrap();
    let error = runtime.shutdown().unwrap_err();
    assert!(matches!(error, ShutdownError::Hook { waited_ms: 20.. }), "{error}");
    assert!(runtime.dump_diagnostic().to_string().contains("on_shutdown runs"));
    assert_eq!(runtime.terminal(), Some(Terminal::ShutDown));
    drop(let_go);
    runtime.join_window = super::JOIN_WINDOW;
    runtime.shutdown().unwrap();
}
