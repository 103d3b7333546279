//! The items of all lanes, sorted.

use super::item::{Item, Key};
use std::collections::BTreeMap;
use std::io;

/// Collects items in file order and gives those of every key back in order of nesting.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    pending: BTreeMap<Key, Vec<Item>>,
}

impl Sorter {
    /// Adds an item.
    #[inline]
    pub(crate) fn push(&mut self, key: Key, item: Item) {
        self.pending.entry(key).or_default().push(item);
    }

    /// The keys that have items, in order.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.pending.keys().copied().collect()
    }

    /// The items of a key.
    pub(crate) fn take(&mut self, key: Key) -> Vec<Item> {
        let mut items = self.pending.remove(&key).unwrap_or_default();
        items.sort_by(Item::compare);
        items
    }
}

/// An iterator over items that cannot fail.
pub(crate) fn sound(items: Vec<Item>) -> impl Iterator<Item = io::Result<Item>> {
    items.into_iter().map(Ok)
}
