//! Little-endian field codecs shared by the header, the metadata tables and the trailer sections.
//!
//! [`wire_struct!`] lists the fields of a structure once, in wire order, and derives both directions from the list.

use std::io::{self, Read};

use crate::TraceError;

/// Why a structure could not be read to its end.
#[derive(Debug)]
pub(crate) enum WireFault {
    /// The input ends inside the structure.
    End,
    /// The structure is larger, or holds more texts, than the limit set for it.
    TooLong,
    /// The source failed.
    Io(io::Error),
}

/// Reads fields from a byte source, counts what it consumed and, on request, keeps a copy of it.
pub(crate) struct WireReader<R> {
    source: R,
    position: u64,
    limit: u64,
    texts_left: u64,
    kept: Option<Vec<u8>>,
    replaced_texts: u64,
}

impl<R: Read> WireReader<R> {
    /// Reads at most `limit` bytes.
    pub(crate) fn new(source: R, limit: u64) -> Self {
        Self { source, position: 0, limit, texts_left: u64::MAX, kept: None, replaced_texts: 0 }
    }

    /// Reads at most `text_limit` texts too, and keeps every byte read, for a checksum over them.
    pub(crate) fn keeping(source: R, limit: u64, text_limit: u64) -> Self {
        Self { texts_left: text_limit, kept: Some(Vec::new()), ..Self::new(source, limit) }
    }

    /// Bytes consumed so far.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Texts in which invalid UTF-8 was replaced.
    pub(crate) fn replaced_texts(&self) -> u64 {
        self.replaced_texts
    }

    /// The copy of the bytes consumed; empty unless asked for.
    pub(crate) fn into_kept(self) -> Vec<u8> {
        self.kept.unwrap_or_default()
    }

    fn fill(&mut self, target: &mut [u8]) -> Result<(), WireFault> {
        if self.position + target.len() as u64 > self.limit {
            return Err(WireFault::TooLong);
        }
        let mut filled = 0;
        let result = loop {
            if filled == target.len() {
                break Ok(());
            }
            match self.source.read(&mut target[filled..]) {
                Ok(0) => break Err(WireFault::End),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(WireFault::Io(error)),
            }
        };
        self.position += filled as u64;
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&target[..filled]);
        }
        result
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireFault> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads `len` bytes; the length comes from a u8 or u16, so that it needs no further bound.
    pub(crate) fn short_bytes(&mut self, len: u16) -> Result<Vec<u8>, WireFault> {
        let mut bytes = vec![0; usize::from(len)];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn text(&mut self, len: u16) -> Result<String, WireFault> {
        self.texts_left = self.texts_left.checked_sub(1).ok_or(WireFault::TooLong)?;
        let bytes = self.short_bytes(len)?;
        let (text, replaced) = lossy_text(bytes);
        self.replaced_texts += u64::from(replaced);
        Ok(text)
    }
}

/// Decodes UTF-8; tells whether something had to be replaced by U+FFFD.
pub(crate) fn lossy_text(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    }
}

/// Collects encoded fields and counts what did not fit into the format.
#[derive(Debug, Default)]
pub(crate) struct WireWriter {
    pub(crate) out: Vec<u8>,
    /// Texts written so far.
    pub(crate) texts: u64,
    /// Texts and short lists of which only the beginning was written.
    pub(crate) cut_values: u64,
}

impl WireWriter {
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A text with a u16 length; a longer one is cut.
    pub(crate) fn long_text(&mut self, text: &str) {
        let cut = self.fitting(text, usize::from(u16::MAX));
        self.put(&(cut.len() as u16).to_le_bytes());
        self.put(cut.as_bytes());
    }

    /// The part of `text` that fits into `max_bytes`, cut between characters; counts a text that had to be cut.
    fn fitting<'t>(&mut self, text: &'t str, max_bytes: usize) -> &'t str {
        let cut = &text[..text.floor_char_boundary(max_bytes)];
        self.texts += 1;
        self.cut_values += u64::from(cut.len() < text.len());
        cut
    }
}

/// A value with one fixed wire form.
pub(crate) trait Wire: Sized {
    fn read<R: Read>(reader: &mut WireReader<R>) -> Result<Self, WireFault>;
    fn write(&self, writer: &mut WireWriter) -> Result<(), TraceError>;
}

macro_rules! wire_number {
    ($($ty:ty),*) => {$(
        impl Wire for $ty {
            fn read<R: Read>(reader: &mut WireReader<R>) -> Result<Self, WireFault> {
                Ok(Self::from_le_bytes(reader.array()?))
            }

            fn write(&self, writer: &mut WireWriter) -> Result<(), TraceError> {
                writer.put(&self.to_le_bytes());
                Ok(())
            }
        }
    )*};
}

wire_number!(u8, u16, u32, u64, i32, i64, f32);

/// u8; any value but 0 is true.
impl Wire for bool {
    fn read<R: Read>(reader: &mut WireReader<R>) -> Result<Self, WireFault> {
        Ok(u8::read(reader)? != 0)
    }

    fn write(&self, writer: &mut WireWriter) -> Result<(), TraceError> {
        u8::from(*self).write(writer)
    }
}

/// u8 length and UTF-8; longer texts are cut at a character boundary.
impl Wire for String {
    fn read<R: Read>(reader: &mut WireReader<R>) -> Result<Self, WireFault> {
        let len = u8::read(reader)?;
        reader.text(u16::from(len))
    }

    fn write(&self, writer: &mut WireWriter) -> Result<(), TraceError> {
        let cut = writer.fitting(self, usize::from(u8::MAX));
        writer.put(&[cut.len() as u8]);
        writer.put(cut.as_bytes());
        Ok(())
    }
}

/// Refuses what the format, or a reader, cannot hold.
pub(crate) fn check_limit(what: &str, value: u64, limit: u64) -> Result<(), TraceError> {
    if value <= limit { Ok(()) } else { Err(TraceError::Limit { what: what.to_owned(), value, limit }) }
}

/// The u16 count of a list.
pub(crate) fn count_u16(len: usize) -> Result<u16, TraceError> {
    check_limit("number of entries of a table or list", len as u64, u64::from(u16::MAX))?;
    Ok(len as u16)
}

/// u16 count and that many entries. Nothing is allocated ahead of the bytes that are really there.
impl<T: Wire> Wire for Vec<T> {
    fn read<R: Read>(reader: &mut WireReader<R>) -> Result<Self, WireFault> {
        let count = u16::read(reader)?;
        (0..count).map(|_| T::read(reader)).collect()
    }

    fn write(&self, writer: &mut WireWriter) -> Result<(), TraceError> {
        count_u16(self.len())?.write(writer)?;
        self.iter().try_for_each(|entry| entry.write(writer))
    }
}

/// A presence byte, then the value.
impl<T: Wire> Wire for Option<T> {
    fn read<R: Read>(reader: &mut WireReader<R>) -> Result<Self, WireFault> {
        if bool::read(reader)? { T::read(reader).map(Some) } else { Ok(None) }
    }

    fn write(&self, writer: &mut WireWriter) -> Result<(), TraceError> {
        self.is_some().write(writer)?;
        self.as_ref().map_or(Ok(()), |value| value.write(writer))
    }
}

/// A text with a u16 length.
pub(crate) mod long_text {
    use super::*;

    pub(crate) fn read<R: Read>(reader: &mut WireReader<R>) -> Result<String, WireFault> {
        let len = u16::read(reader)?;
        reader.text(len)
    }

    pub(crate) fn write(text: &str, writer: &mut WireWriter) -> Result<(), TraceError> {
        writer.long_text(text);
        Ok(())
    }
}

/// A list with a u8 count. Only the first 255 entries of a longer list are written: a wrapped count would make
/// everything after it unreadable.
pub(crate) mod short_list {
    use super::*;

    pub(crate) fn read<R: Read, T: Wire>(reader: &mut WireReader<R>) -> Result<Vec<T>, WireFault> {
        let count = u8::read(reader)?;
        (0..count).map(|_| T::read(reader)).collect()
    }

    pub(crate) fn write<T: Wire>(list: &[T], writer: &mut WireWriter) -> Result<(), TraceError> {
        let count = list.len().min(usize::from(u8::MAX));
        writer.cut_values += u64::from(count < list.len());
        writer.put(&[count as u8]);
        list[..count].iter().try_for_each(|entry| entry.write(writer))
    }
}

/// A list with a u32 (or non-negative i32) count; entries are read while there are bytes for them.
pub(crate) mod long_list {
    use super::*;

    pub(crate) fn read<R: Read, T: Wire>(reader: &mut WireReader<R>) -> Result<Vec<T>, WireFault> {
        let count = u32::read(reader)?;
        (0..count).map(|_| T::read(reader)).collect()
    }

    pub(crate) fn write<T: Wire>(list: &[T], writer: &mut WireWriter) -> Result<(), TraceError> {
        check_limit("number of entries of a table", list.len() as u64, i32::MAX as u64)?;
        (list.len() as u32).write(writer)?;
        list.iter().try_for_each(|entry| entry.write(writer))
    }
}

/// Declares a structure by its fields in wire order and derives reading and writing from the list. `=> module`
/// names the codec of a field whose wire form is not the usual one of its type.
macro_rules! wire_struct {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $ty:ty $(=> $codec:ident)?,)* }
    ) => {
        $(#[$meta])*
        #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "camelCase"))]
        pub struct $name { $($(#[$field_meta])* pub $field: $ty,)* }

        impl $crate::wire::Wire for $name {
            fn read<R: std::io::Read>(
                reader: &mut $crate::wire::WireReader<R>,
            ) -> Result<Self, $crate::wire::WireFault> {
                Ok(Self { $($field: wire_struct!(@read reader, $ty $(, $codec)?),)* })
            }

            fn write(&self, writer: &mut $crate::wire::WireWriter) -> Result<(), $crate::TraceError> {
                $(wire_struct!(@write writer, self.$field, $ty $(, $codec)?);)*
                Ok(())
            }
        }
    };
    (@read $reader:ident, $ty:ty) => { <$ty as $crate::wire::Wire>::read($reader)? };
    (@read $reader:ident, $ty:ty, $codec:ident) => { $crate::wire::$codec::read($reader)? };
    (@write $writer:ident, $value:expr, $ty:ty) => { <$ty as $crate::wire::Wire>::write(&$value, $writer)? };
    (@write $writer:ident, $value:expr, $ty:ty, $codec:ident) => {
        $crate::wire::$codec::write(&$value, $writer)?
    };
}

pub(crate) use wire_struct;

/// The database name of the file header: 64 bytes, zero padded, not necessarily terminated.
pub(crate) mod header_name {
    use super::*;

    const BYTES: usize = crate::header::MAX_DATABASE_NAME_BYTES;

    pub(crate) fn read<R: Read>(reader: &mut WireReader<R>) -> Result<String, WireFault> {
        let padded: [u8; BYTES] = reader.array()?;
        let len = padded.iter().position(|&byte| byte == 0).unwrap_or(BYTES);
        Ok(lossy_text(padded[..len].to_vec()).0)
    }

    pub(crate) fn write(name: &str, writer: &mut WireWriter) -> Result<(), TraceError> {
        let cut = writer.fitting(name, BYTES);
        let mut padded = [0; BYTES];
        padded[..cut.len()].copy_from_slice(cut.as_bytes());
        writer.put(&padded);
        Ok(())
    }
}
