//! Columns of whole numbers in few bits.
//!
//! A column is a base (its smallest value), a width, the differences to the base in that many bits each, and *patches*:
//! the few values that would need more bits are kept aside, so that one outlier does not widen the whole column.
//!
//! | Bytes | What |
//! |---|---|
//! | LEB128 | base |
//! | 1 | width in bits, 0..=64 |
//! | 2 | number of patches |
//! | ceil(n × width / 8) | differences, low bits first; those of patches hold 0 |
//! | 2 each | positions of the patches |
//! | 8 each | their differences |
//!
//! All numbers are little-endian. The number of values is the caller's business.

/// Most values in a column: positions are u16.
pub(crate) const MAX_VALUES: usize = 1 << 16;

const PATCH_BITS: u64 = 80;

/// Bytes that ended early or make no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Packs columns of the same items one behind the other.
pub(crate) struct Packer<'i, T> {
    items: &'i [T],
    column: Vec<u64>,
    out: Vec<u8>,
}

impl<'i, T> Packer<'i, T> {
    /// `bytes_each` is how much an item is expected to take.
    pub(crate) fn new(items: &'i [T], bytes_each: usize) -> Self {
        Self {
            items,
            column: Vec::with_capacity(items.len()),
            out: Vec::with_capacity(items.len() * bytes_each),
        }
    }

    /// Appends a column of what `value` takes from each item.
    #[inline]
    pub(crate) fn put(&mut self, value: impl FnMut(&T) -> u64) {
        self.column.clear();
        self.column.extend(self.items.iter().map(value));
        encode(&self.column, &mut self.out);
    }

    /// All columns.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }
}

/// Unpacks what a [`Packer`] has packed.
pub(crate) struct Unpacker<'b> {
    rest: &'b [u8],
    column: &'b mut Vec<u64>,
}

impl<'b> Unpacker<'b> {
    /// `column` is room that is used again.
    pub(crate) fn new(bytes: &'b [u8], column: &'b mut Vec<u64>) -> Self {
        Self { rest: bytes, column }
    }

    /// Takes the next column and gives every item its value.
    #[inline]
    pub(crate) fn take<T>(
        &mut self,
        items: &mut [T],
        mut set: impl FnMut(&mut T, u64),
    ) -> Result<(), Malformed> {
        self.rest = decode(self.rest, items.len(), self.column)?;
        items.iter_mut().zip(self.column.iter()).for_each(|(item, value)| set(item, *value));
        Ok(())
    }
}

/// Appends a column.
pub(crate) fn encode(values: &[u64], out: &mut Vec<u8>) {
    debug_assert!(values.len() <= MAX_VALUES);
    let (base, largest) =
        values.iter().fold((u64::MAX, 0), |(min, max), value| (min.min(*value), max.max(*value)));
    let base = base.min(largest);
    let (width, patches) = best_width(values, base, largest);
    put_leb128(base, out);
    out.push(width as u8);
    out.extend_from_slice(&(patches as u16).to_le_bytes());
    if width > 0 {
        pack(values, base, width, out);
    }
    if patches > 0 {
        let is_patch = |value: &u64| (value - base) >> width != 0;
        let positions = (0..=u16::MAX).zip(values).filter(|(_, value)| is_patch(value));
        positions.clone().for_each(|(at, _)| out.extend_from_slice(&at.to_le_bytes()));
        positions.for_each(|(_, value)| out.extend_from_slice(&(value - base).to_le_bytes()));
    }
}

/// Appends the differences to the base in `width` bits each, and 0 for those that need more.
fn pack(values: &[u64], base: u64, width: u32, out: &mut Vec<u8>) {
    let limit = u64::MAX >> (64 - width);
    let fitting = |value: &u64| {
        let difference = value - base;
        if difference <= limit { difference } else { 0 }
    };
    if width > WORD_WIDTH_MAX {
        let mut bits = BitWriter { out, held: 0, count: 0 };
        values.iter().for_each(|value| bits.put(fitting(value), width));
        return bits.flush();
    }
    // Whole words are written, each where the last full byte of the one before ends, and bytes beyond the end are cut
    // off again: that has no branches.
    let (from, bytes) = (out.len(), (values.len() * width as usize).div_ceil(8));
    out.resize(from + bytes + 8, 0);
    let packed = &mut out[from..];
    let (mut held, mut count, mut at) = (0u64, 0u32, 0usize);
    for value in values {
        held |= fitting(value) << count;
        count += width;
        if let Some(word) = packed[at..].first_chunk_mut() {
            *word = held.to_le_bytes();
        }
        at += (count / 8) as usize;
        held >>= count & !7;
        count &= 7;
    }
    out.truncate(from + bytes);
}

/// Bits of a value that fit a word beside seven bits of the one before, and leave it a bit to be shifted out by.
const WORD_WIDTH_MAX: u32 = 56;

/// The width with the fewest bits in all, and how many values need more.
fn best_width(values: &[u64], base: u64, largest: u64) -> (u32, u64) {
    let bits_of = |value: u64| (64 - (value - base).leading_zeros()) as usize;
    let widest = bits_of(largest);
    if widest == 0 {
        return (0, 0);
    }
    // Values are much alike, and counting one has to wait for the last one of its length: so there are four counters.
    let mut counters = [[0u32; 65]; 4];
    let (fours, rest) = values.as_chunks::<4>();
    for four in fours {
        for (counter, value) in counters.iter_mut().zip(four) {
            counter[bits_of(*value)] += 1;
        }
    }
    rest.iter().for_each(|value| counters[0][bits_of(*value)] += 1);
    let of_length = |bits: usize| counters.iter().map(|counter| u64::from(counter[bits])).sum::<u64>();
    let (mut best, mut best_bits, mut longer) = ((widest as u32, 0), u64::MAX, 0);
    for width in (0..=widest).rev() {
        let bits = values.len() as u64 * width as u64 + longer * PATCH_BITS;
        // Positions of patches are u16, and so is their number.
        if bits <= best_bits && longer <= u64::from(u16::MAX) {
            (best, best_bits) = ((width as u32, longer), bits);
        }
        longer += of_length(width);
    }
    best
}

/// Reads `count` values at the start of `bytes` into `values`, which is cleared before; gives back the rest.
pub(crate) fn decode<'b>(
    bytes: &'b [u8],
    count: usize,
    values: &mut Vec<u64>,
) -> Result<&'b [u8], Malformed> {
    values.clear();
    let (base, bytes) = take_leb128(bytes)?;
    let (&[width, low, high], bytes) = bytes.split_first_chunk::<3>().ok_or(Malformed)?;
    let (width, patches) = (usize::from(width), usize::from(u16::from_le_bytes([low, high])));
    if width > 64 {
        return Err(Malformed);
    }
    let packed_bytes = (count * width).div_ceil(8);
    let (packed, bytes) = bytes.split_at_checked(packed_bytes).ok_or(Malformed)?;
    unpack(packed, width, count, base, values);
    let (positions, bytes) = bytes.split_at_checked(2 * patches).ok_or(Malformed)?;
    let (differences, bytes) = bytes.split_at_checked(8 * patches).ok_or(Malformed)?;
    for (position, difference) in positions.as_chunks::<2>().0.iter().zip(differences.as_chunks::<8>().0) {
        let value = values.get_mut(usize::from(u16::from_le_bytes(*position))).ok_or(Malformed)?;
        *value = base.wrapping_add(u64::from_le_bytes(*difference));
    }
    Ok(bytes)
}

fn unpack(packed: &[u8], width: usize, count: usize, base: u64, values: &mut Vec<u64>) {
    if width == 0 {
        values.resize(count, base);
        return;
    }
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    // One load of eight bytes holds a whole value when it is narrow enough and not at the very end.
    let fast = if width <= 57 { (packed.len().saturating_sub(7) * 8 / width).min(count) } else { 0 };
    values.extend((0..fast).map(|at| {
        let bit = at * width;
        let word = packed[bit / 8..].first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
        base.wrapping_add(word >> (bit % 8) & mask)
    }));
    values.extend((fast..count).map(|at| {
        let bit = at * width;
        let mut raw = [0; 16];
        let tail = &packed[bit / 8..packed.len().min(bit / 8 + 16)];
        raw[..tail.len()].copy_from_slice(tail);
        base.wrapping_add((u128::from_le_bytes(raw) >> (bit % 8)) as u64 & mask)
    }));
}

struct BitWriter<'o> {
    out: &'o mut Vec<u8>,
    held: u64,
    /// Bits held, fewer than 64.
    count: u32,
}

impl BitWriter<'_> {
    /// Appends the low `width` bits; the others are 0.
    #[inline]
    fn put(&mut self, value: u64, width: u32) {
        self.held |= value << self.count;
        let count = self.count + width;
        if count < 64 {
            self.count = count;
            return;
        }
        self.out.extend_from_slice(&self.held.to_le_bytes());
        self.held = if self.count == 0 { 0 } else { value >> (64 - self.count) };
        self.count = count - 64;
    }

    fn flush(self) {
        let bytes = self.count.div_ceil(8) as usize;
        self.out.extend_from_slice(&self.held.to_le_bytes()[..bytes]);
    }
}

/// Appends a number in groups of seven bits.
pub(crate) fn put_leb128(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number written by [`put_leb128`].
pub(crate) fn take_leb128(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        let shift = 7 * at as u32;
        let part = u64::from(byte & 0x7F);
        if shift == 63 && part > 1 {
            return Err(Malformed);
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[at + 1..]));
        }
    }
    Err(Malformed)
}

/// Small numbers of either sign as small unsigned ones.
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers() -> impl Strategy<Value = Vec<u64>> {
        let value = (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift);
        let flat = (any::<u64>(), 0u32..64).prop_map(|(value, shift)| vec![value >> shift; 300]);
        let tight = (any::<u64>(), prop::collection::vec(0u64..17, 0..500))
            .prop_map(|(base, values)| values.iter().map(|value| base.saturating_add(*value)).collect());
        prop_oneof![prop::collection::vec(value, 0..400), flat, tight]
    }

    proptest! {
        #[test]
        fn columns_come_back(values in numbers(), behind in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut bytes = Vec::new();
            encode(&values, &mut bytes);
            bytes.extend_from_slice(&behind);
            let mut decoded = Vec::new();
            prop_assert_eq!(decode(&bytes, values.len(), &mut decoded), Ok(&behind[..]));
            prop_assert_eq!(decoded, values);
        }

        #[test]
        fn cut_columns_are_malformed(values in numbers(), keep in 0.0..1.0f64) {
            let mut bytes = Vec::new();
            encode(&values, &mut bytes);
            let cut = (bytes.len() as f64 * keep) as usize;
            prop_assert_eq!(decode(&bytes[..cut], values.len(), &mut Vec::new()), Err(Malformed));
        }

        #[test]
        fn any_bytes_decode_to_a_verdict(bytes in prop::collection::vec(any::<u8>(), 0..200), count in 0usize..300) {
            let mut values = Vec::new();
            if decode(&bytes, count, &mut values).is_ok() {
                prop_assert_eq!(values.len(), count);
            }
        }

        #[test]
        fn zigzag_comes_back(value in any::<i64>()) {
            prop_assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn an_outlier_does_not_widen_the_column() {
        let mut values = vec![5u64; 4_000];
        values[77] = u64::MAX;
        let mut bytes = Vec::new();
        encode(&values, &mut bytes);
        assert!(bytes.len() < 32, "{} bytes", bytes.len());
    }
}
