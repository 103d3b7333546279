//! Names of the files in a log's directory.

use crate::error::LogError;
use std::path::Path;
use typhon_store::{Entry, EntryKind};

/// What a name says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    /// A segment with this number.
    Segment(u64),
    /// A file prepared to become one.
    Spare(u64),
}

impl Name {
    /// The meaning of a name; `None` for files that the log does not touch.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (stem, extension) = name.split_once('.')?;
        let is_canonical = stem.len() == 16 && stem.bytes().all(|byte| byte.is_ascii_digit());
        let number = stem.parse().ok().filter(|_| is_canonical)?;
        match extension {
            "wal" => Some(Self::Segment(number)),
            "spare" => Some(Self::Spare(number)),
            _ => None,
        }
    }

    /// The meaning of a name in a directory.
    ///
    /// # Errors
    /// [`LogError::NotAFile`] if it is a name of the log and something else than a file has it. Sooner or later the log
    /// would come to that name, and fail.
    pub(crate) fn of(directory: &Path, entry: &Entry) -> Result<Option<Self>, LogError> {
        match (Self::parse(&entry.name), entry.kind) {
            (Some(_), kind) if kind != EntryKind::File => {
                Err(LogError::NotAFile { path: directory.join(&entry.name), kind })
            }
            (name, _) => Ok(name),
        }
    }

    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Segment(number) | Self::Spare(number) => number,
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Segment(number) => write!(f, "{number:016}.wal"),
            Self::Spare(number) => write!(f, "{number:016}.spare"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sixteen_digits_and_an_extension() {
        assert_eq!(Name::parse("0000000000000007.wal"), Some(Name::Segment(7)));
        assert_eq!(Name::parse("0000000000000007.spare"), Some(Name::Spare(7)));
        assert_eq!(Name::Segment(7).to_string(), "0000000000000007.wal");
        for other in
            ["7.wal", "000000000000000x.wal", "0000000000000007.wal~", "anchor", "+000000000000007.wal"]
        {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
