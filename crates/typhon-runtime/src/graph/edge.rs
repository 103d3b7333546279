//! Edges and why they are there.

use std::fmt;

use crate::SystemIndex;

/// One system waits for another, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Runs first.
    pub from: SystemIndex,
    /// Waits for it.
    pub to: SystemIndex,
    /// Every rule that asks for this edge; never empty.
    pub reasons: Reasons,
}

/// A rule that makes one system wait for another. The numbers are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// `after` or `before` says so.
    Explicit = 0,
    /// In one phase: the writer of a component before its fresh readers.
    Fresh = 1,
    /// In one phase: the snapshot readers of a component before its writer.
    Snapshot = 2,
    /// The producer of events before their consumers; with a carry-over queue, an early consumer before the producer.
    Event = 3,
    /// In one phase: the writer of a resource before its readers.
    Resource = 4,
    /// Conflicting access from an earlier phase and a later one.
    CrossPhase = 5,
    /// A system that has its phase to itself.
    Exclusive = 6,
}

impl Reason {
    /// All reasons, by number.
    pub const ALL: [Self; 7] = [
        Self::Explicit,
        Self::Fresh,
        Self::Snapshot,
        Self::Event,
        Self::Resource,
        Self::CrossPhase,
        Self::Exclusive,
    ];

    /// One word, as it appears in pictures and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Fresh => "fresh",
            Self::Snapshot => "snapshot",
            Self::Event => "event",
            Self::Resource => "resource",
            Self::CrossPhase => "cross-phase",
            Self::Exclusive => "exclusive",
        }
    }
}

/// A set of [`Reason`]s.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Reasons(u8);

impl Reasons {
    /// Is this one of them?
    pub const fn contains(self, reason: Reason) -> bool {
        self.0 & (1 << reason as u8) != 0
    }

    /// These and those.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The reasons, by number.
    pub fn iter(self) -> impl Iterator<Item = Reason> {
        Reason::ALL.into_iter().filter(move |&reason| self.contains(reason))
    }
}

impl From<Reason> for Reasons {
    fn from(reason: Reason) -> Self {
        Self(1 << reason as u8)
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, reason) in self.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            f.write_str(reason.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}
