//! An engine starts the recording that the configuration asks for, and finishes it. One process, hence one test: which
//! recording runs is a property of the process.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use typhon_engine::Engine;
use typhon_profiler::config::Overrides;
use typhon_profiler::{Status, session};

#[test]
fn b78_the_recording_lives_as_long_as_the_engines() {
    let refused = Engine::builder().runtime(|runtime| runtime.base_tick_rate_hz = 0).build();
    assert!(refused.is_err() && !session::is_running(), "refused options start nothing");

    let overrides = Overrides::new().enabled(true).no_trace_file();
    let engine = Engine::builder().profiler(|init| init.overrides(overrides)).build().unwrap();
    assert_eq!((engine.recording(), session::is_running()), (Status::Recording, true));
    let handle = engine.clone();
    let second = Engine::builder().build().unwrap();
    drop((engine, second));
    assert!(session::is_running(), "a handle is left");
    drop(handle);
    assert!(!session::is_running());

    // What the program started itself is left to it.
    assert_eq!(typhon_profiler::init(), Status::Recording);
    drop(Engine::builder().build().unwrap());
    assert!(session::is_running());
    typhon_profiler::shutdown();
}
