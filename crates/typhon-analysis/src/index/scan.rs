//! One block shrunk to what the index takes from it. Runs on the threads of the pipeline.

use super::Strip;
use super::capped::CappedTally;
use super::gc::GcEvent;
use super::item::{Item, Key, SPAN_HAS_SITE, SPAN_NO_END, SPAN_TAIL};
use super::lists::{BlockItems, Lists};
use super::names::{FIRST_DYNAMIC, NameKey, strip_of};
use crate::clock::Clock;
use crate::facts::system_index;
use crate::survey::SurveyCollector;
use std::collections::HashMap;
use std::sync::LazyLock;
use typhon_trace::event::{
    GcEndView, InstantView, NamedSpanView, PerTickSnapshotView, RuntimePhaseSpanView, Text, TickEndView,
};
use typhon_trace::reader::BlockBuffer;
use typhon_trace::record::{Record, SpanHead};
use typhon_trace::registry::{self, id};

/// Gauges that together make a stacked area, whose scale is fixed for the whole trace.
pub(crate) const STACKS: [(Stack, &[u16]); 2] = [
    (Stack::GcHeap, &[0x0110, 0x0111, 0x0112, 0x0113, 0x0114]),
    (Stack::PageCache, &[0x0201, 0x0202, 0x0203, 0x0204]),
];
/// The gauge of each heap size in the record of a collection's end: Gen0, Gen1, Gen2, LOH, POH, committed.
pub(crate) const GC_SIZE_GAUGES: [u16; 6] = [0x0110, 0x0111, 0x0112, 0x0113, 0x0114, 0x0115];

/// A stacked area on a memory track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stack {
    /// Gen0, Gen1, Gen2, large objects, pinned objects of the managed heap.
    GcHeap,
    /// Free, clean, dirty and exclusive pages.
    PageCache,
}

impl Stack {
    /// Every area.
    pub const ALL: [Self; 2] = [Self::GcHeap, Self::PageCache];

    /// The gauges that are stacked, from the bottom.
    pub fn gauges(self) -> &'static [u16] {
        STACKS[self as usize].1
    }
}

/// How a tick ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TickEndInfo {
    pub(crate) ticks: i64,
    pub(crate) level: u8,
    pub(crate) multiplier: u8,
}

/// A marker that may report a loss; its name decides, which may come later in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) ticks: i64,
    pub(crate) name_id: i32,
    pub(crate) payload: i32,
}

/// What the index takes from a block.
#[derive(Debug, Default)]
pub(crate) struct BlockScan {
    /// Ordinals count from the block's first record; names from [`FIRST_DYNAMIC`] on are places in `names`.
    pub(crate) items: BlockItems,
    pub(crate) names: Vec<NameKey>,
    pub(crate) survey: SurveyCollector,
    pub(crate) gc: Vec<GcEvent>,
    pub(crate) tick_ends: Vec<TickEndInfo>,
    pub(crate) markers: Vec<Marker>,
    pub(crate) capped: CappedTally,
    /// Events by kind.
    pub(crate) kinds: Vec<(u8, u64)>,
    /// Earliest start and latest end, ticks.
    pub(crate) extent: Option<(i64, i64)>,
    /// Largest sums, see [`STACKS`].
    pub(crate) stacks: [u64; STACKS.len()],
    /// The same of the sizes that collections report.
    pub(crate) gc_heap: u64,
}

/// Scans blocks of one file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanner {
    pub(crate) clock: Clock,
    pub(crate) own_dialect: bool,
}

impl Scanner {
    /// Goes once over the events of a decoded block. `lists` are empty before and after.
    pub(crate) fn scan(&self, block: &BlockBuffer, lists: &mut Lists) -> BlockScan {
        let (first, has_losses) = block.summary().map_or((0, false), |summary| {
            (u64::from(summary.leading_markers()), summary.dropped_records > 0)
        });
        let mut walk = Walk {
            scanner: *self,
            scan: BlockScan::default(),
            lists,
            names: HashMap::new(),
            of_slot: [[UNUSED; 256]; 2],
            of_strip: [UNUSED; Strip::ALL.len()],
            of_key: HashMap::new(),
            systems: [None; REMEMBERED],
            texts: [None; REMEMBERED],
            drawn: &DRAWN,
            has_losses,
        };
        let mut kinds = [0u64; 256];
        for (record, ordinal) in block.events().zip(first..) {
            kinds[usize::from(record.kind())] += 1;
            walk.record(&record, ordinal);
        }
        walk.scan.items = walk.lists.take();
        walk.scan.kinds = (0..=255).zip(kinds).filter(|(_, count)| *count > 0).collect();
        walk.scan
    }
}

/// No items of this slot yet.
const UNUSED: usize = usize::MAX;

/// How spans of a kind are drawn.
#[derive(Debug, Clone, Copy, Default)]
struct Drawn {
    strip: Option<Strip>,
    is_tail: bool,
}

/// By kind; it is asked for every span.
static DRAWN: LazyLock<[Drawn; 256]> = LazyLock::new(|| {
    let is_tail = |kind| registry::kind(kind).is_some_and(|info| info.correlates_span_id.is_some());
    std::array::from_fn(|kind| Drawn { strip: strip_of(kind as u8), is_tail: is_tail(kind as u8) })
});

/// Systems and texts that are remembered besides the maps of them, by their last bits.
const REMEMBERED: usize = 64;

struct Walk<'l> {
    scanner: Scanner,
    drawn: &'static [Drawn; 256],
    scan: BlockScan,
    lists: &'l mut Lists,
    names: HashMap<NameKey, u16>,
    /// Places of the lists of the spans and of the instants of every slot, which are nearly all items.
    of_slot: [[usize; 256]; 2],
    of_strip: [usize; Strip::ALL.len()],
    /// The same of other keys.
    of_key: HashMap<Key, usize>,
    /// Systems that were met, with the place of their items and their name.
    systems: [Option<(u16, usize, u16)>; REMEMBERED],
    /// Names of texts that were met.
    texts: [Option<u16>; REMEMBERED],
    has_losses: bool,
}

impl Walk<'_> {
    #[inline]
    fn record(&mut self, record: &Record<'_>, ordinal: u64) {
        let span = record.span();
        self.scan.survey.observe_with(record, span.as_ref());
        let start = record.timestamp();
        let length = span.as_ref().map_or(0, |span| span.duration.max(0));
        let end = start.saturating_add(length);
        let (first, last) = self.scan.extent.get_or_insert((start, end));
        (*first, *last) = ((*first).min(start), (*last).max(end));
        match span {
            Some(span) => self.span(record, &span, length, ordinal),
            None => self.instant(record, ordinal),
        }
    }

    #[inline]
    fn span(&mut self, record: &Record<'_>, span: &SpanHead<'_>, length: i64, ordinal: u64) {
        let kind = record.kind();
        let Drawn { strip, is_tail } = self.drawn[usize::from(kind)];
        let flags = if span.site.is_some() { SPAN_HAS_SITE } else { 0 }
            | if span.duration < 0 { SPAN_NO_END } else { 0 }
            | if is_tail { SPAN_TAIL } else { 0 };
        let (span_id, start) = (span.span_id, record.timestamp());
        let mut item = Item { start, length, span_id, ordinal, name: kind.into(), flags };
        let system = match kind {
            id::SCHEDULER_CHUNK => system_index(record),
            _ => None,
        };
        if let Some(index) = system {
            item.name = self.system(kind, index, item);
        } else if kind == id::NAMED_SPAN
            && let Some(view) = NamedSpanView::new(record)
        {
            item.name = self.text(view.name());
        }
        self.push(Key::Spans(record.slot()), item);
        if let Some(strip) = strip {
            if let Some(phase) = RuntimePhaseSpanView::new(record).and_then(|view| view.phase()) {
                item.name = self.name(NameKey::Phase(phase.0));
            }
            self.push(Key::Strip(strip), item);
        }
        if kind == id::GC_SUSPENSION {
            self.push(Key::GcSpans, item);
            self.scan.gc.extend(GcEvent::of(record, self.scanner.clock, self.scanner.own_dialect));
        }
    }

    #[inline]
    fn instant(&mut self, record: &Record<'_>, ordinal: u64) {
        let (kind, start) = (record.kind(), record.timestamp());
        let item = Item { start, length: 0, span_id: 0, ordinal, name: kind.into(), flags: 0 };
        self.push(Key::Instants(record.slot()), item);
        match kind {
            id::TICK_END => {
                if let Some(view) = TickEndView::new(record) {
                    let level = view.overload_level().map_or(0, |level| level.0);
                    let multiplier = view.tick_multiplier().unwrap_or(1);
                    self.scan.tick_ends.push(TickEndInfo { ticks: start, level, multiplier });
                }
            }
            id::INSTANT if self.has_losses => {
                if let Some(view) = InstantView::new(record)
                    && let (Some(name_id), Some(payload)) = (view.name_id(), view.payload())
                {
                    self.scan.markers.push(Marker { ticks: start, name_id, payload });
                }
            }
            id::SPATIAL_ARCHETYPE_TELEMETRY | id::SUBSCRIPTIONS_SERVER_TELEMETRY => {
                self.scan.capped.observe(record);
            }
            id::PER_TICK_SNAPSHOT => self.snapshot(record, item),
            id::GC_START | id::GC_END => {
                self.push(Key::GcInstants, item);
                self.scan.gc.extend(GcEvent::of(record, self.scanner.clock, self.scanner.own_dialect));
                if let Some(view) = GcEndView::new(record) {
                    self.gc_sizes(&view, item);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn push(&mut self, key: Key, item: Item) {
        let place = self.place(key);
        self.lists.push(place, item);
    }

    /// The place of a key's list.
    #[inline]
    fn place(&mut self, key: Key) -> usize {
        let place = match key {
            Key::Spans(slot) => &mut self.of_slot[0][usize::from(slot)],
            Key::Instants(slot) => &mut self.of_slot[1][usize::from(slot)],
            Key::Strip(strip) => &mut self.of_strip[strip as usize],
            key => self.of_key.entry(key).or_insert(UNUSED),
        };
        if *place == UNUSED {
            *place = self.lists.add(key);
        }
        *place
    }

    /// Adds a span to the lane of its system; gives its name.
    #[inline]
    fn system(&mut self, kind: u8, index: u16, item: Item) -> u16 {
        let remembered = usize::from(index) % REMEMBERED;
        let (place, name) = match self.systems[remembered] {
            Some((of, place, name)) if of == index => (place, name),
            _ => {
                let name = self.name(NameKey::System { kind, index });
                let place = self.place(Key::System(index));
                self.systems[remembered] = Some((index, place, name));
                (place, name)
            }
        };
        self.lists.push(place, Item { name, ..item });
        name
    }

    /// The name of a text.
    #[inline]
    fn text(&mut self, text: Text<'_>) -> u16 {
        let bytes = text.0;
        let ends = bytes
            .first()
            .zip(bytes.last())
            .map_or(0, |(first, last)| usize::from(*first) * 7 + usize::from(*last));
        let remembered = (bytes.len() * 31 + ends) % REMEMBERED;
        let is_it = |id: &u16| {
            let name = self.scan.names.get(usize::from(*id - FIRST_DYNAMIC));
            matches!(name, Some(NameKey::Text(of)) if of.as_bytes() == bytes)
        };
        if let Some(id) = self.texts[remembered].filter(is_it) {
            return id;
        }
        let id = self.name(NameKey::Text(text.to_str_lossy().into_owned()));
        self.texts[remembered] = Some(id);
        id
    }

    fn snapshot(&mut self, record: &Record<'_>, item: Item) {
        let Some(view) = PerTickSnapshotView::new(record) else { return };
        let mut sums = [0u64; STACKS.len()];
        for gauge in view.gauges() {
            let value = gauge.value.as_i128();
            let length = value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            self.push(Key::Gauge(gauge.id), Item { length, ..item });
            for (sum, (_, ids)) in sums.iter_mut().zip(STACKS) {
                if ids.contains(&gauge.id) {
                    *sum = sum.saturating_add(length.max(0) as u64);
                }
            }
        }
        self.scan.stacks.iter_mut().zip(sums).for_each(|(most, sum)| *most = (*most).max(sum));
    }

    fn gc_sizes(&mut self, view: &GcEndView<'_>, item: Item) {
        let sizes = [
            view.gen0_size_after(),
            view.gen1_size_after(),
            view.gen2_size_after(),
            view.loh_size_after(),
            view.poh_size_after(),
            view.total_committed_bytes(),
        ];
        for (gauge, size) in GC_SIZE_GAUGES.into_iter().zip(sizes) {
            if let Some(size) = size {
                let length = i64::try_from(size).unwrap_or(i64::MAX);
                self.push(Key::GcSizes(gauge), Item { length, ..item });
            }
        }
        let heap = sizes[..5].iter().flatten().fold(0u64, |sum, size| sum.saturating_add(*size));
        self.scan.gc_heap = self.scan.gc_heap.max(heap);
    }

    fn name(&mut self, key: NameKey) -> u16 {
        if let Some(id) = self.names.get(&key) {
            return *id;
        }
        // A block has room for more names than there are ids; those beyond share the last one.
        let id = FIRST_DYNAMIC.saturating_add(u16::try_from(self.names.len()).unwrap_or(u16::MAX));
        if id < u16::MAX {
            self.names.insert(key.clone(), id);
            self.scan.names.push(key);
        }
        id
    }
}
