//! CRC-32C checksums inside format 12 (format spec, "Checksums").
//!
//! The format itself has none: most bit flips in a block decode to other records without an error. Files written
//! here therefore carry checksums as ordinary records, which other readers of the format show as instants: kind 6
//! with a reserved name and the checksum as its payload. The four names stand in a span name table before the first
//! block ([`ChecksumNames`]).
//!
//! | marker | where | covers |
//! |---|---|---|
//! | tables | first record of the first block | file offset 207 to the first block, routing ids taken as 0xFFFF |
//! | block | first record of every later block | the block before it, header and data, and span name tables up to this block |
//! | header | closing block | the 207 header bytes as finally patched, the five section offsets taken as 0 |
//! | trailer | closing block | everything after the closing block |
//!
//! A **closing block** is the last block of every closed file. It holds exactly three markers: the one that is due at
//! its place (tables or block), header, trailer.
//!
//! **Rules for readers**
//! - The *names* switch the checks on, whatever the dialect marker of the header (`reserved0`) says: a copy of a
//!   reference recording keeps `reserved0 = 0`, since that decides the unit of its GcEnd pauses, and still has
//!   checksums. `reserved0 = 1` demands all four names; with any other value none or all of them. Anything else is a
//!   finding ([`NamesFound::Partial`], or [`NamesFound::None`] with `reserved0 = 1`).
//! - Names count only in span name tables before the first block. A marker is known by its *place*, first record of
//!   its block (three records in the closing block); the same name elsewhere is somebody's ordinary instant.
//! - Nothing follows the closing block that could vouch for it. So that no single bit of it can change unseen, it has
//!   exactly one form: data of one literal run, all markers with the same slot and time. A reader decodes it
//!   ([`ClosingBlock::parse`]), encodes it again and compares the bytes ([`ClosingBlock::encode`]), and checks that
//!   its first marker is the one due at its place.
//! - A closed file with the names and without a sound closing block has lost its end. An unclosed one has none; its
//!   header, its last block and its trailer are unchecked. If the closing block is there but the header was never
//!   patched, the header checksum does not match: closing failed at its last step.
//!
//! What no checksum covers: routing ids (they change at close), and the last block and header of a file that was not
//! closed. The section offsets are checked by the magic they point to.

use crate::block::encode_literal_only;
use crate::header::HEADER_BYTES;
use crate::record::{RECORD_HEADER_BYTES, Record, RecordWalk};
use crate::tables::ROUTING_ID_UNKNOWN;
use crate::trailer::SpanNames;

/// Size of a marker record: common header, i32 name id, i32 payload.
pub const MARKER_BYTES: usize = RECORD_HEADER_BYTES + 8;
/// Kind of the marker records: `Instant`.
pub const MARKER_KIND: u8 = 6;
/// Name of the loss marker, a kind 6 record whose payload is the number of records that the recorder had to drop.
pub const DROPPED_RECORDS_NAME: &str = "typhon.dropped_records";
/// Reserved name of the kind 6 records that report batches which were recorded and did not reach this output; the value
/// counts their records.
pub const DROPPED_BATCHES_NAME: &str = "typhon.dropped_batches";
/// The names that report lost records. Their values add up.
pub const LOSS_NAMES: [&str; 2] = [DROPPED_RECORDS_NAME, DROPPED_BATCHES_NAME];

/// The four checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// Metadata tables and the span names before the first block.
    Tables,
    /// The block before.
    Block,
    /// File header.
    Header,
    /// Trailer sections.
    Trailer,
}

impl Checksum {
    /// All four, in the order of their names in the file.
    pub const ALL: [Self; 4] = [Self::Tables, Self::Block, Self::Header, Self::Trailer];

    /// The reserved name in the span name table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tables => "typhon.crc32c.tables",
            Self::Block => "typhon.crc32c.block",
            Self::Header => "typhon.crc32c.header",
            Self::Trailer => "typhon.crc32c.trailer",
        }
    }
}

/// Is this one of the names by which a file declares its checksums? A copy must not take them over: it has its own.
pub fn is_checksum_name(name: &str) -> bool {
    Checksum::ALL.iter().any(|checksum| checksum.name() == name)
}

/// Span name ids of the four checksum names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChecksumNames {
    ids: [u16; 4],
}

/// Result of looking for the four names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamesFound {
    /// The file has no checksums.
    None,
    /// The file has lost some of its names; its checksums cannot be told from other records.
    Partial,
    /// The file has checksums.
    All(ChecksumNames),
}

impl ChecksumNames {
    /// The ids that new recordings use: the highest, away from ids that count from 0.
    pub const DEFAULT: Self = Self { ids: [65_532, 65_533, 65_534, 65_535] };

    /// The four highest ids that `taken` leaves free; for copies of files that use the default ones. `None` when
    /// fewer than four are free.
    pub fn avoiding(taken: impl IntoIterator<Item = u16>) -> Option<Self> {
        let taken: std::collections::HashSet<u16> = taken.into_iter().collect();
        let mut free = (0..=u16::MAX).rev().filter(|id| !taken.contains(id));
        let mut ids = [0; 4];
        for id in ids.iter_mut().rev() {
            *id = free.next()?;
        }
        Some(Self { ids })
    }

    /// Looks for the names in the span name tables before the first block.
    pub fn find(names: &SpanNames) -> NamesFound {
        let id_of = |checksum: Checksum| {
            let entry = names.entries.iter().rfind(|entry| entry.name == checksum.name())?;
            (names.get(entry.id) == Some(checksum.name())).then_some(entry.id)
        };
        match Checksum::ALL.map(id_of) {
            [None, None, None, None] => NamesFound::None,
            [Some(tables), Some(block), Some(header), Some(trailer)] => {
                NamesFound::All(Self { ids: [tables, block, header, trailer] })
            }
            _ => NamesFound::Partial,
        }
    }

    /// The id of a checksum's name.
    pub fn id(&self, checksum: Checksum) -> u16 {
        self.ids[checksum as usize]
    }

    /// Does one of the names have this id?
    pub fn contains(&self, id: u16) -> bool {
        self.ids.contains(&id)
    }

    /// Adds the four names to a span name table.
    pub fn add_to(&self, names: &mut SpanNames) {
        for checksum in Checksum::ALL {
            names.push(self.id(checksum), checksum.name());
        }
    }

    /// Reads a record as a marker. The caller knows whether one is due at this place.
    pub fn marker(&self, record: &Record<'_>) -> Option<Marker> {
        let (name_id, payload) = instant_parts(record)?;
        let checksum = Checksum::ALL.into_iter().find(|&checksum| i32::from(self.id(checksum)) == name_id)?;
        let (slot, timestamp) = (record.slot(), record.timestamp());
        Some(Marker { checksum, crc: payload as u32, slot, timestamp })
    }

    /// The records of a decompressed block without the markers at its beginning; nothing of a closing block.
    pub fn events<'r>(&self, records: &'r [u8]) -> &'r [u8] {
        match self.leading_marker(records) {
            Some(_) if ClosingBlock::parse(self, records).is_some() => &[],
            Some(_) => &records[MARKER_BYTES..],
            None => records,
        }
    }

    /// The marker that the first record of a decompressed block is, if it is one.
    pub fn leading_marker(&self, records: &[u8]) -> Option<Marker> {
        self.marker(&Record::parse(records).ok()?)
    }
}

/// A checksum as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// What it covers.
    pub checksum: Checksum,
    /// CRC-32C.
    pub crc: u32,
    /// Slot of the thread that wrote the file.
    pub slot: u8,
    /// Time of the first other record of the block; time of the stop in the closing block.
    pub timestamp: i64,
}

impl Marker {
    /// The record.
    pub fn encode(&self, names: &ChecksumNames) -> [u8; MARKER_BYTES] {
        named_instant(self.slot, self.timestamp, names.id(self.checksum), self.crc as i32)
    }
}

/// A kind 6 record.
pub fn named_instant(slot: u8, timestamp: i64, name_id: u16, payload: i32) -> [u8; MARKER_BYTES] {
    let mut record = [0; MARKER_BYTES];
    record[..2].copy_from_slice(&(MARKER_BYTES as u16).to_le_bytes());
    record[2] = MARKER_KIND;
    record[3] = slot;
    record[4..12].copy_from_slice(&timestamp.to_le_bytes());
    record[12..16].copy_from_slice(&i32::from(name_id).to_le_bytes());
    record[16..].copy_from_slice(&payload.to_le_bytes());
    record
}

/// Name id and payload of a kind 6 record of exactly the known length.
fn instant_parts(record: &Record<'_>) -> Option<(i32, i32)> {
    let bytes: &[u8; MARKER_BYTES] = record.bytes().try_into().ok()?;
    let word = |at: usize| i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (record.kind() == MARKER_KIND).then(|| (word(12), word(16)))
}

/// The last block of a closed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosingBlock {
    /// Slot of the thread that wrote the file.
    pub slot: u8,
    /// Time of the stop.
    pub timestamp: i64,
    /// [`Checksum::Block`], or [`Checksum::Tables`] in a file without events.
    pub first: Checksum,
    /// CRC-32C of what `first` covers.
    pub first_crc: u32,
    /// CRC-32C of the header.
    pub header_crc: u32,
    /// CRC-32C of the trailer.
    pub trailer_crc: u32,
}

impl ClosingBlock {
    /// Bytes of the whole block on disk.
    pub const BYTES: usize = 12 + 2 + 3 * MARKER_BYTES;

    /// The block on disk, in its only form.
    pub fn encode(&self, names: &ChecksumNames) -> Vec<u8> {
        let markers = [
            (self.first, self.first_crc),
            (Checksum::Header, self.header_crc),
            (Checksum::Trailer, self.trailer_crc),
        ];
        let records = markers.map(|(checksum, crc)| {
            Marker { checksum, crc, slot: self.slot, timestamp: self.timestamp }.encode(names)
        });
        let block = encode_literal_only(records.as_flattened(), markers.len() as u32);
        debug_assert_eq!(block.len(), Self::BYTES);
        block
    }

    /// Reads decompressed records as a closing block; `None` for anything that is not three fitting markers of one
    /// slot and time. Whether the block's bytes are in the only form is for the caller to compare.
    pub fn parse(names: &ChecksumNames, records: &[u8]) -> Option<Self> {
        let mut walk = RecordWalk::new(records);
        let mut next = || walk.next().and_then(|record| names.marker(&record));
        let (first, header, trailer) = (next()?, next()?, next()?);
        let same = |marker: &Marker| marker.slot == first.slot && marker.timestamp == first.timestamp;
        let fits = records.len() == 3 * MARKER_BYTES
            && matches!(first.checksum, Checksum::Tables | Checksum::Block)
            && (header.checksum, trailer.checksum) == (Checksum::Header, Checksum::Trailer)
            && same(&header)
            && same(&trailer);
        fits.then_some(Self {
            slot: first.slot,
            timestamp: first.timestamp,
            first: first.checksum,
            first_crc: first.crc,
            header_crc: header.crc,
            trailer_crc: trailer.crc,
        })
    }
}

/// A running CRC-32C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Crc32c(u32);

impl Crc32c {
    /// The checksum of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(crc32c::crc32c(bytes))
    }

    /// Continues with further bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    /// The checksum of everything so far.
    pub fn value(self) -> u32 {
        self.0
    }

    /// The beginning of the tables checksum: all bytes of the metadata tables, with every routing id taken as
    /// unknown. To be continued with the span name tables before the first block, magic included.
    pub fn of_tables(raw: &[u8], routing_id_offsets: &[usize]) -> Self {
        let unknown = ROUTING_ID_UNKNOWN.to_le_bytes();
        let mut crc = Self::default();
        let mut done = 0;
        for &offset in routing_id_offsets {
            crc.update(&raw[done..offset]);
            crc.update(&unknown);
            done = offset + unknown.len();
        }
        crc.update(&raw[done..]);
        crc
    }

    /// The header checksum: all bytes of the header, with the section offsets taken as 0.
    pub fn of_header(header: &[u8; HEADER_BYTES]) -> Self {
        const OFFSETS: std::ops::Range<usize> = 47..87;
        let mut masked = *header;
        masked[OFFSETS].fill(0);
        Self::of(&masked)
    }
}
