//! Models of the gates: nobody inside who should be outside, no watermark over a gap, no wake lost.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p typhon-sync --release --test loom_gates`
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "common/loom.rs"]
mod common;

use common::{Held, holds_and_finds};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};
use typhon_sync::gate::{LatchTable, QuiesceGate, SequenceGate, TickGate};
use typhon_sync::model::Fault;
use typhon_sync::{CancelToken, WaitContext};

const FOREVER: WaitContext<'static> = WaitContext::INFINITE;

/// A gate and cells behind it; loom finds uses of a cell that are not ordered.
struct World<G> {
    gate: G,
    cells: [UnsafeCell<u32>; 4],
}

unsafe impl<G: Sync> Sync for World<G> {}
unsafe impl<G: Send> Send for World<G> {}

impl<G> World<G> {
    fn new(gate: G) -> Held<Arc<Self>> {
        let cells = [UnsafeCell::new(0), UnsafeCell::new(0), UnsafeCell::new(0), UnsafeCell::new(0)];
        Held::new(Arc::new(Self { gate, cells }))
    }

    fn add_one(&self, cell: usize) {
        self.cells[cell].with_mut(|value| unsafe { *value += 1 });
    }

    fn read(&self, cell: usize) -> u32 {
        self.cells[cell].with(|value| unsafe { *value })
    }
}

fn spawn<G: Send + Sync + 'static>(
    world: &Held<Arc<World<G>>>,
    work: impl FnOnce(&World<G>) + Send + 'static,
) -> JoinHandle<()> {
    let world = Held::new(Arc::clone(world));
    thread::spawn(move || work(&world))
}

/// Each writer has a cell of its own, so that only the window needs them to be outside.
fn write(world: &World<QuiesceGate>, cell: usize) {
    let ticket = Held::new(world.gate.enter(&FOREVER).unwrap());
    world.add_one(cell);
    let nested = Held::new(world.gate.enter(&FOREVER).unwrap());
    world.add_one(cell);
    drop((nested, ticket));
}

fn look(world: &World<QuiesceGate>) {
    let window = Held::new(world.gate.exclusive(&FOREVER).unwrap());
    for cell in 0..2 {
        assert_ne!(world.read(cell), 1, "a ticket was out");
        world.add_one(cell);
        world.add_one(cell);
    }
    drop(window);
}

#[test]
fn rank1_one_tick_or_freeze_at_a_time() {
    let faults = [
        Fault::TakeRelaxed,
        Fault::TakePlain,
        Fault::ReleaseRelaxed,
        Fault::ReleasePlain,
        Fault::BlockUnannounced,
        Fault::WakeCountStill,
        Fault::WakeCountLate,
    ];
    holds_and_finds(3, &faults, || {
        let world = World::new(TickGate::new());
        let pass = |world: &World<TickGate>| {
            let token = Held::new(world.gate.enter(&FOREVER).unwrap());
            world.add_one(0);
            drop(token);
        };
        let others = [spawn(&world, pass), spawn(&world, pass)];
        pass(&world);
        others.map(|other| other.join().unwrap());
        assert_eq!(world.read(0), 3);
    });
}

#[test]
fn rank4_nobody_has_a_ticket_inside_the_window() {
    let faults = [
        Fault::TicketUnfenced,
        Fault::TicketRelaxed,
        Fault::TicketSilent,
        Fault::CloseUnfenced,
        Fault::CloseEarly,
        Fault::OpenRelaxed,
        Fault::OpenSilent,
    ];
    holds_and_finds(3, &faults, || {
        let world = World::new(QuiesceGate::new());
        let writer = spawn(&world, |world| write(world, 0));
        look(&world);
        writer.join().unwrap();
        assert_eq!(world.read(0), 4);
    });
}

#[test]
fn rank4_two_writers_and_a_window() {
    holds_and_finds(2, &[Fault::CloseEarly, Fault::OpenSilent], || {
        let world = World::new(QuiesceGate::new());
        let writers = [spawn(&world, |world| write(world, 0)), spawn(&world, |world| write(world, 1))];
        look(&world);
        writers.map(|writer| writer.join().unwrap());
    });
}

#[test]
fn rank4_windows_exclude_each_other_and_one_that_gives_up_opens_the_gate() {
    holds_and_finds(3, &[Fault::OpenSilent, Fault::OpenRelaxed], || {
        let world = World::new(QuiesceGate::new());
        let token = CancelToken::new();
        token.cancel();
        let other = spawn(&world, move |world| {
            let context = FOREVER.cancelled_by(&token);
            drop(world.gate.exclusive(&context).map(Held::new));
            look(world);
        });
        look(&world);
        other.join().unwrap();
        assert_eq!(world.read(0), 4);
    });
}

#[test]
fn seq_the_watermark_is_the_longest_filled_prefix() {
    let faults = [Fault::FillUnfenced, Fault::FillRelaxed, Fault::AdvanceRelaxed, Fault::AdvanceBlind];
    holds_and_finds(3, &faults, || {
        let world = World::new(SequenceGate::new(4, 0));
        let publish = |world: &World<SequenceGate>, number: usize| {
            world.add_one(number);
            world.gate.fill(number as u64).unwrap();
        };
        let others =
            [spawn(&world, move |world| publish(world, 1)), spawn(&world, move |world| publish(world, 3))];
        publish(&world, 2);
        let published = world.gate.published();
        for number in 1..=published as usize {
            assert_eq!(world.read(number), 1, "published before it was done");
        }
        others.map(|other| other.join().unwrap());
        assert_eq!(world.gate.published(), 3, "nobody moved it");
    });
}

#[test]
fn seq_who_waits_for_a_number_is_woken() {
    let faults = [Fault::WaitersUnfenced, Fault::FillUnfenced, Fault::AdvanceRelaxed, Fault::AdvanceBlind];
    holds_and_finds(3, &faults, || {
        let world = World::new(SequenceGate::new(4, 0));
        let publish = |number: usize| {
            move |world: &World<SequenceGate>| {
                world.add_one(number);
                world.gate.fill(number as u64).unwrap();
            }
        };
        let others = [spawn(&world, publish(2)), spawn(&world, publish(1))];
        world.gate.wait_published(2, &FOREVER).unwrap();
        assert_eq!((world.read(1), world.read(2)), (1, 1));
        others.map(|other| other.join().unwrap());
    });
}

#[test]
fn rank3_sets_of_latches_neither_overlap_nor_wait_for_each_other() {
    let faults = [Fault::LatchesUnsorted, Fault::TakeRelaxed, Fault::ReleaseRelaxed, Fault::BlockUnannounced];
    holds_and_finds(2, &faults, || {
        let world = World::new(LatchTable::with_stripes(4));
        let change = |stripes: [u32; 2]| {
            move |world: &World<LatchTable>| {
                let latches = Held::new(world.gate.lock_sorted(stripes.to_vec(), &FOREVER).unwrap());
                stripes.iter().for_each(|stripe| world.add_one(*stripe as usize));
                drop(latches);
            }
        };
        let others = [spawn(&world, change([2, 1])), spawn(&world, change([3, 2]))];
        change([1, 3])(&world);
        others.map(|other| other.join().unwrap());
        assert_eq!([1, 2, 3].map(|cell| world.read(cell)), [2, 2, 2]);
    });
}

#[test]
fn rank3_a_set_that_is_given_up_is_released() {
    holds_and_finds(3, &[Fault::LatchesKept], || {
        let world = World::new(LatchTable::with_stripes(4));
        let holder = spawn(&world, |world| {
            let latches = Held::new(world.gate.lock_sorted(vec![2], &FOREVER).unwrap());
            world.add_one(2);
            drop(latches);
        });
        match world.gate.lock_sorted(vec![1, 2], &WaitContext::NO_WAIT).map(Held::new) {
            Ok(latches) => {
                world.add_one(2);
                drop(latches);
            }
            Err(_) => drop(Held::new(world.gate.lock_sorted(vec![1], &FOREVER).unwrap())),
        }
        holder.join().unwrap();
        assert!(world.read(2) >= 1);
    });
}
