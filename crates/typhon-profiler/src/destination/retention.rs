//! Deleting old automatic captures: look, plan, delete (brief 02 B-34).
//!
//! [`plan`] decides with numbers and names only; [`prune`] looks, plans and deletes. A capture that somebody writes or
//! reads is recognised by the advisory lock its users hold, and stays.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::in_use::Turn;
use super::name::{CAPTURE_EXTENSION, time_of_name};
use super::policy::{POLICY_FILE, RetentionPolicy};
use crate::config::{Fault, FaultCode, Origin};

/// A file by its name in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizedFile {
    /// File name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// A capture with the files that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureFile {
    /// The capture itself.
    pub file: SizedFile,
    /// Start time from the name, else the time of the last write.
    pub time: SystemTime,
    /// Its sidecars.
    pub sidecars: Vec<SizedFile>,
}

/// What a directory of captures holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inventory {
    /// Captures, oldest first.
    pub captures: Vec<CaptureFile>,
    /// Sidecars whose capture is gone.
    pub orphans: Vec<SizedFile>,
}

/// What may go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Indices into [`Inventory::captures`], oldest first. Deletion stops as soon as enough is freed.
    pub candidates: Vec<usize>,
    /// Bytes to free.
    pub excess_bytes: u64,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetentionReport {
    /// Captures left, pinned ones included.
    pub capture_bytes: u64,
    /// Pinned captures.
    pub pinned_bytes: u64,
    /// Sidecars left.
    pub sidecar_bytes: u64,
    /// The budget in force.
    pub budget_bytes: i64,
    /// Captures deleted, oldest first.
    pub evicted: Vec<String>,
    /// Captures that should have gone but are in use or could not be deleted.
    pub skipped: Vec<String>,
}

/// The capture a sidecar belongs to; `None` if the name is not that of a sidecar.
fn owner_of_sidecar(name: &str) -> Option<String> {
    let stem = name
        .strip_suffix(".typhon-trace-cache")
        .or_else(|| name.strip_suffix(".typhon-trace.sites"))
        .or_else(|| name.strip_suffix(".typhon-trace.sites.new"))
        .or_else(|| name.strip_suffix(".typhon-trace.typhon-index"))
        .or_else(|| name.strip_suffix(".typhon-index"))?;
    Some(format!("{stem}{CAPTURE_EXTENSION}"))
}

/// Looks at a directory. Only regular files count; links are neither followed nor deleted.
pub fn inventory(directory: &Path) -> io::Result<Inventory> {
    let mut captures = BTreeMap::new();
    let mut sidecars = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // Files may vanish while we look.
        let Ok(metadata) = entry.path().symlink_metadata() else { continue };
        if !metadata.is_file() {
            continue;
        }
        let file = SizedFile { name: name.clone(), bytes: metadata.len() };
        if name.ends_with(CAPTURE_EXTENSION) {
            // Without any time a capture counts as new, which keeps it.
            let written = || metadata.modified().unwrap_or_else(|_| SystemTime::now());
            let time = time_of_name(&name).unwrap_or_else(written);
            captures.insert(name, CaptureFile { file, time, sidecars: Vec::new() });
        } else if let Some(owner) = owner_of_sidecar(&name) {
            sidecars.push((owner, file));
        }
    }
    let mut orphans = Vec::new();
    for (owner, sidecar) in sidecars {
        match captures.get_mut(&owner) {
            Some(capture) => capture.sidecars.push(sidecar),
            None => orphans.push(sidecar),
        }
    }
    let mut captures: Vec<CaptureFile> = captures.into_values().collect();
    captures.sort_by(|a, b| (a.time, &a.file.name).cmp(&(b.time, &b.file.name)));
    Ok(Inventory { captures, orphans })
}

/// What may be deleted under a policy. Sidecars are outside the budget.
pub fn plan(inventory: &Inventory, policy: &RetentionPolicy) -> Plan {
    let total: u64 = inventory.captures.iter().map(|capture| capture.file.bytes).sum();
    let budget = u64::try_from(policy.budget_bytes).unwrap_or(0);
    if budget == 0 || total <= budget {
        return Plan::default();
    }
    let old = inventory.captures.len().saturating_sub(policy.keep_latest);
    let is_pinned = |index: &usize| policy.pinned.contains(&inventory.captures[*index].file.name);
    Plan { candidates: (0..old).filter(|index| !is_pinned(index)).collect(), excess_bytes: total - budget }
}

/// Deletes what a directory's own policy allows to go. Everything that goes wrong is a fault, never an error.
pub fn prune(directory: &Path, faults: &mut Vec<Fault>) -> RetentionReport {
    let _turn = Turn::in_folder(directory);
    let policy = RetentionPolicy::of_directory(directory, faults);
    let inventory = inventory(directory).unwrap_or_else(|error| {
        let problem = format!("{} cannot be listed ({error})", directory.display());
        faults.push(retention_fault(directory, problem, "check the directory; no old capture is deleted"));
        Inventory::default()
    });
    let pruning = Pruning { directory, inventory: &inventory, faults };
    pruning.run(&policy)
}

fn retention_fault(directory: &Path, problem: String, remedy: &str) -> Fault {
    let origin = Origin::File(directory.join(POLICY_FILE));
    Fault::new(FaultCode::Destination, &origin, "", problem, remedy)
}

struct Pruning<'a> {
    directory: &'a Path,
    inventory: &'a Inventory,
    faults: &'a mut Vec<Fault>,
}

impl Pruning<'_> {
    fn run(mut self, policy: &RetentionPolicy) -> RetentionReport {
        let plan = plan(self.inventory, policy);
        let mut report = RetentionReport { budget_bytes: policy.budget_bytes, ..Default::default() };
        let mut evicted = BTreeSet::new();
        let mut freed = 0;
        for index in plan.candidates {
            if freed >= plan.excess_bytes {
                break;
            }
            let capture = &self.inventory.captures[index];
            let name = capture.file.name.clone();
            if self.evict(capture) {
                freed += capture.file.bytes;
                evicted.insert(index);
                report.evicted.push(name);
            } else {
                report.skipped.push(name);
            }
        }
        for orphan in &self.inventory.orphans {
            self.delete(&orphan.name);
        }
        self.add_up(policy, &evicted, &mut report);
        report
    }

    /// Deletes a capture and its sidecars unless somebody uses it.
    fn evict(&mut self, capture: &CaptureFile) -> bool {
        // Whoever uses a capture holds a shared lock; holding the exclusive one keeps new users out meanwhile.
        let path = self.directory.join(&capture.file.name);
        let lock = match File::open(&path).map(|file| (file.try_lock(), file)) {
            Ok((Ok(()), file)) => Some(file),
            Ok((Err(TryLockError::WouldBlock), _)) => return false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Ok((Err(TryLockError::Error(error)), _)) | Err(error) => {
                self.cannot_delete(&capture.file.name, &error);
                return false;
            }
        };
        let gone = self.delete(&capture.file.name);
        if gone {
            for sidecar in &capture.sidecars {
                self.delete(&sidecar.name);
            }
        }
        drop(lock);
        gone
    }

    /// True when the file is gone, whoever deleted it.
    fn delete(&mut self, name: &str) -> bool {
        match fs::remove_file(self.directory.join(name)) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => {
                self.cannot_delete(name, &error);
                false
            }
        }
    }

    fn cannot_delete(&mut self, name: &str, error: &io::Error) {
        let problem = format!("{} cannot be deleted ({error})", self.directory.join(name).display());
        self.faults.push(retention_fault(self.directory, problem, "check its permissions; it stays"));
    }

    fn add_up(&mut self, policy: &RetentionPolicy, evicted: &BTreeSet<usize>, report: &mut RetentionReport) {
        let captures = self.inventory.captures.iter().enumerate();
        for (_, capture) in captures.filter(|(index, _)| !evicted.contains(index)) {
            report.capture_bytes += capture.file.bytes;
            report.sidecar_bytes += capture.sidecars.iter().map(|sidecar| sidecar.bytes).sum::<u64>();
            if policy.pinned.contains(&capture.file.name) {
                report.pinned_bytes += capture.file.bytes;
            }
        }
        if policy.budget_bytes > 0 && report.pinned_bytes > policy.budget_bytes.unsigned_abs() {
            let (pinned, budget) = (report.pinned_bytes, policy.budget_bytes);
            let problem = format!("pinned captures take {pinned} bytes, the budget is {budget}");
            let remedy = "unpin some or raise budgetBytes; other captures are deleted down to keepLatest";
            self.faults.push(retention_fault(self.directory, problem, remedy));
        }
    }
}
