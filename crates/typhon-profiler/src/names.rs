//! Names of markers: text once, a number in every record.
#![forbid(unsafe_code)]

use crate::drain::markers::RESERVED_NAMES;
use crate::fork;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use typhon_trace::event::MAX_NAME_BYTES;

/// Names per process; the file writer uses the ids above for its own.
const MAX_NAMES: usize = 65_531;
/// Prefix of the profiler's own names.
const RESERVED_PREFIX: &str = "typhon.";

/// A name that instants can carry, for the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NameId(u16);

impl NameId {
    /// The number in the records.
    pub const fn value(self) -> u16 {
        self.0
    }
}

/// Why a text cannot be a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The profiler uses this prefix for its own marks.
    #[error("\"{0}\": names that begin with \"typhon.\" are reserved; choose another prefix")]
    Reserved(String),
    /// The process has used up its names.
    #[error(
        "\"{0}\": all {MAX_NAMES} names are in use; use fewer distinct names, or put the variable part into the value"
    )]
    TooMany(String),
}

#[derive(Debug)]
struct Names {
    list: Vec<&'static str>,
    ids: HashMap<&'static str, u16>,
}

impl Names {
    fn lock() -> MutexGuard<'static, Self> {
        static NAMES: OnceLock<Mutex<Names>> = OnceLock::new();
        let names = NAMES.get_or_init(|| {
            let ids = (0..).zip(RESERVED_NAMES).map(|(id, name)| (name, id)).collect();
            Mutex::new(Self { list: RESERVED_NAMES.to_vec(), ids })
        });
        names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id of a name, the same for the whole process. Names above 255 bytes are cut at a character.
///
/// Takes a lock and, for a new name, allocates: look a name up once, not per record. In a forked child, which records
/// nothing, every name has the number 0.
///
/// # Errors
/// [`NameError::Reserved`] for the prefix `typhon.`, [`NameError::TooMany`] after 65,531 names.
pub fn name(text: &str) -> Result<NameId, NameError> {
    let text = &text[..text.floor_char_boundary(MAX_NAME_BYTES)];
    if text.starts_with(RESERVED_PREFIX) {
        return Err(NameError::Reserved(text.to_owned()));
    }
    // A thread that a forked child does not have may hold the lock for ever.
    if fork::is_child() {
        return Ok(NameId(0));
    }
    intern(text)
}

/// The id of a name of the profiler's own; `None` if the process has used up its names.
#[cfg(all(unix, feature = "gc"))]
pub(crate) fn reserved(text: &'static str) -> Option<NameId> {
    intern(text).ok()
}

fn intern(text: &str) -> Result<NameId, NameError> {
    let mut names = Names::lock();
    if let Some(id) = names.ids.get(text) {
        return Ok(NameId(*id));
    }
    if names.list.len() >= MAX_NAMES {
        return Err(NameError::TooMany(text.to_owned()));
    }
    let id = names.list.len() as u16;
    // Names live as long as the process, since records of any later session may carry their ids.
    let text: &'static str = text.to_owned().leak();
    names.list.push(text);
    names.ids.insert(text, id);
    Ok(NameId(id))
}

/// Number of names so far; every id is below it.
pub(crate) fn count() -> u32 {
    Names::lock().list.len() as u32
}

/// The names with ids from `from` to below `to`.
pub(crate) fn range(from: u32, to: u32) -> Vec<(u16, &'static str)> {
    let names = Names::lock();
    (from..to).filter_map(|id| Some((id as u16, *names.list.get(id as usize)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_id_and_reserved_ones_are_refused() {
        let id = name("names test").unwrap();
        assert_eq!(name("names test"), Ok(id));
        let from = u32::from(id.value());
        assert_eq!(range(from, from + 1), [(id.value(), "names test")]);
        assert!(count() > from);
        assert_eq!(name("typhon.kind_on"), Err(NameError::Reserved("typhon.kind_on".into())));
        assert_eq!(range(0, 1), [(0, "typhon.dropped_records")]);
        let long = name(&"é".repeat(200)).unwrap();
        let from = u32::from(long.value());
        assert_eq!(range(from, from + 1)[0].1.len(), 254);
    }
}
