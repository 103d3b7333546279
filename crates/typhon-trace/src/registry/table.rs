//! Constructors that keep the generated tables short: one line per field, one short chain per kind.

use super::{
    AltLayout, DefaultState, EnumInfo, FieldInfo, FieldRole, FieldType, Fold, KindInfo, OptionalField, Shape,
    Status, Variable,
};

/// A field without unit, sentinel or named values.
pub(super) const fn field(name: &'static str, ty: FieldType) -> FieldInfo {
    FieldInfo { name, ty, unit: "", sentinel: "", enumeration: None, role: FieldRole::Value, fold: None }
}

impl FieldInfo {
    pub(super) const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    pub(super) const fn sentinel(mut self, sentinel: &'static str) -> Self {
        self.sentinel = sentinel;
        self
    }

    pub(super) const fn named(mut self, enumeration: &'static EnumInfo) -> Self {
        self.enumeration = Some(enumeration);
        self
    }

    pub(super) const fn role(mut self, role: FieldRole) -> Self {
        self.role = role;
        self
    }

    pub(super) const fn fold(mut self, fold: Fold) -> Self {
        self.fold = Some(fold);
        self
    }

    /// Makes it an optional field with this bit and room on the wire.
    pub(super) const fn optional(self, mask: u8, slot_bytes: u8) -> OptionalField {
        OptionalField { mask, slot_bytes, field: self }
    }
}

/// A live kind without payload that is off by default.
pub(super) const fn entry(id: u8, name: &'static str, shape: Shape, family: &'static str) -> KindInfo {
    KindInfo {
        id,
        name,
        shape,
        status: Status::Live,
        family,
        summary: "",
        notes: "",
        gate: "",
        default: DefaultState::Off,
        required: &[],
        has_mask_byte: false,
        optional: &[],
        variable: Variable::None,
        append_history: &[],
        alt_layouts: &[],
        external_timestamps: false,
        external_slot: false,
        correlates_span_id: None,
        superseded_by: None,
        zero_duration: false,
        parent_always_zero: false,
        no_trace_context: false,
        threshold: "",
        reference_producer: true,
    }
}

/// Generates the chainable setters; each takes the value of one field.
macro_rules! setters {
    ($($name:ident: $ty:ty),* $(,)?) => {
        impl KindInfo {
            $(pub(super) const fn $name(mut self, $name: $ty) -> Self {
                self.$name = $name;
                self
            })*

            pub(super) const fn gate(mut self, gate: &'static str, default: DefaultState) -> Self {
                self.gate = gate;
                self.default = default;
                self
            }

            pub(super) const fn masked(mut self, optional: &'static [OptionalField]) -> Self {
                self.has_mask_byte = true;
                self.optional = optional;
                self
            }
        }
    };
}

setters! {
    status: Status,
    summary: &'static str,
    notes: &'static str,
    required: &'static [FieldInfo],
    variable: Variable,
    append_history: &'static [u16],
    alt_layouts: &'static [AltLayout],
    external_timestamps: bool,
    external_slot: bool,
    correlates_span_id: Option<u8>,
    superseded_by: Option<u8>,
    zero_duration: bool,
    parent_always_zero: bool,
    no_trace_context: bool,
    threshold: &'static str,
    reference_producer: bool,
}

/// Entries by id.
pub(super) const fn by_id(kinds: &'static [KindInfo]) -> [Option<&'static KindInfo>; 256] {
    let mut table = [None; 256];
    let mut index = 0;
    while index < kinds.len() {
        table[kinds[index].id as usize] = Some(&kinds[index]);
        index += 1;
    }
    table
}

/// One bit per id, set for spans.
pub(super) const fn span_mask(kinds: &[KindInfo]) -> [u64; 4] {
    let mut mask = [0; 4];
    let mut index = 0;
    while index < kinds.len() {
        if matches!(kinds[index].shape, Shape::Span) {
            mask[(kinds[index].id >> 6) as usize] |= 1 << (kinds[index].id & 63);
        }
        index += 1;
    }
    mask
}
