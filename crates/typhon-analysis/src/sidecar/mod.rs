//! The index of a trace, kept in a file beside it, so that opening it again takes no time (brief 11 §3.1).
//!
//! | Bytes | What |
//! |---|---|
//! | 4 | `TYIX` |
//! | 2 | format, 2 |
//! | 2 | number of sections |
//! | 8 | hash of the event registry |
//! | 8 | length of the trace |
//! | 32 | BLAKE3 of its first and its last 64 KiB |
//! | 8 | offset of the section table |
//! | 4 | CRC-32C of everything above and of the section table |
//! | … | pieces of the index, each with a CRC-32C in the section that refers to it |
//! | … | sections |
//! | 24 each | section table: id u16, 0 u16, CRC-32C u32, offset u64, length u64 |
//!
//! Everything is little-endian. The file is derived, never authoritative: whatever is wrong with it, it is built anew.
//! It is written under a temporary name, synced and renamed.
//!
//! **Invariant:** no bytes of a sidecar make a session panic, take unbounded memory, or give an answer about another
//! trace.

pub(crate) mod cache;
mod fingerprint;
mod parts;
mod persist;
pub(crate) mod unfinished;

pub(crate) use fingerprint::Fingerprint;

use crate::beside::open_regular;
use crate::clock::Clock;
use crate::index::packed::Malformed;
use crate::index::store::{Store, crc_matches, damaged};
use crate::index::ticks::TickTable;
use crate::index::time::TimeBase;
use crate::index::{Index, Names};
use parts::Parts;
use persist::Persist;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use typhon_trace::registry::REGISTRY_JSON;

const MAGIC: [u8; 4] = *b"TYIX";
const FORMAT: u16 = 2;
/// Bytes of the header; the pieces begin behind it.
pub(crate) const HEADER_BYTES: usize = 68;
const TABLE_ENTRY_BYTES: usize = 24;
/// Sections of a file, at most: room for later ones.
const SECTIONS_MAX: usize = 64;

const LANES: u16 = 1;
const NAMES: u16 = 2;
const TICKS: u16 = 3;
const BLOCKS: u16 = 4;
const EVENTS: u16 = 5;
const NOTICES: u16 = 6;

/// The sidecar beside a trace: its name with the ending `.typhon-index`.
pub(crate) fn path_beside(trace: &Path) -> PathBuf {
    trace.with_extension("typhon-index")
}

/// The sidecar of a trace in a cache directory, which depends on its contents only.
pub(crate) fn path_in_cache(cache: &Path, fingerprint: &Fingerprint) -> PathBuf {
    cache.join(format!("{}.typhon-index", fingerprint.name()))
}

fn registry_hash() -> u64 {
    let hash = blake3::hash(REGISTRY_JSON.as_bytes());
    hash.as_bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// Completes a sidecar whose pieces have been written from [`HEADER_BYTES`] to `pieces_end`, and syncs it.
///
/// # Errors
/// What the system says.
pub(crate) fn complete(
    file: &mut File,
    pieces_end: u64,
    index: &Index,
    fingerprint: &Fingerprint,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(pieces_end))?;
    let mut out = io::BufWriter::new(&mut *file);
    let (mut table, mut offset) = (Vec::new(), pieces_end);
    let sections = sections(index);
    for (id, bytes) in &sections {
        out.write_all(bytes)?;
        table.extend_from_slice(&id.to_le_bytes());
        table.extend_from_slice(&[0; 2]);
        table.extend_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
        table.extend_from_slice(&offset.to_le_bytes());
        table.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        offset += bytes.len() as u64;
    }
    out.write_all(&table)?;
    out.flush()?;
    drop(out);
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&FORMAT.to_le_bytes());
    header.extend_from_slice(&(sections.len() as u16).to_le_bytes());
    header.extend_from_slice(&registry_hash().to_le_bytes());
    header.extend_from_slice(&fingerprint.to_bytes());
    header.extend_from_slice(&offset.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&header), &table);
    header.extend_from_slice(&crc.to_le_bytes());
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header)?;
    file.sync_all()
}

fn sections(index: &Index) -> Vec<(u16, Vec<u8>)> {
    let section = |id: u16, put: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        put(&mut bytes);
        (id, bytes)
    };
    vec![
        section(LANES, &|out| index.lanes.put(out)),
        section(NAMES, &|out| {
            index.names.dynamic().to_vec().put(out);
            index.names.is_full().put(out);
            index.span_names.put(out);
        }),
        section(TICKS, &|out| {
            index.survey.put(out);
            index.tick_ends.put(out);
        }),
        section(BLOCKS, &|out| index.blocks.put(out)),
        section(EVENTS, &|out| {
            index.kinds.put(out);
            index.gc.put(out);
            index.totals.put(out);
            index.stacks.put(out);
        }),
        section(NOTICES, &|out| {
            index.losses.put(out);
            index.capped.put(out);
            index.notices.put(out);
        }),
    ]
}

/// Reads a sidecar. `None` when it is for another trace, from another version, or damaged.
///
/// # Errors
/// When the file cannot be opened or read.
pub(crate) fn load(path: &Path, fingerprint: &Fingerprint, clock: Clock) -> io::Result<Option<Index>> {
    let file = open_regular(path)?;
    match read(file, fingerprint, clock) {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// Reads a sidecar that is open already.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] when it is for another trace, from another version, or damaged; when it cannot be read.
pub(crate) fn read(mut file: File, fingerprint: &Fingerprint, clock: Clock) -> io::Result<Index> {
    let length = file.metadata()?.len();
    let mut header = [0; HEADER_BYTES];
    // A handle that others have used may stand anywhere.
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut header)?;
    let (stated, crc) = header.split_at(HEADER_BYTES - 4);
    let u16_at = |at: usize| u16::from_le_bytes([stated[at], stated[at + 1]]);
    let u64_at = |at: usize| stated[at..].first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
    let sections = usize::from(u16_at(6));
    let is_ours = stated[..4] == MAGIC
        && u16_at(4) == FORMAT
        && sections <= SECTIONS_MAX
        && u64_at(8) == registry_hash()
        && stated[16..56] == fingerprint.to_bytes();
    if !is_ours {
        return Err(damaged());
    }
    let mut table = vec![0; sections * TABLE_ENTRY_BYTES];
    file.seek(SeekFrom::Start(u64_at(56)))?;
    file.read_exact(&mut table)?;
    let stated_crc = crc.first_chunk().map_or(0, |raw| u32::from_le_bytes(*raw));
    if !crc_matches(crc32c::crc32c_append(crc32c::crc32c(stated), &table), stated_crc) {
        return Err(damaged());
    }
    let section = |wanted: u16| {
        let entries = table.as_chunks::<TABLE_ENTRY_BYTES>().0;
        let entry = entries.iter().find(|entry| entry[..2] == wanted.to_le_bytes()).ok_or_else(damaged)?;
        read_section(&file, entry, length)
    };
    let parts = read_parts(section)
        .and_then(|parts| parts.check(fingerprint.length()).map_err(|_| damaged()).map(|()| parts))?;
    Ok(assemble(parts, Store::File(file.into()), clock))
}

fn read_section(mut file: &File, entry: &[u8; TABLE_ENTRY_BYTES], file_bytes: u64) -> io::Result<Vec<u8>> {
    let u64_at = |at: usize| entry[at..].first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
    let (offset, length) = (u64_at(8), u64_at(16));
    if offset.checked_add(length).is_none_or(|end| end > file_bytes) {
        return Err(damaged());
    }
    let mut bytes = vec![0; length as usize];
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut bytes)?;
    let stated_crc = entry[4..].first_chunk().map_or(0, |raw| u32::from_le_bytes(*raw));
    if crc_matches(crc32c::crc32c(&bytes), stated_crc) { Ok(bytes) } else { Err(damaged()) }
}

fn read_parts(section: impl Fn(u16) -> io::Result<Vec<u8>>) -> io::Result<Parts> {
    fn whole<T>(bytes: &[u8], take: impl FnOnce(&mut &[u8]) -> Result<T, Malformed>) -> io::Result<T> {
        let mut rest = bytes;
        let value = take(&mut rest).map_err(|_| damaged())?;
        if rest.is_empty() { Ok(value) } else { Err(damaged()) }
    }
    let lanes = whole(&section(LANES)?, Persist::take)?;
    let (names, (names_full, span_names)) = whole(&section(NAMES)?, Persist::take)?;
    let (survey, tick_ends) = whole(&section(TICKS)?, Persist::take)?;
    let blocks = whole(&section(BLOCKS)?, Persist::take)?;
    let (kinds, (gc, (totals, stacks))) = whole(&section(EVENTS)?, Persist::take)?;
    let (losses, (capped, notices)) = whole(&section(NOTICES)?, Persist::take)?;
    Ok(Parts {
        lanes,
        names,
        names_full,
        survey,
        tick_ends,
        blocks,
        kinds,
        gc,
        losses,
        capped,
        notices,
        totals,
        stacks,
        span_names,
    })
}

fn assemble(parts: Parts, store: Store, clock: Clock) -> Index {
    let time = TimeBase::new(clock, parts.survey.first_ticks);
    Index {
        ticks: TickTable::new(&parts.survey, &parts.tick_ends, &parts.gc, time),
        names: Names::from_parts(parts.names, parts.names_full),
        store,
        time,
        lanes: parts.lanes,
        survey: parts.survey,
        tick_ends: parts.tick_ends,
        blocks: parts.blocks,
        kinds: parts.kinds,
        gc: parts.gc,
        losses: parts.losses,
        capped: parts.capped,
        notices: parts.notices,
        totals: parts.totals,
        stacks: parts.stacks,
        span_names: parts.span_names,
    }
}
