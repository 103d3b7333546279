//! Names of instants that are made at run time, within bounds.
//!
//! Every name of an instant stays in memory and in the trace for good. Messages that differ each time would use up all
//! names there are, so a call site gets a few, and then one for all the rest.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::hash::Hash;
use std::sync::{PoisonError, RwLock};

use typhon_trace::event::MAX_NAME_BYTES;

use crate::{NameId, name};

/// Different messages of one call site that get a name of their own.
const NAMES_PER_CALLSITE: usize = 32;
/// Names of all call sites together; the others are the application's.
const NAMES_MAX: usize = 16_384;

/// Text that ends where a name has to end. Formatting into it stops there.
#[derive(Debug, Default)]
pub(super) struct NameText(String);

impl NameText {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }

    /// Appends formatted text, as much as fits.
    pub(super) fn push(&mut self, text: fmt::Arguments<'_>) {
        // The only error is our own, for a text that is full.
        let _ = self.write_fmt(text);
    }
}

impl fmt::Write for NameText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_NAME_BYTES - self.0.len();
        let fits = text.floor_char_boundary(room);
        self.0.push_str(&text[..fits]);
        if fits == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// The names given so far, by call site.
pub(super) struct CallsiteNames<K> {
    known: RwLock<Known<K>>,
}

struct Known<K> {
    callsites: HashMap<K, Callsite>,
    names: usize,
}

#[derive(Default)]
struct Callsite {
    messages: HashMap<String, NameId>,
    /// For the messages that have no name of their own.
    rest: Option<NameId>,
}

impl<K: Eq + Hash> CallsiteNames<K> {
    pub(super) fn new() -> Self {
        Self { known: RwLock::new(Known { callsites: HashMap::new(), names: 0 }) }
    }

    /// The name of a message. `rest` is the text for all messages of this call site that get no name of their own;
    /// `level` is the one for everything when there are no names left for the bridges. `None` when the process has used
    /// up all names: then nothing can be recorded, as the application's own attempts to get a name tell it.
    pub(super) fn get(
        &self,
        callsite: K,
        message: &str,
        rest: impl FnOnce() -> NameText,
        level: &str,
    ) -> Option<NameId> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known.callsites.get(&callsite).and_then(|callsite| callsite.messages.get(message)) {
            return Some(*id);
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.add(callsite, message, rest).or_else(|| name(level).ok())
    }
}

impl<K: Eq + Hash> Known<K> {
    fn add(&mut self, callsite: K, message: &str, rest: impl FnOnce() -> NameText) -> Option<NameId> {
        let is_full = self.names >= NAMES_MAX;
        let callsite = self.callsites.entry(callsite).or_default();
        if let Some(id) = callsite.messages.get(message).copied() {
            return Some(id);
        }
        if callsite.messages.len() < NAMES_PER_CALLSITE && !is_full {
            let id = name(message).ok()?;
            callsite.messages.insert(message.to_owned(), id);
            self.names += 1;
            return Some(id);
        }
        if callsite.rest.is_none() && !is_full {
            callsite.rest = name(rest().as_str()).ok();
            self.names += 1;
        }
        callsite.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(parts: fmt::Arguments<'_>) -> NameText {
        let mut text = NameText::default();
        text.push(parts);
        text
    }

    #[test]
    fn texts_are_cut_at_a_character() {
        assert_eq!(text(format_args!("{}", "é".repeat(200))).as_str().len(), 254);
        let mut full = text(format_args!("{}{}", "x".repeat(200), "y".repeat(100)));
        full.push(format_args!("more"));
        assert_eq!(full.into_string(), "x".repeat(200) + &"y".repeat(55));
    }

    #[test]
    fn a_call_site_gets_a_few_names_and_then_one_for_the_rest() {
        let names = CallsiteNames::new();
        let get = |callsite: u32, message: &str| {
            names.get(callsite, message, || text(format_args!("rest of {callsite}")), "INFO").unwrap()
        };
        let first = get(1, "message 0");
        let own: Vec<NameId> = (0..32).map(|n| get(1, &format!("message {n}"))).collect();
        assert_eq!(own[0], first);
        assert_eq!(own.iter().collect::<std::collections::HashSet<_>>().len(), 32);
        let rest = get(1, "message 32");
        assert_eq!(get(1, "message 33"), rest);
        assert_eq!(rest, name("rest of 1").unwrap());
        assert_eq!(get(1, "message 5"), own[5], "names once given stay");
        assert_ne!(get(2, "message 34"), rest, "another call site has its own");
    }

    #[test]
    fn when_the_bridges_names_are_used_up_the_level_is_the_name() {
        let names = CallsiteNames::new();
        names.known.write().unwrap().names = NAMES_MAX - 1;
        let get = |message: &str| names.get(1, message, NameText::default, "WARN").unwrap();
        let last = get("the last one");
        assert_eq!(get("one too many"), name("WARN").unwrap());
        assert_eq!(get("the last one"), last);
    }
}
