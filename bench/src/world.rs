//! A made-up session of a game server: records of many kinds, in the proportions of a busy world.
//!
//! The same seed gives the same bytes.

use typhon_trace::event::{
    BTreeDelete, BTreeInsert, ClusterMigration, ConcurrencyEpochScopeEnter, EcsDestroy, EcsQueryCount,
    EcsQueryScanMode, EcsSpawn, Gauge, GaugeValue, InstantEvent, MemoryAllocDirection, MemoryAllocEvent,
    MemoryAllocSource, OverloadLevel, PageCacheDiskRead, PerTickSnapshot, RuntimePhaseSpan, SchedulerChunk,
    SchedulerSystemArchetype, SpanEvent, SpanFields, SystemReady, ThreadInfo, ThreadKind, TickEnd, TickPhase,
    TickStart, TransactionCommit, TransactionCommitComponent, WalFlush,
};

/// Nanoseconds from one tick to the next.
const TICK_NS: i64 = 16_666_667;
const SYSTEMS: u16 = 12;
const CHUNKS: u16 = 4;
const TRANSACTIONS_PER_CHUNK: u64 = 3;
const WORKERS: u64 = 4;
/// Longest record that is written here.
const RECORD_BYTES_MAX: usize = 512;
/// The slot of the thread that drives ticks; workers have the slots above it.
const DRIVER: u8 = 0;

/// The session so far.
#[derive(Debug)]
pub struct World {
    records: Vec<u8>,
    count: u64,
    random: u64,
    now: i64,
    tick: u32,
    tsn: i64,
    spans: [u64; WORKERS as usize + 1],
    allocated_bytes: u64,
}

impl World {
    /// A session that has not begun.
    pub fn new(seed: u64) -> Self {
        Self {
            records: Vec::new(),
            count: 0,
            random: seed | 1,
            now: 1_000_000_000,
            tick: 0,
            tsn: 1,
            spans: [0; _],
            allocated_bytes: 1 << 30,
        }
    }

    /// Records of the next tick, and how many they are. The first one also announces the threads.
    pub fn next_tick(&mut self) -> (&[u8], u64) {
        self.records.clear();
        self.count = 0;
        if self.tick == 0 {
            self.announce_threads();
        }
        let start = self.now;
        self.instant(DRIVER, start, &TickStart::default());
        let dispatch = self.new_span(DRIVER);
        for system in 0..SYSTEMS {
            self.system(system, dispatch);
        }
        self.span_since(DRIVER, start, dispatch, 0, &RuntimePhaseSpan { phase: TickPhase::SYSTEM_DISPATCH });
        self.finish_tick(start);
        (&self.records, self.count)
    }

    fn announce_threads(&mut self) {
        for slot in 0..=WORKERS as u8 {
            let (name, thread_kind) = match slot {
                DRIVER => ("Typhon.TickDriver".to_owned(), ThreadKind::MAIN),
                worker => (format!("Typhon.Worker-{worker}"), ThreadKind::WORKER),
            };
            let thread = ThreadInfo { managed_thread_id: i32::from(slot) + 1, name: &name, thread_kind };
            self.instant(slot, self.now, &thread);
        }
    }

    fn system(&mut self, system: u16, parent: u64) {
        let ready = SystemReady { system_idx: system, predecessor_count: system.min(3) };
        self.instant(DRIVER, self.now, &ready);
        let mut entities = 0;
        for chunk in 0..CHUNKS {
            entities += self.chunk(system, chunk, parent);
        }
        let touched = SchedulerSystemArchetype {
            system_index: system,
            archetype_id: system % 7,
            entity_count: entities,
            chunk_count: CHUNKS.into(),
        };
        let id = self.new_span(DRIVER);
        self.span_since(DRIVER, self.now - 40_000, id, parent, &touched);
    }

    /// One chunk on one worker; returns how many entities it processed.
    fn chunk(&mut self, system: u16, chunk: u16, parent: u64) -> i32 {
        let slot = 1 + self.below(WORKERS) as u8;
        let (start, id) = (self.now, self.new_span(slot));
        let epoch =
            ConcurrencyEpochScopeEnter { current_epoch: self.tick, depth_before: 0, is_dormant_to_active: 1 };
        self.instant(slot, self.now, &epoch);
        self.query(slot, id, system % 7);
        for _ in 0..TRANSACTIONS_PER_CHUNK {
            self.transaction(slot, id, system % 7);
        }
        let entities_processed = 64 + self.below(448) as i32;
        let event =
            SchedulerChunk { system_idx: system, chunk_idx: chunk, total_chunks: CHUNKS, entities_processed };
        self.span_since(slot, start, id, parent, &event);
        entities_processed
    }

    fn query(&mut self, slot: u8, parent: u64, archetype_type_id: u16) {
        let start = self.pass(4_000);
        let id = self.new_span(slot);
        let result_count = Some(self.below(500) as i32);
        let scan_mode = Some(EcsQueryScanMode::TARGETED);
        self.span_since(
            slot,
            start,
            id,
            parent,
            &EcsQueryCount { archetype_type_id, result_count, scan_mode },
        );
    }

    fn transaction(&mut self, slot: u8, parent: u64, archetype_id: u16) {
        let start = self.now;
        let (id, tsn) = (self.new_span(slot), self.tsn);
        self.tsn += 1;
        self.changes(slot, id, archetype_id);
        let component = self.new_span(slot);
        let component_start = self.pass(2_000);
        let row_count = Some(self.below(30) as i32);
        let changed = TransactionCommitComponent { tsn, component_type_id: archetype_id.into(), row_count };
        self.span_since(slot, component_start, component, id, &changed);
        let commit = TransactionCommit {
            tsn,
            component_count: Some(2),
            conflict_detected: Some(self.below(100) == 0),
        };
        self.span_since(slot, start, id, parent, &commit);
    }

    /// What a transaction did to entities, indices and memory.
    fn changes(&mut self, slot: u8, parent: u64, archetype_id: u16) {
        let (start, id) = (self.pass(1_500), self.new_span(slot));
        let entity = self.below(1 << 20) << 16 | u64::from(archetype_id);
        if self.below(3) == 0 {
            let event = EcsDestroy { entity_id: entity, cascade_count: None, tsn: Some(self.tsn) };
            self.span_since(slot, start, id, parent, &event);
            let (start, id) = (self.pass(700), self.new_span(slot));
            self.span_since(slot, start, id, parent, &BTreeDelete::default());
        } else {
            let event = EcsSpawn { archetype_id, entity_id: Some(entity), tsn: Some(self.tsn) };
            self.span_since(slot, start, id, parent, &event);
            let (start, id) = (self.pass(800), self.new_span(slot));
            self.span_since(slot, start, id, parent, &BTreeInsert::default());
        }
        if self.below(8) == 0 {
            let (start, id) = (self.pass(90_000), self.new_span(slot));
            let page = self.below(1 << 18) as i32;
            self.span_since(slot, start, id, parent, &PageCacheDiskRead { file_page_index: page });
        }
        if self.below(4) == 0 {
            self.allocation(slot);
        }
    }

    fn allocation(&mut self, slot: u8) {
        let size_bytes = 64 << self.below(8);
        self.allocated_bytes += size_bytes;
        let event = MemoryAllocEvent {
            direction: MemoryAllocDirection::ALLOC,
            source_tag: MemoryAllocSource::PAGE_CACHE,
            size_bytes,
            total_after_bytes: self.allocated_bytes,
        };
        self.instant(slot, self.now, &event);
    }

    /// Log flush, fence, end of the tick and its gauges; then the wait for the next one.
    fn finish_tick(&mut self, start: i64) {
        let (flush_start, flush) = (self.pass(300_000), self.new_span(DRIVER));
        let frame_count = 20 + self.below(20) as i32;
        let event = WalFlush { batch_byte_count: frame_count * 310, frame_count, high_lsn: self.tsn * 8 };
        self.span_since(DRIVER, flush_start, flush, 0, &event);
        let (fence_start, fence) = (self.pass(60_000), self.new_span(DRIVER));
        let moved = self.below(90) as i32;
        let event = ClusterMigration {
            archetype_id: 3,
            migration_count: moved,
            component_count: 5,
            crossing_count: Some(moved / 2),
            relocation_count: Some(1),
            repair_count: None,
        };
        self.span_since(DRIVER, fence_start, fence, 0, &event);
        let end = TickEnd { overload_level: OverloadLevel::NORMAL, tick_multiplier: 1 };
        self.instant(DRIVER, self.now, &end);
        let gauges = self.gauges();
        self.instant(DRIVER, self.now, &PerTickSnapshot { tick_number: self.tick, gauges: &gauges });
        self.tick += 1;
        self.now = self.now.max(start + TICK_NS);
    }

    fn gauges(&mut self) -> [Gauge; 8] {
        let bytes = |id, value| Gauge { id, value: GaugeValue::U64Bytes(value) };
        let count = |id, value| Gauge { id, value: GaugeValue::U32Count(value) };
        let (dirty, free) = (self.below(4000) as u32, self.below(9000) as u32);
        [
            bytes(0x0100, self.allocated_bytes),
            bytes(0x0101, self.allocated_bytes),
            count(0x0201, free),
            count(0x0203, dirty),
            count(0x0206, self.below(12) as u32),
            bytes(0x0300, self.below(1 << 22)),
            count(0x0400, self.below(9) as u32),
            bytes(0x0410, self.tsn as u64),
        ]
    }

    /// Lets up to `limit_ns` pass and returns the time before.
    fn pass(&mut self, limit_ns: u64) -> i64 {
        let before = self.now;
        self.now += 1 + self.below(limit_ns) as i64;
        before
    }

    fn new_span(&mut self, slot: u8) -> u64 {
        let counter = &mut self.spans[usize::from(slot)];
        *counter += 1;
        u64::from(slot) << 56 | *counter
    }

    fn span_since(
        &mut self,
        slot: u8,
        start: i64,
        span_id: u64,
        parent_span_id: u64,
        event: &impl SpanEvent,
    ) {
        let site = (self.below(4) > 0).then_some(FIRST_SITE + u16::from(span_id as u8 % 40));
        let span = SpanFields { duration: self.now - start, span_id, parent_span_id, trace_id: None, site };
        self.put(|out| event.encode(slot, start, &span, out));
    }

    fn instant(&mut self, slot: u8, timestamp: i64, event: &impl InstantEvent) {
        self.put(|out| event.encode(slot, timestamp, out));
    }

    fn put<E: std::fmt::Debug>(&mut self, encode: impl FnOnce(&mut [u8]) -> Result<usize, E>) {
        let mut buffer = [0; RECORD_BYTES_MAX];
        let size = encode(&mut buffer).expect("no record of this world is longer than the buffer");
        self.records.extend_from_slice(&buffer[..size]);
        self.count += 1;
    }

    /// xorshift64: a number in `0..limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }
}

/// Source-location ids of this world begin here.
const FIRST_SITE: u16 = 100;
