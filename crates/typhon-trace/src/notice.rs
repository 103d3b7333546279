//! Problems that a reader steps over. Every one is a structured value with its place, never only a log line.

use std::fmt;

/// How bad a notice is; decides the verdict of `typhon trace verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; the file is sound.
    Info,
    /// Two parts of the file disagree, or a derived table is missing; no record is lost.
    Divergent,
    /// Records are lost or cannot be trusted.
    DataLoss,
}

macro_rules! notice_codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $severity:ident, $hint:literal;)*) => {
        /// Kinds of notices. The text form is stable and appears in `--json` output.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum NoticeCode { $($(#[$doc])* $variant,)* }

        impl NoticeCode {
            /// Every code, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Stable text form, kebab case.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// How bad it is.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What the user can do about it; empty when there is nothing to do.
            pub fn hint(self) -> &'static str {
                match self { $(Self::$variant => $hint,)* }
            }
        }
    };
}

notice_codes! {
    /// Close did not run: no end values and no section offsets in the header.
    NotClosedCleanly = "not-closed-cleanly", Info,
        "the recorder was killed or is still running; `typhon trace repair` writes a closed copy";
    /// The file ends inside a metadata table.
    TablesTruncated = "tables-truncated", DataLoss, "the rest of the file cannot be located; recover it from a copy";
    /// A metadata table holds something that cannot be right (duplicate id, length past the end).
    TableDamaged = "table-damaged", DataLoss, "names of systems, archetypes or components may be missing";
    /// Two entries of a table have the same id; the last one is used.
    DuplicateId = "duplicate-id", Info, "the last entry with this id is used";
    /// The file ends inside a block or a block header.
    Truncated = "truncated", DataLoss, "`typhon trace repair` writes a closed copy with every complete block";
    /// The size fields of a block header are out of range.
    BadBlockHeader = "bad-block-header", DataLoss,
        "`typhon trace repair --salvage` searches for the next sound block";
    /// The LZ4 data of a block does not decode to the stated size.
    BadBlockData = "bad-block-data", DataLoss, "`typhon trace repair` copies the sound blocks";
    /// A record size inside a block is illegal; the rest of that block is unreadable.
    BadRecord = "bad-record", DataLoss, "records before this place are kept; the rest of the block is lost";
    /// A span record is too short for its own header.
    ShortSpan = "short-span", DataLoss, "the record is skipped";
    /// The number of records walked differs from the block header's count.
    RecordCountMismatch = "record-count-mismatch", Divergent, "the records themselves are used";
    /// The checksum of a block does not match; its records are not trusted.
    ChecksumBlock = "checksum-block", DataLoss,
        "the block's records are left out; `--salvage` keeps them";
    /// The checksum of the metadata tables does not match.
    ChecksumTables = "checksum-tables", DataLoss, "names of systems, archetypes or components may be wrong";
    /// The checksum of the file header does not match.
    ChecksumHeader = "checksum-header", DataLoss, "times, counts or identity in the header may be wrong";
    /// The checksum of the trailer sections does not match.
    ChecksumTrailer = "checksum-trailer", DataLoss, "source locations, CPU samples or query texts may be wrong";
    /// A block that should carry a checksum of the block before it carries none, so that one is unchecked.
    ChecksumMissing = "checksum-missing", DataLoss, "the file may have been cut or joined";
    /// The block's successor is missing or damaged, so that its checksum is unknown.
    ChecksumUnknown = "checksum-unknown", Info, "the block decodes, but nothing vouches for its bytes";
    /// The file was written without checksums (by the reference engine); flipped bits can go unnoticed.
    NoChecksums = "no-checksums", Info, "`typhon trace export --to trace` writes a copy with checksums";
    /// A trailer offset of the header points outside the file or at something else.
    SectionOffset = "section-offset", Divergent, "the section is treated as absent";
    /// A trailer section is cut or holds counts that cannot be right.
    SectionDamaged = "section-damaged", DataLoss, "the entries before the damage are used";
    /// Bytes between or after the known parts of the file belong to nothing.
    UnknownBytes = "unknown-bytes", Divergent, "they are ignored";
    /// A range was skipped by the salvage search.
    Skipped = "skipped", DataLoss, "nothing in this range decodes as a block";
    /// Records of a kind that the registry does not list.
    UnknownKind = "unknown-kind", Info, "they are kept as bytes; a newer typhon may know them";
    /// A record's length is neither the current one nor one of its known historical forms.
    UnexpectedLength = "unexpected-length", Info, "fields that are present are read; the others are absent";
    /// A mask byte has bits that the registry does not list.
    UnknownMaskBits = "unknown-mask-bits", Info, "known fields are read; the others are kept as bytes";
    /// A duration or timestamp is negative.
    NegativeTime = "negative-time", Divergent, "the value is kept and never used as unsigned";
    /// Text that is not UTF-8 was replaced by U+FFFD.
    InvalidUtf8 = "invalid-utf8", Info, "the text is shown with replacement characters";
    /// A text or list was longer than the format can hold; only its beginning was written.
    ValueCut = "value-cut", Divergent, "shorten the names, or split the lists";
    /// The recorder itself reported records it had to drop.
    RecordsDropped = "records-dropped", Info, "the recorder could not keep up; see the capture buffer options";
    /// Header values and contents disagree (tick count, record counts).
    HeaderMismatch = "header-mismatch", Info, "values derived from the records are shown";
    /// The dialect of the header (`reserved0`) and the contents disagree.
    DialectMismatch = "dialect-mismatch", DataLoss, "the header may be damaged";
}

impl fmt::Display for NoticeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One problem that was stepped over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What kind of problem.
    pub code: NoticeCode,
    /// File offset in bytes, where one is known.
    pub offset: Option<u64>,
    /// Index of the block, from 0.
    pub block: Option<u64>,
    /// Index of the record in its block, from 0.
    pub record: Option<u64>,
    /// How many bytes, records or entries are concerned; the message says which.
    pub count: u64,
    /// What was found, in one line, without the place.
    pub message: String,
}

impl Notice {
    /// A notice without a place.
    pub fn new(code: NoticeCode, message: impl Into<String>) -> Self {
        Self { code, offset: None, block: None, record: None, count: 1, message: message.into() }
    }

    /// Adds the file offset.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// Adds the block index.
    #[must_use]
    pub fn in_block(mut self, block: u64) -> Self {
        self.block = Some(block);
        self
    }

    /// Adds the index of the record in its block.
    #[must_use]
    pub fn at_record(mut self, record: u64) -> Self {
        self.record = Some(record);
        self
    }

    /// Sets how many bytes, records or entries are concerned.
    #[must_use]
    pub fn counting(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}
