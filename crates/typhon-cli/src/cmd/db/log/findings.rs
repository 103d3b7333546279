//! What is wrong with a log, and how bad it is.

use crate::output::units::plural;
use std::path::PathBuf;
use typhon_log::inspect::{FileState, Inspection, Stray};
use typhon_log::{LogError, Stop};

/// The scale of all commands that judge (brief 11 §5.4); the numbers are exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Verdict {
    Sound = 0,
    SoundWithNotices = 1,
    Divergent = 2,
    DataLoss = 3,
    Unopenable = 4,
}

impl Verdict {
    /// The stable name, for programs.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::SoundWithNotices => "sound-with-notices",
            Self::Divergent => "divergent",
            Self::DataLoss => "data-loss",
            Self::Unopenable => "unopenable",
        }
    }
}

pub(super) struct Finding {
    /// Stable, kebab case.
    pub(super) code: &'static str,
    pub(super) severity: Verdict,
    pub(super) message: String,
    pub(super) path: Option<PathBuf>,
    pub(super) offset: Option<u64>,
}

/// The worst finding decides.
pub(super) fn verdict(findings: &[Finding]) -> Verdict {
    findings.iter().map(|finding| finding.severity).max().unwrap_or(Verdict::Sound)
}

pub(super) fn of(found: &Inspection) -> Vec<Finding> {
    let mut findings: Vec<Finding> = found.problems.iter().map(problem).collect();
    for file in &found.files {
        let (code, message) = match file.state {
            FileState::Unclear => {
                ("unclear-file", "no header that fits its name: a segment in the making, or a damaged one")
            }
            FileState::TooNew => {
                ("unfinished-open", "begun by an open that did not finish; the next one reuses it")
            }
            _ => continue,
        };
        let path = Some(file.path.clone());
        let severity = Verdict::SoundWithNotices;
        findings.push(Finding { code, severity, message: message.to_owned(), path, offset: None });
    }
    findings
        .extend(found.strays.chunk_by(|a, b| a.file == b.file).filter_map(|strays| not_zero(found, strays)));
    findings.extend(tail(found));
    findings
}

/// Bytes of one file that are not zero and should be.
fn not_zero(found: &Inspection, strays: &[Stray]) -> Option<Finding> {
    let first = strays.first()?;
    let count = plural(strays.iter().map(|stray| stray.bytes).sum(), "byte");
    let places = plural(strays.len() as u64, "place");
    Some(Finding {
        code: "not-zero",
        severity: Verdict::SoundWithNotices,
        message: format!(
            "{count} beside the frames, in {places}, should be zero: a crash tore the write, or another program \
             wrote here. No frame is affected, and an open takes no notice"
        ),
        path: found.files.get(first.file).map(|file| file.path.clone()),
        offset: Some(first.offset),
    })
}

fn problem(error: &LogError) -> Finding {
    let (code, severity, path, offset) = match error {
        LogError::Corruption { path, offset, .. } => ("damage", Verdict::DataLoss, Some(path), Some(*offset)),
        LogError::SegmentCut { path, bytes, .. } => {
            ("segment-cut", Verdict::DataLoss, Some(path), Some(*bytes))
        }
        LogError::SegmentMissing { directory, .. } => {
            ("segment-missing", Verdict::DataLoss, Some(directory), None)
        }
        LogError::ForeignStore { path, .. } => ("foreign-database", Verdict::Divergent, Some(path), None),
        LogError::Foreign { path } => ("foreign-file", Verdict::Divergent, Some(path), None),
        LogError::NotAFile { path, .. } => ("not-a-file", Verdict::Divergent, Some(path), None),
        LogError::Version { path, .. } => ("foreign-version", Verdict::Unopenable, Some(path), None),
        LogError::AnchorMissing { path } => ("anchor-missing", Verdict::Unopenable, Some(path), None),
        LogError::AnchorDamaged { path, .. } => ("anchor-damaged", Verdict::Unopenable, Some(path), None),
        _ => ("other", Verdict::Unopenable, None, None),
    };
    // The file has a field of its own.
    Finding { code, severity, message: error.without_path(), path: path.cloned(), offset }
}

/// How the prefix ends, if that says anything.
fn tail(found: &Inspection) -> Option<Finding> {
    let (code, message) = match found.report().stop {
        Stop::End => return None,
        Stop::Torn(invalid) => (
            "torn-tail",
            format!("a write follows that is not whole ({invalid}): torn by a crash, or being written now"),
        ),
        Stop::Gap => {
            ("gap", "a whole block follows that does not continue here: what lay between was lost".to_owned())
        }
    };
    let place = found.tail.and_then(|(file, offset)| Some((found.files.get(file)?, offset)));
    Some(Finding {
        code,
        severity: Verdict::SoundWithNotices,
        message,
        path: place.map(|(file, _)| file.path.clone()),
        offset: place.map(|(_, offset)| offset),
    })
}
