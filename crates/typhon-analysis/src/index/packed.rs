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
    patches: Vec<Patch>,
    out: Vec<u8>,
}

/// Place of a value in its column, and its difference to the base.
type Patch = (u16, u64);

impl<'i, T> Packer<'i, T> {
    /// `bytes_each` is how much an item is expected to take.
    pub(crate) fn new(items: &'i [T], bytes_each: usize) -> Self {
        Self {
            items,
            column: Vec::with_capacity(items.len()),
            patches: Vec::new(),
            out: Vec::with_capacity(items.len() * bytes_each),
        }
    }

    /// Appends a column of what `value` takes from each item.
    #[inline]
    pub(crate) fn put(&mut self, mut value: impl FnMut(&T) -> u64) {
        let (mut least, mut largest) = (u64::MAX, 0);
        self.column.clear();
        self.column.extend(self.items.iter().map(|item| {
            let value = value(item);
            (least, largest) = (value.min(least), value.max(largest));
            value
        }));
        encode(&self.column, least, largest, &mut self.patches, &mut self.out);
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
        let (column, rest) = Column::split(self.rest, items.len())?;
        self.rest = rest;
        column.decode(self.column)?;
        items.iter_mut().zip(self.column.iter()).for_each(|(item, value)| set(item, *value));
        Ok(())
    }

    /// Leaves out the next column, of `count` values.
    #[inline]
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        self.rest = Column::split(self.rest, count)?.1;
        Ok(())
    }
}

/// Appends a column. `patches` is room that is used again.
fn encode(values: &[u64], least: u64, largest: u64, patches: &mut Vec<Patch>, out: &mut Vec<u8>) {
    debug_assert!(values.len() <= MAX_VALUES);
    let base = least.min(largest);
    let widest = bits_of(largest - base);
    put_leb128(base, out);
    if widest == 0 {
        return out.extend_from_slice(&[0, 0, 0]);
    }
    let head = out.len();
    let mut width = likely_width(values, base, widest);
    loop {
        out.extend_from_slice(&[width as u8, 0, 0]);
        patches.clear();
        pack(values, base, width, patches, out);
        let saved_bits = values.len() as u64 * u64::from(widest - width);
        let fits = patches.len() <= usize::from(u16::MAX) && patches.len() as u64 * PATCH_BITS <= saved_bits;
        if fits {
            break;
        }
        // The sample did not show how many values are long.
        out.truncate(head);
        width = widest;
    }
    out[head + 1..head + 3].copy_from_slice(&(patches.len() as u16).to_le_bytes());
    patches.iter().for_each(|(at, _)| out.extend_from_slice(&at.to_le_bytes()));
    patches.iter().for_each(|(_, difference)| out.extend_from_slice(&difference.to_le_bytes()));
}

#[inline]
fn bits_of(difference: u64) -> u32 {
    64 - difference.leading_zeros()
}

/// Bits of a value up to which eight of them are packed at a time.
const EIGHTS_WIDTH_MAX: u32 = 31;

/// Appends the differences to the base in `width` bits each, and 0 for those that need more, which become patches.
fn pack(values: &[u64], base: u64, width: u32, patches: &mut Vec<Patch>, out: &mut Vec<u8>) {
    let limit = u64::MAX.checked_shr(64 - width).unwrap_or(0);
    let (eights, rest) = values.as_chunks::<8>();
    let mut last = [base; 8];
    last[..rest.len()].copy_from_slice(rest);
    let from = out.len();
    let bytes = (values.len() * width as usize).div_ceil(8);
    if width <= EIGHTS_WIDTH_MAX {
        // Whole words are written, and those that follow write over what is too much.
        out.resize(from + (eights.len() + 1) * width as usize + 2 * size_of::<u128>(), 0);
    }
    let mut bits = BitWriter { held: 0, count: 0 };
    for (turn, eight) in eights.iter().chain((!rest.is_empty()).then_some(&last)).enumerate() {
        let mut differences = eight.map(|value| value - base);
        if differences.iter().fold(0, |all, one| all | one) > limit {
            for (difference, at) in differences.iter_mut().zip(8 * turn..) {
                if *difference > limit {
                    patches.push((at as u16, *difference));
                    *difference = 0;
                }
            }
        }
        if width > EIGHTS_WIDTH_MAX {
            differences.iter().for_each(|difference| bits.put(*difference, width, out));
        } else if width > 0 {
            pack_eight(&differences, width, &mut out[from + turn * width as usize..]);
        }
    }
    bits.flush(out);
    out.truncate(from + bytes);
}

/// Eight values fill whole bytes, so that no group has to wait for the one before.
#[inline]
fn pack_eight(eight: &[u64; 8], width: u32, packed: &mut [u8]) {
    let four = |[a, b, c, d]: [u64; 4]| {
        let (low, high) = (a | b << width, c | d << width);
        u128::from(low | high << (2 * width)) | u128::from(high >> (64 - 2 * width)) << 64
    };
    let [a, b, c, d, e, f, g, h] = *eight;
    let (low, high) = (four([a, b, c, d]), four([e, f, g, h]));
    // Four values of an odd width end in the middle of a byte.
    let (at, shift) = (width as usize / 2, 4 * (width % 2));
    if let Some(word) = packed.first_chunk_mut() {
        *word = low.to_le_bytes();
    }
    if let Some(word) = packed[at..].first_chunk_mut() {
        *word = (high << shift | low >> (4 * width - shift)).to_le_bytes();
    }
}

/// Of every so many values of a column, the first are looked at: one after the other, since ticks repeat themselves.
const SAMPLE_EVERY: usize = 128;
const SAMPLE_VALUES: usize = 16;

/// The width with the fewest bits in all, as a sample shows it.
fn likely_width(values: &[u64], base: u64, widest: u32) -> u32 {
    let mut of_length = [0u32; 65];
    let mut count = 0;
    for part in values.chunks(SAMPLE_EVERY) {
        let seen = &part[..part.len().min(SAMPLE_VALUES)];
        seen.iter().for_each(|value| of_length[bits_of(value - base) as usize] += 1);
        count += seen.len() as u64;
    }
    let (mut best, mut best_bits, mut longer) = (widest, u64::MAX, 0);
    for width in (0..=widest).rev() {
        let bits = count * u64::from(width) + longer * PATCH_BITS;
        if bits <= best_bits {
            (best, best_bits) = (width, bits);
        }
        longer += u64::from(of_length[width as usize]);
    }
    best
}

/// A packed column and the parts of it.
struct Column<'b> {
    count: usize,
    base: u64,
    /// 0..=64
    width: usize,
    packed: &'b [u8],
    patches: (&'b [[u8; 2]], &'b [[u8; 8]]),
}

impl<'b> Column<'b> {
    /// The column of `count` values at the start of `bytes`, and what follows it.
    fn split(bytes: &'b [u8], count: usize) -> Result<(Self, &'b [u8]), Malformed> {
        let (base, bytes) = take_leb128(bytes)?;
        let (&[width, low, high], bytes) = bytes.split_first_chunk::<3>().ok_or(Malformed)?;
        let (width, patches) = (usize::from(width), usize::from(u16::from_le_bytes([low, high])));
        if width > 64 {
            return Err(Malformed);
        }
        let packed_bytes = (count * width).div_ceil(8);
        let (packed, bytes) = bytes.split_at_checked(packed_bytes).ok_or(Malformed)?;
        let (positions, bytes) = bytes.split_at_checked(2 * patches).ok_or(Malformed)?;
        let (differences, bytes) = bytes.split_at_checked(8 * patches).ok_or(Malformed)?;
        let patches = (positions.as_chunks().0, differences.as_chunks().0);
        Ok((Self { count, base, width, packed, patches }, bytes))
    }

    /// Reads the values into `values`, which is cleared before.
    fn decode(&self, values: &mut Vec<u64>) -> Result<(), Malformed> {
        values.clear();
        unpack(self.packed, self.width, self.count, self.base, values);
        for (position, difference) in self.patches.0.iter().zip(self.patches.1) {
            let value = values.get_mut(usize::from(u16::from_le_bytes(*position))).ok_or(Malformed)?;
            *value = self.base.wrapping_add(u64::from_le_bytes(*difference));
        }
        Ok(())
    }
}

fn unpack(packed: &[u8], width: usize, count: usize, base: u64, values: &mut Vec<u64>) {
    if width == 0 {
        values.resize(count, base);
        return;
    }
    let mask = u64::MAX >> (64 - width);
    let mut eights = 0;
    if width <= EIGHTS_WIDTH_MAX as usize {
        // Where whole words can be read, eight values at a time.
        eights = packed.len().checked_sub(width + 2 * size_of::<u128>()).map_or(0, |room| 1 + room / width);
        eights = eights.min(count / 8);
        for group in 0..eights {
            values.extend_from_slice(&unpack_eight(&packed[group * width..], width as u32, mask, base));
        }
    }
    values.extend((8 * eights..count).map(|at| {
        let bit = at * width;
        let mut raw = [0; 16];
        let tail = &packed[bit / 8..packed.len().min(bit / 8 + 16)];
        raw[..tail.len()].copy_from_slice(tail);
        base.wrapping_add((u128::from_le_bytes(raw) >> (bit % 8)) as u64 & mask)
    }));
}

/// The inverse of [`pack_eight`], with the base added.
#[inline]
fn unpack_eight(packed: &[u8], width: u32, mask: u64, base: u64) -> [u64; 8] {
    let word = |at: usize| packed[at..].first_chunk().map_or(0, |raw| u128::from_le_bytes(*raw));
    let (at, shift) = (width as usize / 2, 4 * (width % 2));
    let (low, high) = (word(0), word(at) >> shift);
    let pairs = [low as u64, (low >> (2 * width)) as u64, high as u64, (high >> (2 * width)) as u64];
    let [[a, b], [c, d], [e, f], [g, h]] = pairs.map(|pair| [pair, pair >> width]);
    [a, b, c, d, e, f, g, h].map(|value| base.wrapping_add(value & mask))
}

struct BitWriter {
    held: u64,
    /// Bits held, fewer than 64.
    count: u32,
}

impl BitWriter {
    /// Appends the low `width` bits; the others are 0.
    #[inline]
    fn put(&mut self, value: u64, width: u32, out: &mut Vec<u8>) {
        self.held |= value << self.count;
        let count = self.count + width;
        if count < 64 {
            self.count = count;
            return;
        }
        out.extend_from_slice(&self.held.to_le_bytes());
        self.held = if self.count == 0 { 0 } else { value >> (64 - self.count) };
        self.count = count - 64;
    }

    fn flush(self, out: &mut Vec<u8>) {
        let bytes = self.count.div_ceil(8) as usize;
        out.extend_from_slice(&self.held.to_le_bytes()[..bytes]);
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

    fn encode_all(values: &[u64], out: &mut Vec<u8>) {
        let (least, largest) = (values.iter().copied().min(), values.iter().copied().max());
        encode(values, least.unwrap_or(u64::MAX), largest.unwrap_or(0), &mut Vec::new(), out);
    }

    fn decode<'b>(bytes: &'b [u8], count: usize, values: &mut Vec<u64>) -> Result<&'b [u8], Malformed> {
        let (column, rest) = Column::split(bytes, count)?;
        column.decode(values)?;
        Ok(rest)
    }

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
            encode_all(&values, &mut bytes);
            bytes.extend_from_slice(&behind);
            let mut decoded = Vec::new();
            prop_assert_eq!(decode(&bytes, values.len(), &mut decoded), Ok(&behind[..]));
            prop_assert_eq!(decoded, values);
        }

        #[test]
        fn cut_columns_are_malformed(values in numbers(), keep in 0.0..1.0f64) {
            let mut bytes = Vec::new();
            encode_all(&values, &mut bytes);
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
    fn a_column_that_is_left_out_hides_none_behind_it() {
        let items: Vec<u64> = (0..1_000).map(|at| if at == 77 { u64::MAX } else { at }).collect();
        let mut packer = Packer::new(&items, 8);
        packer.put(|item| *item);
        packer.put(|item| item ^ 5);
        let (bytes, mut column) = (packer.finish(), Vec::new());
        let (mut unpacker, mut found) = (Unpacker::new(&bytes, &mut column), vec![0; items.len()]);
        unpacker.skip(items.len()).expect("a column");
        unpacker.take(&mut found, |item, value| *item = value ^ 5).expect("another");
        assert_eq!(found, items);
        assert_eq!(unpacker.skip(items.len()), Err(Malformed));
    }

    #[test]
    fn an_outlier_does_not_widen_the_column() {
        let mut values = vec![5u64; 4_000];
        values[77] = u64::MAX;
        let mut bytes = Vec::new();
        encode_all(&values, &mut bytes);
        assert!(bytes.len() < 32, "{} bytes", bytes.len());
    }

    #[test]
    fn values_that_no_sample_shows_cost_no_more_than_plain_packing() {
        let is_seen = |at: usize| at % SAMPLE_EVERY < SAMPLE_VALUES;
        let values: Vec<u64> = (0..MAX_VALUES).map(|at| if is_seen(at) { 1 } else { 1 << 20 }).collect();
        let mut bytes = Vec::new();
        encode_all(&values, &mut bytes);
        assert!(bytes.len() <= MAX_VALUES * 21 / 8 + 16, "{} bytes", bytes.len());
        let mut decoded = Vec::new();
        assert_eq!(decode(&bytes, values.len(), &mut decoded), Ok(&[][..]));
        assert_eq!(decoded, values);
    }
}
