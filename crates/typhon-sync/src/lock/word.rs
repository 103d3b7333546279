//! The word of readers and writers: its bits and the rules over them, all pure.
//!
//! ```text
//!  31 somebody blocks on the word    27     promoter waits
//!  30 somebody has waited            26..16 writers that wait
//!  29 a writer blocks in its lane    15     held exclusively
//!  28 unused                         14..0  by this thread / by this many readers
//! ```
//!
//! The compact lock uses the same word and never counts writers or promoters; that alone makes it unfair.
#![forbid(unsafe_code)]

use super::LockError;
use super::core::{Request, Rules, Verdict, WRITER_PARKED};
use crate::fault::{Fault, planted};
use crate::owner::{self, Owner};

/// Thread id of the owner, or number of readers.
const HOLDERS: u32 = 0x7FFF;
const EXCLUSIVE: u32 = 1 << 15;
/// One writer that waits.
const WRITER: u32 = 1 << 16;
const WRITERS: u32 = 0x7FF << 16;
const PROMOTER: u32 = 1 << 27;

/// Readers that a lock can count.
pub(super) const MAX_READERS: u32 = HOLDERS;
/// Writers that can wait for a lock.
pub(super) const MAX_WAITING_WRITERS: u32 = WRITERS / WRITER;

const fn is_free(word: u32) -> bool {
    word & (HOLDERS | EXCLUSIVE) == 0
}

/// Number of readers.
pub(super) const fn readers(word: u32) -> u32 {
    if word & EXCLUSIVE == 0 { word & HOLDERS } else { 0 }
}

/// Writers that wait.
pub(super) const fn waiting_writers(word: u32) -> u32 {
    (word & WRITERS) / WRITER
}

/// Id of the thread that holds the lock exclusively.
pub(super) const fn owner(word: u32) -> Option<u16> {
    if word & EXCLUSIVE == 0 { None } else { Some((word & HOLDERS) as u16) }
}

fn admits_readers(word: u32) -> bool {
    let waiting = if planted(Fault::ReaderJoins) { 0 } else { WRITERS | PROMOTER };
    word & (EXCLUSIVE | waiting) == 0
}

/// What the word of readers and writers is open to.
pub(super) struct ReadersWriters;

const READER_MAY: u8 = 1;
const WRITER_MAY: u8 = 2;
const PROMOTER_MAY: u8 = 4;

impl Rules for ReadersWriters {
    const WRITERS: u8 = WRITER_MAY;

    fn open(word: u32) -> u8 {
        let mut open = 0;
        if admits_readers(word) && !(planted(Fault::DemoteSilent) && readers(word) > 0) {
            open |= READER_MAY;
        }
        if is_free(word) {
            open |= WRITER_MAY;
        }
        if word & PROMOTER != 0 && readers(word) == 1 {
            open |= PROMOTER_MAY;
        }
        open
    }
}

/// What differs between the locks that have this word.
pub(super) trait Waiters {
    /// Waiting writers and promoters are counted, and readers stay behind them.
    const IS_FAIR: bool;
    /// A thread begins to wait.
    fn began_waiting();
    /// Is the length of a wait going to be recorded?
    fn is_timed() -> bool;
}

/// To share the lock.
pub(super) struct ToShare<V>(pub(super) V);

/// To hold the lock alone.
pub(super) struct ToOwn<V>(pub(super) V, pub(super) Owner);

/// To hold alone what is shared now.
pub(super) struct ToPromote<V>(pub(super) V, pub(super) Owner);

impl<V: Waiters> Request for ToShare<V> {
    #[inline(always)]
    fn verdict(&self, word: u32, _: bool) -> Verdict {
        if !admits_readers(word) {
            let is_mine = word & EXCLUSIVE != 0 && word & HOLDERS == u32::from(owner::current_id());
            return if is_mine { Verdict::Refuse(LockError::AlreadyOwned) } else { Verdict::Wait };
        }
        if word & HOLDERS == MAX_READERS {
            return Verdict::Refuse(LockError::TooManyHolders { limit: MAX_READERS });
        }
        Verdict::Take(word + 1)
    }

    fn began_waiting(&self, _: bool) {
        V::began_waiting();
    }

    fn is_timed(&self) -> bool {
        V::is_timed()
    }
}

impl<V: Waiters> Request for ToOwn<V> {
    const IS_WRITER: bool = true;

    #[inline(always)]
    fn verdict(&self, word: u32, _: bool) -> Verdict {
        if is_free(word) {
            Verdict::Take(word | EXCLUSIVE | u32::from(self.1.id()))
        } else if owner(word) == Some(self.1.id()) {
            Verdict::Refuse(LockError::AlreadyOwned)
        } else {
            Verdict::Wait
        }
    }

    fn enlist(&self, word: u32) -> Result<u32, LockError> {
        if !V::IS_FAIR {
            return Ok(word);
        }
        if waiting_writers(word) == MAX_WAITING_WRITERS {
            return Err(LockError::TooManyWaiters { limit: MAX_WAITING_WRITERS });
        }
        Ok(word + WRITER)
    }

    fn delist(&self, word: u32) -> u32 {
        match waiting_writers(word) {
            _ if !V::IS_FAIR => word,
            1 => (word - WRITER) & !WRITER_PARKED,
            _ => word - WRITER,
        }
    }

    fn began_waiting(&self, _: bool) {
        V::began_waiting();
    }

    fn is_timed(&self) -> bool {
        V::is_timed()
    }
}

impl<V: Waiters> Request for ToPromote<V> {
    fn verdict(&self, word: u32, enlisted: bool) -> Verdict {
        match readers(word) {
            0 if owner(word) == Some(self.1.id()) => Verdict::Refuse(LockError::AlreadyOwned),
            0 => Verdict::Refuse(LockError::NotShared),
            many if many == 1 || planted(Fault::PromoteShared) => {
                Verdict::Take(word & !HOLDERS | EXCLUSIVE | u32::from(self.1.id()))
            }
            _ if !V::IS_FAIR => Verdict::Refuse(LockError::SharedByOthers),
            _ if word & PROMOTER != 0 && !enlisted && !planted(Fault::SecondPromoterWaits) => {
                Verdict::Refuse(LockError::PromotionInProgress)
            }
            _ => Verdict::Wait,
        }
    }

    fn enlist(&self, word: u32) -> Result<u32, LockError> {
        Ok(word | PROMOTER)
    }

    fn delist(&self, word: u32) -> u32 {
        word & !PROMOTER
    }

    fn began_waiting(&self, _: bool) {
        V::began_waiting();
    }

    fn is_timed(&self) -> bool {
        V::is_timed()
    }
}

/// The word with one reader less.
#[inline(always)]
pub(super) fn without_reader(word: u32) -> Result<u32, LockError> {
    if readers(word) == 0 { Err(LockError::NotShared) } else { Ok(word - 1) }
}

/// The word without its owner.
#[inline(always)]
pub(super) fn without_owner(word: u32, caller: Owner) -> Result<u32, LockError> {
    match owner(word) {
        Some(id) if id == caller.id() => Ok(word & !(HOLDERS | EXCLUSIVE)),
        _ => Err(LockError::NotOwner),
    }
}

/// The word with its owner become the one reader.
pub(super) fn demoted(word: u32, caller: Owner) -> Result<u32, LockError> {
    Ok(without_owner(word, caller)? + 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lock::events::{Compact, Fair};

    fn taken(verdict: Verdict) -> Option<u32> {
        match verdict {
            Verdict::Take(word) => Some(word),
            Verdict::Wait | Verdict::Refuse(_) => None,
        }
    }

    fn refused(verdict: Verdict) -> Option<LockError> {
        match verdict {
            Verdict::Refuse(error) => Some(error),
            Verdict::Wait | Verdict::Take(_) => None,
        }
    }

    #[test]
    fn b11_no_counter_spills_into_its_neighbour() -> Result<(), LockError> {
        let full = MAX_READERS;
        let too_many = LockError::TooManyHolders { limit: 32_767 };
        assert_eq!(refused(ToShare(Fair).verdict(full, false)), Some(too_many));
        assert_eq!(taken(ToShare(Fair).verdict(full - 1, false)), Some(full));
        assert_eq!(without_reader(0), Err(LockError::NotShared));
        let crowded = WRITERS | EXCLUSIVE | HOLDERS;
        let too_many = LockError::TooManyWaiters { limit: 2_047 };
        assert_eq!(ToOwn(Fair, Owner::current()?).enlist(crowded), Err(too_many));
        assert_eq!(ToOwn(Fair, Owner::current()?).enlist(crowded - WRITER), Ok(crowded));
        Ok(())
    }

    #[test]
    fn b8_the_last_waiting_writer_takes_the_mark_of_its_lane_with_it() -> Result<(), LockError> {
        let request = ToOwn(Fair, Owner::current()?);
        let two = (2 * WRITER) | WRITER_PARKED | 5;
        assert_eq!(request.delist(two), WRITER | WRITER_PARKED | 5);
        assert_eq!(request.delist(request.delist(two)), 5);
        Ok(())
    }

    #[test]
    fn b8_readers_stay_behind_whoever_waits_and_b9_do_not() -> Result<(), LockError> {
        for waiting in [WRITER, PROMOTER, WRITERS] {
            assert_eq!(taken(ToShare(Fair).verdict(3 | waiting, false)), None);
        }
        let request = ToOwn(Compact, Owner::current()?);
        assert_eq!(request.enlist(3), Ok(3));
        assert_eq!(request.delist(3), 3);
        assert_eq!(taken(ToShare(Compact).verdict(3, false)), Some(4));
        Ok(())
    }
}
