//! Every write may fail at every byte: what is on disk must open to the last whole block.

use std::cell::Cell;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::rc::Rc;

use proptest::prelude::*;
use typhon_trace::TraceError;
use typhon_trace::header::FileHeader;
use typhon_trace::writer::{CloseStep, TraceSink, TraceWriter, WriterOptions};

use super::output::{close_info, tables};
use super::support::{Opened, instant, open, span};

/// A file on a disk with room for `room` bytes. Writes are short: at most `chunk` bytes at a time.
#[derive(Debug)]
struct SmallDisk {
    file: Cursor<Vec<u8>>,
    room: Rc<Cell<u64>>,
    chunk: usize,
    cut_works: bool,
    patch_works: bool,
}

impl SmallDisk {
    fn new(room: u64, chunk: usize) -> Self {
        Self {
            file: Cursor::default(),
            room: Rc::new(Cell::new(room)),
            chunk,
            cut_works: true,
            patch_works: true,
        }
    }
}

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = self.file.position();
        let patching = at < self.file.get_ref().len() as u64;
        if patching && !self.patch_works {
            return Err(io::Error::other("no patches on this disk"));
        }
        let room = usize::try_from(self.room.get().saturating_sub(at)).unwrap_or(usize::MAX);
        if room == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write(&bytes[..bytes.len().min(room).min(self.chunk)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for SmallDisk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl TraceSink for SmallDisk {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        if !self.cut_works && len > 0 {
            return Err(io::Error::other("no cuts on this disk"));
        }
        self.file.cut(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const BLOCKS: usize = 4;

fn block(index: usize) -> Vec<u8> {
    let start = index as i64 * 10;
    [instant(0, 1, start, &[]), span(2, start + 1, b"payload"), instant(1, 1, start + 2, &[0, 1])].concat()
}

/// Records four blocks on the disk and closes. `None` when not even the beginning fits.
fn record_on(disk: SmallDisk) -> Option<(TraceWriter<SmallDisk>, u64)> {
    let header = FileHeader::new(1);
    let mut writer = TraceWriter::create(disk, header, &tables(), WriterOptions::new(9)).ok()?;
    let mut failed = 0;
    for index in 0..BLOCKS {
        let written = writer.write_records(&block(index)).and_then(|()| writer.flush());
        failed += u64::from(written.is_err());
    }
    writer.close(&close_info());
    Some((writer, failed))
}

fn file_of(writer: TraceWriter<SmallDisk>) -> Vec<u8> {
    writer.into_inner().file.into_inner()
}

fn size_of_the_whole_file() -> u64 {
    let (writer, _) = record_on(SmallDisk::new(u64::MAX, usize::MAX)).unwrap();
    file_of(writer).len() as u64
}

/// Asserts that what was written is a beginning of the recording, in whole blocks.
fn assert_beginning(opened: &Opened) {
    for (index, records) in opened.blocks.iter().enumerate() {
        let is_loss_report = opened.names.get(65_531).is_some() && !records.starts_with(&block(index));
        assert!(*records == block(index) || is_loss_report, "block {index} is {records:?}");
    }
}

#[test]
fn a_disk_that_is_full_after_any_byte_leaves_whole_blocks() {
    let whole = size_of_the_whole_file();
    for chunk in [usize::MAX, 1, 7] {
        for room in 0..=whole {
            let Some((mut writer, failed)) = record_on(SmallDisk::new(room, chunk)) else { continue };
            let report = writer.close(&close_info());
            let (complete, dropped) = (report.complete, report.dropped_records);
            let opened = open(&file_of(writer));
            assert_beginning(&opened);
            assert_eq!(opened.torn_bytes, 0, "room {room}: torn bytes are cut off");
            assert_eq!(opened.header.is_closed(), complete);
            assert_eq!(opened.closing, complete);
            assert_eq!(dropped, failed * 3, "room {room}");
            assert!(room < whole || (complete && failed == 0));
        }
    }
}

#[test]
fn a_disk_that_cannot_even_cut_leaves_whole_blocks_and_a_torn_one() {
    let whole = size_of_the_whole_file();
    let mut torn_files = 0;
    for room in 0..whole {
        let disk = SmallDisk { cut_works: false, ..SmallDisk::new(room, 5) };
        let Some((writer, _)) = record_on(disk) else { continue };
        let opened = open(&file_of(writer));
        assert_beginning(&opened);
        torn_files += u64::from(opened.torn_bytes > 0);
    }
    assert!(torn_files > 0, "the test never tore a file");
}

#[test]
fn b26_a_failed_header_patch_reads_as_not_closed() {
    let disk = SmallDisk { patch_works: false, ..SmallDisk::new(u64::MAX, usize::MAX) };
    let (mut writer, _) = record_on(disk).unwrap();
    let report = writer.close(&close_info());
    assert!(!report.complete);
    let [problem] = &report.problems[..] else { panic!("{:?}", report.problems) };
    assert_eq!(problem.step, CloseStep::Header);
    assert!(matches!(problem.error, TraceError::Io { action: "patch", offset: 0, .. }));
    let opened = open(&file_of(writer));
    assert!(!opened.header.is_closed());
    assert_eq!(opened.blocks.len(), BLOCKS);
}

#[test]
fn the_loss_of_a_failed_block_is_in_the_file_when_there_is_room_again() {
    let disk = SmallDisk::new(u64::MAX, 64);
    let room = Rc::clone(&disk.room);
    let mut writer = TraceWriter::create(disk, FileHeader::new(1), &tables(), WriterOptions::new(9)).unwrap();
    writer.write_records(&block(0)).unwrap();
    writer.flush().unwrap();
    room.set(writer.written().bytes + 20);
    writer.write_records(&block(1)).unwrap();
    assert!(matches!(writer.flush(), Err(TraceError::Io { action: "write", .. })));
    room.set(u64::MAX);
    writer.write_records(&block(2)).unwrap();
    assert!(writer.close(&close_info()).complete);
    let opened = open(&file_of(writer));
    let loss = typhon_trace::checksum::named_instant(9, 20, 65_531, 3);
    assert_eq!(opened.blocks, [block(0), [&loss[..], &block(2)].concat()]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_batches_on_any_disk_leave_a_beginning(
        sizes in proptest::collection::vec(0_usize..300, 1..40),
        flushes in proptest::collection::vec(any::<bool>(), 40),
        room in 0_u64..20_000,
    ) {
        let disk = SmallDisk::new(room, 64);
        let Ok(mut writer) = TraceWriter::create(disk, FileHeader::new(1), &tables(), WriterOptions::new(9)) else {
            return Ok(());
        };
        let mut all = Vec::new();
        for (index, (&size, &flush)) in sizes.iter().zip(&flushes).enumerate() {
            let record = span(1, index as i64, &vec![index as u8; size]);
            if writer.write_records(&record).is_err() || (flush && writer.flush().is_err()) {
                break;
            }
            all.extend_from_slice(&record);
        }
        let report = writer.close(&close_info());
        let lossless = report.dropped_records == 0;
        let records = open(&file_of(writer)).records();
        prop_assert!(all.starts_with(&records) || !lossless);
        prop_assert!(records == all || !lossless);
    }
}
