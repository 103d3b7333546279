//! The roles that children play. Each ends with `done` on standard output, unless its end is what is tested.

use std::io::Read;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use typhon_profiler::config::Overrides;
use typhon_profiler::events::{MemoryAllocSource, OverloadLevel, TransactionCommit};
use typhon_profiler::gauges::{self, GaugeValue, Readings};
use typhon_profiler::memory::Allocation;
use typhon_profiler::{Init, Program, Status, describe, init, mark, name, shutdown, span, tick};
use typhon_trace::header::FileHeader;

/// How many instants `work` records.
pub(crate) const MARKS: i32 = 100;

pub(crate) fn play(role: &str) -> ExitCode {
    match role {
        "work" => work(0),
        "nothing" => {}
        "init" => println!("{:?}", init()),
        "exit" => {
            work(0);
            println!("done");
            std::process::exit(7);
        }
        "panic" => {
            let _open = span!(TransactionCommit::default());
            work(0);
            panic!("the end");
        }
        "caught-panic" => {
            work(0);
            let caught = std::panic::catch_unwind(|| panic!("not the end"));
            assert!(caught.is_err());
            work(MARKS);
        }
        "restart" => restart(),
        "late-settings" => late_settings(),
        "overrides" => overrides(),
        "database" => {
            let status =
                Init::new().overrides(Overrides::new().enabled(true)).database_directory(".").start();
            assert_eq!(status, Status::Recording);
            work(0);
        }
        "ticks" => ticks(),
        "interval" => interval(),
        #[cfg(unix)]
        _ => unix::play(role),
        #[cfg(not(unix))]
        _ => panic!("no role {role}"),
    }
    println!("done");
    ExitCode::SUCCESS
}

/// Records values from `first` on, inside a span.
pub(crate) fn work(first: i32) {
    let _span = span!(TransactionCommit::default());
    let step = name("step").unwrap();
    (first..first + MARKS).for_each(|value| mark(step, value));
}

/// Says so and waits until the parent ends this process or closes standard input.
pub(crate) fn wait_for_parent() {
    println!("ready");
    let mut nothing = Vec::new();
    std::io::stdin().read_to_end(&mut nothing).unwrap();
}

fn restart() {
    assert_eq!((init(), init()), (Status::Recording, Status::Recording));
    work(0);
    let report = shutdown().unwrap();
    assert_eq!((report.dropped_records, shutdown()), (0, None));
    work(1_000);
    assert_eq!(init(), Status::Recording);
    work(2_000);
}

fn late_settings() {
    work(0);
    assert_eq!(
        Init::new().overrides(Overrides::new().trace("other.typhon-trace")).start(),
        Status::Recording
    );
}

/// The program's own settings win over the environment, and so does its command line.
fn overrides() {
    let mut header = FileHeader::new(0);
    header.set_worker_count(3);
    describe(Program::default().with_header(header));
    let overrides = Overrides::new().gate("MemoryAllocations", true).suppress(["TransactionCommit"]);
    assert_eq!(
        Init::new().overrides(overrides).arguments(["serve", "--trace", "own.typhon-trace"]).start(),
        Status::Recording
    );
    work(0);
    drop(Allocation::new(MemoryAllocSource::PAGE_CACHE, 8_192));
    let gates = typhon_profiler::gates().unwrap();
    gates.set("TransactionCommit", true).unwrap();
    work(1_000);
    gates.set("Instant", false).unwrap();
    work(2_000);
}

fn ticks() {
    let _source = gauges::register(|readings: &mut Readings| {
        readings.set(0x0200, GaugeValue::U32Count(256));
        readings.set(0x8000, GaugeValue::I64Signed(-5));
    });
    let held = Allocation::aligned(MemoryAllocSource::WAL_STAGING, 1_000, 4_096);
    for number in 10..13 {
        let mut tick = tick(number);
        tick.set_overload_level(OverloadLevel::SCOPE_REDUCTION);
        tick.set_multiplier(2);
        drop(Allocation::new(MemoryAllocSource::PAGE_CACHE, 500));
    }
    drop(held);
}

/// Ends when the gauges were read a few times without any tick.
fn interval() {
    static READ: AtomicU32 = AtomicU32::new(0);
    let _source = gauges::register(|readings: &mut Readings| {
        readings.set(0x8001, GaugeValue::U32Count(READ.fetch_add(1, Ordering::Relaxed)));
    });
    assert_eq!(init(), Status::Recording);
    while READ.load(Ordering::Relaxed) < 4 {
        std::thread::yield_now();
    }
}

#[cfg(unix)]
pub(crate) use unix::status_of;

#[cfg(unix)]
mod unix {
    use super::{MARKS, wait_for_parent, work};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Barrier, OnceLock};
    use std::time::Duration;
    use typhon_profiler::gc::{Bridge, BridgeError, Collection, CollectionStart, GcReason, GcType};
    use typhon_profiler::{Status, emit, events, init, mark, name, session, shutdown};

    pub(super) fn play(role: &str) {
        match role {
            "wait" => {
                work(0);
                wait_for_parent();
            }
            "record-for-ever" => crate::kills::record_for_ever(),
            "own-handler" => own_handler(),
            "own-wait" => own_wait(),
            "ignored-hangup" => {
                // SAFETY: no handler is involved.
                unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
                work(0);
                wait_for_parent();
                // SAFETY: no handler is involved.
                let before = unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
                assert_eq!(before, libc::SIG_IGN, "whoever recorded took the signal");
                work(MARKS);
            }
            "limited-file" => limited_file(),
            "fork" => fork(),
            "forked-and-terminated" => forked_and_terminated(),
            "changed-gate" => changed_gate(),
            "crowd" => crowd(),
            #[cfg(target_os = "linux")]
            _ => crate::surroundings::play(role),
            #[cfg(not(target_os = "linux"))]
            _ => panic!("no role {role}"),
        }
    }

    fn start(count: u32) -> CollectionStart {
        let (reason, kind) = (GcReason::INDUCED, GcType::BLOCKING);
        let timestamp = typhon_clr::session::monotonic_ns();
        CollectionStart { timestamp, count, generation: 0, reason, kind }
    }

    /// Two recordings, and another configuration file for the second.
    fn changed_gate() {
        for number in 1..=2 {
            assert_eq!(init(), Status::Recording);
            match Bridge::open() {
                Ok(bridge) => assert!(bridge.start(start(number))),
                Err(error) => assert_eq!(error, BridgeError::NotTraced),
            }
            assert!(shutdown().is_some());
            std::fs::copy("then.json", "typhon.telemetry.json").unwrap();
        }
    }

    /// Collections while other threads have all slots, and one after they have left.
    fn crowd() {
        const CROWD: usize = 300;
        assert_eq!(init(), Status::Recording);
        let bridge = Bridge::open().unwrap();
        let (all_there, may_leave) = (Barrier::new(CROWD + 1), Barrier::new(CROWD + 1));
        std::thread::scope(|scope| {
            let join_in = || {
                emit(events::TickStart::default);
                all_there.wait();
                may_leave.wait();
            };
            let crowd: Vec<_> = (0..CROWD).map(|_| scope.spawn(join_in)).collect();
            all_there.wait();
            // Far more than the queue holds, so that most have been tried.
            for count in 0..200 {
                while !bridge.start(start(count)) {
                    std::thread::yield_now();
                }
            }
            wait_for_parent();
            may_leave.wait();
            crowd.into_iter().for_each(|thread| thread.join().unwrap());
        });
        // The consumer frees the slots of threads that have ended.
        assert!(session::flush(Duration::from_secs(60)));
        let end = Collection {
            timestamp: start(0).timestamp,
            count: 200,
            generation: 0,
            start: None,
            pause_ticks: 1,
            heap: None,
            committed_bytes: None,
        };
        while !bridge.end(end) {
            std::thread::yield_now();
        }
        drop(bridge);
        assert!(shutdown().is_some());
    }

    static EARLIER: OnceLock<libc::sigaction> = OnceLock::new();
    static TERMINATE: AtomicBool = AtomicBool::new(false);

    /// As libraries for signals do it: the handler that was there before is called first.
    extern "C" fn graceful(signal: libc::c_int) {
        if let Some(earlier) = EARLIER.get() {
            // SAFETY: the address of a handler without `SA_SIGINFO`.
            let earlier: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(earlier.sa_sigaction) };
            earlier(signal);
        }
        TERMINATE.store(true, Ordering::Relaxed);
    }

    /// The program installs a handler after the profiler did, and ends when it likes.
    fn own_handler() {
        work(0);
        // SAFETY: all-zero bytes are a valid `sigaction`, and both pointers are to memory of that type.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut earlier: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = graceful as *const () as libc::sighandler_t;
            assert_eq!(libc::sigaction(libc::SIGTERM, std::ptr::null(), &mut earlier), 0);
            assert!(earlier.sa_sigaction != libc::SIG_DFL, "the profiler has one");
            let _ = EARLIER.set(earlier);
            assert_eq!(libc::sigaction(libc::SIGTERM, &action, std::ptr::null_mut()), 0);
        }
        println!("ready");
        while !TERMINATE.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        work(MARKS);
    }

    /// The program waits for the signal itself, with the signal blocked in all threads that it has: none but this one.
    fn own_wait() {
        work(0);
        // SAFETY: `sigemptyset` initialises the set, and the number is written by `sigwait`.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGTERM);
            assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()), 0);
            println!("ready");
            let mut signal = 0;
            assert_eq!((libc::sigwait(&set, &mut signal), signal), (0, libc::SIGTERM));
        }
        work(MARKS);
    }

    /// Records more than its file may hold and says how much, and how much of it was lost.
    fn limited_file() {
        // SAFETY: no handler is involved, and the limit is a value of that type. A file that grows too large fails
        // then, as on a disk that is full.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            let limit = libc::rlimit { rlim_cur: 200_000, rlim_max: 200_000 };
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
        }
        let step = name("step").unwrap();
        let mut emitted = 0;
        for _ in 0..20 {
            for _ in 0..10_000 {
                // Not in an order that compresses well.
                mark(step, i32::wrapping_mul(emitted, 0x9E37_79B1_u32 as i32));
                emitted += 1;
            }
            // Time for the consumer, so that the file is the only place where records are lost.
            session::flush(Duration::from_secs(60));
        }
        let report = shutdown().unwrap();
        println!("{emitted} {} {}", report.dropped_records, report.exporters[0].dropped_records);
    }

    fn fork() {
        work(0);
        // SAFETY: the child records, which is what is tested, and ends with its exit handlers, as forked children
        // that do not know better do.
        match unsafe { libc::fork() } {
            0 => {
                work(1_000);
                assert_eq!((init(), shutdown()), (Status::Off, None));
                std::process::exit(0);
            }
            child => assert_eq!(status_of(child), 0),
        }
        work(MARKS);
    }

    /// A termination signal for a forked child is none for its parent.
    fn forked_and_terminated() {
        work(0);
        // SAFETY: the child only waits.
        match unsafe { libc::fork() } {
            0 => loop {
                std::thread::yield_now();
            },
            child => {
                // SAFETY: the child made above.
                assert_eq!(unsafe { libc::kill(child, libc::SIGTERM) }, 0);
                assert!(libc::WIFSIGNALED(status_of(child)));
            }
        }
        work(MARKS);
    }

    pub(crate) fn status_of(child: libc::pid_t) -> libc::c_int {
        let mut status = 0;
        // SAFETY: waits for a child of this process.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        status
    }
}
