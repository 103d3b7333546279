use std::io::{self, Read};

use super::{MAX_IDS, Section, SectionRead, SectionReader};
use crate::TraceError;
use crate::wire::{Wire, WireWriter, check_limit, long_list, wire_struct};

/// [`CpuSample::slot`] of a thread that had no slot.
pub const NO_SLOT: u8 = 0xFF;

wire_struct! {
    /// One sample of one thread.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct CpuSample {
        /// Trace clock.
        timestamp: i64,
        /// Slot of the thread, or [`NO_SLOT`].
        slot: u8,
        /// 0 managed code on a CPU, 1 outside of it.
        sample_type: u8,
        /// Index of its stack.
        stack_index: u32,
    }
}

wire_struct! {
    /// One place in a call stack.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CpuFrame {
        /// Id that the stacks refer to; unique in the section.
        frame_id: u16,
        /// File of [`super::FileTable`].
        file_id: u16,
        /// Line from 1; 0 = no source known.
        line: u32,
        /// Name of the function.
        method: String,
    }
}

/// Distinct call stacks, kept in two flat lists: a damaged file cannot turn two bytes into an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuStacks {
    frame_ids: Vec<u16>,
    ends: Vec<usize>,
}

impl CpuStacks {
    /// Number of stacks.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Is there no stack?
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The frame ids of a stack, leaf first.
    pub fn get(&self, index: usize) -> Option<&[u16]> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(&self.frame_ids[start..end])
    }

    /// All stacks in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u16]> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Adds a stack, leaf first, and returns its index.
    pub fn push(&mut self, frame_ids: &[u16]) -> usize {
        self.frame_ids.extend_from_slice(frame_ids);
        self.ends.push(self.frame_ids.len());
        self.ends.len() - 1
    }
}

/// The CPU samples of a trace. Left out of the file when there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuSamples {
    /// Samples, sorted by slot (threads without one first), then time.
    pub samples: Vec<CpuSample>,
    /// Stacks by index.
    pub stacks: CpuStacks,
    /// Frames in file order.
    pub frames: Vec<CpuFrame>,
}

impl CpuSamples {
    /// Reads the section after its magic. When it is cut, the parts before the cut are kept.
    ///
    /// # Errors
    /// Only those of the source itself.
    pub fn read(source: &mut impl Read) -> io::Result<SectionRead<Self>> {
        let mut section = SectionReader::new(Section::CpuSamples, source);
        let count: u32 = section.number("number of samples")?;
        let samples: Vec<CpuSample> = section.entries(u64::from(count), usize::MAX, "samples")?;
        let count: u32 = section.number("number of stacks")?;
        let mut stacks = CpuStacks::default();
        // Stacks are distinct and each one belongs to a sample.
        let most = samples.len().max(MAX_IDS) as u64;
        section.each(u64::from(count), most, "stacks", |reader| {
            stacks.push(&Vec::<u16>::read(reader)?);
            Ok(())
        })?;
        let count: u32 = section.number("number of frames")?;
        let frames: Vec<CpuFrame> = section.entries(u64::from(count), MAX_IDS, "frames")?;
        section.report_duplicates(frames.iter().map(|frame| frame.frame_id));
        Ok(section.finish(Self { samples, stacks, frames }))
    }

    /// Appends the section with its magic. The order of the samples is kept; see [`CpuSamples::sort`].
    ///
    /// # Errors
    /// [`TraceError::Limit`] above 65,536 frames, 65,535 frames in one stack, or counts beyond the format.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TraceError> {
        check_limit("frames in the CPU sample section", self.frames.len() as u64, MAX_IDS as u64)?;
        let mut writer = WireWriter::default();
        writer.put(&Section::CpuSamples.magic());
        long_list::write(&self.samples, &mut writer)?;
        check_limit("stacks in the CPU sample section", self.stacks.len() as u64, i32::MAX as usize as u64)?;
        (self.stacks.len() as u32).write(&mut writer)?;
        for stack in self.stacks.iter() {
            stack.to_vec().write(&mut writer)?;
        }
        long_list::write(&self.frames, &mut writer)?;
        out.append(&mut writer.out);
        Ok(())
    }

    /// Brings the samples into the order of the format.
    pub fn sort(&mut self) {
        let slot = |sample: &CpuSample| (sample.slot != NO_SLOT).then_some(sample.slot);
        self.samples.sort_by_key(|sample| (slot(sample), sample.timestamp));
    }

    /// The frame with this id.
    pub fn frame(&self, frame_id: u16) -> Option<&CpuFrame> {
        self.frames.iter().rfind(|frame| frame.frame_id == frame_id)
    }
}
