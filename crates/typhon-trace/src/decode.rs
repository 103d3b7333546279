//! Reading any record through the registry, for tools that show every kind: no type per kind, no allocation.
//!
//! [`fields`] walks a record in wire order and never reads past its end. [`check_layout`] compares a record with
//! what the registry expects of it. Programs that are interested in certain kinds use [`crate::event`] instead.

use std::slice;

use crate::{
    event::{self, Evaluator, Gauges, PackedList, Text, Wire},
    record::Record,
    registry::{self, FieldInfo, FieldRole, FieldType, KindInfo, OptionalField, Variable},
};

/// A decoded value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// u8, u16, u32 or u64.
    Unsigned(u64),
    /// i8, i16, i32 or i64.
    Signed(i64),
    /// f32, kept apart from f64 so that tools can print its exact digits.
    F32(f32),
    /// f64.
    F64(f64),
    /// bool8; any byte but zero is true.
    Bool(bool),
    /// A name.
    Text(Text<'a>),
    /// `gauges` of kind 76.
    Gauges(Gauges<'a>),
    /// `evaluators` of kind 247.
    Evaluators(PackedList<'a, Evaluator>),
    /// `fieldDependencies` of kind 247.
    FieldIndexes(PackedList<'a, u16>),
    /// `thresholds` of kind 248.
    Thresholds(PackedList<'a, i64>),
}

impl Value<'_> {
    /// The value as a number, if it is a whole number or a boolean.
    pub fn as_i128(&self) -> Option<i128> {
        match *self {
            Self::Unsigned(value) => Some(value.into()),
            Self::Signed(value) => Some(value.into()),
            Self::Bool(value) => Some(value.into()),
            _ => None,
        }
    }

    fn read(ty: FieldType, bytes: &[u8]) -> Option<Self> {
        Some(match ty {
            FieldType::U8 => Self::Unsigned(u8::read(bytes)?.into()),
            FieldType::U16 => Self::Unsigned(u16::read(bytes)?.into()),
            FieldType::U32 => Self::Unsigned(u32::read(bytes)?.into()),
            FieldType::U64 => Self::Unsigned(u64::read(bytes)?),
            FieldType::I8 => Self::Signed(i8::read(bytes)?.into()),
            FieldType::I16 => Self::Signed(i16::read(bytes)?.into()),
            FieldType::I32 => Self::Signed(i32::read(bytes)?.into()),
            FieldType::I64 => Self::Signed(i64::read(bytes)?),
            FieldType::F32 => Self::F32(f32::read(bytes)?),
            FieldType::F64 => Self::F64(f64::read(bytes)?),
            FieldType::Bool8 => Self::Bool(bool::read(bytes)?),
        })
    }
}

/// One decoded field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field<'a> {
    /// Registry name, lower camel case; for variable parts `gauges`, `name`, `threadKind`, `evaluators`,
    /// `fieldDependencies` or `thresholds`.
    pub name: &'static str,
    /// Type, unit and named values; `None` for names and lists.
    pub info: Option<&'static FieldInfo>,
    /// The value.
    pub value: Value<'a>,
}

impl Field<'_> {
    /// Name of the value, when the field has an enumeration that knows it.
    pub fn value_name(&self) -> Option<&'static str> {
        let value = i64::try_from(self.value.as_i128()?).ok()?;
        self.info?.enumeration?.name_of(value)
    }
}

/// The fields of a record in wire order. Left out are fields that the record does not have (optional and not
/// flagged, or beyond its end), counts of list entries, and padding. Empty for unknown kinds and short spans.
#[inline]
pub fn fields<'a>(record: &Record<'a>) -> Fields<'a> {
    match (registry::kind(record.kind()), record.payload()) {
        (Some(kind), Some(payload)) => Fields::new(kind, payload),
        _ => Fields { payload: &[], offset: 0, stage: Stage::End },
    }
}

/// Names that [`fields`] can produce for a kind, in wire order: the columns of a table of such records.
pub fn field_names(kind: &'static KindInfo) -> impl Iterator<Item = &'static str> {
    let fixed = kind.required.iter().filter(|field| field.role == FieldRole::Value).map(|field| field.name);
    let optional = kind.optional.iter().map(|optional| optional.field.name);
    let variable: &[&str] = match kind.variable {
        Variable::None => &[],
        Variable::Gauges => &["gauges"],
        Variable::ThreadName => &["name", "threadKind"],
        Variable::SpanName => &["name"],
        Variable::QueryDefinition => &["evaluators", "fieldDependencies"],
        Variable::Thresholds => &["thresholds"],
    };
    fixed.chain(optional).chain(variable.iter().copied())
}

/// Iterator over the fields of a record, see [`fields`].
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    payload: &'a [u8],
    /// Where the next field starts in the payload.
    offset: usize,
    stage: Stage<'a>,
}

#[derive(Debug, Clone)]
enum Stage<'a> {
    Required {
        fields: slice::Iter<'static, FieldInfo>,
        kind: &'static KindInfo,
        /// The fields are those of an alternative layout, which has neither mask nor optional fields.
        is_alternative: bool,
        /// Entries of the variable part, once the field that counts them was read.
        count: u16,
    },
    Optional {
        fields: slice::Iter<'static, OptionalField>,
        mask: u8,
        packed: bool,
    },
    /// The variable part, from `offset` on.
    Variable(Variable, u16),
    /// A second field of a variable part.
    Last(Field<'a>),
    End,
}

impl<'a> Fields<'a> {
    fn new(kind: &'static KindInfo, payload: &'a [u8]) -> Self {
        let alternative =
            kind.alt_layouts.iter().find(|layout| usize::from(layout.payload_bytes) == payload.len());
        let required = alternative.map_or(kind.required, |layout| layout.required);
        let is_alternative = alternative.is_some();
        let stage = Stage::Required { fields: required.iter(), kind, is_alternative, count: 0 };
        Self { payload, offset: 0, stage }
    }

    /// The value at the offset, which then moves on by `room` bytes; `None` when the record ends before that.
    #[inline]
    fn take(&mut self, ty: FieldType, room: usize) -> Option<Value<'a>> {
        let end = self.offset + room;
        let value = Value::read(ty, self.payload.get(self.offset..end)?)?;
        self.offset = end;
        Some(value)
    }

    /// What follows the required fields.
    fn after_required(&mut self, kind: &'static KindInfo, count: u16) -> Stage<'a> {
        if kind.has_mask_byte {
            let mask = self.payload.get(self.offset).copied().unwrap_or(0);
            let packed = has_packed_optionals(kind, mask, self.payload.len());
            self.offset += 1;
            return Stage::Optional { fields: kind.optional.iter(), mask, packed };
        }
        Stage::Variable(kind.variable, count)
    }

    /// The variable part: one or two fields.
    fn variable(&mut self, variable: Variable, count: u16) -> Option<Field<'a>> {
        let rest = self.payload.get(self.offset..).unwrap_or_default();
        let field = |name, value| Field { name, info: None, value };
        self.stage = Stage::End;
        match variable {
            Variable::None => None,
            Variable::Gauges => Some(field("gauges", Value::Gauges(Gauges::new(rest, count)))),
            Variable::SpanName => Some(field("name", Value::Text(event::span_name(rest)))),
            Variable::Thresholds => {
                Some(field("thresholds", Value::Thresholds(PackedList::new(rest, count))))
            }
            Variable::ThreadName => {
                let (name, thread_kind) = event::thread_name(rest, count)?;
                if let Some(thread_kind) = thread_kind {
                    let info = &registry::THREAD_KIND_FIELD;
                    let value = Value::Unsigned(thread_kind.into());
                    self.stage = Stage::Last(Field { name: info.name, info: Some(info), value });
                }
                Some(field("name", Value::Text(name)))
            }
            Variable::QueryDefinition => {
                let (evaluators, dependencies) = event::query_lists(rest, count);
                if let Some(dependencies) = dependencies {
                    self.stage = Stage::Last(field("fieldDependencies", Value::FieldIndexes(dependencies)));
                }
                Some(field("evaluators", Value::Evaluators(evaluators)))
            }
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        loop {
            match &mut self.stage {
                Stage::Required { fields, kind, is_alternative, count } => {
                    let Some(info) = fields.next() else {
                        let (kind, count) = (*kind, *count);
                        self.stage =
                            if *is_alternative { Stage::End } else { self.after_required(kind, count) };
                        continue;
                    };
                    let Some(value) = self.take(info.ty, info.ty.bytes()) else {
                        self.stage = Stage::End;
                        return None;
                    };
                    match (info.role, value) {
                        (FieldRole::Value, value) => {
                            return Some(Field { name: info.name, info: Some(info), value });
                        }
                        (FieldRole::Count, Value::Unsigned(entries)) => {
                            if let Stage::Required { count, .. } = &mut self.stage {
                                *count = entries as u16;
                            }
                        }
                        (FieldRole::Count | FieldRole::Padding, _) => {}
                    }
                }
                Stage::Optional { fields, mask, packed } => {
                    let mask = *mask;
                    let Some(optional) = fields.find(|optional| optional.mask & mask != 0) else {
                        self.stage = Stage::End;
                        return None;
                    };
                    let info = &optional.field;
                    let room = if *packed { info.ty.bytes() } else { optional.slot_bytes.into() };
                    let Some(value) = self.take(info.ty, room) else {
                        self.stage = Stage::End;
                        return None;
                    };
                    return Some(Field { name: info.name, info: Some(info), value });
                }
                Stage::Variable(variable, count) => {
                    let (variable, count) = (*variable, *count);
                    return self.variable(variable, count);
                }
                Stage::Last(field) => {
                    let field = *field;
                    self.stage = Stage::End;
                    return Some(field);
                }
                Stage::End => return None,
            }
        }
    }
}

/// Bytes of the optional fields that `mask` announces, by their room on the wire or by their bare type.
fn optional_bytes(kind: &KindInfo, mask: u8, packed: bool) -> usize {
    let room = |optional: &OptionalField| {
        if packed { optional.field.ty.bytes() } else { optional.slot_bytes.into() }
    };
    kind.optional.iter().filter(|optional| optional.mask & mask != 0).map(room).sum()
}

/// Kind 34 gives `found` four bytes; a record of exactly the size that one byte would make is read that way.
fn has_packed_optionals(kind: &KindInfo, mask: u8, payload_bytes: usize) -> bool {
    let packed = optional_bytes(kind, mask, true);
    packed != optional_bytes(kind, mask, false) && payload_bytes == kind.required_bytes() + 1 + packed
}

/// How a record compares with what the registry expects (brief 01, B-19 to B-22). None of it keeps a record from
/// being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayoutCheck {
    /// Bytes of the payload.
    pub payload_bytes: usize,
    /// Bytes of the current layout with this record's mask and counts.
    pub expected_bytes: usize,
    /// The payload has another length, none of the older or alternative ones either.
    pub is_unexpected_length: bool,
    /// Bits of the mask byte that the registry does not know.
    pub unknown_mask_bits: u8,
    /// First field whose value its enumeration does not name.
    pub unknown_enum_value: Option<(&'static str, i64)>,
    /// A list announces more entries than the record holds.
    pub is_list_cut: bool,
}

impl LayoutCheck {
    /// Is there nothing to report?
    pub fn is_clean(&self) -> bool {
        !self.is_unexpected_length
            && !self.is_list_cut
            && self.unknown_mask_bits == 0
            && self.unknown_enum_value.is_none()
    }
}

/// Compares a record with the registry; `None` for unknown kinds and spans shorter than their header.
pub fn check_layout(record: &Record<'_>) -> Option<LayoutCheck> {
    let kind = registry::kind(record.kind())?;
    let payload = record.payload()?;
    let required = kind.required_bytes();
    let mut check =
        LayoutCheck { payload_bytes: payload.len(), expected_bytes: required, ..LayoutCheck::default() };
    let is_older = kind.append_history.iter().any(|bytes| usize::from(*bytes) == payload.len());
    let mut is_known = is_older || is_alternative(kind, payload.len());
    if kind.has_mask_byte && !is_known {
        let mask = payload.get(required).copied().unwrap_or(0);
        check.unknown_mask_bits = kind.optional.iter().fold(mask, |rest, optional| rest & !optional.mask);
        check.expected_bytes += 1 + optional_bytes(kind, mask, false);
        // Fields behind unknown bits have unknown sizes, but they can only make the record longer.
        is_known = has_packed_optionals(kind, mask, payload.len())
            || check.unknown_mask_bits != 0 && payload.len() >= check.expected_bytes;
    }
    for field in fields(record) {
        check.add_field(&field, payload);
    }
    // A thread kind byte is optional at the end (brief 01 §3.5), a span name may end with the record.
    is_known |= matches!(kind.variable, Variable::ThreadName | Variable::SpanName)
        && payload.len() + 1 == check.expected_bytes;
    check.is_unexpected_length = !is_known && payload.len() != check.expected_bytes;
    Some(check)
}

fn is_alternative(kind: &KindInfo, payload_bytes: usize) -> bool {
    kind.alt_layouts.iter().any(|layout| usize::from(layout.payload_bytes) == payload_bytes)
}

impl LayoutCheck {
    fn add_field(&mut self, field: &Field<'_>, payload: &[u8]) {
        match field.value {
            Value::Text(name) => self.expected_bytes += name.0.len() + 1,
            Value::Evaluators(list) => {
                self.expected_bytes += list.announced_bytes() + 2;
                self.is_list_cut |= list.is_cut();
                let operators = list.iter().map(|evaluator| i64::from(evaluator.op.0));
                self.check_names("evaluators", &registry::COMPARE_OP, operators);
            }
            Value::FieldIndexes(list) => {
                self.expected_bytes += list.announced_bytes();
                self.is_list_cut |= list.is_cut();
            }
            Value::Thresholds(list) => {
                self.expected_bytes += list.announced_bytes();
                self.is_list_cut |= list.is_cut();
            }
            Value::Gauges(mut gauges) => {
                gauges.by_ref().for_each(drop);
                self.expected_bytes = payload.len() - gauges.rest().len();
                self.is_list_cut |= gauges.left() != 0;
            }
            Value::Unsigned(_) | Value::Signed(_) | Value::Bool(_) | Value::F32(_) | Value::F64(_) => {
                let value = field.value.as_i128().and_then(|value| i64::try_from(value).ok());
                if let (Some(names), Some(value)) = (field.info.and_then(|info| info.enumeration), value) {
                    self.check_names(field.name, names, [value]);
                }
            }
        }
    }

    fn check_names(
        &mut self,
        field: &'static str,
        names: &registry::EnumInfo,
        values: impl IntoIterator<Item = i64>,
    ) {
        if self.unknown_enum_value.is_none() {
            let unknown = values.into_iter().find(|value| !names.covers(*value));
            self.unknown_enum_value = unknown.map(|value| (field, value));
        }
    }
}
