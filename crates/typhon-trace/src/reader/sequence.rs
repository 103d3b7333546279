//! Puts decoded blocks back into file order and decides what each one is worth.
//!
//! Decoding may run on many threads; everything that depends on order (checksum verdicts, notices, totals) happens
//! here, once, so that the result is the same for every number of threads.

use std::collections::VecDeque;

use super::{BlockSummary, ChecksumChain, Closing, Lead, NoticeLog, Verdict};
use crate::checksum::{Checksum, ClosingBlock};
use crate::{Notice, NoticeCode};

/// What the sequencer must know of the file before the first block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileChecks {
    /// The file declares checksums.
    pub(crate) checksums: bool,
    /// CRC-32C of the metadata tables and the span names before the first block.
    pub(crate) tables_crc: u32,
}

/// Sums over all blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Blocks found.
    pub blocks: u64,
    /// Blocks that decode without a fault and whose checksum, if the file has any, matches or is unknown.
    pub whole_blocks: u64,
    /// Blocks proven by a checksum.
    pub proven_blocks: u64,
    /// Events in the blocks that are delivered.
    pub events: u64,
    /// Events that decode but are not delivered, because a checksum says that their block is damaged.
    pub withheld_events: u64,
    /// Records that the recorder itself reports as dropped.
    pub dropped_records: u64,
    /// Bytes of the blocks, headers included.
    pub stored_bytes: u64,
    /// Bytes of the blocks decompressed.
    pub uncompressed_bytes: u64,
}

/// A block in file order with its verdict.
#[derive(Debug)]
pub struct Sequenced<T> {
    /// What decoding found.
    pub summary: BlockSummary,
    /// What the checksums say.
    pub verdict: Verdict,
    /// May the events be used? False for damaged blocks, unless salvage was asked for.
    pub delivered: bool,
    /// What was pushed along with the summary.
    pub payload: T,
}

/// The closing block of a file, as far as one was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClosingState {
    /// The checksums of a sound closing block.
    pub(crate) block: Option<ClosingBlock>,
    /// Its file offset.
    pub(crate) offset: u64,
}

/// Takes blocks in file order and gives them back in the same order, each as soon as its verdict is known.
#[derive(Debug)]
pub struct Sequencer<T> {
    checks: FileChecks,
    salvage: bool,
    chain: ChecksumChain,
    held: VecDeque<(BlockSummary, T)>,
    closing: ClosingState,
    log: NoticeLog,
    totals: Totals,
}

impl<T> Sequencer<T> {
    /// For a file; with `salvage`, blocks with a mismatching checksum are delivered as well.
    pub(crate) fn new(checks: FileChecks, salvage: bool) -> Self {
        Self {
            checks,
            salvage,
            chain: ChecksumChain::new(),
            held: VecDeque::new(),
            closing: ClosingState::default(),
            log: NoticeLog::new(),
            totals: Totals::default(),
        }
    }

    /// Adds the next block in file order.
    pub fn push(&mut self, summary: BlockSummary, payload: T) {
        self.report_faults(&summary);
        if self.checks.checksums {
            self.check_closing(&summary);
            self.check_marker(&summary);
            self.chain.push(summary.link());
        }
        self.held.push_back((summary, payload));
    }

    /// The next block whose verdict is known.
    pub fn pop(&mut self) -> Option<Sequenced<T>> {
        let verdict = if self.checks.checksums { self.chain.next_verdict()? } else { Verdict::Unchecked };
        let (summary, payload) = self.held.pop_front()?;
        let delivered = verdict != Verdict::Mismatch || self.salvage;
        self.account(&summary, verdict, delivered);
        Some(Sequenced { summary, verdict, delivered, payload })
    }

    /// No block follows: decides the last ones, which [`Sequencer::pop`] then gives.
    pub fn end_of_blocks(&mut self) {
        let last = self.held.back().map(|(summary, _)| summary.closing.verdict_at_end());
        self.chain.finish(last.unwrap_or(Verdict::Unchecked));
    }

    /// Sums over the blocks given so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Notices about the blocks given so far.
    pub fn notices(&self) -> &[Notice] {
        self.log.kept()
    }

    /// Ends the sequence; all blocks must have been taken.
    pub(crate) fn finish(self) -> (Totals, NoticeLog, ClosingState) {
        debug_assert!(self.held.is_empty(), "blocks are still held");
        (self.totals, self.log, self.closing)
    }

    fn notice(&mut self, summary: &BlockSummary, code: NoticeCode, message: String) {
        self.log.push(Notice::new(code, message).at(summary.entry.offset).in_block(summary.entry.index));
    }

    /// Everything that the block alone tells.
    fn report_faults(&mut self, summary: &BlockSummary) {
        let header = &summary.entry.header;
        if let Some(fault) = &summary.data_fault {
            let message = format!("{fault}; {} records lost", header.records);
            self.notice(summary, NoticeCode::BadBlockData, message);
            return;
        }
        if let Some(fault) = &summary.record_fault {
            let lost = header.uncompressed_bytes - summary.walked_bytes;
            let message = format!("{fault}; the other {lost} bytes of the block are unreadable");
            let notice = Notice::new(NoticeCode::BadRecord, message).at(summary.entry.offset);
            let notice = notice.in_block(summary.entry.index).at_record(u64::from(summary.walked_records));
            self.log.push(notice.counting(u64::from(lost)));
        }
        if summary.walked_records != header.records {
            let message =
                format!("{} records walked, {} in the block header", summary.walked_records, header.records);
            self.notice(summary, NoticeCode::RecordCountMismatch, message);
        }
        if let Some(first) = summary.first_short_span {
            let message = format!("{} spans are shorter than their header", summary.short_spans);
            let notice = Notice::new(NoticeCode::ShortSpan, message).at(summary.entry.offset);
            let notice = notice.in_block(summary.entry.index).at_record(u64::from(first));
            self.log.push(notice.counting(u64::from(summary.short_spans)));
        }
    }

    fn check_closing(&mut self, summary: &BlockSummary) {
        if self.closing.block.is_some() {
            self.notice(summary, NoticeCode::UnknownBytes, "a block follows the closing block".to_owned());
        }
        match summary.closing {
            Closing::No => {}
            Closing::Sound(closing) => {
                self.closing = ClosingState { block: Some(closing), offset: summary.entry.offset };
            }
            Closing::Damaged => {
                let message = "the closing block is damaged: header and trailer are unchecked".to_owned();
                self.notice(summary, NoticeCode::ChecksumMissing, message);
            }
        }
    }

    /// Every block begins with the checksum that is due there. What the first one says of the tables is settled at
    /// once; what later ones say of the block before is the chain's business.
    fn check_marker(&mut self, summary: &BlockSummary) {
        if summary.entry.lead == Lead::Gap || summary.data_fault.is_some() {
            return;
        }
        let due = summary.due_checksum();
        let (what, of) = match due {
            Checksum::Tables => ("metadata tables and span names", self.checks.tables_crc),
            _ => ("block before", 0),
        };
        match summary.marker.filter(|marker| marker.checksum == due) {
            None => {
                let message = format!("the block does not begin with the checksum of the {what}");
                self.notice(summary, NoticeCode::ChecksumMissing, message);
            }
            Some(marker) if due == Checksum::Tables && marker.crc != of => {
                self.notice(summary, NoticeCode::ChecksumTables, mismatch(what, marker.crc, of));
            }
            Some(_) => {}
        }
    }

    fn account(&mut self, summary: &BlockSummary, verdict: Verdict, delivered: bool) {
        let faultless =
            summary.data_fault.is_none() && summary.record_fault.is_none() && summary.short_spans == 0;
        let totals = &mut self.totals;
        totals.blocks += 1;
        totals.whole_blocks += u64::from(faultless && verdict != Verdict::Mismatch);
        totals.proven_blocks += u64::from(verdict == Verdict::Sound);
        totals.stored_bytes += summary.entry.header.total_bytes();
        totals.uncompressed_bytes += u64::from(summary.entry.header.uncompressed_bytes);
        if delivered {
            totals.events += u64::from(summary.events);
            totals.dropped_records += summary.dropped_records;
        } else {
            totals.withheld_events += u64::from(summary.events);
        }
        if !self.checks.checksums || summary.data_fault.is_some() {
            return;
        }
        match verdict {
            Verdict::Sound => {}
            Verdict::Mismatch => {
                let what = if delivered { "kept, but not trusted" } else { "left out" };
                let message = format!("the checksum does not match; {} records are {what}", summary.events);
                let notice = Notice::new(NoticeCode::ChecksumBlock, message).at(summary.entry.offset);
                self.log.push(notice.in_block(summary.entry.index).counting(u64::from(summary.events)));
            }
            Verdict::Unchecked => {
                let message = "no later block vouches for it".to_owned();
                self.notice(summary, NoticeCode::ChecksumUnknown, message);
            }
        }
    }
}

/// Message of a checksum that does not match.
pub(crate) fn mismatch(what: &str, stated: u32, found: u32) -> String {
    format!("CRC-32C of the {what} is {found:08x}, the file states {stated:08x}")
}
