//! The words before an operator, and what the registry knows about fields.

use super::suggest::nearest;
use std::fmt;
use typhon_trace::registry::{self, EnumInfo, FieldInfo, FieldRole, KindInfo, Variable};

/// What a term looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Kind,
    Id,
    Name,
    Family,
    Thread,
    Slot,
    System,
    Tick,
    Ts,
    Dur,
    SelfTime,
    Depth,
    Site,
    Span,
    Parent,
    Trace,
    /// A payload field by its registry name.
    Field(String),
}

const PLAIN_KEYS: &[(&str, Key)] = &[
    ("kind", Key::Kind),
    ("id", Key::Id),
    ("name", Key::Name),
    ("family", Key::Family),
    ("thread", Key::Thread),
    ("slot", Key::Slot),
    ("system", Key::System),
    ("tick", Key::Tick),
    ("ts", Key::Ts),
    ("dur", Key::Dur),
    ("self", Key::SelfTime),
    ("depth", Key::Depth),
    ("site", Key::Site),
    ("span", Key::Span),
    ("parent", Key::Parent),
    ("trace", Key::Trace),
];

const FIELD_PREFIX: &str = "field.";

/// Why a word is no key.
pub(crate) struct UnknownKey {
    pub(crate) message: String,
    pub(crate) nearest: Option<String>,
}

impl Key {
    /// The key with this name. Whether a field of that name exists is checked by [`FieldUse::find`].
    pub(crate) fn parse(word: &str) -> Result<Self, UnknownKey> {
        if let Some(field) = word.strip_prefix(FIELD_PREFIX) {
            return Ok(Self::Field(field.to_owned()));
        }
        if let Some((_, key)) = PLAIN_KEYS.iter().find(|(name, _)| *name == word) {
            return Ok(key.clone());
        }
        Err(UnknownKey { message: format!("unknown key `{word}`"), nearest: Self::nearest(word) })
    }

    /// The key that was meant; a bare field name is the commonest slip.
    fn nearest(word: &str) -> Option<String> {
        if FieldUse::find(word).is_some() {
            return Some(format!("{FIELD_PREFIX}{word}"));
        }
        let (head, field) = word.split_once('.').map_or((word, None), |(head, field)| (head, Some(field)));
        let names = PLAIN_KEYS.iter().map(|(name, _)| *name).chain(["field"]);
        let near = nearest(head, names)?;
        Some(match (near, field) {
            ("field", field) => format!("{FIELD_PREFIX}{}", field.unwrap_or("NAME")),
            (plain, _) => plain.to_owned(),
        })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, "{FIELD_PREFIX}{name}"),
            plain => {
                let name = PLAIN_KEYS.iter().find(|(_, key)| key == plain).map(|(name, _)| *name);
                f.write_str(name.unwrap_or_default())
            }
        }
    }
}

/// A set of kind ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KindSet([u64; 4]);

impl KindSet {
    pub(crate) fn of(ids: impl IntoIterator<Item = u8>) -> Self {
        let mut set = Self::default();
        for id in ids {
            set.0[usize::from(id >> 6)] |= 1 << (id & 63);
        }
        set
    }

    #[inline]
    pub(crate) fn contains(&self, id: u8) -> bool {
        self.0[usize::from(id >> 6)] >> (id & 63) & 1 != 0
    }

    pub(crate) fn complement(self) -> Self {
        Self(self.0.map(|word| !word))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }
}

/// Where a field name occurs in the registry.
pub(crate) struct FieldUse {
    pub(crate) kinds: KindSet,
    /// At least one kind measures a time with it.
    pub(crate) is_time: bool,
    /// At least one kind holds text in it.
    pub(crate) is_text: bool,
    pub(crate) enumerations: Vec<&'static EnumInfo>,
}

impl FieldUse {
    /// All uses of a field name; `None` when no kind has such a field.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let mut found =
            Self { kinds: KindSet::default(), is_time: false, is_text: false, enumerations: Vec::new() };
        let mut ids = Vec::new();
        for kind in registry::KINDS {
            let infos = fixed_fields(kind).filter(|info| info.name == name);
            let before = ids.len();
            for info in infos {
                ids.push(kind.id);
                found.is_time |= crate::units::TimeUnit::of(info).is_some();
                found.enumerations.extend(info.enumeration);
            }
            if variable_fields(kind).contains(&name) {
                ids.push(kind.id);
                found.is_text |= name == "name";
            }
            debug_assert!(ids[before..].iter().all(|&id| id == kind.id));
        }
        if ids.is_empty() {
            return None;
        }
        found.kinds = KindSet::of(ids);
        Some(found)
    }

    /// The nearest field name of the registry.
    pub(crate) fn nearest(name: &str) -> Option<&'static str> {
        let fixed = registry::KINDS.iter().flat_map(fixed_fields).map(|info| info.name);
        let variable = registry::KINDS.iter().flat_map(variable_fields).copied();
        nearest(name, fixed.chain(variable))
    }
}

fn fixed_fields(kind: &'static KindInfo) -> impl Iterator<Item = &'static FieldInfo> {
    let optional = kind.optional.iter().map(|optional| &optional.field);
    let alternative = kind.alt_layouts.iter().flat_map(|layout| layout.required);
    let all = kind.required.iter().chain(optional).chain(alternative);
    all.filter(|field| field.role == FieldRole::Value)
}

/// Single-valued fields of the variable part. Lists (gauges, thresholds …) cannot be compared with one value.
fn variable_fields(kind: &KindInfo) -> &'static [&'static str] {
    match kind.variable {
        Variable::ThreadName => &["name", "threadKind"],
        Variable::SpanName => &["name"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_sets() {
        let set = KindSet::of([0, 63, 64, 255]);
        assert!([0, 63, 64, 255].iter().all(|&id| set.contains(id)));
        assert!(!set.contains(1));
        assert!(!set.complement().contains(255) && set.complement().contains(1));
        assert!(KindSet::default().is_empty());
    }

    #[test]
    fn fields_are_found_wherever_they_stand() {
        let required = FieldUse::find("tsn").expect("required field");
        assert!(required.kinds.contains(20));
        let optional = FieldUse::find("componentCount").expect("optional field");
        assert!(optional.kinds.contains(20));
        assert!(FieldUse::find("name").expect("variable part").is_text);
        assert!(FieldUse::find("nmae").is_none());
        assert_eq!(FieldUse::nearest("archetypeld"), Some("archetypeId"));
    }
}
