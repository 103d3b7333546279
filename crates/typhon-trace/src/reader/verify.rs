//! Is a trace whole? Reads everything, checks everything, and says so in one report.
//!
//! [`verify`] runs on one thread. The parts are public, so that a parallel reader can check blocks on its workers
//! ([`BlockCheck::of`]) and add the results in file order ([`Verifier::add`]).
//!
//! In a closed file written here every changed bit is found, except in these bytes, which no checksum can cover:
//!
//! - the routing ids of metadata table 2 (two bytes per archetype), which are replaced when the file is closed;
//! - in a file that was *not* closed, also the file header, the last block, and what follows it.
//!
//! A changed bit in magic or version makes the file unopenable instead.

use std::collections::BTreeMap;

use super::{
    BlockBuffer, BlockDigest, BlockSummary, Derived, Outcome, Preamble, Sequenced, Source, StreamReader,
    Totals,
};
use crate::decode::check_layout;
use crate::record::{Record, RecordWalk};
use crate::{Notice, NoticeCode, Severity, TraceError, registry};

/// The verdict on a whole file, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileVerdict {
    /// Nothing to report.
    Sound,
    /// Something is worth knowing; the file is whole.
    SoundWithNotices,
    /// Parts of the file disagree; no record is lost.
    Divergent,
    /// Records are lost or cannot be trusted.
    DataLoss,
}

impl FileVerdict {
    /// The verdict that a set of notices leads to.
    pub fn of(notices: &[Notice]) -> Self {
        match notices.iter().map(Notice::severity).max() {
            None => Self::Sound,
            Some(Severity::Info) => Self::SoundWithNotices,
            Some(Severity::Divergent) => Self::Divergent,
            Some(Severity::DataLoss) => Self::DataLoss,
        }
    }

    /// Stable text form, kebab case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::SoundWithNotices => "sound-with-notices",
            Self::Divergent => "divergent",
            Self::DataLoss => "data-loss",
        }
    }
}

/// What `verify` looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerifyOptions {
    /// Compares every record with the layout that the registry gives for its kind.
    pub deep: bool,
}

/// Result of [`verify`].
#[derive(Debug)]
pub struct VerifyReport {
    /// The worst of the findings.
    pub verdict: FileVerdict,
    /// Everything found, by file offset.
    pub findings: Vec<Notice>,
    /// Sums over the blocks.
    pub totals: Totals,
    /// Values derived from the records.
    pub derived: Derived,
    /// Bytes of the whole input.
    pub file_bytes: u64,
}

/// A place where something was seen first, and how often it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sighting {
    count: u64,
    record: u64,
    text: String,
}

/// Findings of one kind of problem and one kind of record.
type Sightings = BTreeMap<(Oddity, u8), Sighting>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Oddity {
    UnknownKind,
    Length,
    MaskBits,
    NegativeTime,
}

impl Oddity {
    fn code(self) -> NoticeCode {
        match self {
            Self::UnknownKind => NoticeCode::UnknownKind,
            Self::Length => NoticeCode::UnexpectedLength,
            Self::MaskBits => NoticeCode::UnknownMaskBits,
            Self::NegativeTime => NoticeCode::NegativeTime,
        }
    }
}

/// What a check of one block's events found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockCheck {
    digest: BlockDigest,
    sightings: Sightings,
}

impl BlockCheck {
    /// Checks the events of a decoded block.
    pub fn of(buffer: &BlockBuffer, options: VerifyOptions) -> Self {
        let mut check = Self { digest: BlockDigest::of(buffer), sightings: Sightings::new() };
        if options.deep {
            let markers = buffer.summary().map_or(0, BlockSummary::leading_markers);
            for (index, record) in RecordWalk::new(buffer.walked()).enumerate().skip(markers as usize) {
                if !record.is_short_span() {
                    check.record(index as u64, &record);
                }
            }
        }
        check
    }

    fn record(&mut self, index: u64, record: &Record<'_>) {
        let duration = record.span().map_or(0, |span| span.duration);
        if record.timestamp() < 0 || duration < 0 {
            let (at, kind) = (record.timestamp(), record.kind());
            self.saw(Oddity::NegativeTime, kind, index, || format!("timestamp {at}, duration {duration}"));
        }
        let Some(layout) = check_layout(record) else {
            if registry::kind(record.kind()).is_none() {
                self.saw(Oddity::UnknownKind, record.kind(), index, || format!("{} bytes", record.size()));
            }
            return;
        };
        if layout.is_unexpected_length || layout.is_list_cut {
            self.saw(Oddity::Length, record.kind(), index, || {
                format!("{} payload bytes, expected {}", layout.payload_bytes, layout.expected_bytes)
            });
        }
        if layout.unknown_mask_bits != 0 {
            self.saw(Oddity::MaskBits, record.kind(), index, || format!("{:#04x}", layout.unknown_mask_bits));
        }
    }

    fn saw(&mut self, oddity: Oddity, kind: u8, record: u64, text: impl FnOnce() -> String) {
        let seen = self.sightings.entry((oddity, kind));
        seen.or_insert_with(|| Sighting { count: 0, record, text: text() }).count += 1;
    }
}

/// Collects the checks of all blocks, in file order.
#[derive(Debug, Default)]
pub struct Verifier {
    derived: Derived,
    /// With the place of the block where each was seen first.
    sightings: BTreeMap<(Oddity, u8), (u64, u64, Sighting)>,
}

impl Verifier {
    /// Nothing checked so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block. Those whose events must not be used are left out.
    pub fn add(&mut self, block: &Sequenced<BlockCheck>) {
        if block.delivered {
            self.add_check(block.summary.entry.offset, block.summary.entry.index, &block.payload);
        }
    }

    fn add_check(&mut self, offset: u64, block: u64, check: &BlockCheck) {
        self.derived.add(&check.digest);
        for (&key, sighting) in &check.sightings {
            match self.sightings.get_mut(&key) {
                Some((_, _, first)) => first.count += sighting.count,
                None => drop(self.sightings.insert(key, (offset, block, sighting.clone()))),
            }
        }
    }

    /// Puts the report together.
    pub fn finish(self, preamble: &Preamble, outcome: Outcome) -> VerifyReport {
        let mut findings = outcome.notices;
        findings.extend(header_findings(preamble, &self.derived));
        for ((oddity, kind), (offset, block, sighting)) in self.sightings {
            let name = registry::kind(kind).map_or("unknown", |info| info.name);
            let others = match sighting.count {
                1 => String::new(),
                count => format!("; {count} such records"),
            };
            let message = format!("kind {kind} ({name}): {}{others}", sighting.text);
            let notice = Notice::new(oddity.code(), message).at(offset).in_block(block);
            findings.push(notice.at_record(sighting.record).counting(sighting.count));
        }
        findings.sort_by_key(|notice| (notice.offset, notice.block, notice.record));
        VerifyReport {
            verdict: FileVerdict::of(&findings),
            findings,
            totals: outcome.totals,
            derived: self.derived,
            file_bytes: outcome.file_bytes,
        }
    }
}

/// The header repeats what tables and records say; the latter rule.
fn header_findings(preamble: &Preamble, derived: &Derived) -> Vec<Notice> {
    let (header, tables) = (&preamble.header, &preamble.tables);
    let mut pairs = vec![
        ("systems", u64::from(header.system_count), tables.systems.len() as u64),
        ("archetypes", u64::from(header.archetype_count), tables.archetypes.len() as u64),
        ("component types", u64::from(header.component_type_count), tables.component_types.len() as u64),
        ("tracks", u64::from(header.track_count), tables.tracks.len() as u64),
        ("DAGs", u64::from(header.dag_count), tables.dags.len() as u64),
    ];
    if header.is_closed() {
        pairs.push(("ticks", u64::from(header.tick_count), derived.tick_count()));
    }
    let differing = pairs.into_iter().filter(|(_, stated, found)| stated != found);
    let notice = |(what, stated, found)| {
        let message = format!("the header states {stated} {what}, there are {found}");
        Notice::new(NoticeCode::HeaderMismatch, message)
    };
    differing.map(notice).collect()
}

/// Reads a trace to its end and reports everything that is wrong with it. `progress` gets the number of bytes done
/// after each block.
///
/// # Errors
/// [`TraceError::Io`].
pub fn verify<S: Source>(
    mut reader: StreamReader<S>,
    options: VerifyOptions,
    mut progress: impl FnMut(u64),
) -> Result<VerifyReport, TraceError> {
    let mut verifier = Verifier::new();
    while let Some(block) = reader.next_delivered()? {
        let entry = block.summary.entry;
        verifier.add_check(entry.offset, entry.index, &BlockCheck::of(&block.payload, options));
        progress(entry.end());
    }
    let preamble = reader.preamble().clone();
    Ok(verifier.finish(&preamble, reader.finish()?))
}
