//! The few protobuf encodings that the Perfetto export needs.

/// A message under construction. Nested messages are written with [`Message::message`].
#[derive(Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

/// Longest length prefix that [`Message::message`] reserves: 4 bytes hold messages below 256 MiB.
const LENGTH_BYTES: usize = 4;

impl Message {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(crate) fn uint(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// int32 and int64: negative values take ten bytes.
    pub(crate) fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value as u64);
    }

    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    pub(crate) fn string(&mut self, field: u32, text: &str) {
        self.tag(field, LENGTH_DELIMITED);
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A nested message: its length is patched in afterwards as a padded varint, which every decoder accepts.
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.tag(field, LENGTH_DELIMITED);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; LENGTH_BYTES]);
        fill(self);
        let length = self.bytes.len() - at - LENGTH_BYTES;
        if length < 0x80 {
            // Nearly all messages are this short; closing the gap costs less than the bytes on disk.
            self.bytes.copy_within(at + LENGTH_BYTES.., at + 1);
            self.bytes.truncate(at + 1 + length);
            self.bytes[at] = length as u8;
            return;
        }
        for (index, byte) in self.bytes[at..at + LENGTH_BYTES].iter_mut().enumerate() {
            let more = if index + 1 < LENGTH_BYTES { 0x80 } else { 0 };
            *byte = (length >> (7 * index) & 0x7f) as u8 | more;
        }
    }

    fn tag(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn known_encodings() {
        let mut message = Message::default();
        message.uint(1, 150);
        message.string(2, "testing");
        message.int(3, -1);
        message.message(4, |inner| inner.uint(1, 150));
        assert_eq!(
            message.bytes(),
            b"\x08\x96\x01\x12\x07testing\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x22\x03\x08\x96\x01"
        );
    }

    #[test]
    fn long_messages_have_a_padded_length() {
        let mut message = Message::default();
        message.message(1, |inner| inner.string(1, &"x".repeat(300)));
        assert_eq!(message.bytes()[..5], [0x0a, 0xaf, 0x82, 0x80, 0x00]);
        assert_eq!(message.bytes().len(), 5 + 303);
    }
}
