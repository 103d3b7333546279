//! No file descriptor is left behind. Alone in its program, because tests beside it would open their own.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a panic is a report

mod common;

use common::fake::{Behaviour, FakeRuntime, UNKNOWN_COMMAND};
use common::stream;
use typhon_clr::session::{GcProgress, GcSession, GcSettings};

/// Enough to show a leak of one in a cycle; `TYPHON_CLR_CYCLES` asks for more.
const CYCLES: usize = 50;

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Every way in which a session can begin and end, once.
fn cycle(bytes: &[u8]) {
    let healthy =
        Behaviour { stream: bytes[..4000].to_vec(), rest: bytes[4000..].to_vec(), ..Default::default() };
    let runtime = FakeRuntime::start(healthy.clone());
    GcSession::start(runtime.endpoint(), GcSettings::default()).unwrap().stop(&mut |_| {}).unwrap();
    drop(GcSession::start(runtime.endpoint(), GcSettings::default()).unwrap());
    let dying = FakeRuntime::start(Behaviour { dies: true, ..healthy });
    let mut session = GcSession::start(dying.endpoint(), GcSettings::default()).unwrap();
    while session.poll(std::time::Duration::from_secs(30), &mut |_| {}).unwrap() == GcProgress::Running {}
    let refused = [4, 3, 2].map(|form| ((2, form), UNKNOWN_COMMAND)).to_vec();
    let refusing = FakeRuntime::start(Behaviour { refused, ..Default::default() });
    assert!(GcSession::start(refusing.endpoint(), GcSettings::default()).is_err());
}

#[test]
fn attaching_and_detaching_leaks_no_descriptor() {
    let bytes = stream("net8-workstation-sampler");
    let cycles = std::env::var("TYPHON_CLR_CYCLES").map_or(CYCLES, |cycles| cycles.parse().unwrap());
    cycle(&bytes);
    let before = open_descriptors();
    (0..cycles).for_each(|_| cycle(&bytes));
    assert_eq!(open_descriptors(), before);
}
