//! One file of a simulated disk: what readers see, what the media hold, and every version in between.

use super::plan::Survival;
use super::random::Random;
use std::collections::BTreeMap;

/// The unit that is written whole or not at all.
pub(super) const SECTOR_BYTES: usize = 512;

type Sector = Box<[u8; SECTOR_BYTES]>;

/// A sector as one write left it.
#[derive(Debug, Clone)]
struct Version {
    /// Number of the write on this disk; ascending.
    write: u64,
    bytes: Sector,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    /// What reading shows: the cache of the operating system.
    seen: Vec<u8>,
    /// What the media hold.
    media: Vec<u8>,
    /// Versions written since the last sync, oldest first, by sector number.
    pending: BTreeMap<usize, Vec<Version>>,
    /// The shortest the file has been since the last sync: beyond it the media hold bytes of the past.
    shortest: Option<usize>,
}

impl Inode {
    pub(super) fn length(&self) -> usize {
        self.seen.len()
    }

    pub(super) fn read(&self, bytes: &mut [u8], offset: usize) -> usize {
        let rest = self.seen.get(offset..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        count
    }

    pub(super) fn write(&mut self, write: u64, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if end > self.seen.len() {
            self.seen.resize(end, 0);
        }
        self.seen[offset..end].copy_from_slice(bytes);
        for number in offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            let version = Version { write, bytes: sector(&self.seen, number) };
            self.pending.entry(number).or_default().push(version);
        }
    }

    pub(super) fn set_length(&mut self, length: usize) {
        self.seen.resize(length, 0);
        self.shortest = Some(self.shortest.map_or(length, |shortest| shortest.min(length)));
        let sectors = length.div_ceil(SECTOR_BYTES);
        self.pending.retain(|number, _| *number < sectors);
    }

    /// The media get the length that readers see.
    fn sync_length(&mut self) {
        if let Some(shortest) = self.shortest.take() {
            self.media.truncate(shortest);
        }
        self.media.resize(self.seen.len(), 0);
    }

    /// Everything becomes durable.
    pub(super) fn sync(&mut self) {
        self.sync_length();
        for number in std::mem::take(&mut self.pending).into_keys() {
            let sector = sector(&self.seen, number);
            put(&mut self.media, number, &sector);
        }
    }

    /// Some sectors become durable, all are taken for clean.
    pub(super) fn sync_partly(&mut self, random: &mut Random) {
        if random.chance(500_000) {
            self.sync_length();
        }
        for number in std::mem::take(&mut self.pending).into_keys() {
            let sector = sector(&self.seen, number);
            if random.chance(500_000) {
                put(&mut self.media, number, &sector);
            }
        }
    }

    /// One range becomes durable at once, whatever else is pending.
    pub(super) fn sync_range(&mut self, offset: usize, length: usize) {
        let end = offset + length;
        if end > self.media.len() {
            self.media.resize(end, 0);
        }
        for number in offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            self.pending.remove(&number);
            let sector = sector(&self.seen, number);
            put(&mut self.media, number, &sector);
        }
    }

    /// Readers see what the media hold, but for sectors that wait to be written.
    pub(super) fn drop_cache(&mut self) {
        let length = self.seen.len();
        self.seen.clone_from(&self.media);
        self.seen.resize(length, 0);
        for (number, versions) in &self.pending {
            if let Some(last) = versions.last() {
                put(&mut self.seen, *number, &last.bytes);
            }
        }
    }

    /// Sectors that are not durable, with the writes that wrote them.
    pub(super) fn pending(&self) -> impl Iterator<Item = (u64, usize)> {
        let sectors = self.pending.iter();
        sectors.flat_map(|(number, versions)| versions.iter().map(|version| (version.write, *number)))
    }

    /// The power went; what is left is what the media hold.
    pub(super) fn cut(&mut self, survival: Survival, cut: &Cut, random: &mut Random) {
        let pending = std::mem::take(&mut self.pending);
        self.shortest = None;
        let length = match survival {
            Survival::Nothing => self.media.len(),
            Survival::Everything | Survival::Zeros => self.seen.len(),
            Survival::Torn | Survival::Subset | Survival::Mixed => {
                if random.chance(500_000) {
                    self.seen.len()
                } else {
                    self.media.len()
                }
            }
        };
        self.media.resize(length, 0);
        for (number, versions) in pending {
            match survivor(survival, number, &versions, cut, random) {
                Survivor::Old => {}
                Survivor::Version(index) => put(&mut self.media, number, &versions[index].bytes),
                Survivor::Zero => put(&mut self.media, number, &[0; SECTOR_BYTES]),
            }
        }
        self.seen.clone_from(&self.media);
    }

    /// Flips bits of the media, as decay does.
    pub(super) fn damage(&mut self, offset: usize, length: usize) {
        for bytes in [&mut self.seen, &mut self.media] {
            let end = bytes.len().min(offset + length);
            bytes.get_mut(offset..end).unwrap_or_default().iter_mut().for_each(|byte| *byte ^= 0x5A);
        }
    }
}

/// Which writes arrived, for the ways to survive that decide by write.
#[derive(Debug)]
pub(super) struct Cut {
    /// The first sector that did not arrive, by its write and number: later writes did not either.
    pub(super) torn_at: (u64, usize),
    /// Decides about single writes.
    pub(super) salt: u64,
}

enum Survivor {
    Old,
    Version(usize),
    Zero,
}

fn survivor(
    survival: Survival,
    number: usize,
    versions: &[Version],
    cut: &Cut,
    random: &mut Random,
) -> Survivor {
    let newest = |arrived: &dyn Fn(u64) -> bool| {
        let index = versions.iter().rposition(|version| arrived(version.write));
        index.map_or(Survivor::Old, Survivor::Version)
    };
    match survival {
        Survival::Nothing => Survivor::Old,
        Survival::Everything => newest(&|_| true),
        Survival::Zeros => Survivor::Zero,
        Survival::Torn => newest(&|write| (write, number) < cut.torn_at),
        Survival::Subset => newest(&|write| Random::new(cut.salt ^ write).chance(500_000)),
        Survival::Mixed => match random.below(versions.len() as u64 + 2) as usize {
            0 => Survivor::Old,
            1 => Survivor::Zero,
            index => Survivor::Version(index - 2),
        },
    }
}

/// A sector's bytes, zeros beyond the end of the file.
fn sector(bytes: &[u8], number: usize) -> Sector {
    let mut sector = Box::new([0; SECTOR_BYTES]);
    let rest = bytes.get(number * SECTOR_BYTES..).unwrap_or_default();
    let count = rest.len().min(SECTOR_BYTES);
    sector[..count].copy_from_slice(&rest[..count]);
    sector
}

/// Puts a sector in place, as far as the file reaches.
fn put(bytes: &mut [u8], number: usize, sector: &[u8; SECTOR_BYTES]) {
    let rest = bytes.get_mut(number * SECTOR_BYTES..).unwrap_or_default();
    let count = rest.len().min(SECTOR_BYTES);
    rest[..count].copy_from_slice(&sector[..count]);
}
