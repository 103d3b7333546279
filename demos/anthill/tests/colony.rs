//! A colony lives, loses nothing, and lives the same life again from the same seed.

mod support;

use anthill::systems::census;
use anthill::world::World;

fn world_after(ants: u32, seed: u64, ticks: i64) -> World {
    let world = World::new(ants, seed);
    (1..=ticks).for_each(|number| support::tick(&world, number));
    world
}

#[test]
fn ants_find_food_bring_it_home_die_and_are_born_again() {
    let world = world_after(1_000, 1, 1_500);
    let tally = *world.tally.borrow();
    let counted = census(&world).expect("nothing is lost");
    assert!(tally.delivered > 1_000, "{tally:?}");
    assert!(tally.died > 3 && tally.born > 0, "{tally:?}");
    assert!(tally.grown > 0, "{tally:?}");
    assert_eq!(counted.searching + counted.carrying + counted.unborn, 1_000);
}

#[test]
fn a_seed_is_a_world() {
    let hash = |seed| world_after(500, seed, 200).hash();
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn a_census_finds_what_is_missing() {
    let world = world_after(500, 1, 100);
    world.tally.borrow_mut().picked_up += 1;
    let error = census(&world).expect_err("one load too few");
    assert!(error.to_string().contains("loads were picked up"), "{error}");
}
