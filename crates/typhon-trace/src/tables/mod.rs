//! The eleven metadata tables between the header and the first block: the static description of what is recorded.
//!
//! They are written once, when recording starts, and never change, except that routing ids are replaced by
//! [`ROUTING_ID_UNKNOWN`] at close when more than one engine was seen. The order on disk is the order of the fields
//! of [`Tables`].
//!
//! Entries are kept as they are in the file, duplicates included, so that a copy is exact; a look-up by id takes the
//! last entry.

mod model;

use std::collections::HashSet;
use std::hash::Hash;
use std::io::{self, Read};

pub use model::*;

use crate::header::{FileHeader, HEADER_BYTES};
use crate::live::MAX_SERVER_PAYLOAD_BYTES;
use crate::wire::{Wire, WireFault, WireReader, WireWriter, check_limit, count_u16, long_list};
use crate::{Notice, NoticeCode, TraceError};

/// Largest size of all tables together: what fits into one frame of the live stream. Real ones take kilobytes; the
/// bound keeps a damaged count from turning the rest of the file into table entries, and the writer keeps to it as
/// well.
pub const MAX_TABLES_BYTES: u64 = (MAX_SERVER_PAYLOAD_BYTES - HEADER_BYTES) as u64;
/// Most texts in all tables together. An empty text takes one byte in the file and 24 in memory; this keeps a small
/// file from filling a large memory.
pub const MAX_TABLE_TEXTS: u64 = 1 << 20;

/// All metadata tables of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "camelCase"))]
pub struct Tables {
    /// 1: systems of the schedule.
    pub systems: Vec<System>,
    /// 2: archetypes and their routing ids.
    pub archetypes: Vec<Archetype>,
    /// 3: component types.
    pub component_types: Vec<ComponentType>,
    /// 4: tracks.
    pub tracks: Vec<Track>,
    /// 5: graphs of systems.
    pub dags: Vec<Dag>,
    /// 6: stored form of components.
    pub component_definitions: Vec<ComponentDefinition>,
    /// 7: stored form of archetypes.
    pub archetype_definitions: Vec<ArchetypeDefinition>,
    /// 8: indexes.
    pub index_catalog: Vec<IndexEntry>,
    /// 9: options of the runtime.
    pub runtime_config: Option<RuntimeConfig>,
    /// 10: event queues.
    pub event_queues: Vec<EventQueue>,
    /// 11: resource tree, in preorder.
    pub resource_graph: Vec<ResourceNode>,
}

/// What [`Tables::read`] found.
#[derive(Debug)]
pub struct TablesRead {
    /// The tables before the cut, or all of them. A table is whole or empty.
    pub tables: Tables,
    /// Every byte consumed, for the checksum over the tables.
    pub raw: Vec<u8>,
    /// Where in `raw` the routing ids are, two bytes each.
    pub routing_id_offsets: Vec<usize>,
    /// Set when the tables end early: then nothing after them can be located.
    pub cut: Option<TablesCut>,
    /// Everything worth telling, with absolute file offsets; a cut is among them.
    pub notices: Vec<Notice>,
}

/// Where and why the tables end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TablesCut {
    /// Number of the table that is not whole, 1..=11.
    pub table: u8,
    /// The tables run past [`MAX_TABLES_BYTES`] or [`MAX_TABLE_TEXTS`], rather than past the end of the file.
    pub too_long: bool,
}

/// The encoded tables.
#[derive(Debug)]
pub struct TablesEncoded {
    /// The bytes from file offset 207 on.
    pub bytes: Vec<u8>,
    /// Where in `bytes` the routing ids are, two bytes each.
    pub routing_id_offsets: Vec<usize>,
    /// Texts and neighbour lists that the format cannot hold whole.
    pub notices: Vec<Notice>,
}

impl Tables {
    /// Ticks per second that the program set out to do, in Hz: the header's, or else that of the runtime's configuration
    /// (table 9), which a program that describes itself late fills in instead. `None` when neither says it.
    pub fn base_tick_rate_hz(&self, header: &FileHeader) -> Option<f32> {
        let configured = self.runtime_config.as_ref().map(|config| config.base_tick_rate as f32);
        [Some(header.base_tick_rate), configured].into_iter().flatten().find(|rate_hz| *rate_hz > 0.0)
    }

    /// Reads the tables from a source that stands right after the file header, and consumes exactly their bytes.
    /// A source that ends early is not an error: see [`TablesRead::cut`].
    ///
    /// # Errors
    /// Only those of the source itself.
    pub fn read(source: &mut impl Read) -> io::Result<TablesRead> {
        let mut reader = WireReader::keeping(source, MAX_TABLES_BYTES, MAX_TABLE_TEXTS);
        let mut tables = Self::default();
        let mut routing_id_offsets = Vec::new();
        let mut notices = Vec::new();
        let cut = match tables.read_into(&mut reader, &mut routing_id_offsets) {
            Ok(()) => None,
            Err((_, WireFault::Io(error))) => return Err(error),
            Err((table, WireFault::End)) => Some(TablesCut { table, too_long: false }),
            Err((table, WireFault::TooLong)) => Some(TablesCut { table, too_long: true }),
        };
        let end = HEADER_BYTES as u64 + reader.position();
        if let Some(cut) = cut {
            notices.push(cut.notice(end));
        }
        if reader.replaced_texts() > 0 {
            let message = "texts of the metadata tables are not UTF-8";
            let notice = Notice::new(NoticeCode::InvalidUtf8, message).at(HEADER_BYTES as u64);
            notices.push(notice.counting(reader.replaced_texts()));
        }
        tables.report_duplicates(&mut notices);
        Ok(TablesRead { tables, raw: reader.into_kept(), routing_id_offsets, cut, notices })
    }

    fn read_into<R: Read>(
        &mut self,
        reader: &mut WireReader<R>,
        routing_id_offsets: &mut Vec<usize>,
    ) -> Result<(), (u8, WireFault)> {
        fn table<T: Wire, R: Read>(number: u8, reader: &mut WireReader<R>) -> Result<T, (u8, WireFault)> {
            T::read(reader).map_err(|fault| (number, fault))
        }
        self.systems = table(1, reader)?;
        self.archetypes = read_archetypes(reader, routing_id_offsets).map_err(|fault| (2, fault))?;
        self.component_types = table(3, reader)?;
        self.tracks = table(4, reader)?;
        self.dags = table(5, reader)?;
        self.component_definitions = table(6, reader)?;
        self.archetype_definitions = table(7, reader)?;
        self.index_catalog = table(8, reader)?;
        self.runtime_config = table(9, reader)?;
        self.event_queues = table(10, reader)?;
        self.resource_graph = long_list::read(reader).map_err(|fault| (11, fault))?;
        Ok(())
    }

    /// Encodes all tables. Texts above 255 bytes are cut at a character boundary and neighbour lists above 255
    /// entries after the 255th; both are told in the notices.
    ///
    /// # Errors
    /// [`TraceError::Limit`] for a table or list with more entries than its count can hold, and for tables above
    /// [`MAX_TABLES_BYTES`] or [`MAX_TABLE_TEXTS`].
    pub fn encode(&self) -> Result<TablesEncoded, TraceError> {
        let mut writer = WireWriter::default();
        let mut routing_id_offsets = Vec::with_capacity(self.archetypes.len());
        self.systems.write(&mut writer)?;
        write_archetypes(&self.archetypes, &mut writer, &mut routing_id_offsets)?;
        self.component_types.write(&mut writer)?;
        self.tracks.write(&mut writer)?;
        self.dags.write(&mut writer)?;
        self.component_definitions.write(&mut writer)?;
        self.archetype_definitions.write(&mut writer)?;
        self.index_catalog.write(&mut writer)?;
        self.runtime_config.write(&mut writer)?;
        self.event_queues.write(&mut writer)?;
        long_list::write(&self.resource_graph, &mut writer)?;
        let WireWriter { out: bytes, texts, cut_values } = writer;
        check_limit("size of the metadata tables in bytes", bytes.len() as u64, MAX_TABLES_BYTES)?;
        check_limit("texts in the metadata tables", texts, MAX_TABLE_TEXTS)?;
        let mut notices = Vec::new();
        if cut_values > 0 {
            let message = "texts or neighbour lists of the metadata tables were cut to 255 bytes or entries";
            notices.push(Notice::new(NoticeCode::ValueCut, message).counting(cut_values));
        }
        Ok(TablesEncoded { bytes, routing_id_offsets, notices })
    }

    /// Fingerprint of the schema: FNV-1a over name, revision and 0xFF of all component and archetype definitions,
    /// as one list sorted by name (by UTF-16 code unit) and revision. 0 without any definition.
    pub fn schema_fingerprint(&self) -> u64 {
        let components = self.component_definitions.iter().map(|entry| (&entry.name, entry.revision));
        let archetypes = self.archetype_definitions.iter().map(|entry| (&entry.name, entry.revision));
        let mut entries: Vec<_> = components.chain(archetypes).collect();
        if entries.is_empty() {
            return 0;
        }
        entries.sort_by(|(a, a_revision), (b, b_revision)| {
            a.encode_utf16().cmp(b.encode_utf16()).then(a_revision.cmp(b_revision))
        });
        entries.iter().fold(FNV_BASIS, |hash, (name, revision)| {
            let hash = fnv1a(hash, name.as_bytes());
            fnv1a(fnv1a(hash, &revision.to_le_bytes()), &[0xFF])
        })
    }

    /// The name of a system; the last entry with this index counts.
    pub fn system_name(&self, index: u16) -> Option<&str> {
        self.systems.iter().rfind(|entry| entry.index == index).map(|entry| entry.name.as_str())
    }

    /// The name of an archetype by its catalogue id; the last entry with this id counts.
    pub fn archetype_name(&self, archetype_id: u16) -> Option<&str> {
        let entry = self.archetypes.iter().rfind(|entry| entry.archetype_id == archetype_id);
        entry.map(|entry| entry.name.as_str())
    }

    /// The name of a component type; the last entry with this id counts.
    pub fn component_type_name(&self, component_type_id: i32) -> Option<&str> {
        let entry = self.component_types.iter().rfind(|entry| entry.component_type_id == component_type_id);
        entry.map(|entry| entry.name.as_str())
    }

    fn report_duplicates(&self, notices: &mut Vec<Notice>) {
        let mut report = |table: &str, duplicates: u64| {
            if duplicates > 0 {
                let message = format!("entries of the {table} table repeat an id");
                notices.push(Notice::new(NoticeCode::DuplicateId, message).counting(duplicates));
            }
        };
        report("system", duplicates(self.systems.iter().map(|entry| entry.index)));
        report("archetype", duplicates(self.archetypes.iter().map(|entry| entry.archetype_id)));
        report(
            "component type",
            duplicates(self.component_types.iter().map(|entry| entry.component_type_id)),
        );
        report("DAG", duplicates(self.dags.iter().map(|entry| entry.id)));
        let definitions = self.component_definitions.iter();
        report("component definition", duplicates(definitions.map(|entry| entry.component_type_id)));
        let definitions = self.archetype_definitions.iter();
        report("archetype definition", duplicates(definitions.map(|entry| entry.archetype_id)));
        report("event queue", duplicates(self.event_queues.iter().map(|entry| entry.queue_index)));
        report("resource", duplicates(self.resource_graph.iter().map(|entry| entry.id)));
    }
}

impl TablesCut {
    fn notice(self, end: u64) -> Notice {
        let Self { table, too_long } = self;
        if too_long {
            let message = format!(
                "metadata table {table} of 11 runs past {MAX_TABLES_BYTES} bytes or {MAX_TABLE_TEXTS} texts"
            );
            Notice::new(NoticeCode::TableDamaged, message).at(end)
        } else {
            let message = format!("the file ends in metadata table {table} of 11");
            Notice::new(NoticeCode::TablesTruncated, message).at(end)
        }
    }
}

const FNV_BASIS: u64 = 14_695_981_039_346_656_037;
const FNV_PRIME: u64 = 1_099_511_628_211;

fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// Number of ids that occurred before.
pub(crate) fn duplicates<K: Eq + Hash>(ids: impl Iterator<Item = K>) -> u64 {
    let mut seen = HashSet::new();
    ids.map(|id| seen.insert(id)).filter(|is_new| !is_new).count() as u64
}

fn read_archetypes<R: Read>(
    reader: &mut WireReader<R>,
    routing_id_offsets: &mut Vec<usize>,
) -> Result<Vec<Archetype>, WireFault> {
    let count = u16::read(reader)?;
    let mut archetypes = Vec::new();
    for _ in 0..count {
        archetypes.push(Archetype::read(reader)?);
        routing_id_offsets.push(reader.position() as usize - ROUTING_ID_BYTES);
    }
    Ok(archetypes)
}

fn write_archetypes(
    archetypes: &[Archetype],
    writer: &mut WireWriter,
    routing_id_offsets: &mut Vec<usize>,
) -> Result<(), TraceError> {
    count_u16(archetypes.len())?.write(writer)?;
    for archetype in archetypes {
        archetype.write(writer)?;
        routing_id_offsets.push(writer.out.len() - ROUTING_ID_BYTES);
    }
    Ok(())
}

/// The routing id is the last field of its entry.
const ROUTING_ID_BYTES: usize = 2;
