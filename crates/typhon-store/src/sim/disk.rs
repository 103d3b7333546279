//! The state of a simulated disk: files, names, what of both is durable, and when the power goes.

use super::inode::{Cut, Inode};
use super::plan::{Failure, Faults, Survival};
use super::random::Random;
use crate::io::{Access, Entry, EntryKind};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(usize),
}

/// A change of names that may not have reached the media.
#[derive(Debug, Clone)]
enum NameChange {
    Add(PathBuf, Node),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, Node>) {
        match self {
            Self::Add(path, node) => {
                names.insert(path.clone(), *node);
            }
            // The name it had may itself never have arrived.
            Self::Rename(from, to) => {
                if let Some(node) = names.remove(from) {
                    names.insert(to.clone(), node);
                }
            }
            Self::Remove(path) => {
                names.remove(path);
            }
        }
    }

    fn directory(&self) -> Option<&Path> {
        match self {
            Self::Add(path, _) | Self::Remove(path) | Self::Rename(_, path) => path.parent(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Disk {
    pub(super) random: Random,
    pub(super) faults: Faults,
    inodes: Vec<Inode>,
    /// Names as readers see them, and as the media have them.
    names: BTreeMap<PathBuf, Node>,
    durable_names: BTreeMap<PathBuf, Node>,
    changes: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    /// Calls that change something or make something durable.
    pub(super) calls: u64,
    /// The call, counted like `calls`, that does not happen any more.
    pub(super) crash_at: Option<u64>,
    /// The call, counted like `calls`, that goes wrong, and how.
    pub(super) fail_at: Option<(u64, Failure)>,
    pub(super) is_down: bool,
    /// Counts starts: handles of an earlier one are dead.
    pub(super) boot: u32,
}

impl Disk {
    pub(super) fn new(seed: u64) -> Self {
        let root: BTreeMap<PathBuf, Node> = [(PathBuf::from("/"), Node::Directory)].into();
        Self {
            random: Random::new(seed),
            faults: Faults::default(),
            inodes: Vec::new(),
            names: root.clone(),
            durable_names: root,
            changes: Vec::new(),
            locks: BTreeSet::new(),
            calls: 0,
            crash_at: None,
            fail_at: None,
            is_down: false,
            boot: 0,
        }
    }

    /// Fails while the machine is down.
    pub(super) fn up(&self) -> io::Result<()> {
        if self.is_down { Err(power_off()) } else { Ok(()) }
    }

    /// A call that changes something begins; it may be the one at which the world ends.
    fn boundary(&mut self) -> io::Result<()> {
        self.up()?;
        self.calls += 1;
        if self.crash_at.is_some_and(|call| self.calls >= call) {
            self.crash_at = None;
            self.is_down = true;
            return Err(power_off());
        }
        Ok(())
    }

    /// Does the call that began last go wrong in this way, by choice or by chance?
    fn fails(&mut self, failure: Failure, per_million: u32) -> bool {
        self.random.chance(per_million) || self.fail_at == Some((self.calls, failure))
    }

    /// A change of names begins.
    fn name_boundary(&mut self) -> io::Result<()> {
        self.boundary()?;
        if self.fail_at == Some((self.calls, Failure::Error)) { Err(input_output()) } else { Ok(()) }
    }

    pub(super) fn open(&mut self, path: &Path, access: Access) -> io::Result<usize> {
        self.up()?;
        match (self.names.get(path), access) {
            (Some(Node::Directory), _) => Err(io::ErrorKind::IsADirectory.into()),
            (Some(Node::File(_)), Access::Create) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(Node::File(inode)), _) => Ok(*inode),
            (None, Access::Create) => self.create(path),
            (None, _) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn create(&mut self, path: &Path) -> io::Result<usize> {
        self.name_boundary()?;
        self.find_directory(path.parent().unwrap_or(Path::new("/")))?;
        if self.fails(Failure::NoSpace, self.faults.no_space) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inodes.push(Inode::default());
        let inode = self.inodes.len() - 1;
        self.change(NameChange::Add(path.to_owned(), Node::File(inode)));
        Ok(inode)
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        match self.names.get(path) {
            Some(Node::Directory) => return self.up(),
            Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
            None => {}
        }
        self.name_boundary()?;
        self.find_directory(path.parent().unwrap_or(Path::new("/")))?;
        self.change(NameChange::Add(path.to_owned(), Node::Directory));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.name_boundary()?;
        if !self.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.name_boundary()?;
        if !self.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }

    pub(super) fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        self.up()?;
        self.find_directory(directory)?;
        let inside = self.names.iter().filter(|(path, _)| path.parent() == Some(directory));
        let entries = inside.filter_map(|(path, node)| {
            let name = path.file_name()?.to_str()?.to_owned();
            Some(match node {
                Node::Directory => Entry { name, length_bytes: 0, kind: EntryKind::Directory },
                Node::File(inode) => {
                    Entry { name, length_bytes: self.inodes[*inode].length() as u64, kind: EntryKind::File }
                }
            })
        });
        Ok(entries.collect())
    }

    fn find_directory(&self, path: &Path) -> io::Result<()> {
        match self.names.get(path) {
            Some(Node::Directory) => Ok(()),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn sync_dir(&mut self, directory: &Path) -> io::Result<()> {
        self.boundary()?;
        self.find_directory(directory)?;
        if self.fails(Failure::Error, self.faults.sync_error) {
            // Unlike bytes, names are not taken for clean: journals keep them, or refuse everything from then on.
            return Err(input_output());
        }
        if !self.faults.lying_sync {
            let (synced, rest) = std::mem::take(&mut self.changes)
                .into_iter()
                .partition::<Vec<_>, _>(|change| change.directory() == Some(directory));
            synced.iter().for_each(|change| change.apply(&mut self.durable_names));
            self.changes = rest;
        }
        Ok(())
    }

    pub(super) fn lock(&mut self, path: &Path) -> io::Result<()> {
        self.up()?;
        if self.locks.contains(path) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if !self.names.contains_key(path) {
            self.create(path)?;
        }
        self.locks.insert(path.to_owned());
        Ok(())
    }

    pub(super) fn unlock(&mut self, path: &Path) {
        self.locks.remove(path);
    }

    pub(super) fn read(&self, inode: usize, bytes: &mut [u8], offset: usize) -> io::Result<usize> {
        self.up()?;
        Ok(self.inodes[inode].read(bytes, offset))
    }

    pub(super) fn write(
        &mut self,
        inode: usize,
        bytes: &[u8],
        offset: usize,
        durable: bool,
    ) -> io::Result<usize> {
        self.boundary()?;
        let grows = offset + bytes.len() > self.inodes[inode].length();
        if grows && self.fails(Failure::NoSpace, self.faults.no_space) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let fails = self.fails(Failure::Error, self.faults.write_error);
        let is_short = self.fails(Failure::ShortWrite, self.faults.short_write);
        let count = if fails {
            self.random.below(bytes.len() as u64 + 1) as usize
        } else if is_short && bytes.len() > 1 {
            1 + self.random.below(bytes.len() as u64 - 1) as usize
        } else {
            bytes.len()
        };
        let write = self.calls;
        self.inodes[inode].write(write, &bytes[..count], offset);
        if fails {
            return Err(input_output());
        }
        if durable {
            // Between the arrival of the bytes and the answer there is room for the end of the world.
            self.boundary()?;
            if !self.faults.lying_sync {
                self.inodes[inode].sync_range(offset, count);
            }
        }
        Ok(count)
    }

    pub(super) fn sync_data(&mut self, inode: usize) -> io::Result<()> {
        self.boundary()?;
        if self.fails(Failure::Error, self.faults.sync_error) {
            self.inodes[inode].sync_partly(&mut self.random);
            return Err(input_output());
        }
        if !self.faults.lying_sync {
            self.inodes[inode].sync();
        }
        Ok(())
    }

    pub(super) fn set_length(&mut self, inode: usize, length: usize) -> io::Result<()> {
        self.boundary()?;
        if length > self.inodes[inode].length() && self.fails(Failure::NoSpace, self.faults.no_space) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inodes[inode].set_length(length);
        Ok(())
    }

    pub(super) fn length(&self, inode: usize) -> io::Result<u64> {
        self.up()?;
        Ok(self.inodes[inode].length() as u64)
    }

    pub(super) fn drop_cache(&mut self, inode: usize) -> io::Result<()> {
        self.up()?;
        self.inodes[inode].drop_cache();
        Ok(())
    }

    /// The process ended; what it wrote is still in the cache.
    pub(super) fn kill(&mut self) {
        self.restart();
    }

    /// The power went and came back.
    pub(super) fn cut_power(&mut self, survival: Survival) {
        let mut pending: Vec<(u64, usize)> = self.inodes.iter().flat_map(Inode::pending).collect();
        pending.sort_unstable();
        let torn_at = if pending.is_empty() { (0, 0) } else { *self.random.pick(&pending) };
        let cut = Cut { torn_at, salt: self.random.next_u64() };
        for inode in &mut self.inodes {
            inode.cut(survival, &cut, &mut self.random);
        }
        for change in std::mem::take(&mut self.changes) {
            let survives = match survival {
                Survival::Nothing => false,
                Survival::Everything => true,
                _ => self.random.chance(500_000),
            };
            if survives {
                change.apply(&mut self.durable_names);
            }
        }
        self.names.clone_from(&self.durable_names);
        self.forget_unreachable();
        self.restart();
    }

    /// Names below directories that are gone are gone too, and files without a name cost nothing.
    fn forget_unreachable(&mut self) {
        let all = self.names.clone();
        self.names.retain(|path, _| {
            path.ancestors().skip(1).all(|parent| all.get(parent) == Some(&Node::Directory))
        });
        self.durable_names.clone_from(&self.names);
        let named: BTreeSet<usize> = self.names.values().filter_map(|node| file(*node)).collect();
        for (number, inode) in self.inodes.iter_mut().enumerate() {
            if !named.contains(&number) {
                *inode = Inode::default();
            }
        }
    }

    fn restart(&mut self) {
        self.locks.clear();
        self.is_down = false;
        self.crash_at = None;
        self.boot += 1;
    }

    pub(super) fn damage(&mut self, path: &Path, offset: usize, length: usize) -> io::Result<()> {
        let Some(Node::File(inode)) = self.names.get(path) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        self.inodes[*inode].damage(offset, length);
        Ok(())
    }
}

fn file(node: Node) -> Option<usize> {
    match node {
        Node::Directory => None,
        Node::File(inode) => Some(inode),
    }
}

fn input_output() -> io::Error {
    io::Error::other("input/output error (simulated)")
}

fn power_off() -> io::Error {
    io::Error::other("the power is off (simulated)")
}
