//! What bars say: one table of u16 ids per session.

use super::Strip;
use std::collections::HashMap;
use typhon_trace::event::enums::TickPhase;
use typhon_trace::registry::{self, id};
use typhon_trace::tables::Tables;

/// Ids below are those of the kinds, so that a kind's own name needs no look-up.
pub(crate) const FIRST_DYNAMIC: u16 = 256;
/// Further names share this id.
const OTHER: u16 = u16::MAX;

/// Bit of a colour group that holds the index of a system; without it, the group is a family.
pub const GROUP_IS_SYSTEM: u16 = 0x8000;

/// What a name is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum NameKey {
    /// A span of a kind in which a system runs.
    System { kind: u8, index: u16 },
    /// A span that the program named itself.
    Text(String),
    /// A phase of the tick, by its number.
    Phase(u8),
}

/// One name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The text. Comes from the trace and may hold anything.
    pub text: String,
    /// Kind of the records that bear it.
    pub kind: u8,
    /// Index of the system, if it names one.
    pub system: Option<u16>,
    /// What it is coloured by: `GROUP_IS_SYSTEM | index` for systems, else an index into [`families`].
    pub group: u16,
}

/// The names of a session.
#[derive(Debug, Clone)]
pub struct Names {
    list: Vec<Name>,
    by_key: HashMap<NameKey, u16>,
    /// A name had no room.
    is_full: bool,
}

/// The families of the registry in alphabetical order; [`Name::group`] counts in them. Kinds that the registry does not
/// list have the group after the last.
pub fn families() -> Vec<&'static str> {
    let mut families: Vec<&'static str> = registry::KINDS.iter().map(|kind| kind.family).collect();
    families.sort_unstable();
    families.dedup();
    families
}

impl Names {
    /// The names of all kinds.
    pub(crate) fn new() -> Self {
        let families = families();
        let name = |id: u8| {
            let info = registry::kind(id);
            let family = info.and_then(|info| families.binary_search(&info.family).ok());
            Name {
                text: info.map_or_else(|| format!("kind {id}"), |info| info.name.to_owned()),
                kind: id,
                system: None,
                group: family.unwrap_or(families.len()) as u16,
            }
        };
        Self { list: (0..=255).map(name).collect(), by_key: HashMap::new(), is_full: false }
    }

    /// The id of a name, which is new or known.
    pub(crate) fn intern(&mut self, key: NameKey, tables: &Tables) -> u16 {
        if let Some(id) = self.by_key.get(&key) {
            return *id;
        }
        let Some(id) = u16::try_from(self.list.len()).ok().filter(|id| *id < OTHER) else {
            self.is_full = true;
            return OTHER;
        };
        self.list.push(self.describe(&key, tables));
        self.by_key.insert(key, id);
        id
    }

    fn describe(&self, key: &NameKey, tables: &Tables) -> Name {
        match key {
            NameKey::System { kind, index } => {
                let of_kind = &self.list[usize::from(*kind)];
                let text = match (*kind, tables.system_name(*index)) {
                    (id::SCHEDULER_CHUNK, Some(name)) => name.to_owned(),
                    (id::SCHEDULER_CHUNK, None) => format!("system {index}"),
                    _ => of_kind.text.clone(),
                };
                let group = GROUP_IS_SYSTEM | index;
                Name { text, system: Some(*index), group, ..of_kind.clone() }
            }
            NameKey::Text(text) => {
                Name { text: text.clone(), ..self.list[usize::from(id::NAMED_SPAN)].clone() }
            }
            NameKey::Phase(phase) => {
                let text = TickPhase(*phase).name().map_or_else(|| format!("phase {phase}"), str::to_owned);
                Name { text, ..self.list[usize::from(id::RUNTIME_PHASE_SPAN)].clone() }
            }
        }
    }

    /// By id. The id 65,535 has no entry: it stands for all names beyond the limit.
    pub fn list(&self) -> &[Name] {
        &self.list
    }

    /// Did some names find no room?
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The name of an id; `None` for the one that stands for names beyond the limit.
    pub fn get(&self, id: u16) -> Option<&Name> {
        self.list.get(usize::from(id))
    }

    /// Restores a table from the names after those of the kinds.
    pub(crate) fn from_parts(dynamic: Vec<Name>, is_full: bool) -> Self {
        let mut names = Self::new();
        names.list.extend(dynamic);
        names.is_full = is_full;
        names
    }

    /// The names after those of the kinds.
    pub(crate) fn dynamic(&self) -> &[Name] {
        &self.list[usize::from(FIRST_DYNAMIC)..]
    }
}

/// The strip that spans of a kind are drawn on, besides their thread.
pub(crate) fn strip_of(kind: u8) -> Option<Strip> {
    match kind {
        id::PAGE_CACHE_DISK_READ
        | id::PAGE_CACHE_DISK_WRITE
        | id::PAGE_CACHE_FLUSH
        | id::PAGE_CACHE_DISK_READ_COMPLETED
        | id::PAGE_CACHE_DISK_WRITE_COMPLETED
        | id::PAGE_CACHE_FLUSH_COMPLETED => return Some(Strip::DiskIo),
        _ => {}
    }
    match registry::kind(kind)?.family {
        "Runtime.Phase" => Some(Strip::Phases),
        "PageCache" => Some(Strip::PageCache),
        "Storage" => Some(Strip::DiskIo),
        "Transaction" | "Runtime.Transaction" | "Data.Transaction" => Some(Strip::Transactions),
        "Wal" => Some(Strip::Wal),
        "Checkpoint" => Some(Strip::Checkpoint),
        _ => None,
    }
}

/// Kinds that report a fault (brief 11 §4).
pub(crate) fn is_fault(kind: u8) -> bool {
    matches!(
        kind,
        id::PAGE_CACHE_BACKPRESSURE
            | id::DATA_TRANSACTION_CONFLICT
            | id::ECS_VIEW_DELTA_BUFFER_OVERFLOW
            | id::DURABILITY_WAL_BACKPRESSURE
            | id::DURABILITY_CHECKPOINT_BACKPRESSURE
    )
}
