//! How the parts of an index are written: fields one after the other, numbers as LEB128.

use crate::index::packed::{Malformed, put_leb128, take_leb128, unzigzag, zigzag};
use std::collections::BTreeMap;

/// Something that can be written and read back.
pub(super) trait Persist: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes a value from the front.
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed>;
}

/// Implements [`Persist`] field by field, in this order.
macro_rules! persist {
    ($($type:path { $($field:ident),* $(,)? })*) => {$(
        impl Persist for $type {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
                Ok(Self { $($field: Persist::take(bytes)?),* })
            }
        }
    )*};
}
pub(super) use persist;

macro_rules! unsigned {
    ($($type:ty),*) => {$(
        impl Persist for $type {
            fn put(&self, out: &mut Vec<u8>) {
                put_leb128(*self as u64, out);
            }
            fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
                let (value, rest) = take_leb128(bytes)?;
                *bytes = rest;
                Self::try_from(value).map_err(|_| Malformed)
            }
        }
    )*};
}
unsigned!(u8, u16, u32, u64, usize);

impl Persist for i64 {
    fn put(&self, out: &mut Vec<u8>) {
        zigzag(*self).put(out);
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        u64::take(bytes).map(unzigzag)
    }
}

impl Persist for i32 {
    fn put(&self, out: &mut Vec<u8>) {
        i64::from(*self).put(out);
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        Self::try_from(i64::take(bytes)?).map_err(|_| Malformed)
    }
}

impl Persist for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        match u8::take(bytes)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

impl Persist for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let length = usize::take(bytes)?;
        let text = bytes.split_off(..length).ok_or(Malformed)?;
        Self::from_utf8(text.to_vec()).map_err(|_| Malformed)
    }
}

impl<T: Persist> Persist for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        if bool::take(bytes)? { T::take(bytes).map(Some) } else { Ok(None) }
    }
}

impl<T: Persist> Persist for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        T::take(bytes).map(Self::new)
    }
}

impl<T: Persist> Persist for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|value| value.put(out));
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let count = usize::take(bytes)?;
        // A count may be anything, but every value takes at least a byte.
        if count > bytes.len() {
            return Err(Malformed);
        }
        let mut values = Self::new();
        for _ in 0..count {
            values.push(T::take(bytes)?);
        }
        Ok(values)
    }
}

impl<T: Persist, const N: usize> Persist for [T; N] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.put(out));
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let values = (0..N).map(|_| T::take(bytes)).collect::<Result<Vec<T>, _>>()?;
        values.try_into().map_err(|_| Malformed)
    }
}

impl<A: Persist, B: Persist> Persist for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        Ok((A::take(bytes)?, B::take(bytes)?))
    }
}

impl<T: Persist> Persist for std::ops::Range<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.start.put(out);
        self.end.put(out);
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(T::take(bytes)?..T::take(bytes)?)
    }
}

impl<K: Persist + Ord, V: Persist> Persist for BTreeMap<K, V> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Vec::<(K, V)>::take(bytes)?.into_iter().collect())
    }
}

/// Writes a value as a number that stands for one of `all`.
pub(super) fn put_one_of<T: PartialEq>(value: &T, all: &[T], out: &mut Vec<u8>) {
    all.iter().position(|one| one == value).unwrap_or(all.len()).put(out);
}

/// Reads what [`put_one_of`] wrote.
pub(super) fn take_one_of<T: Clone>(all: &[T], bytes: &mut &[u8]) -> Result<T, Malformed> {
    all.get(usize::take(bytes)?).cloned().ok_or(Malformed)
}
