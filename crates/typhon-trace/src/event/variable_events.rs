//! The five kinds with a variable part (brief 01 §3.5): what their generated views lack, and their encoders.
//!
//! A record holds at most 65,534 bytes, a name [`MAX_NAME_BYTES`]. An encoder writes what fits: names are cut between
//! two characters, lists after a whole entry.

use super::{
    BufferTooSmall, Evaluator, Event, Gauge, Gauges, InstantEvent, NamedSpanView, PackedList,
    PerTickSnapshotView, QueryArgsView, QueryDefinitionDescribeView, QueryInstanceKind, SpanEvent, Text,
    ThreadInfoView, ThreadKind, Wire,
    encode::{MAX_INSTANT_PAYLOAD_BYTES, MAX_NAME_BYTES, exactly},
    macros::put_at,
    query_lists, span_name, thread_name,
    variable::cut_at_char,
};

/// The bytes behind the fixed fields.
fn variable_part(payload: &[u8], fixed_bytes: usize) -> &[u8] {
    payload.get(fixed_bytes..).unwrap_or_default()
}

/// As many entries as fit into the rest of an instant.
fn cut_list<T>(entries: &[T], entry_bytes: usize, other_bytes: usize) -> &[T] {
    let room = (MAX_INSTANT_PAYLOAD_BYTES - other_bytes) / entry_bytes;
    &entries[..entries.len().min(room)]
}

/// Writes entries one behind the other to the start of `out` and returns the rest.
fn put_list<'o, T: Wire>(mut out: &'o mut [u8], entries: &[T]) -> &'o mut [u8] {
    for entry in entries {
        let (place, rest) = out.split_at_mut(T::BYTES);
        entry.write(place);
        out = rest;
    }
    out
}

impl<'a> PerTickSnapshotView<'a> {
    const FIXED_BYTES: usize = 10;

    /// The gauges.
    pub fn gauges(&self) -> Gauges<'a> {
        let count = self.field_count().unwrap_or(0);
        Gauges::new(variable_part(self.raw(), Self::FIXED_BYTES), count)
    }
}

/// Gauge values at the end of a tick. Kind 76, instant, off by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerTickSnapshot<'a> {
    /// The engine's own number of the tick, from 0.
    pub tick_number: u32,
    /// The gauges that have a value. Entries beyond the size of a record (5,956 of the largest kind) are left out.
    pub gauges: &'a [Gauge],
}

impl PerTickSnapshot<'_> {
    /// The gauges that fit, and their bytes.
    fn fitting(&self) -> (&[Gauge], usize) {
        let room = MAX_INSTANT_PAYLOAD_BYTES - PerTickSnapshotView::FIXED_BYTES;
        let all: usize = self.gauges.iter().map(Gauge::wire_bytes).sum();
        if all <= room {
            return (self.gauges, all);
        }
        let mut bytes = 0;
        let count = self.gauges.iter().take_while(|gauge| {
            let fits = bytes + gauge.wire_bytes() <= room;
            bytes += if fits { gauge.wire_bytes() } else { 0 };
            fits
        });
        let count = count.count();
        (&self.gauges[..count], bytes)
    }
}

impl Event for PerTickSnapshot<'_> {
    const KIND: u8 = PerTickSnapshotView::KIND;

    fn payload_bytes(&self) -> usize {
        PerTickSnapshotView::FIXED_BYTES + self.fitting().1
    }

    fn encode_payload(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let (gauges, bytes) = self.fitting();
        let size = PerTickSnapshotView::FIXED_BYTES + bytes;
        let out = exactly(out, size)?;
        put_at(out, 0, self.tick_number);
        put_at(out, 4, gauges.len() as u16);
        put_at(out, 6, 0_u32);
        let mut rest = &mut out[PerTickSnapshotView::FIXED_BYTES..];
        for gauge in gauges {
            rest = gauge.write(rest);
        }
        Ok(size)
    }
}

impl InstantEvent for PerTickSnapshot<'_> {}

impl<'a> ThreadInfoView<'a> {
    const FIXED_BYTES: usize = 6;

    /// Name of the thread; `None` when the record ends inside it.
    pub fn name(&self) -> Option<Text<'a>> {
        self.name_and_kind().map(|(name, _)| name)
    }

    /// `threadKind`, u8; `None` in files from before format version 4.
    pub fn thread_kind(&self) -> Option<ThreadKind> {
        self.name_and_kind()?.1.map(ThreadKind)
    }

    fn name_and_kind(&self) -> Option<(Text<'a>, Option<u8>)> {
        thread_name(variable_part(self.raw(), Self::FIXED_BYTES), self.name_byte_count()?)
    }
}

/// The thread that owns a slot from here on. Kind 77, instant, on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadInfo<'a> {
    /// The engine's id of the thread; kinds 90 to 116 refer to it.
    pub managed_thread_id: i32,
    /// Name, cut at [`MAX_NAME_BYTES`].
    pub name: &'a str,
    /// What the thread is for.
    pub thread_kind: ThreadKind,
}

impl ThreadInfo<'_> {
    fn fitting_name(&self) -> &str {
        cut_at_char(self.name, MAX_NAME_BYTES)
    }
}

impl Event for ThreadInfo<'_> {
    const KIND: u8 = ThreadInfoView::KIND;

    fn payload_bytes(&self) -> usize {
        ThreadInfoView::FIXED_BYTES + self.fitting_name().len() + 1
    }

    fn encode_payload(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let name = self.fitting_name();
        let size = ThreadInfoView::FIXED_BYTES + name.len() + 1;
        let out = exactly(out, size)?;
        put_at(out, 0, self.managed_thread_id);
        put_at(out, 4, name.len() as u16);
        out[ThreadInfoView::FIXED_BYTES..size - 1].copy_from_slice(name.as_bytes());
        put_at(out, size - 1, self.thread_kind);
        Ok(size)
    }
}

impl InstantEvent for ThreadInfo<'_> {}

impl<'a> NamedSpanView<'a> {
    /// The name, up to the first zero byte or the end of the record.
    pub fn name(&self) -> Text<'a> {
        span_name(self.raw())
    }
}

/// A span that the program named itself. Kind 246, span, on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamedSpan<'a> {
    /// Name, cut before the first zero character and at [`MAX_NAME_BYTES`].
    pub name: &'a str,
}

impl NamedSpan<'_> {
    fn fitting_name(&self) -> &str {
        let name = self.name.split('\0').next().unwrap_or_default();
        cut_at_char(name, MAX_NAME_BYTES)
    }
}

impl Event for NamedSpan<'_> {
    const KIND: u8 = NamedSpanView::KIND;

    fn payload_bytes(&self) -> usize {
        self.fitting_name().len() + 1
    }

    fn encode_payload(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let name = self.fitting_name();
        let out = exactly(out, name.len() + 1)?;
        let (text, end) = out.split_at_mut(name.len());
        text.copy_from_slice(name.as_bytes());
        end[0] = 0;
        Ok(name.len() + 1)
    }
}

impl SpanEvent for NamedSpan<'_> {}

impl<'a> QueryDefinitionDescribeView<'a> {
    const FIXED_BYTES: usize = 22;

    /// The conditions, those that the record holds. [`crate::query_definition`] is strict instead.
    pub fn evaluators(&self) -> PackedList<'a, Evaluator> {
        self.lists().0
    }

    /// Indexes of the fields whose changes matter; `None` when the record ends before their number.
    pub fn field_dependencies(&self) -> Option<PackedList<'a, u16>> {
        self.lists().1
    }

    /// Does the record end before everything that it announces?
    pub fn is_cut(&self) -> bool {
        let (evaluators, dependencies) = self.lists();
        evaluators.is_cut() || dependencies.is_none_or(|list| list.is_cut())
    }

    fn lists(&self) -> (PackedList<'a, Evaluator>, Option<PackedList<'a, u16>>) {
        let count = self.evaluator_count().unwrap_or(0);
        query_lists(variable_part(self.raw(), Self::FIXED_BYTES), count)
    }
}

/// The fixed part of kind 247.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueryDefinitionHead {
    /// View or entity query.
    pub kind: QueryInstanceKind,
    /// Id among its kind.
    pub local_id: u32,
    /// Component type that the conditions are about, 0 when there is not exactly one.
    pub target_component_type: u16,
    /// Index of the field whose index drives the plan, -1 without an index.
    pub primary_index_field_idx: i16,
    /// Index of the field that orders the results, -1 when they are not sorted.
    pub sort_field_idx: i16,
    /// Largest first.
    pub sort_descending: bool,
    /// Source file in the query string table, 0 when unknown.
    pub definition_source_file_id: u16,
    /// Source line.
    pub definition_source_line: i32,
    /// Source method in the query string table, 0 when unknown.
    pub definition_source_method_id: u16,
}

impl QueryDefinitionHead {
    /// Reads it from a payload; `None` when that is too short.
    pub(crate) fn read(view: &QueryDefinitionDescribeView<'_>) -> Option<Self> {
        Some(Self {
            kind: view.kind()?,
            local_id: view.local_id()?,
            target_component_type: view.target_component_type()?,
            primary_index_field_idx: view.primary_index_field_idx()?,
            sort_field_idx: view.sort_field_idx()?,
            sort_descending: view.sort_descending()? != 0,
            definition_source_file_id: view.definition_source_file_id()?,
            definition_source_line: view.definition_source_line()?,
            definition_source_method_id: view.definition_source_method_id()?,
        })
    }

    /// Writes it to the start of a payload.
    pub(crate) fn put(&self, payload: &mut [u8]) {
        put_at(payload, 0, self.kind);
        put_at(payload, 1, self.local_id);
        put_at(payload, 5, self.target_component_type);
        put_at(payload, 7, self.primary_index_field_idx);
        put_at(payload, 9, self.sort_field_idx);
        put_at(payload, 11, self.sort_descending);
        put_at(payload, 12, self.definition_source_file_id);
        put_at(payload, 14, self.definition_source_line);
        put_at(payload, 18, self.definition_source_method_id);
    }
}

/// What a view or query is made of. Kind 247, instant, off by default.
///
/// Lists that are too long for a record are cut; [`crate::query_definition`] refuses them instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryDefinitionDescribe<'a> {
    /// The fixed part.
    pub head: QueryDefinitionHead,
    /// Conditions; branches of an OR one after the other.
    pub evaluators: &'a [Evaluator],
    /// Indexes of the fields whose changes matter, ascending.
    pub field_dependencies: &'a [u16],
}

impl QueryDefinitionDescribe<'_> {
    fn fitting(&self) -> (&[Evaluator], &[u16]) {
        let fixed = QueryDefinitionDescribeView::FIXED_BYTES + 2;
        let evaluators = cut_list(self.evaluators, Evaluator::BYTES, fixed);
        let used = fixed + evaluators.len() * Evaluator::BYTES;
        (evaluators, cut_list(self.field_dependencies, u16::BYTES, used))
    }
}

impl Event for QueryDefinitionDescribe<'_> {
    const KIND: u8 = QueryDefinitionDescribeView::KIND;

    fn payload_bytes(&self) -> usize {
        let (evaluators, dependencies) = self.fitting();
        QueryDefinitionDescribeView::FIXED_BYTES + 4 * evaluators.len() + 2 + 2 * dependencies.len()
    }

    fn encode_payload(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let (evaluators, dependencies) = self.fitting();
        let size = self.payload_bytes();
        let out = exactly(out, size)?;
        self.head.put(out);
        put_at(out, 20, evaluators.len() as u16);
        let rest = put_list(&mut out[QueryDefinitionDescribeView::FIXED_BYTES..], evaluators);
        put_at(rest, 0, dependencies.len() as u16);
        put_list(&mut rest[2..], dependencies);
        Ok(size)
    }
}

impl InstantEvent for QueryDefinitionDescribe<'_> {}

impl<'a> QueryArgsView<'a> {
    const FIXED_BYTES: usize = 2;

    /// The constants, those that the record holds, in the order of the definition's evaluators.
    pub fn thresholds(&self) -> PackedList<'a, i64> {
        let count = self.evaluator_count().unwrap_or(0);
        PackedList::new(variable_part(self.raw(), Self::FIXED_BYTES), count)
    }
}

/// The constants of one execution of a query. Kind 248, instant, off by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueryArgs<'a> {
    /// Raw threshold encodings in the order of the definition's evaluators; at most 8,190 are written.
    pub thresholds: &'a [i64],
}

impl QueryArgs<'_> {
    fn fitting(&self) -> &[i64] {
        cut_list(self.thresholds, i64::BYTES, QueryArgsView::FIXED_BYTES)
    }
}

impl Event for QueryArgs<'_> {
    const KIND: u8 = QueryArgsView::KIND;

    fn payload_bytes(&self) -> usize {
        QueryArgsView::FIXED_BYTES + i64::BYTES * self.fitting().len()
    }

    fn encode_payload(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let thresholds = self.fitting();
        let size = self.payload_bytes();
        let out = exactly(out, size)?;
        put_at(out, 0, thresholds.len() as u16);
        put_list(&mut out[QueryArgsView::FIXED_BYTES..], thresholds);
        Ok(size)
    }
}

impl InstantEvent for QueryArgs<'_> {}
