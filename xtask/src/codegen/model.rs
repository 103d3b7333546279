//! The registry file as data. Unknown keys are errors: a fact that the generator does not know would be lost.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use serde_json::Value;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Registry {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "format_version_of_trace")]
    _format_version_of_trace: u16,
    #[serde(rename = "conventions")]
    _conventions: Value,
    pub(super) counts: Counts,
    pub(super) unassigned_ids: Vec<u8>,
    pub(super) enums: BTreeMap<String, BTreeMap<u16, String>>,
    pub(super) gauges: Vec<Gauge>,
    pub(super) kinds: Vec<Kind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counts {
    pub(super) entries: usize,
    pub(super) live: usize,
    pub(super) retired: usize,
    pub(super) removed: usize,
    pub(super) span: usize,
    pub(super) instant: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gauge {
    pub(super) id: u16,
    pub(super) hex: String,
    pub(super) name: String,
    pub(super) value_kind: String,
    pub(super) once: bool,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shape {
    Instant,
    Span,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Live,
    Retired,
    Removed,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum DefaultState {
    On,
    Off,
    Suppressed,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Suppression {
    Gate,
    Explicit,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Producer {
    Wired,
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kind {
    pub(super) id: u8,
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) status: Status,
    pub(super) family: String,
    pub(super) required: Vec<Field>,
    pub(super) optional: Vec<OptionalField>,
    pub(super) default: DefaultState,
    pub(super) suppression: Option<Suppression>,
    pub(super) gate: String,
    pub(super) gate_source: Option<String>,
    pub(super) variable: Option<Value>,
    pub(super) has_mask_byte: bool,
    pub(super) required_bytes: usize,
    pub(super) size_after_header: Option<usize>,
    pub(super) size_after_header_max: Option<usize>,
    pub(super) append_history: Vec<usize>,
    #[serde(default)]
    pub(super) alt_layouts: Vec<AltLayout>,
    pub(super) external_timestamps: bool,
    pub(super) external_slot: bool,
    pub(super) correlates_span_id: Option<u8>,
    pub(super) superseded_by: Option<u8>,
    #[serde(default)]
    pub(super) zero_duration: bool,
    #[serde(default)]
    pub(super) parent_always_zero: bool,
    #[serde(default)]
    pub(super) no_trace_context: bool,
    pub(super) units: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) sentinels: BTreeMap<String, String>,
    pub(super) enums: BTreeMap<String, EnumUse>,
    #[serde(default)]
    pub(super) fold: BTreeMap<String, String>,
    pub(super) threshold: Option<String>,
    pub(super) reference_producer: Producer,
    #[serde(default)]
    pub(super) notes: String,
    pub(super) summary: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Field {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) ty: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OptionalField {
    pub(super) mask: u8,
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) ty: String,
    pub(super) slot_bytes: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AltLayout {
    pub(super) when_size_after_header: usize,
    pub(super) required: Vec<Field>,
}

/// An enumeration as the kinds repeat it; equal to the one of the same name at the top of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnumUse {
    pub(super) name: String,
    pub(super) values: BTreeMap<u16, String>,
}

/// The variable part of a kind. Its layout is code, written by hand in `typhon_trace::event`, so that a new one
/// needs more than an entry in the registry.
pub(super) fn variable_part(id: u8) -> Option<&'static str> {
    match id {
        76 => Some("Gauges"),
        77 => Some("ThreadName"),
        246 => Some("SpanName"),
        247 => Some("QueryDefinition"),
        248 => Some("Thresholds"),
        _ => None,
    }
}

/// Wire bytes of a field type.
pub(super) fn type_bytes(ty: &str) -> Result<usize, String> {
    Ok(match ty {
        "u8" | "i8" | "bool8" => 1,
        "u16" | "i16" => 2,
        "u32" | "i32" | "f32" => 4,
        "u64" | "i64" | "f64" => 8,
        other => return Err(format!("unknown field type {other:?}")),
    })
}

/// Wire bytes of consecutive fields whose types were validated.
pub(super) fn fields_bytes(fields: &[Field]) -> usize {
    fields.iter().filter_map(|field| type_bytes(&field.ty).ok()).sum()
}

impl Registry {
    /// Reads and validates the registry file.
    pub(super) fn load(path: &Path) -> Result<Self, String> {
        let text =
            fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let registry: Self =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        registry.validate().map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(registry)
    }

    /// Checks what the file states twice, so that the two statements cannot drift apart.
    fn validate(&self) -> Result<(), String> {
        let count = |predicate: fn(&Kind) -> bool| self.kinds.iter().filter(|kind| predicate(kind)).count();
        let counts = &self.counts;
        let stated_and_found = [
            ("entries", counts.entries, self.kinds.len()),
            ("live", counts.live, count(|kind| kind.status == Status::Live)),
            ("retired", counts.retired, count(|kind| kind.status == Status::Retired)),
            ("removed", counts.removed, count(|kind| kind.status == Status::Removed)),
            ("span", counts.span, count(|kind| kind.shape == Shape::Span)),
            ("instant", counts.instant, count(|kind| kind.shape == Shape::Instant)),
        ];
        for (what, stated, found) in stated_and_found {
            if stated != found {
                return Err(format!("counts.{what} is {stated}, the file has {found}"));
            }
        }
        if !self.kinds.is_sorted_by(|a, b| a.id < b.id) {
            return Err("kinds are not in ascending order of unique ids".into());
        }
        let assigned: Vec<u8> = self.kinds.iter().map(|kind| kind.id).collect();
        let unassigned: Vec<u8> = (0..=255).filter(|id| !assigned.contains(id)).collect();
        if unassigned != self.unassigned_ids {
            return Err(format!("unassigned_ids should be {unassigned:?}"));
        }
        for gauge in &self.gauges {
            if gauge.hex != format!("0x{:04X}", gauge.id) {
                return Err(format!("gauge {}: hex {} is not id {}", gauge.name, gauge.hex, gauge.id));
            }
        }
        self.kinds.iter().try_for_each(|kind| {
            self.validate_kind(kind).map_err(|error| format!("kind {}: {error}", kind.id))
        })
    }

    fn validate_kind(&self, kind: &Kind) -> Result<(), String> {
        let alternatives = kind.alt_layouts.iter().flat_map(|layout| &layout.required);
        for field in kind.required.iter().chain(alternatives) {
            type_bytes(&field.ty)?;
        }
        let required = fields_bytes(&kind.required);
        let mut optional = 0;
        for field in &kind.optional {
            if usize::from(field.slot_bytes) < type_bytes(&field.ty)? {
                return Err(format!("slot of {} is smaller than its type", field.name));
            }
            optional += usize::from(field.slot_bytes);
        }
        let fixed = required + usize::from(kind.has_mask_byte);
        let varies = kind.variable.is_some();
        let is_exact = kind.optional.is_empty() && !varies;
        let sizes = [
            ("required_bytes", Some(kind.required_bytes), Some(required)),
            ("size_after_header", kind.size_after_header, is_exact.then_some(fixed)),
            ("size_after_header_max", kind.size_after_header_max, (!varies).then_some(fixed + optional)),
        ];
        for (what, stated, computed) in sizes {
            if stated != computed {
                return Err(format!("{what} is {stated:?}, the fields give {computed:?}"));
            }
        }
        for layout in &kind.alt_layouts {
            if layout.when_size_after_header != fields_bytes(&layout.required) {
                return Err("alternative layout: size and fields disagree".into());
            }
        }
        for (field, used) in &kind.enums {
            if self.enums.get(&used.name) != Some(&used.values) {
                return Err(format!("{field}: enumeration {} differs from the top-level one", used.name));
            }
        }
        if varies != variable_part(kind.id).is_some() {
            return Err("variable parts are code; this one is not in it".into());
        }
        if kind.summary.is_empty() {
            return Err("the summary is missing".into());
        }
        Ok(())
    }
}
