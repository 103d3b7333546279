//! The programs that the tests start: what they do between recording and end.

use crate::{hostfxr, process};
use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;
use std::ptr;
use typhon_profiler::events::NamedSpan;
use typhon_profiler::{Status, init, shutdown, span, tick};

/// Runtime configuration of [`HOST`], in its environment.
pub(crate) const CONFIG: &str = "TEST_RUNTIME_CONFIG";
/// Records, and hosts a runtime from the moment at which it is told to; each further line is a number of
/// `hosted.cs`, and induces a collection inside a span.
pub(crate) const HOST: &str = "host";
/// Records, and works in spans until it is told to end.
pub(crate) const ENGINE: &str = "engine";
/// As [`ENGINE`], and ends as a program that does not mind the profiler.
pub(crate) const CARELESS_ENGINE: &str = "careless engine";

pub(crate) fn play(role: &str) -> ExitCode {
    assert_eq!(init(), Status::Recording);
    println!("ready");
    match role {
        HOST => host(),
        ENGINE | CARELESS_ENGINE => engine(),
        _ => panic!("{role}"),
    }
    if role != CARELESS_ENGINE {
        assert!(shutdown().is_some());
    }
    println!("done");
    ExitCode::SUCCESS
}

/// What the test says, line by line.
fn told() -> impl Iterator<Item = String> {
    std::io::stdin().lock().lines().map_while(Result::ok)
}

fn host() {
    let mut told = told();
    told.next();
    let config = std::env::var_os(CONFIG).unwrap();
    let assembly = process::dotnet_dir().join("hosted.dll");
    let names = ["Hosted, hosted", "Collect"];
    let collect = hostfxr::start(&process::dotnet_root(), Path::new(&config), &assembly, names);
    println!("hosting");
    for line in told {
        let kind = line.parse().unwrap();
        let count = {
            let _span = span!(NamedSpan { name: &line });
            collect(ptr::null_mut(), kind)
        };
        println!("collected {count}");
    }
}

fn engine() {
    // A tick for every line, so that what is asked for has happened when the line is answered.
    for (number, line) in told().enumerate() {
        let _span = span!(NamedSpan { name: &line });
        drop(tick(number as u32 + 1));
        println!("worked");
    }
}
