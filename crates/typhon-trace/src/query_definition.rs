//! Strict codec for query definitions (kind 247) and query arguments (kind 248), brief 08 §3.1 and §3.2.
//!
//! The views of [`crate::event`] show whatever a record holds; this codec takes sound records only and names what is
//! wrong with the others. Lists stay as the bytes of the record, so that neither direction allocates. A record that
//! is longer than its lists is sound: a newer writer may have appended something.

use crate::{
    event::{
        Evaluator, PackedList, QueryArgsView, QueryDefinitionDescribeView, QueryDefinitionHead, Wire,
        put_common_header,
    },
    record::{MAX_RECORD_BYTES, RECORD_HEADER_BYTES},
};

/// Offset of the first evaluator in a record of kind 247.
pub const DEFINITION_PREFIX_BYTES: usize = 34;
/// Offset of the first threshold in a record of kind 248.
pub const ARGS_PREFIX_BYTES: usize = 14;
/// Most thresholds that a record of kind 248 can hold.
pub const MAX_THRESHOLDS: usize = (MAX_RECORD_BYTES - ARGS_PREFIX_BYTES) / i64::BYTES;

use QueryCodecError as Error;

/// Why a query record cannot be decoded or encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryCodecError {
    /// The input ends inside the common header.
    #[error("{available} bytes are too few for a record header")]
    HeaderCut {
        /// Bytes of the input.
        available: usize,
    },
    /// The record is of another kind.
    #[error("kind {found} is not {expected}")]
    WrongKind {
        /// Kind of the record.
        found: u8,
        /// Kind that was asked for.
        expected: u8,
    },
    /// The record says that it is longer than the input.
    #[error("the record has {size} bytes, the input {available}")]
    PastInput {
        /// Size of the record.
        size: usize,
        /// Bytes of the input.
        available: usize,
    },
    /// The record is shorter than its fixed part.
    #[error("the record has {size} bytes, at least {minimum} are needed")]
    RecordTooShort {
        /// Size of the record.
        size: usize,
        /// Size without any list entry.
        minimum: usize,
    },
    /// A list runs past the end of the record.
    #[error("{count} {list} end at {end}, the record has {size} bytes")]
    ListPastEnd {
        /// `"evaluators"`, `"field dependencies"` or `"thresholds"`.
        list: &'static str,
        /// Entries announced.
        count: u16,
        /// Where the record would have to end.
        end: usize,
        /// Size of the record.
        size: usize,
    },
    /// The bytes of a list are not a whole number of entries.
    #[error("{bytes} bytes of {list} are not a multiple of {entry_bytes}")]
    PartialEntry {
        /// The list.
        list: &'static str,
        /// Its bytes.
        bytes: usize,
        /// Bytes of one entry.
        entry_bytes: usize,
    },
    /// A list has more entries than its count can say.
    #[error("{count} {list}, at most 65,535 can be counted")]
    TooMany {
        /// The list.
        list: &'static str,
        /// Its entries.
        count: usize,
    },
    /// The record would be too long.
    #[error("the record would have {size} bytes, at most {MAX_RECORD_BYTES} are possible")]
    RecordTooLong {
        /// Size that the lists need; saturated.
        size: usize,
    },
    /// The destination is too short.
    #[error("the record needs {needed} bytes, the destination has {available}")]
    DestinationTooShort {
        /// Size of the record.
        needed: usize,
        /// Bytes of the destination.
        available: usize,
    },
}

const EVALUATORS: &str = "evaluators";
const DEPENDENCIES: &str = "field dependencies";
const THRESHOLDS: &str = "thresholds";

/// A whole record of kind 247.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryDefinitionRecord<'a> {
    /// Slot of the producer.
    pub slot: u8,
    /// Trace-clock ticks.
    pub timestamp: i64,
    /// The fixed part.
    pub head: QueryDefinitionHead,
    /// The evaluators, 4 bytes each. Unknown operators and reserved bytes are kept.
    pub evaluators: &'a [u8],
    /// The field dependencies, 2 bytes each.
    pub field_dependencies: &'a [u8],
}

impl<'a> QueryDefinitionRecord<'a> {
    /// Bytes of a record with these numbers of list entries.
    pub fn compute_size(evaluators: usize, field_dependencies: usize) -> Result<usize, QueryCodecError> {
        count(EVALUATORS, evaluators)?;
        count(DEPENDENCIES, field_dependencies)?;
        record_size(DEFINITION_PREFIX_BYTES + 4 * evaluators + 2 + 2 * field_dependencies)
    }

    /// Reads the record at the start of `input`.
    pub fn decode(input: &'a [u8]) -> Result<Self, QueryCodecError> {
        let record = sound_record(input, QueryDefinitionDescribeView::KIND, DEFINITION_PREFIX_BYTES + 2)?;
        let view = QueryDefinitionDescribeView::from_payload(&record[RECORD_HEADER_BYTES..]);
        let too_short = Error::RecordTooShort { size: record.len(), minimum: DEFINITION_PREFIX_BYTES + 2 };
        let head = QueryDefinitionHead::read(&view).ok_or(too_short)?;
        let rest = &record[DEFINITION_PREFIX_BYTES..];
        let announced = view.evaluator_count().ok_or(too_short)?;
        // Behind the evaluators, the count of dependencies must fit as well.
        let (evaluators, rest) = list(record, rest, EVALUATORS, announced, Evaluator::BYTES, 2)?;
        let announced = u16::read(rest).ok_or(too_short)?;
        let (field_dependencies, _) = list(record, &rest[2..], DEPENDENCIES, announced, u16::BYTES, 0)?;
        let (slot, timestamp) = slot_and_timestamp(record);
        Ok(Self { slot, timestamp, head, evaluators, field_dependencies })
    }

    /// Writes the record to the start of `out` and returns its size. On an error `out` is left as it was.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, QueryCodecError> {
        let evaluators = entries(EVALUATORS, self.evaluators, Evaluator::BYTES)?;
        let dependencies = entries(DEPENDENCIES, self.field_dependencies, u16::BYTES)?;
        let size = Self::compute_size(evaluators, dependencies)?;
        let out = destination(out, size)?;
        put_common_header(out, size, QueryDefinitionDescribeView::KIND, self.slot, self.timestamp);
        self.head.put(&mut out[RECORD_HEADER_BYTES..]);
        let (prefix, rest) = out.split_at_mut(DEFINITION_PREFIX_BYTES);
        (evaluators as u16).write(&mut prefix[DEFINITION_PREFIX_BYTES - 2..]);
        let (list, rest) = rest.split_at_mut(self.evaluators.len());
        list.copy_from_slice(self.evaluators);
        let (count, list) = rest.split_at_mut(2);
        (dependencies as u16).write(count);
        list.copy_from_slice(self.field_dependencies);
        Ok(size)
    }

    /// The evaluators one by one.
    pub fn evaluator_list(&self) -> PackedList<'a, Evaluator> {
        PackedList::whole(self.evaluators)
    }

    /// The field dependencies one by one.
    pub fn field_dependency_list(&self) -> PackedList<'a, u16> {
        PackedList::whole(self.field_dependencies)
    }
}

/// A whole record of kind 248.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryArgsRecord<'a> {
    /// Slot of the producer.
    pub slot: u8,
    /// Trace-clock ticks.
    pub timestamp: i64,
    /// The thresholds, 8 bytes each.
    pub thresholds: &'a [u8],
}

impl<'a> QueryArgsRecord<'a> {
    /// Bytes of a record with this number of thresholds.
    pub fn compute_size(thresholds: usize) -> Result<usize, QueryCodecError> {
        count(THRESHOLDS, thresholds)?;
        record_size(ARGS_PREFIX_BYTES + i64::BYTES * thresholds)
    }

    /// Reads the record at the start of `input`.
    pub fn decode(input: &'a [u8]) -> Result<Self, QueryCodecError> {
        let record = sound_record(input, QueryArgsView::KIND, ARGS_PREFIX_BYTES)?;
        let too_short = Error::RecordTooShort { size: record.len(), minimum: ARGS_PREFIX_BYTES };
        let announced = u16::read(&record[RECORD_HEADER_BYTES..]).ok_or(too_short)?;
        let rest = &record[ARGS_PREFIX_BYTES..];
        let (thresholds, _) = list(record, rest, THRESHOLDS, announced, i64::BYTES, 0)?;
        let (slot, timestamp) = slot_and_timestamp(record);
        Ok(Self { slot, timestamp, thresholds })
    }

    /// Writes the record to the start of `out` and returns its size. On an error `out` is left as it was.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, QueryCodecError> {
        let thresholds = entries(THRESHOLDS, self.thresholds, i64::BYTES)?;
        let size = Self::compute_size(thresholds)?;
        let out = destination(out, size)?;
        put_common_header(out, size, QueryArgsView::KIND, self.slot, self.timestamp);
        let (prefix, list) = out.split_at_mut(ARGS_PREFIX_BYTES);
        (thresholds as u16).write(&mut prefix[RECORD_HEADER_BYTES..]);
        list.copy_from_slice(self.thresholds);
        Ok(size)
    }

    /// The thresholds one by one.
    pub fn threshold_list(&self) -> PackedList<'a, i64> {
        PackedList::whole(self.thresholds)
    }
}

/// The record at the start of `input`, at least `minimum` bytes of it, cut to its own size.
fn sound_record(input: &[u8], expected: u8, minimum: usize) -> Result<&[u8], Error> {
    let available = input.len();
    if available < RECORD_HEADER_BYTES {
        return Err(Error::HeaderCut { available });
    }
    let found = input[2];
    if found != expected {
        return Err(Error::WrongKind { found, expected });
    }
    let size = usize::from(u16::from_le_bytes([input[0], input[1]]));
    let record = input.get(..size).ok_or(Error::PastInput { size, available })?;
    if size < minimum {
        return Err(Error::RecordTooShort { size, minimum });
    }
    Ok(record)
}

/// Splits a list of `announced` entries from `rest`, the tail of `record`; `behind` more bytes must follow it.
fn list<'a>(
    record: &[u8],
    rest: &'a [u8],
    list: &'static str,
    announced: u16,
    entry_bytes: usize,
    behind: usize,
) -> Result<(&'a [u8], &'a [u8]), Error> {
    let bytes = usize::from(announced) * entry_bytes;
    if rest.len() < bytes + behind {
        let size = record.len();
        let end = size - rest.len() + bytes + behind;
        return Err(Error::ListPastEnd { list, count: announced, end, size });
    }
    Ok(rest.split_at(bytes))
}

fn slot_and_timestamp(record: &[u8]) -> (u8, i64) {
    (record[3], i64::read(&record[4..]).unwrap_or(0))
}

/// Number of whole entries in the bytes of a list.
fn entries(list: &'static str, bytes: &[u8], entry_bytes: usize) -> Result<usize, Error> {
    if bytes.len().is_multiple_of(entry_bytes) {
        return Ok(bytes.len() / entry_bytes);
    }
    Err(Error::PartialEntry { list, bytes: bytes.len(), entry_bytes })
}

fn count(list: &'static str, count: usize) -> Result<(), Error> {
    if count > usize::from(u16::MAX) { Err(Error::TooMany { list, count }) } else { Ok(()) }
}

fn record_size(size: usize) -> Result<usize, Error> {
    if size > MAX_RECORD_BYTES { Err(Error::RecordTooLong { size }) } else { Ok(size) }
}

fn destination(out: &mut [u8], needed: usize) -> Result<&mut [u8], Error> {
    let available = out.len();
    out.get_mut(..needed).ok_or(Error::DestinationTooShort { needed, available })
}
