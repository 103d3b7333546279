//! Writes nettrace streams, to test the decoder with what no recorded stream holds.

/// A stream under construction; every method appends one object.
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
}

/// An event to be written.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) metadata_id: u32,
    pub(crate) thread: u64,
    pub(crate) sequence: u32,
    pub(crate) timestamp: u64,
    pub(crate) sorted: bool,
    pub(crate) payload: Vec<u8>,
}

impl Writer {
    /// A stream with its Trace object: 1 GHz, 64 bit.
    pub(crate) fn new() -> Self {
        let mut writer = Self::without_trace();
        let mut body = vec![0; 16];
        body.extend(1_000u64.to_le_bytes());
        body.extend(1_000_000_000u64.to_le_bytes());
        for value in [8u32, 4711, 2, 1_000_000] {
            body.extend(value.to_le_bytes());
        }
        writer.object("Trace", 4, 4, &body);
        writer
    }

    pub(crate) fn without_trace() -> Self {
        Self { bytes: [&b"Nettrace"[..], &20u32.to_le_bytes(), b"!FastSerialization.1"].concat() }
    }

    /// An object whose body is given as it is.
    pub(crate) fn object(&mut self, name: &str, version: i32, min_reader: i32, body: &[u8]) {
        self.bytes.extend([5, 5, 1]);
        self.bytes.extend(version.to_le_bytes());
        self.bytes.extend(min_reader.to_le_bytes());
        self.bytes.extend((name.len() as u32).to_le_bytes());
        self.bytes.extend(name.as_bytes());
        self.bytes.push(6);
        self.bytes.extend(body);
        self.bytes.push(6);
    }

    /// An object with a size and alignment before its content.
    pub(crate) fn block(&mut self, name: &str, content: &[u8]) {
        let start = self.bytes.len() + 16 + name.len() + 4;
        let padding = start.wrapping_neg() % 4;
        let body = [&(content.len() as u32).to_le_bytes()[..], &vec![0; padding], content].concat();
        self.object(name, 2, 2, &body);
    }

    /// One metadata record for an event of the runtime provider.
    pub(crate) fn metadata(&mut self, metadata_id: u32, event_id: u32, version: u32) {
        self.long_metadata(metadata_id, event_id, version, 0);
    }

    /// The same with bytes behind it that mean nothing.
    pub(crate) fn long_metadata(&mut self, metadata_id: u32, event_id: u32, version: u32, more_bytes: usize) {
        let text =
            |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let mut payload = metadata_id.to_le_bytes().to_vec();
        payload.extend(text("Microsoft-Windows-DotNETRuntime"));
        payload.extend(event_id.to_le_bytes());
        payload.extend(text(""));
        payload.extend(1u64.to_le_bytes());
        payload.extend([version, 4, 0].map(u32::to_le_bytes).concat());
        payload.resize(payload.len() + more_bytes, 0);
        let blob = Blob { metadata_id: 0, thread: 0, sequence: 0, timestamp: 0, sorted: false, payload };
        let content = [block_header(true, 0, u64::MAX), compressed(&[blob])].concat();
        self.block("MetadataBlock", &content);
    }

    pub(crate) fn events(&mut self, blobs: &[Blob]) {
        let (min, max) = range(blobs);
        let content = [block_header(true, min, max), compressed(blobs)].concat();
        self.block("EventBlock", &content);
    }

    /// The form of event headers that no known runtime sends.
    pub(crate) fn uncompressed_events(&mut self, blobs: &[Blob]) {
        let (min, max) = range(blobs);
        let mut content = block_header(false, min, max);
        let start = self.bytes.len() + 16 + "EventBlock".len() + 4;
        let content_start = start.next_multiple_of(4);
        for blob in blobs {
            content.extend((blob.payload.len() as u32 + 76).to_le_bytes());
            content.extend((blob.metadata_id | u32::from(blob.sorted) << 31).to_le_bytes());
            content.extend(blob.sequence.to_le_bytes());
            content.extend(blob.thread.to_le_bytes());
            content.extend(blob.thread.to_le_bytes());
            content.extend([0; 8]);
            content.extend(blob.timestamp.to_le_bytes());
            content.extend([0; 32]);
            content.extend((blob.payload.len() as u32).to_le_bytes());
            content.extend(&blob.payload);
            content.resize((content_start + content.len()).next_multiple_of(4) - content_start, 0);
        }
        self.block("EventBlock", &content);
    }

    pub(crate) fn sequence_point(&mut self, timestamp: u64, threads: &[(u64, u32)]) {
        let mut content = timestamp.to_le_bytes().to_vec();
        content.extend((threads.len() as u32).to_le_bytes());
        for (thread, sequence) in threads {
            content.extend(thread.to_le_bytes());
            content.extend(sequence.to_le_bytes());
        }
        self.block("SPBlock", &content);
    }

    /// The stream with its end tag.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.bytes.push(1);
        self.bytes
    }
}

fn range(blobs: &[Blob]) -> (u64, u64) {
    let times = || blobs.iter().map(|blob| blob.timestamp);
    (times().min().unwrap_or(0), times().max().unwrap_or(0))
}

pub(crate) fn block_header(is_compressed: bool, min: u64, max: u64) -> Vec<u8> {
    [
        &20u16.to_le_bytes()[..],
        &u16::from(is_compressed).to_le_bytes(),
        &min.to_le_bytes(),
        &max.to_le_bytes(),
    ]
    .concat()
}

/// Blobs whose headers state everything that changes in every one of them.
pub(crate) fn compressed(blobs: &[Blob]) -> Vec<u8> {
    let (mut sequence, mut timestamp) = (0u32, 0u64);
    let mut bytes = Vec::new();
    for blob in blobs {
        bytes.push(1 | 2 | 4 | 128 | u8::from(blob.sorted) << 6);
        varint(&mut bytes, blob.metadata_id.into());
        let own_step = u32::from(blob.metadata_id != 0);
        varint(&mut bytes, blob.sequence.wrapping_sub(sequence).wrapping_sub(own_step).into());
        varint(&mut bytes, blob.thread);
        varint(&mut bytes, 0);
        varint(&mut bytes, blob.thread);
        varint(&mut bytes, blob.timestamp.wrapping_sub(timestamp));
        varint(&mut bytes, blob.payload.len() as u64);
        bytes.extend(&blob.payload);
        (sequence, timestamp) = (blob.sequence, blob.timestamp);
    }
    bytes
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
