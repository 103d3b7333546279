//! How single values lie on the wire: little-endian, packed, never aligned.

use std::{fmt, iter::FusedIterator, marker::PhantomData};

/// A value of fixed size inside a record. Implemented for the registry's number types, for the named values of
/// [`super::enums`] and for [`super::Evaluator`]; other crates have no use for implementing it.
pub trait Wire: Copy {
    /// Bytes on the wire.
    const BYTES: usize;

    /// The value at the start of `bytes`; `None` when they end before it does.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// Writes the value to the start of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than [`Wire::BYTES`]; callers pass ranges of exactly that length.
    fn write(self, out: &mut [u8]);
}

macro_rules! wire_numbers {
    ($($ty:ty),*) => {$(
        impl Wire for $ty {
            const BYTES: usize = size_of::<$ty>();

            #[inline(always)]
            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|raw| <$ty>::from_le_bytes(*raw))
            }

            #[inline(always)]
            fn write(self, out: &mut [u8]) {
                out[..Self::BYTES].copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

wire_numbers!(u8, i8, u16, i16, u32, i32, f32, u64, i64, f64);

impl Wire for bool {
    const BYTES: usize = 1;

    /// Any byte but zero is true (brief 01, B-22).
    #[inline(always)]
    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.first().map(|byte| *byte != 0)
    }

    #[inline(always)]
    fn write(self, out: &mut [u8]) {
        out[0] = u8::from(self);
    }
}

/// A list of values of fixed size in the variable part of a record, read on demand.
///
/// When a record announces more entries than it holds, the list has those that fit and [`PackedList::is_cut`] says
/// so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PackedList<'a, T> {
    /// Whole entries only.
    bytes: &'a [u8],
    announced: u16,
    entry: PhantomData<T>,
}

impl<'a, T: Wire> PackedList<'a, T> {
    /// Takes `count` entries from the start of `bytes`, or as many as are there.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], count: u16) -> Self {
        let present = usize::from(count).min(bytes.len() / T::BYTES);
        Self { bytes: &bytes[..present * T::BYTES], announced: count, entry: PhantomData }
    }

    /// All whole entries of `bytes`, none of which is missing.
    pub(crate) fn whole(bytes: &'a [u8]) -> Self {
        Self::new(bytes, u16::try_from(bytes.len() / T::BYTES).unwrap_or(u16::MAX))
    }

    /// Number of entries present.
    pub fn len(&self) -> usize {
        self.bytes.len() / T::BYTES
    }

    /// Are there no entries?
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Does the record end before the number of entries it announces?
    pub fn is_cut(&self) -> bool {
        self.len() < self.announced.into()
    }

    /// Bytes that the announced number of entries takes.
    pub(crate) fn announced_bytes(&self) -> usize {
        usize::from(self.announced) * T::BYTES
    }

    /// The entries as they are on the wire.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The entry at an index.
    pub fn get(&self, index: usize) -> Option<T> {
        T::read(self.bytes.get(index.checked_mul(T::BYTES)?..)?)
    }

    /// The entries in wire order.
    pub fn iter(&self) -> PackedIter<'a, T> {
        PackedIter { rest: self.bytes, entry: PhantomData }
    }
}

impl<'a, T: Wire> IntoIterator for PackedList<'a, T> {
    type Item = T;
    type IntoIter = PackedIter<'a, T>;

    fn into_iter(self) -> PackedIter<'a, T> {
        self.iter()
    }
}

impl<T: Wire + fmt::Debug> fmt::Debug for PackedList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Iterator over a [`PackedList`].
#[derive(Debug, Clone)]
pub struct PackedIter<'a, T> {
    rest: &'a [u8],
    entry: PhantomData<T>,
}

impl<T: Wire> Iterator for PackedIter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let entry = T::read(self.rest)?;
        self.rest = &self.rest[T::BYTES..];
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rest.len() / T::BYTES;
        (left, Some(left))
    }
}

impl<T: Wire> ExactSizeIterator for PackedIter<'_, T> {}
impl<T: Wire> FusedIterator for PackedIter<'_, T> {}
