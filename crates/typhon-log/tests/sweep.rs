//! Every boundary: each workload is stopped at each of its I/O calls, by each way to lose what was not synced; then
//! the log is opened, written on, stopped again at a call of the recovery or later, and opened once more.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod common;

use common::{Ended, World};
use typhon_log::{Options, Store, SyncMode};
use typhon_store::sim::{Failure, Survival};

type Workload = fn(&mut World, &Store) -> Result<(), Ended>;

fn small_commits(world: &mut World, store: &Store) -> Result<(), Ended> {
    for bytes in [10, 0, 200, 8, 1] {
        let lsn = world.commit(store, bytes)?;
        world.wait(store, lsn)?;
    }
    Ok(())
}

fn groups_and_checkpoints(world: &mut World, store: &Store) -> Result<(), Ended> {
    for round in 0..4 {
        for bytes in [416, 480, 480] {
            world.commit(store, bytes)?;
        }
        world.flush(store);
        if round % 2 == 1 {
            world.checkpoint(store)?;
        }
    }
    Ok(())
}

fn fences_between_commits(world: &mut World, store: &Store) -> Result<(), Ended> {
    world.commit(store, 30)?;
    world.fence(store, 2, false)?;
    world.fence(store, 3, true)?;
    let lsn = world.commit(store, 9)?;
    world.wait(store, lsn)?;
    world.fence(store, 1, false)?;
    world.flush(store);
    world.checkpoint(store)
}

/// Larger than a block and than a segment, across rotations.
fn large_frames(world: &mut World, store: &Store) -> Result<(), Ended> {
    for bytes in [3000, 7000, 100, 15_000, 100] {
        let lsn = world.commit(store, bytes)?;
        world.wait(store, lsn)?;
    }
    world.checkpoint(store)?;
    world.commit(store, 5000)?;
    world.flush(store);
    Ok(())
}

/// Nothing at all: opening alone must not lose or repeat a number.
fn nothing(_: &mut World, _: &Store) -> Result<(), Ended> {
    Ok(())
}

const WORKLOADS: [(&str, Workload); 5] = [
    ("small commits", small_commits),
    ("groups and checkpoints", groups_and_checkpoints),
    ("fences between commits", fences_between_commits),
    ("large frames", large_frames),
    ("nothing", nothing),
];

fn world(seed: u64, sync: SyncMode) -> World {
    let mut world = World::new(seed);
    world.options = Options {
        ring_bytes: 32 << 10,
        segment_bytes: 12 << 10,
        block_bytes: 4 << 10,
        spare_segments: 1,
        sync,
        ..Options::small()
    };
    world
}

/// Opens and works until the machine stops; `false` if it did not.
fn life(world: &mut World, workload: Workload) -> bool {
    let mut is_stopped = false;
    let result = world.open().and_then(|store| {
        let result = workload(world, &store);
        is_stopped = world.io.is_down();
        // Nothing is written in passing: what a drop would still write is not part of the workload.
        world.crash_if_up();
        drop(store);
        result
    });
    match result {
        Err(Ended::Wrong(violation)) => panic!("{violation:?}\n{}", world.story.join("\n")),
        Err(Ended::Crashed) => true,
        Ok(()) => is_stopped,
    }
}

fn end(world: &mut World, survival: Option<Survival>) {
    match survival {
        Some(survival) => world.cut_power(None, survival),
        None => world.kill(None),
    }
}

/// A life until the call, a second one until the other call, a third that must find everything. Returns whether both
/// stops came to pass.
fn stopped_twice(
    workload: Workload,
    sync: SyncMode,
    first: u64,
    second: u64,
    ends: [Option<Survival>; 2],
) -> [bool; 2] {
    let mut world = world(first << 32 | second, sync);
    world.io.crash_at(Some(first));
    let stopped = life(&mut world, workload);
    end(&mut world, ends[0]);
    world.io.crash_at(Some(world.io.calls() + second));
    let stopped_again = life(&mut world, workload);
    end(&mut world, ends[1]);
    assert!(!life(&mut world, workload), "a quiet life\n{}", world.story.join("\n"));
    [stopped, stopped_again]
}

fn ends() -> impl Iterator<Item = Option<Survival>> {
    Survival::ALL.into_iter().map(Some).chain([None])
}

fn sweep(sync: SyncMode) {
    for (name, workload) in WORKLOADS {
        let mut clean = world(1, sync);
        assert!(!life(&mut clean, workload));
        let calls = clean.io.calls();
        let mut crashes = 0;
        for first in 1..=calls {
            for (index, survival) in ends().enumerate() {
                // The second stop moves through recovery and what follows as the first one moves on.
                let second = 1 + (first * 7 + index as u64 * 3) % 29;
                let stops = stopped_twice(workload, sync, first, second, [survival, Some(Survival::Mixed)]);
                assert!(stops[0], "{name}: the stop at {first} of {calls} did not come");
                crashes += stops.into_iter().filter(|stopped| *stopped).count();
            }
        }
        println!("{name}: {calls} calls, {crashes} crashes");
    }
}

#[test]
fn every_call_stopped_in_every_way_then_once_more() {
    sweep(SyncMode::Flush);
}

#[test]
fn every_call_stopped_when_writes_are_durable_by_themselves() {
    sweep(SyncMode::WriteThrough);
}

/// Something goes wrong at each call, in each way that leaves the machine running; then the process ends in each of these
/// ways, the next one is stopped at another call, and a third must find everything.
fn fail_everywhere(sync: SyncMode) {
    let ends = [None, Some(Survival::Nothing), Some(Survival::Mixed)];
    for (name, workload) in WORKLOADS {
        let mut clean = world(1, sync);
        assert!(!life(&mut clean, workload));
        let mut ended = 0;
        for call in 1..=clean.io.calls() {
            for (index, failure) in Failure::ALL.into_iter().enumerate() {
                for survival in ends {
                    let second = 1 + (call * 5 + index as u64 * 11) % 29;
                    let mut world = world(call << 32 | second, sync);
                    world.io.fail_at(Some((call, failure)));
                    ended += u64::from(life(&mut world, workload));
                    end(&mut world, survival);
                    world.io.fail_at(None);
                    world.io.crash_at(Some(world.io.calls() + second));
                    life(&mut world, workload);
                    end(&mut world, Some(Survival::Mixed));
                    assert!(!life(&mut world, workload), "a quiet life\n{}", world.story.join("\n"));
                }
            }
        }
        println!("{name}: {ended} lives ended by what went wrong");
        assert!(ended > clean.io.calls(), "{name}: {ended} of {} calls", clean.io.calls());
    }
}

#[test]
fn every_call_gone_wrong_in_every_way_then_stopped() {
    fail_everywhere(SyncMode::Flush);
}

#[test]
fn every_call_gone_wrong_when_writes_are_durable_by_themselves() {
    fail_everywhere(SyncMode::WriteThrough);
}

/// Twice stopped in recovery, at every pair of calls, and a third time while writing on.
#[test]
fn recovery_stopped_at_every_pair_of_calls() {
    let mut crashes = 0;
    for first in 1..=14 {
        for second in 1..=14 {
            for survival in [Survival::Nothing, Survival::Torn, Survival::Mixed] {
                let mut world = world(first * 100 + second, SyncMode::Flush);
                world.io.crash_at(Some(45));
                life(&mut world, fences_between_commits);
                end(&mut world, None);
                for stop in [first, second, 20] {
                    world.io.crash_at(Some(world.io.calls() + stop));
                    crashes += u64::from(life(&mut world, small_commits));
                    end(&mut world, Some(survival));
                }
                assert!(!life(&mut world, small_commits));
            }
        }
    }
    assert!(crashes > 14 * 14 * 3 * 2, "{crashes}");
}
