//! The schedule: who runs when, as it follows from what every system touches.
//!
//! Three tracks follow each other in every tick. `Public` moves the colony, `Environment` everything else in the
//! world, and `Presentation` draws a picture. A system that changes the world is never thinned out, so that a world is
//! the same on a fast and on a slow machine; under overload the picture suffers first.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use typhon::prelude::*;
use typhon::schedule::{DagBuilder, Schedule};

use crate::ant::events::{AntBitten, AntDied, FoodDelivered, FoodPickedUp, FoodReached};
use crate::ant::{Motion, Position, Task};
use crate::storm::Storm;
use crate::systems::{self, Census, Step};
use crate::view::{ROWS, View};
use crate::world::{Tally, World};

/// Events that were read from their queues since the world began. What happened and what was told are counted apart:
/// a queue that lost an event would show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// Loads taken from sources.
    pub picked_up: u64,
    /// Loads brought home.
    pub delivered: u64,
    /// Ants eaten.
    pub died: u64,
}

/// What the colony can tell about itself after a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// What happened to the world.
    pub tally: Tally,
    /// What events told of it.
    pub told: Told,
    /// The last full count; made every 60 ticks.
    pub census: Census,
}

/// A colony of ants: a world, and what may be shown of it.
#[derive(Debug, Clone)]
pub struct Colony {
    world: Arc<World>,
    view: Arc<View>,
    report: Arc<Mutex<Report>>,
}

impl Colony {
    /// A colony of `ants` ants; the same seed gives the same one.
    pub fn new(ants: u32, seed: u64) -> Self {
        Self { world: Arc::new(World::new(ants, seed)), view: Arc::default(), report: Arc::default() }
    }

    /// Its world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// What it reported last.
    pub fn report(&self) -> Report {
        self.report.lock().map(|report| *report).unwrap_or_default()
    }

    /// The last picture of it, 24 lines of 64 characters.
    pub fn picture(&self) -> String {
        self.view.picture()
    }

    /// Declares everything that happens to it.
    pub fn declare(&self, schedule: &Schedule) {
        self.declare_colony(schedule.public_track().declare_dag("Colony"));
        let environment = schedule.declare_track("Environment", &["world"]);
        self.declare_garden(environment.declare_dag("Garden"));
        self.declare_spiders(environment.declare_dag("Spiders"));
        self.declare_picture(schedule.declare_track("Presentation", &["view"]).declare_dag("Picture"));
    }

    /// Declares load beside the colony, in waves. The first system may be left out under overload, the second may run
    /// less often, the third always runs.
    pub fn declare_storm(&self, schedule: &Schedule, tick_budget: Duration) {
        let dag = schedule.declare_track("Storm", &["load"]).declare_dag("Storm");
        let blow = |share| {
            let storm = Storm::new(tick_budget, share);
            move |ctx: &mut SystemCtx<'_>| storm.blow(ctx.tick_number())
        };
        dag.callback_system("Spray", blow(0.3)).priority(Priority::Low).can_shed().writes_resource("Air");
        dag.callback_system("Gusts", blow(0.3))
            .throttled_tick_divisor(4)
            .after("Spray")
            .writes_resource("Air");
        dag.callback_system("Gale", blow(0.4)).priority(Priority::High).after("Gusts").writes_resource("Air");
    }

    /// Ants smell, walk, settle who gets what, and leave their scent.
    fn declare_colony(&self, dag: DagBuilder<'_>) {
        dag.phases(["Sense", "Act", "Settle", "Trail", "Report", "Census"]);
        // Every ant may meet something in the same tick.
        let most = QueueOptions::from(1024)
            .full(FullPolicy::Grow(self.world.ant_count().next_power_of_two().max(1024)));
        let reached = dag.event_queue::<FoodReached>("FoodReached", most);
        let bitten = dag.event_queue::<AntBitten>("AntBitten", most);
        let picked_up = dag.event_queue::<FoodPickedUp>("FoodPickedUp", most);
        let delivered = dag.event_queue::<FoodDelivered>("FoodDelivered", most);
        let died = dag.event_queue::<AntDied>("AntDied", most);
        let (chunks, bands) = (self.world.ant_chunks(), self.world.ground_bands());

        let world = Arc::clone(&self.world);
        dag.chunked_system("TrafficClear", bands, move |ctx| systems::clear_traffic(&world, ctx.chunk))
            .phase("Sense")
            .writes_resource("Traffic");

        let world = Arc::clone(&self.world);
        dag.chunked_system("AntSteer", chunks, move |ctx| systems::steer(&world, ctx.chunk as usize))
            .phase("Sense")
            .reads::<Position>()
            .reads::<Task>()
            .reads_resource("Scents")
            .reads_resource("Nest")
            .writes::<Motion>();

        let (world, out) = (Arc::clone(&self.world), (reached.clone(), bitten.clone(), delivered.clone()));
        dag.chunked_system("AntWalk", chunks, move |ctx| {
            systems::walk(&world, ctx.chunk as usize, |step| match step {
                Step::Food(event) => out.0.push(ctx, event),
                Step::Spider(event) => out.1.push(ctx, event),
                Step::Home(event) => out.2.push(ctx, event),
            })
        })
        .phase("Act")
        .reads_resource("Food")
        .reads_resource("Spiders")
        .reads_resource("Nest")
        .writes::<Position>()
        .writes::<Motion>()
        .writes::<Task>()
        .writes_events(&reached)
        .writes_events(&bitten)
        .writes_events(&delivered);

        let (world, events, out) = (Arc::clone(&self.world), reached.clone(), picked_up.clone());
        dag.callback_system("Harvest", move |ctx| -> SystemResult {
            for event in events.drain(ctx)? {
                if let Some(picked_up) = systems::harvest(&world, event) {
                    out.push(ctx, picked_up)?;
                }
            }
            Ok(())
        })
        .phase("Settle")
        .drains_events(&reached)
        .writes_resource("Food")
        .writes_resource("Tally")
        .writes::<Motion>()
        .writes::<Task>()
        .writes_events(&picked_up);

        let (world, events, out) = (Arc::clone(&self.world), bitten.clone(), died.clone());
        dag.callback_system("SpiderBite", move |ctx| -> SystemResult {
            for event in events.drain(ctx)? {
                if let Some(died) = systems::bite(&world, event) {
                    out.push(ctx, died)?;
                }
            }
            Ok(())
        })
        .phase("Settle")
        .after("Harvest")
        .drains_events(&bitten)
        .reads::<Position>()
        .writes_resource("Spiders")
        .writes_resource("Scents")
        .writes_resource("Tally")
        .writes::<Task>()
        .writes_events(&died);

        let (world, home, dead) = (Arc::clone(&self.world), delivered.clone(), died.clone());
        dag.callback_system("Brood", move |ctx| -> SystemResult {
            systems::bring_in(&world, home.read(ctx)?.iter(), dead.read(ctx)?.iter());
            systems::hatch(&world);
            Ok(())
        })
        .phase("Settle")
        .after("SpiderBite")
        .reads_events(&delivered)
        .reads_events(&died)
        .writes_resource("Nest")
        .writes_resource("Tally")
        .writes::<Position>()
        .writes::<Task>();

        let world = Arc::clone(&self.world);
        dag.chunked_system("TrailLay", chunks, move |ctx| systems::lay_trails(&world, ctx.chunk as usize))
            .phase("Trail")
            .reads::<Position>()
            .reads::<Task>()
            .writes_resource("Scents")
            .writes_resource("Traffic");

        let world = Arc::clone(&self.world);
        dag.chunked_system("TrailFade", bands, move |ctx| systems::decay_trails(&world, ctx.chunk))
            .phase("Trail")
            .after("TrailLay")
            .reads_resource("Weather")
            .writes_resource("Scents");

        let (world, report) = (Arc::clone(&self.world), Arc::clone(&self.report));
        let events = (picked_up.clone(), delivered.clone(), died.clone());
        dag.callback_system("ColonyReport", move |ctx| -> SystemResult {
            let mut report = report.lock().map_err(|_| "another system panicked while it reported")?;
            report.tally = *world.tally.borrow();
            report.told.picked_up += events.0.read(ctx)?.iter().count() as u64;
            report.told.delivered += events.1.read(ctx)?.iter().count() as u64;
            report.told.died += events.2.read(ctx)?.iter().count() as u64;
            Ok(())
        })
        .phase("Report")
        .reads_events(&picked_up)
        .reads_events(&delivered)
        .reads_events(&died)
        .reads_resource("Tally");

        let (world, report) = (Arc::clone(&self.world), Arc::clone(&self.report));
        dag.callback_system("Census", move |_| -> SystemResult {
            let census = systems::census(&world)?;
            report.lock().map_err(|_| "another system panicked while it reported")?.census = census;
            Ok(())
        })
        .phase("Census")
        .exclusive_phase()
        .tick_divisor(60)
        .reads::<Task>()
        .reads_resource("Tally")
        .reads_resource("Nest");
    }

    /// Weather changes and food grows.
    fn declare_garden(&self, dag: DagBuilder<'_>) {
        let world = Arc::clone(&self.world);
        dag.callback_system("Weather", move |ctx| systems::turn_weather(&world, ctx.tick_number()))
            .writes_resource("Weather");
        let world = Arc::clone(&self.world);
        dag.callback_system("FoodGrowth", move |_| systems::grow_food(&world))
            .writes_resource("Food")
            .writes_resource("Scents")
            .writes_resource("Tally");
    }

    /// Spiders know nothing of the garden: the two run side by side.
    fn declare_spiders(&self, dag: DagBuilder<'_>) {
        let world = Arc::clone(&self.world);
        dag.callback_system("SpiderWalk", move |_| systems::hunt_for_ants(&world))
            .reads_resource("Traffic")
            .writes_resource("Spiders");
    }

    /// What a client would see.
    fn declare_picture(&self, dag: DagBuilder<'_>) {
        dag.phases(["Gather", "Draw"]);
        let rows = ROWS as u32;
        let (world, view) = (Arc::clone(&self.world), Arc::clone(&self.view));
        dag.chunked_system("PictureFood", rows, move |ctx| {
            view.food.gather(&world, ctx.chunk as usize, |cell| world.food_trail.strength(cell));
        })
        .phase("Gather")
        .throttled_tick_divisor(4)
        .reads_resource("Scents")
        .writes_resource("FoodLayer");

        let (world, view) = (Arc::clone(&self.world), Arc::clone(&self.view));
        dag.chunked_system("PictureAlarm", rows, move |ctx| {
            view.alarm.gather(&world, ctx.chunk as usize, |cell| world.alarm.strength(cell));
        })
        .phase("Gather")
        .priority(Priority::Low)
        .can_shed()
        .reads_resource("Scents")
        .writes_resource("AlarmLayer");

        let (world, view) = (Arc::clone(&self.world), Arc::clone(&self.view));
        dag.chunked_system("PictureTraffic", rows, move |ctx| {
            view.traffic.gather(&world, ctx.chunk as usize, |cell| world.traffic.count(cell));
        })
        .phase("Gather")
        .throttled_tick_divisor(4)
        .reads_resource("Traffic")
        .writes_resource("TrafficLayer");

        let view = Arc::clone(&self.view);
        dag.callback_system("PictureDraw", move |_| view.draw())
            .phase("Draw")
            .tick_divisor(6)
            .priority(Priority::Low)
            .can_shed()
            .reads_resource("FoodLayer")
            .reads_resource("AlarmLayer")
            .reads_resource("TrafficLayer")
            .writes_resource("Picture");
    }
}
