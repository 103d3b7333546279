//! A world in which logs are written, crash and are opened again, and the oracle that knows what must be left.
//!
//! The application on top is as small as one can be and still notice everything: its state is a number into which
//! each effect is mixed, in order, and the anchor keeps the number.
#![allow(clippy::unwrap_used, dead_code, reason = "tests; not every test uses everything")]

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use typhon_log::format::FrameKind;
use typhon_log::{Draft, Effect, FenceEnd, Fences, LogError, Lsn, Opening, Options, Store, SyncMode};
use typhon_store::sim::{Faults, Random, SimIo, Survival};
use typhon_sync::Deadline;

/// Positions that an open skips.
const LSN_STEP: u64 = 1 << 30;

/// What the oracle found to be wrong.
#[derive(Debug)]
pub(crate) struct Violation(pub(crate) String);

/// How one life of the process ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The machine stopped, or storage failed; the process is gone.
    Crashed,
    /// The oracle objects.
    Wrong(Violation),
}

impl From<Violation> for Ended {
    fn from(violation: Violation) -> Self {
        Self::Wrong(violation)
    }
}

/// A frame as it was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    lsn: Lsn,
    kind: FrameKind,
    seq: u64,
    body: Vec<u8>,
}

/// What must be true, whatever happened.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// Frames of the present, in order; what a seal cut off is gone.
    history: Vec<Written>,
    acknowledged: Lsn,
    highest_lsn: u64,
    highest_tsn: u64,
    /// Ends of prefixes that some open was about to seal.
    seals: Vec<Lsn>,
    has_appended: bool,
    /// Numbers may be issued twice: for mistakes that only matter together with that one.
    pub(crate) is_lenient: bool,
}

impl Oracle {
    fn appended(&mut self, start: u64, written: Written) -> Result<(), Violation> {
        if start < self.highest_lsn && !self.is_lenient {
            return Err(Violation(format!("position {start} issued twice")));
        }
        if written.kind.takes_tsn() {
            if written.seq <= self.highest_tsn && !self.is_lenient {
                return Err(Violation(format!(
                    "sequence number {} issued twice or out of order",
                    written.seq
                )));
            }
            self.highest_tsn = written.seq;
        }
        self.highest_lsn = written.lsn.0;
        self.has_appended = true;
        self.history.push(written);
        Ok(())
    }

    /// The state after all frames up to a position.
    fn fold(&self, until: Lsn) -> u64 {
        let mut application = Application::default();
        for written in self.history.iter().take_while(|written| written.lsn <= until) {
            application.oracle_apply(written);
        }
        application.state
    }

    /// The last position up to `until` that does not lie inside a fence.
    fn boundary(&self, until: Lsn) -> Option<Lsn> {
        let frames = self.history.iter().rev().skip_while(|written| written.lsn > until);
        frames
            .map(|written| (written.lsn, written.kind))
            .find(|(_, kind)| *kind != FrameKind::FencePart)
            .map(|(lsn, _)| lsn)
    }
}

/// The number that is the whole state. Two ways to apply frames: by the library's rules, and by the oracle's own.
#[derive(Debug, Default)]
struct Application {
    state: u64,
    fences: Fences,
    parts: Vec<(u64, Vec<u8>)>,
}

fn mix(state: u64, bytes: &[u8]) -> u64 {
    let seed = (state ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bytes.iter().fold(seed ^ bytes.len() as u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(5)
    })
}

impl Application {
    fn apply(&mut self, frame: &typhon_log::format::Frame<'_>) {
        match self.fences.next(frame) {
            Effect::Frame => self.state = mix(self.state, frame.body),
            Effect::Fence(_, parts) => {
                self.state = parts.iter().fold(self.state, |state, part| mix(state, part));
            }
            Effect::Pending | Effect::Nothing => {}
        }
    }

    fn oracle_apply(&mut self, written: &Written) {
        match written.kind {
            FrameKind::FencePart => self.parts.push((written.seq, written.body.clone())),
            FrameKind::FenceEnd => {
                let parts = std::mem::take(&mut self.parts);
                let fence = u64::from_le_bytes(written.body[..8].try_into().unwrap());
                let count = u32::from_le_bytes(written.body[16..20].try_into().unwrap()) as usize;
                if parts.len() < count {
                    return;
                }
                let own = &parts[parts.len() - count..];
                if own.iter().all(|(number, _)| *number == fence) {
                    self.state = own.iter().fold(self.state, |state, (_, body)| mix(state, body));
                }
            }
            _ => {
                self.parts.clear();
                self.state = mix(self.state, &written.body);
            }
        }
    }
}

/// A disk, a log on it, and the oracle.
pub(crate) struct World {
    pub(crate) io: SimIo,
    pub(crate) random: Random,
    pub(crate) options: Options,
    pub(crate) oracle: Oracle,
    pub(crate) fence: u64,
    /// What happened, for a world that went wrong.
    pub(crate) story: Vec<String>,
    /// Machine stops and kills so far.
    pub(crate) crashes: u64,
    /// A refusal is right: something was damaged on purpose.
    pub(crate) may_refuse: bool,
}

const DIRECTORY: &str = "/db";

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x0C0F_FEE0);
        let segment_bytes = *random.pick(&[8 << 10, 12 << 10, 20 << 10, 32 << 10]);
        let options = Options {
            ring_bytes: *random.pick(&[8 << 10, 16 << 10, 32 << 10]),
            segment_bytes,
            spare_segments: random.below(3) as usize,
            block_bytes: *random.pick(&[4 << 10, 6 << 10, 64 << 10]),
            sync: *random.pick(&[SyncMode::Flush, SyncMode::Flush, SyncMode::WriteThrough]),
            ..Options::small()
        };
        Self {
            io: SimIo::new(seed),
            random,
            options,
            oracle: Oracle::default(),
            fence: 0,
            story: Vec::new(),
            crashes: 0,
            may_refuse: false,
        }
    }

    pub(crate) fn say(&mut self, what: impl Into<String>) {
        let calls = self.io.calls();
        self.story.push(format!("[{calls}] {}", what.into()));
    }

    /// Opens the log, compares everything with the oracle, and starts it.
    pub(crate) fn open(&mut self) -> Result<Store, Ended> {
        let io = Arc::new(self.io.process());
        let opened = Store::open(io, Path::new(DIRECTORY), self.options.clone(), &0_u64.to_le_bytes());
        let opening = match opened {
            Ok(opening) => opening,
            Err(error) => return Err(self.refused(&error)),
        };
        let state = self.check(&opening)?;
        let end = opening.report().end;
        self.say(format!("recovered {:?}", opening.report()));
        self.oracle.seals.push(end);
        let store = opening.start(&state.to_le_bytes()).map_err(|error| self.refused(&error))?;
        self.oracle.history.retain(|written| written.lsn <= end);
        self.oracle.acknowledged = self.oracle.acknowledged.max(end);
        self.say(format!("started at {:?}", store.watermarks()));
        Ok(store)
    }

    /// Errors of storage end the process; any other refusal of a log that only crashed is wrong.
    fn refused(&mut self, error: &LogError) -> Ended {
        self.say(format!("{error}"));
        match error {
            LogError::Storage { .. } | LogError::Full { .. } | LogError::Failed { .. } => Ended::Crashed,
            _ if self.may_refuse => Ended::Crashed,
            error => Ended::Wrong(Violation(format!("refused a log that only crashed: {error}"))),
        }
    }

    fn check(&mut self, opening: &Opening) -> Result<u64, Violation> {
        let report = opening.report();
        let oracle = &mut self.oracle;
        if report.base == Lsn::START
            && oracle.has_appended
            && report.end == Lsn::START
            && oracle.acknowledged > Lsn::START
        {
            return Err(Violation("the log is new again".to_owned()));
        }
        // A seal that did arrive although the open that made it did not finish.
        let step = if oracle.is_lenient { 0 } else { LSN_STEP };
        let sealed = oracle.seals.iter().find(|end| end.0 + step == report.base.0).copied();
        if let Some(end) = sealed {
            oracle.history.retain(|written| written.lsn <= end || written.lsn > report.base);
        }
        let lost = oracle
            .history
            .iter()
            .find(|written| written.lsn > report.end && written.lsn <= oracle.acknowledged);
        if let Some(lost) = lost {
            return Err(Violation(format!(
                "acknowledged and lost: {} (recovered up to {})",
                lost.lsn, report.end
            )));
        }
        let state: [u8; 8] = opening.state().try_into().map_err(|_| Violation("no state".to_owned()))?;
        let mut application = Application { state: u64::from_le_bytes(state), ..Application::default() };
        if application.state != oracle.fold(report.base) {
            return Err(Violation(format!("the state is not that of the base {}", report.base)));
        }
        let mut expected =
            oracle.history.iter().filter(|written| written.lsn > report.base && written.lsn <= report.end);
        let mut frames = opening.frames();
        loop {
            let frame = match frames.next_frame() {
                Ok(frame) => frame,
                // The machine may stop while the log is read, too.
                Err(LogError::Storage { .. }) if self.io.is_down() => break,
                Err(error) => return Err(Violation(format!("cannot replay: {error}"))),
            };
            let Some(frame) = frame else {
                if let Some(missing) = expected.next() {
                    return Err(Violation(format!("a hole at {}", missing.lsn)));
                }
                break;
            };
            let found = Written {
                lsn: frame.lsn,
                kind: frame.kind().unwrap(),
                seq: frame.header.seq,
                body: frame.body.to_vec(),
            };
            if expected.next() != Some(&found) {
                return Err(Violation(format!(
                    "recovered what was not appended there: {} {}",
                    found.lsn, found.kind
                )));
            }
            application.apply(&frame);
        }
        if application.state != oracle.fold(report.end) {
            return Err(Violation(format!("the state is not that of the prefix up to {}", report.end)));
        }
        Ok(application.state)
    }

    // ---- what an application does

    pub(crate) fn append(
        &mut self,
        store: &Store,
        draft: &Draft<'_>,
        kind: FrameKind,
        seq: u64,
        body: &[u8],
    ) -> Result<Lsn, Ended> {
        let appended = match store.append(draft, Deadline::EXPIRED) {
            Ok(appended) => appended,
            Err(error) => return Err(self.refused_append(&error)),
        };
        let seq = appended.tsn.map_or(seq, |tsn| tsn.0);
        self.say(format!("append {kind} {seq} up to {}", appended.lsn));
        let written = Written { lsn: appended.lsn, kind, seq, body: body.to_vec() };
        self.oracle.appended(appended.lsn.0 - draft.span_bytes(), written)?;
        Ok(appended.lsn)
    }

    /// Not to find room is no reason to end, but to do something else.
    fn refused_append(&mut self, error: &LogError) -> Ended {
        self.say(format!("{error}"));
        match error {
            LogError::Failed { .. } | LogError::Full { .. } | LogError::BackPressure { .. } => Ended::Crashed,
            error => Ended::Wrong(Violation(format!("append refused: {error}"))),
        }
    }

    pub(crate) fn commit(&mut self, store: &Store, bytes: usize) -> Result<Lsn, Ended> {
        let salt = self.random.next_u64();
        let body: Vec<u8> = (0..bytes).map(|index| (salt >> (index % 8 * 8)) as u8).collect();
        self.append(store, &Draft::commit(&body), FrameKind::Commit, 0, &body)
    }

    /// A fence of some parts, abandoned before its end if asked.
    pub(crate) fn fence(&mut self, store: &Store, parts: u32, is_abandoned: bool) -> Result<(), Ended> {
        self.fence += 1;
        let fence = self.fence;
        for part in 0..parts {
            let body = [fence as u8, part as u8, self.random.below(256) as u8];
            let draft = Draft::fence_part(fence, &body);
            self.append(store, &draft, FrameKind::FencePart, fence, &body)?;
        }
        if !is_abandoned {
            let body = FenceEnd { fence, tick: -1, parts, records: parts }.encode();
            self.append(store, &Draft::fence_end(&body), FrameKind::FenceEnd, 0, &body)?;
        }
        Ok(())
    }

    /// Waits for durability, and tells the oracle what was acknowledged.
    pub(crate) fn wait(&mut self, store: &Store, lsn: Lsn) -> Result<(), Ended> {
        let result = store.wait_durable(lsn, Deadline::EXPIRED);
        self.note_acknowledged(store);
        match result {
            Ok(()) => Ok(()),
            Err(error) => Err(self.refused(&error)),
        }
    }

    fn note_acknowledged(&mut self, store: &Store) {
        let durable = store.watermarks().durable;
        if durable > self.oracle.acknowledged {
            self.oracle.acknowledged = durable;
            self.say(format!("acknowledged {durable}"));
        }
    }

    pub(crate) fn flush(&mut self, store: &Store) {
        store.request_flush();
        self.note_acknowledged(store);
    }

    /// Moves the base to the last durable position outside a fence.
    pub(crate) fn checkpoint(&mut self, store: &Store) -> Result<(), Ended> {
        let durable = store.watermarks().durable;
        let Some(base) = self.oracle.boundary(durable).filter(|base| *base >= store.anchor().base) else {
            return Ok(());
        };
        let state = self.oracle.fold(base);
        let result = store.checkpoint(base, &state.to_le_bytes());
        self.say(format!("checkpoint {base}: {result:?}"));
        match result {
            Ok(_) => Ok(()),
            Err(LogError::Covered { .. }) => Ok(()),
            Err(error) => Err(self.refused(&error)),
        }
    }

    // ---- ends

    /// Makes sure that nothing is written from here on.
    pub(crate) fn crash_if_up(&mut self) {
        if !self.io.is_down() {
            self.io.kill();
        }
    }

    /// The process is gone: its handles are dead before anything else is cleaned up.
    pub(crate) fn kill(&mut self, store: Option<Store>) {
        self.crashes += 1;
        self.io.set_faults(Faults::default());
        self.io.kill();
        self.say("kill -9");
        drop(store);
    }

    pub(crate) fn cut_power(&mut self, store: Option<Store>, survival: Survival) {
        self.crashes += 1;
        self.io.set_faults(Faults::default());
        self.io.cut_power(survival);
        self.say(format!("power cut: {survival:?}"));
        drop(store);
    }

    pub(crate) fn crash(&mut self, store: Option<Store>) {
        if self.random.chance(300_000) {
            self.kill(store);
        } else {
            let survival = *self.random.pick(&Survival::ALL);
            self.cut_power(store, survival);
        }
    }
}

/// How a world differs from an ordinary one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How {
    /// Syncs do nothing.
    pub(crate) lies: bool,
    /// See [`Oracle::is_lenient`].
    pub(crate) is_lenient: bool,
    /// Nothing but blocks of frames that begin where sectors do, one for each segment: when such a block is torn, whole
    /// frames of the block that was there before show in it.
    pub(crate) is_aligned: bool,
}

/// Some lives of a log under all faults, each ended by a crash or a close, and a last, quiet open. Returns how many
/// crashes there were.
pub(crate) fn random_world(seed: u64, how: How) -> Result<u64, (Violation, Vec<String>)> {
    let mut world = World::new(seed);
    world.oracle.is_lenient = how.is_lenient;
    if how.is_aligned {
        (world.options.segment_bytes, world.options.sync) = (8 << 10, SyncMode::Flush);
    }
    match random_lives(&mut world, how) {
        Ok(()) => Ok(world.crashes),
        Err(violation) => Err((violation, world.story)),
    }
}

fn random_lives(world: &mut World, how: How) -> Result<(), Violation> {
    let lives = 2 + world.random.below(4);
    let (has_errors, has_no_space) = (world.random.chance(300_000), world.random.chance(200_000));
    let has_short_writes = world.random.chance(300_000);
    for _ in 0..lives {
        let mut faults = Faults { lying_sync: how.lies, ..Faults::default() };
        if has_errors {
            (faults.write_error, faults.sync_error) = (20_000, 20_000);
        }
        if has_no_space {
            faults.no_space = 100_000;
        }
        if has_short_writes {
            faults.short_write = 200_000;
        }
        world.io.set_faults(faults);
        if world.random.chance(850_000) {
            let span = if world.random.chance(350_000) { 30 } else { 150 };
            let call = world.io.calls() + 1 + world.random.below(span);
            world.io.crash_at(Some(call));
        }
        match world.open() {
            Ok(store) => match random_service(world, &store, how) {
                Err(Ended::Wrong(violation)) => return Err(violation),
                Ok(()) if world.random.chance(400_000) && !world.io.is_down() => {
                    world.say("close");
                    drop(store);
                    world.crash(None);
                }
                Ok(()) | Err(Ended::Crashed) => world.crash(Some(store)),
            },
            Err(Ended::Wrong(violation)) => return Err(violation),
            Err(Ended::Crashed) => world.crash(None),
        }
    }
    world.io.set_faults(Faults::default());
    match world.open() {
        Ok(_) => Ok(()),
        Err(Ended::Wrong(violation)) => Err(violation),
        Err(Ended::Crashed) => Err(Violation("a quiet open failed".to_owned())),
    }
}

fn random_service(world: &mut World, store: &Store, how: How) -> Result<(), Ended> {
    let steps = world.random.below(25);
    for _ in 0..steps {
        if world.io.is_down() {
            return Err(Ended::Crashed);
        }
        let choice = if how.is_aligned { 10 + world.random.below(2) } else { world.random.below(13) };
        match choice {
            0..=3 => {
                let bytes = world.random.below(1500) as usize;
                world.commit(store, bytes)?;
            }
            4..=6 => {
                let bytes = world.random.below(300) as usize;
                let lsn = world.commit(store, bytes)?;
                world.wait(store, lsn)?;
            }
            7 => {
                // Larger than a block, perhaps than a segment.
                let bytes = world.random.below(store.frame_bytes_max() - 40) as usize;
                world.commit(store, bytes)?;
            }
            8 => {
                let (parts, is_abandoned) = (1 + world.random.below(3) as u32, world.random.chance(200_000));
                world.fence(store, parts, is_abandoned)?;
            }
            9 => world.flush(store),
            10 => {
                // With the header of the block, these end where sectors do.
                for bytes in [416, 480, 480] {
                    world.commit(store, bytes)?;
                }
                world.flush(store);
            }
            _ => world.checkpoint(store)?,
        }
    }
    Ok(())
}

/// The first world of some that goes wrong.
pub(crate) fn first_violation(seeds: Range<u64>, how: How) -> Option<(u64, Violation, Vec<String>)> {
    for seed in seeds {
        if let Err((violation, story)) = random_world(seed, how) {
            return Some((seed, violation, story));
        }
    }
    None
}
