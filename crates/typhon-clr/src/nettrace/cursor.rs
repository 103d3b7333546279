use super::{NettraceError, NettraceFault};

/// Bounds-checked little-endian reading; every error knows its place in the stream.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Stream offset of `bytes[0]`.
    base: u64,
    /// Names the structure in [`NettraceFault::TooShort`].
    what: &'static str,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], base: u64, what: &'static str) -> Self {
        Self { bytes, position: 0, base, what }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    pub(crate) fn fault(&self, fault: NettraceFault) -> NettraceError {
        NettraceError { offset: self.base + self.position as u64, fault }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], NettraceError> {
        match self.bytes[self.position..].get(..count) {
            Some(taken) => {
                self.position += count;
                Ok(taken)
            }
            None => Err(self.fault(NettraceFault::TooShort(self.what))),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], NettraceError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, NettraceError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, NettraceError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, NettraceError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn i32(&mut self) -> Result<i32, NettraceError> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, NettraceError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn id128(&mut self) -> Result<[u8; 16], NettraceError> {
        self.array()
    }

    /// A count or length: an `i32` within `0..=limit`.
    pub(crate) fn length(&mut self, what: &'static str, limit: usize) -> Result<usize, NettraceError> {
        let place = self.clone();
        let value = self.i32()?;
        match usize::try_from(value) {
            Ok(length) if length <= limit => Ok(length),
            _ => Err(place.fault(NettraceFault::LimitExceeded {
                what,
                value: i64::from(value),
                limit: limit as i64,
            })),
        }
    }

    pub(crate) fn varint32(&mut self) -> Result<u32, NettraceError> {
        let place = self.position;
        let value = self.varint(5)?;
        u32::try_from(value).map_err(|_| {
            self.position = place;
            self.fault(NettraceFault::VarintTooLong)
        })
    }

    pub(crate) fn varint64(&mut self) -> Result<u64, NettraceError> {
        self.varint(10)
    }

    /// Seven bits a byte, low ones first; the top bit says that another byte follows.
    fn varint(&mut self, max_bytes: u32) -> Result<u64, NettraceError> {
        let mut value = 0u64;
        for index in 0..max_bytes {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * index);
            if shifted >> (7 * index) != bits {
                break;
            }
            value |= shifted;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.fault(NettraceFault::VarintTooLong))
    }

    /// UTF-16 text without its terminating zero; unpaired surrogates become U+FFFD.
    pub(crate) fn utf16z(&mut self) -> Result<String, NettraceError> {
        let units = self.utf16z_bytes()?.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        Ok(char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect())
    }

    /// The bytes of zero-terminated UTF-16 text, without the terminator.
    pub(crate) fn utf16z_bytes(&mut self) -> Result<&'a [u8], NettraceError> {
        let rest = &self.bytes[self.position..];
        let Some(units) = rest.chunks_exact(2).position(|unit| unit == [0, 0]) else {
            return Err(self.fault(NettraceFault::TooShort(self.what)));
        };
        self.position += 2 * (units + 1);
        Ok(&rest[..2 * units])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    proptest! {
        #[test]
        fn varints_read_back(value: u64) {
            let bytes = encode(value);
            let mut cursor = Cursor::new(&bytes, 0, "test");
            prop_assert_eq!(cursor.varint64(), Ok(value));
            prop_assert_eq!(cursor.remaining(), 0);
            let narrow = Cursor::new(&bytes, 0, "test").varint32();
            prop_assert_eq!(narrow.ok(), u32::try_from(value).ok());
        }
    }

    #[test]
    fn varints_with_too_many_bytes_or_bits_are_refused() {
        let too_long = NettraceFault::VarintTooLong;
        assert_eq!(Cursor::new(&[0x80; 5], 0, "test").varint32().unwrap_err().fault, too_long);
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x10], 7, "test").varint32().unwrap_err().offset, 7);
        let mut wide = [0xff; 10];
        wide[9] = 0x02;
        assert_eq!(Cursor::new(&wide, 0, "test").varint64().unwrap_err().fault, too_long);
    }

    #[test]
    fn text_without_its_terminator_is_an_error_at_its_start() {
        let mut cursor = Cursor::new(&[0, 0, b'a', 0, b'b', 0, b'c'], 100, "name");
        assert_eq!(cursor.utf16z().unwrap(), "");
        let error = cursor.utf16z().unwrap_err();
        assert_eq!((error.offset, error.fault), (102, NettraceFault::TooShort("name")));
    }
}
