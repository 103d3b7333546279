//! A bounded list of notices: a hostile file can hold a fault per 13 bytes.

use crate::{Notice, NoticeCode};

/// Notices kept per code; further ones are only counted.
pub(crate) const MAX_NOTICES_PER_CODE: usize = 256;

/// Collects notices in the order they are found.
#[derive(Debug, Default, Clone)]
pub(crate) struct NoticeLog {
    kept: Vec<Notice>,
    codes: Vec<CodeCount>,
}

#[derive(Debug, Clone)]
struct CodeCount {
    code: NoticeCode,
    kept: usize,
    dropped: u64,
}

impl NoticeLog {
    /// An empty log.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a notice, or counts it when there are many with its code.
    pub(crate) fn push(&mut self, notice: Notice) {
        let place = self.codes.iter().position(|entry| entry.code == notice.code);
        let place = place.unwrap_or_else(|| {
            self.codes.push(CodeCount { code: notice.code, kept: 0, dropped: 0 });
            self.codes.len() - 1
        });
        let entry = &mut self.codes[place];
        if entry.kept < MAX_NOTICES_PER_CODE {
            entry.kept += 1;
            self.kept.push(notice);
        } else {
            entry.dropped += 1;
        }
    }

    /// Adds many notices.
    pub(crate) fn extend(&mut self, notices: impl IntoIterator<Item = Notice>) {
        notices.into_iter().for_each(|notice| self.push(notice));
    }

    /// What was kept so far.
    pub(crate) fn kept(&self) -> &[Notice] {
        &self.kept
    }

    /// All notices of two logs, as [`NoticeLog::into_sorted`].
    pub(crate) fn merge(mut self, other: Self) -> Vec<Notice> {
        self.kept.extend(other.kept);
        self.codes.extend(other.codes);
        self.into_sorted()
    }

    /// All notices by file offset, those without a place first; one more per code that had too many.
    pub(crate) fn into_sorted(self) -> Vec<Notice> {
        let mut notices = self.kept;
        notices.sort_by_key(|notice| (notice.offset, notice.block, notice.record));
        notices.extend(self.codes.iter().filter(|entry| entry.dropped > 0).map(|entry| {
            let message = format!("{} more of this kind are not listed", entry.dropped);
            Notice::new(entry.code, message).counting(entry.dropped)
        }));
        notices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_notices_of_one_code_are_counted_not_kept() {
        let mut log = NoticeLog::new();
        for offset in (0..1000).rev() {
            log.push(Notice::new(NoticeCode::ShortSpan, "short").at(offset));
        }
        log.push(Notice::new(NoticeCode::BadRecord, "bad").at(990));
        let notices = log.into_sorted();
        assert_eq!(notices.len(), MAX_NOTICES_PER_CODE + 2);
        assert!(notices.is_sorted_by_key(|notice| notice.offset.unwrap_or(u64::MAX)));
        assert_eq!(notices.last().map(|notice| notice.count), Some(1000 - MAX_NOTICES_PER_CODE as u64));
    }
}
