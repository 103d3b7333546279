//! Declaring a schedule, and building it.
//!
//! ```
//! use typhon_runtime::schedule::{Schedule, ScheduleOptions};
//!
//! struct Position(f32);
//! struct Velocity(f32);
//!
//! let schedule = Schedule::new();
//! let sim = schedule.public_track().declare_dag("Sim");
//! sim.phases(["Input", "Simulation"]);
//! let steered = sim.event_queue::<u32>("Steered", 256);
//! sim.callback_system("Steer", |_| {}).writes::<Velocity>().writes_events(&steered);
//! sim.callback_system("Move", |_| {}).phase("Simulation").reads::<Velocity>().writes::<Position>();
//! sim.callback_system("Echo", |_| {}).phase("Simulation").reads_events(&steered);
//!
//! let built = schedule.build(&ScheduleOptions::default())?;
//! let order: Vec<_> = built.graph.edges().iter().map(|edge| (edge.from.get(), edge.to.get())).collect();
//! assert_eq!(order, [(0, 1), (0, 2)]);
//! # Ok::<(), typhon_runtime::schedule::ScheduleBuildError>(())
//! ```
//!
//! Every call adds to what was declared before; nothing is checked until [`Schedule::build`], which reports all faults
//! at once. The builders are small handles that can be copied and kept side by side while the schedule lives.

mod build;
mod built;
mod dag;
mod draft;
mod fault;
mod priority;
mod resolve;
mod rules;
mod system;
mod track;
mod warning;

use std::cell::{RefCell, RefMut};

pub use built::{BuiltSchedule, QueueDeclaration};
pub use dag::DagBuilder;
pub use fault::{MAX_CHUNKS, ScheduleBuildError, ScheduleFault, Subject};
pub use priority::Priority;
pub use system::{Callback, Chunked, ChunkedWith, HasContext, Pipeline, SystemBuilder};
pub use track::TrackBuilder;
pub use warning::ScheduleWarning;

use draft::{Draft, TrackDraft};

/// Names of phases for schedules that do not need their own.
pub mod phase {
    /// What comes from outside.
    pub const INPUT: &str = "Input";
    /// What moves the world on.
    pub const SIMULATION: &str = "Simulation";
    /// What goes outside.
    pub const OUTPUT: &str = "Output";
    /// What tidies up.
    pub const CLEANUP: &str = "Cleanup";
    /// The one phase of a DAG that declares none.
    pub const DEFAULT: &str = "Default";
}

/// Name of the engine's track before everything else.
const ENGINE_PRE: &str = "Engine-Pre";
/// Name of the track that every schedule has for its user.
const PUBLIC: &str = "Public";
/// Name of the engine's track after everything else.
const ENGINE_POST: &str = "Engine-Post";
/// The tag of the engine's tracks.
const ENGINE_TAG: &str = "engine";

/// What a schedule is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScheduleOptions {
    /// Is a system that declares no access a fault? By default it is a warning. The engine's tracks are exempt.
    pub require_access_declarations: bool,
}

/// A schedule that is being declared.
pub struct Schedule {
    draft: RefCell<Draft>,
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new()
    }
}

impl Schedule {
    /// A schedule with the tracks `Engine-Pre`, `Public` and `Engine-Post`.
    pub fn new() -> Self {
        let engine = |name: &str| TrackDraft {
            name: name.to_owned(),
            tags: vec![ENGINE_TAG.to_owned()],
            is_engine: true,
        };
        let public = TrackDraft { name: PUBLIC.to_owned(), tags: Vec::new(), is_engine: false };
        let tracks = vec![engine(ENGINE_PRE), public, engine(ENGINE_POST)];
        let (dags, systems, queues, faults) = Default::default();
        Self { draft: RefCell::new(Draft { tracks, dags, systems, queues, faults }) }
    }

    /// The track `Public`.
    pub fn public_track(&self) -> TrackBuilder<'_> {
        TrackBuilder::new(self, 1)
    }

    /// The track `Engine-Pre`, which runs first. For layers of the engine.
    pub fn engine_pre_track(&self) -> TrackBuilder<'_> {
        TrackBuilder::new(self, 0)
    }

    /// The track `Engine-Post`, which runs last. For layers of the engine.
    pub fn engine_post_track(&self) -> TrackBuilder<'_> {
        TrackBuilder::new(self, 2)
    }

    /// Another track. Tracks run in the order of declaration, between `Public` and `Engine-Post`. The name must be new,
    /// not empty, and must not begin with `Engine-`. Tags are free words for tools; `engine` is taken.
    pub fn declare_track(&self, name: impl Into<String>, tags: &[&str]) -> TrackBuilder<'_> {
        let tags = tags.iter().map(|&tag| tag.to_owned()).collect();
        let track = TrackDraft { name: name.into(), tags, is_engine: false };
        let mut draft = self.edit();
        draft.tracks.push(track);
        TrackBuilder::new(self, draft.tracks.len() - 1)
    }

    fn edit(&self) -> RefMut<'_, Draft> {
        self.draft.borrow_mut()
    }
}
