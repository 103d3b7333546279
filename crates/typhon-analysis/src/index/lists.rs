//! The items of a block, by key.
//!
//! A thread fills the same lists for one block after the other, and hands on what is in them in one piece: a block has
//! some hundred records for each of some dozen keys, and getting memory for each of them costs as much as filling it.

use super::item::{Item, Key};
use super::sort::sort;

/// What a thread fills.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    keys: Vec<Key>,
    /// By place; those behind the last key are room from earlier blocks.
    lists: Vec<Vec<Item>>,
}

/// Items that lists may keep room for, however few there were in the last block.
const ROOM_ITEMS: usize = 1 << 16;

impl Lists {
    /// Adds a key; gives the place of its list.
    pub(super) fn add(&mut self, key: Key) -> usize {
        let place = self.keys.len();
        self.keys.push(key);
        if place == self.lists.len() {
            self.lists.push(Vec::new());
        }
        place
    }

    #[inline]
    pub(super) fn push(&mut self, place: usize, item: Item) {
        self.lists[place].push(item);
    }

    /// Takes out what is in them, sorted.
    pub(super) fn take(&mut self) -> BlockItems {
        let lists = &mut self.lists[..self.keys.len()];
        let mut taken = BlockItems {
            items: Vec::with_capacity(lists.iter().map(Vec::len).sum()),
            ends: Vec::with_capacity(lists.len()),
        };
        for (key, list) in self.keys.drain(..).zip(lists) {
            sort(list);
            taken.items.extend_from_slice(list);
            taken.ends.push((key, taken.items.len()));
            list.clear();
        }
        let room: usize = self.lists.iter().map(Vec::capacity).sum();
        if room > ROOM_ITEMS.max(4 * taken.items.len()) {
            self.lists = Vec::new();
        }
        taken
    }
}

/// The items of one block, each key's in the order of nesting.
#[derive(Debug, Default)]
pub(crate) struct BlockItems {
    items: Vec<Item>,
    /// Keys, and where their items end.
    ends: Vec<(Key, usize)>,
}

impl BlockItems {
    /// Keys with their items.
    pub(crate) fn by_key(&self) -> impl Iterator<Item = (Key, &[Item])> {
        let mut from = 0;
        self.ends.iter().map(move |(key, end)| (*key, &self.items[std::mem::replace(&mut from, *end)..*end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(start: i64, ordinal: u64) -> Item {
        Item { start, length: 0, span_id: 0, ordinal, name: 0, flags: 0 }
    }

    #[test]
    fn items_of_a_key_come_in_one_piece_and_in_order() {
        let mut lists = Lists::default();
        for turn in 0..3 {
            let (spans, instants) = (lists.add(Key::Spans(1)), lists.add(Key::Instants(1)));
            lists.push(spans, item(7, turn));
            lists.push(instants, item(6, turn));
            lists.push(spans, item(5, turn));
            let taken = lists.take();
            let by_key: Vec<_> = taken.by_key().collect();
            let expected: [(Key, &[Item]); 2] =
                [(Key::Spans(1), &[item(5, turn), item(7, turn)]), (Key::Instants(1), &[item(6, turn)])];
            assert_eq!(by_key, expected);
        }
    }

    #[test]
    fn room_of_an_unusual_block_is_given_back() {
        let mut lists = Lists::default();
        let place = lists.add(Key::Spans(0));
        (0..2 * ROOM_ITEMS as i64).for_each(|start| lists.push(place, item(start, 0)));
        assert_eq!(lists.take().by_key().count(), 1);
        let place = lists.add(Key::Spans(0));
        lists.push(place, item(0, 0));
        lists.take();
        assert!(lists.lists.is_empty());
    }
}
