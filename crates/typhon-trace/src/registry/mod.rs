//! The event registry: every kind with its fields, units, gates and history (brief 01 §2.1).
//!
//! The data is `registry/kinds.json`; `cargo xtask codegen` turns it into the statics behind these functions.
//! Nothing else in the project lists kinds, fields, enum values, gauges or gates by hand.

mod generated;
mod table;

pub(crate) use generated::{COMPARE_OP, THREAD_KIND_FIELD};
pub use generated::{ENUMS, GAUGES, KINDS, id};

/// The registry file itself, as `typhon kinds --json` prints it.
pub const REGISTRY_JSON: &str = include_str!("../../registry/kinds.json");

/// Whether a kind has a span header. Always the same for one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A point in time: common header, payload.
    Instant,
    /// A duration with an id and a parent: common header, span extension, payload.
    Span,
}

/// Life cycle of a kind. Ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Written and read.
    Live,
    /// Read; nothing produces it any more.
    Retired,
    /// Read; a writer refuses it.
    Removed,
}

/// State of a kind when only the profiler's master switch is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DefaultState {
    /// Recorded.
    On,
    /// Not recorded until its gate resolves to on.
    Off,
    /// On the deny list; lifted by enabling its gate explicitly.
    SuppressedUntilGate,
    /// On the deny list; lifted only by naming the kind.
    SuppressedUntilNamed,
}

/// Wire type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the meaning")]
pub enum FieldType {
    U8,
    I8,
    Bool8,
    U16,
    I16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl FieldType {
    /// Bytes on the wire.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

/// Named values of a field.
#[derive(Debug, PartialEq, Eq)]
pub struct EnumInfo {
    /// Name of the enumeration.
    pub name: &'static str,
    /// (value, name), ascending by value.
    pub values: &'static [(i64, &'static str)],
    /// The values are bits that may be set together.
    pub is_flags: bool,
}

impl EnumInfo {
    /// Name of a value, if it has one.
    pub fn name_of(&self, value: i64) -> Option<&'static str> {
        self.values.iter().find(|(v, _)| *v == value).map(|(_, name)| *name)
    }

    /// Is every part of this value named? A set of flags is, when each of its bits is.
    pub fn covers(&self, value: i64) -> bool {
        if self.is_flags {
            self.values.iter().fold(value, |rest, (bit, _)| rest & !bit) == 0
        } else {
            self.name_of(value).is_some()
        }
    }
}

/// What a field is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldRole {
    /// It carries information of its own.
    Value,
    /// Number of entries or bytes in the variable part; tools show the part instead.
    Count,
    /// Written as zero, never shown.
    Padding,
}

/// How values of a field combine when records of several ticks or realms are folded into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Add up.
    Sum,
    /// Keep the largest.
    Max,
}

/// One fixed-size field.
#[derive(Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// Registry name, lower camel case.
    pub name: &'static str,
    /// Wire type.
    pub ty: FieldType,
    /// Unit or meaning of the number, empty when plain.
    pub unit: &'static str,
    /// Values with a special meaning, in words; empty when none.
    pub sentinel: &'static str,
    /// Named values.
    pub enumeration: Option<&'static EnumInfo>,
    /// Value, count or padding.
    pub role: FieldRole,
    /// Set for the counters of kind 70, which are reported per realm.
    pub fold: Option<Fold>,
}

/// A field that is present iff its bit is set in the mask byte.
#[derive(Debug, PartialEq, Eq)]
pub struct OptionalField {
    /// Bit in the mask byte.
    pub mask: u8,
    /// Bytes the field takes on the wire; the value is at the start, the rest is zero.
    pub slot_bytes: u8,
    /// The field.
    pub field: FieldInfo,
}

/// What follows the required fields of a kind with a variable part (brief 01 §3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable {
    /// Nothing.
    None,
    /// Kind 76: gauge entries.
    Gauges,
    /// Kind 77: thread name, then the thread kind byte.
    ThreadName,
    /// Kind 246: UTF-8 name ended by a zero byte or the end of the record.
    SpanName,
    /// Kind 247: evaluators and field dependencies.
    QueryDefinition,
    /// Kind 248: i64 thresholds.
    Thresholds,
}

/// A complete other layout, recognised by the exact payload size.
#[derive(Debug, PartialEq, Eq)]
pub struct AltLayout {
    /// Payload bytes that select this layout.
    pub payload_bytes: u16,
    /// Its fields; it has neither mask byte nor optional fields.
    pub required: &'static [FieldInfo],
}

/// Everything the registry knows of a kind.
#[derive(Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// Id on the wire.
    pub id: u8,
    /// Name, upper camel case.
    pub name: &'static str,
    /// Instant or span.
    pub shape: Shape,
    /// Life cycle.
    pub status: Status,
    /// Dotted family, for grouping.
    pub family: &'static str,
    /// One sentence on when it is emitted.
    pub summary: &'static str,
    /// What else a reader should know: accepted older forms, narrower meanings; empty when there is nothing.
    pub notes: &'static str,
    /// Configuration path below `Typhon:`; `:Enabled` is implied.
    pub gate: &'static str,
    /// State with only the master switch on.
    pub default: DefaultState,
    /// Fields in wire order. Fields at the end may be absent in older records.
    pub required: &'static [FieldInfo],
    /// A mask byte follows the required fields.
    pub has_mask_byte: bool,
    /// Optional fields in wire order, which is not the order of their bits.
    pub optional: &'static [OptionalField],
    /// What follows the fixed part.
    pub variable: Variable,
    /// Payload lengths at which older, still valid records end.
    pub append_history: &'static [u16],
    /// Other complete layouts.
    pub alt_layouts: &'static [AltLayout],
    /// Start and duration come from the caller.
    pub external_timestamps: bool,
    /// The slot may be passed by the emitter.
    pub external_slot: bool,
    /// Kind whose span id this one repeats.
    pub correlates_span_id: Option<u8>,
    /// Kind that took over from this one on the producer's side.
    pub superseded_by: Option<u8>,
    /// The span marks a point: its duration is always zero.
    pub zero_duration: bool,
    /// The span belongs to the process, not to an enclosing span: its parent is always zero.
    pub parent_always_zero: bool,
    /// The span never carries a trace context.
    pub no_trace_context: bool,
    /// Configuration key of the shortest duration that yields a record, with its default; empty when none.
    pub threshold: &'static str,
    /// Does the reference engine have a call site that emits this kind?
    pub reference_producer: bool,
}

impl KindInfo {
    /// Bytes of the required fields.
    pub fn required_bytes(&self) -> usize {
        self.required.iter().map(|field| field.ty.bytes()).sum()
    }

    /// A required or optional field by its registry name.
    pub fn field(&self, name: &str) -> Option<&'static FieldInfo> {
        let optional = self.optional.iter().map(|optional| &optional.field);
        self.required.iter().chain(optional).find(|field| field.name == name)
    }

    /// May a writer produce this kind? Retired and removed kinds are for reading only.
    pub const fn is_writable(&self) -> bool {
        matches!(self.status, Status::Live)
    }
}

/// Encoding of a gauge value in kind 76.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GaugeValueKind {
    /// 0: u32 count.
    U32Count,
    /// 1: u64 bytes.
    U64Bytes,
    /// 2: i64.
    I64Signed,
    /// 3: u32 percent × 100.
    U32PercentHundredths,
}

impl GaugeValueKind {
    /// The encoding that a byte names; `None` when it is unknown, and then so is the length of the value.
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::U32Count),
            1 => Some(Self::U64Bytes),
            2 => Some(Self::I64Signed),
            3 => Some(Self::U32PercentHundredths),
            _ => None,
        }
    }

    /// The byte that names this encoding.
    pub const fn to_wire(self) -> u8 {
        self as u8
    }

    /// Bytes of a value.
    pub const fn value_bytes(self) -> usize {
        match self {
            Self::U32Count | Self::U32PercentHundredths => 4,
            Self::U64Bytes | Self::I64Signed => 8,
        }
    }
}

/// One gauge of kind 76.
#[derive(Debug, PartialEq, Eq)]
pub struct GaugeInfo {
    /// Id on the wire.
    pub id: u16,
    /// Name, upper camel case.
    pub name: &'static str,
    /// How its value is written.
    pub value_kind: GaugeValueKind,
    /// Capacity-like: written once per session.
    pub once: bool,
}

/// The registry entry of a kind; `None` for unassigned ids.
#[inline]
pub fn kind(id: u8) -> Option<&'static KindInfo> {
    generated::KIND_BY_ID[id as usize]
}

/// The entry of a kind by its exact name.
pub fn kind_by_name(name: &str) -> Option<&'static KindInfo> {
    KINDS.iter().find(|info| info.name == name)
}

/// Does this kind have a span header? `false` for unassigned ids.
#[inline]
pub fn is_span(id: u8) -> bool {
    generated::SPAN_MASK[(id >> 6) as usize] >> (id & 63) & 1 != 0
}

/// A gauge by its id.
pub fn gauge(id: u16) -> Option<&'static GaugeInfo> {
    GAUGES.iter().find(|gauge| gauge.id == id)
}
