//! What a lock and a pin cost: acquire and release without contention and with two threads at once, beside the locks of
//! the standard library and of parking_lot; pin and unpin beside crossbeam-epoch. Nothing is recorded.

use bench::Pair;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, LazyLock};
use typhon_sync::WaitContext;
use typhon_sync::epoch::EpochManager;
use typhon_sync::lock::{AccessControl, AccessControlSmall, ResourceAccessControl};

/// Acquisitions in a round.
const TIMES: usize = 20_000;
const ROUNDS: usize = 300;
const TWIN_ROUNDS: usize = 60;
const FOREVER: WaitContext<'static> = WaitContext::INFINITE;

static STD: std::sync::RwLock<u64> = std::sync::RwLock::new(0);
static PARKING_LOT: parking_lot::RwLock<u64> = parking_lot::RwLock::new(0);
static FAIR: AccessControl = AccessControl::new();
static SMALL: AccessControlSmall = AccessControlSmall::new();
static RESOURCE: ResourceAccessControl = ResourceAccessControl::new();
static EPOCHS: LazyLock<EpochManager> = LazyLock::new(EpochManager::new);

/// What our locks guard.
static VALUE: AtomicU64 = AtomicU64::new(0);

fn add_one() {
    VALUE.store(VALUE.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

fn repeat(mut work: impl FnMut()) {
    (0..TIMES).for_each(|_| work());
}

fn std_read() {
    repeat(|| _ = black_box(*STD.read().expect("nobody panics")));
}

fn std_write() {
    repeat(|| *black_box(STD.write().expect("nobody panics")) += 1);
}

fn parking_lot_read() {
    repeat(|| _ = black_box(*PARKING_LOT.read()));
}

fn parking_lot_write() {
    repeat(|| *black_box(PARKING_LOT.write()) += 1);
}

fn fair_read() {
    repeat(|| {
        let _guard = FAIR.shared(&FOREVER).expect("nobody misuses it");
        black_box(VALUE.load(Ordering::Relaxed));
    });
}

fn fair_write() {
    repeat(|| {
        let _guard = FAIR.exclusive(&FOREVER).expect("nobody misuses it");
        black_box(add_one());
    });
}

fn small_read() {
    repeat(|| {
        let _guard = SMALL.shared(&FOREVER).expect("nobody misuses it");
        black_box(VALUE.load(Ordering::Relaxed));
    });
}

fn small_write() {
    repeat(|| {
        let _guard = SMALL.exclusive(&FOREVER).expect("nobody misuses it");
        black_box(add_one());
    });
}

fn resource_access() {
    repeat(|| {
        let _guard = RESOURCE.access(&FOREVER).expect("nobody misuses it");
        black_box(VALUE.load(Ordering::Relaxed));
    });
}

fn resource_modify() {
    repeat(|| {
        let _guard = RESOURCE.modify(&FOREVER).expect("nobody misuses it");
        black_box(add_one());
    });
}

fn epoch_pin() {
    repeat(|| {
        let _pin = EPOCHS.pin().expect("there is a slot");
        black_box(VALUE.load(Ordering::Relaxed));
    });
}

fn crossbeam_pin() {
    repeat(|| {
        let _pin = crossbeam_epoch::pin();
        black_box(VALUE.load(Ordering::Relaxed));
    });
}

/// Two threads that do the same work at the same time, whenever they are asked to.
struct Twins {
    begin: Arc<Barrier>,
    end: Arc<Barrier>,
}

impl Twins {
    fn new(work: fn()) -> Self {
        let twins = Self { begin: Arc::new(Barrier::new(3)), end: Arc::new(Barrier::new(3)) };
        for _ in 0..2 {
            let (begin, end) = (Arc::clone(&twins.begin), Arc::clone(&twins.end));
            std::thread::spawn(move || {
                loop {
                    begin.wait();
                    work();
                    end.wait();
                }
            });
        }
        twins
    }

    fn run(&self) {
        self.begin.wait();
        self.end.wait();
    }
}

fn compare(name: &str, peer: fn(), ours: fn()) {
    let pair = Pair::measure(ROUNDS, peer, ours);
    println!("{}  {:>6.2} ns", pair.report(name, TIMES as f64, "/s"), ns(&pair, TIMES));
}

fn compare_contended(name: &str, peer: fn(), ours: fn()) {
    let (peer, ours) = (Twins::new(peer), Twins::new(ours));
    let pair = Pair::measure(TWIN_ROUNDS, || peer.run(), || ours.run());
    println!("{}  {:>6.2} ns", pair.report(name, 2.0 * TIMES as f64, "/s"), ns(&pair, 2 * TIMES));
}

fn ns(pair: &Pair, times: usize) -> f64 {
    pair.fastest_subject().as_secs_f64() * 1e9 / times as f64
}

fn main() {
    // One question ends the search for a configuration; nothing is on afterwards.
    assert!(!typhon_profiler::is_on(90), "measure without a recording");
    let locks: [(&str, fn(), fn(), [fn(); 2]); 6] = [
        ("AccessControl", fair_read, fair_write, [std_read, std_write]),
        ("AccessControl", fair_read, fair_write, [parking_lot_read, parking_lot_write]),
        ("AccessControlSmall", small_read, small_write, [std_read, std_write]),
        ("AccessControlSmall", small_read, small_write, [parking_lot_read, parking_lot_write]),
        ("ResourceAccessControl", resource_access, resource_modify, [std_read, std_write]),
        ("ResourceAccessControl", resource_access, resource_modify, [parking_lot_read, parking_lot_write]),
    ];
    for (at, (name, share, own, peers)) in locks.into_iter().enumerate() {
        let peer = ["std", "parking_lot"][at % 2];
        compare(&format!("{name} shared / {peer}"), peers[0], share);
        compare(&format!("{name} exclusive / {peer}"), peers[1], own);
        compare_contended(&format!("{name} shared, 2 threads / {peer}"), peers[0], share);
        compare_contended(&format!("{name} excl., 2 threads / {peer}"), peers[1], own);
    }
    compare("epoch pin / crossbeam-epoch", crossbeam_pin, epoch_pin);
    compare_contended("epoch pin, 2 threads / crossbeam-epoch", crossbeam_pin, epoch_pin);
}
