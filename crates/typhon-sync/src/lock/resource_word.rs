//! The word of a resource: its bits and the rules over them, all pure.
//!
//! ```text
//!  31 somebody blocks on the word    27..24 modifiers that wait, as far as they can be counted
//!  30 somebody has waited            23..9  thread that modifies; 32,767 once destroyed
//!  29 destroyer waits                8..0   accessors
//!  28 promoter waits
//! ```
#![forbid(unsafe_code)]

use super::LockError;
use super::core::{Request, Rules, Verdict};
use crate::fault::{Fault, planted};
use crate::owner::Owner;
use crate::trace::{emit, is_on};
use std::cell::Cell;
use typhon_profiler::events::{
    ConcurrencyResourceAccessing, ConcurrencyResourceContention, ConcurrencyResourceDestroy,
    ConcurrencyResourceModify, ConcurrencyResourceModifyPromotion, Event,
};

const ACCESSORS: u32 = 0x1FF;
const OWNER_SHIFT: u32 = 9;
const OWNER: u32 = 0x7FFF << OWNER_SHIFT;
/// No thread has this id.
const DESTROYED: u32 = OWNER;
/// One modifier that waits.
const MODIFIER: u32 = 1 << 24;
const MODIFIERS: u32 = 0xF << 24;
const PROMOTER: u32 = 1 << 28;
const DESTROYER: u32 = 1 << 29;

/// Accessors that can be counted.
pub(super) const MAX_ACCESSORS: u32 = ACCESSORS;

/// Number of accessors.
pub(super) const fn accessors(word: u32) -> u32 {
    word & ACCESSORS
}

/// Has the resource been destroyed?
pub(super) const fn is_destroyed(word: u32) -> bool {
    word & OWNER == DESTROYED
}

/// Is a thread changing the resource?
pub(super) const fn is_modified(word: u32) -> bool {
    !is_unowned(word) && !is_destroyed(word)
}

const fn is_unowned(word: u32) -> bool {
    word & OWNER == 0
}

const fn owned_by(owner: Owner) -> u32 {
    (owner.id() as u32) << OWNER_SHIFT
}

fn admits_accessors(word: u32) -> bool {
    let destroyer = if planted(Fault::AccessDuringDestroy) { 0 } else { DESTROYER };
    word & (MODIFIERS | PROMOTER | destroyer) == 0
}

/// What the word of a resource is open to.
pub(super) struct Resource;

const ACCESSOR_MAY: u8 = 1;
const MODIFIER_MAY: u8 = 2;
const PROMOTER_MAY: u8 = 4;
const DESTROYER_MAY: u8 = 8;
const ALL_ARE_REFUSED: u8 = 15;

impl Rules for Resource {
    fn open(word: u32) -> u8 {
        if is_destroyed(word) {
            return if planted(Fault::DestroySilent) { 0 } else { ALL_ARE_REFUSED };
        }
        let mut open = 0;
        if admits_accessors(word) {
            open |= ACCESSOR_MAY;
        }
        if is_unowned(word) && word & DESTROYER == 0 {
            open |= MODIFIER_MAY;
        }
        if is_unowned(word) && word & PROMOTER != 0 && accessors(word) == 1 {
            open |= PROMOTER_MAY;
        }
        if is_unowned(word) && word & DESTROYER != 0 && accessors(word) == 0 {
            open |= DESTROYER_MAY;
        }
        open
    }
}

/// To use the resource beside others.
pub(super) struct ToAccess;

/// To change the resource while others use it.
pub(super) struct ToModify {
    caller: Owner,
    is_counted: Cell<bool>,
}

/// To change the resource once nobody else uses it.
pub(super) struct ToPromote {
    caller: Owner,
    /// Had to wait for the others.
    pub(super) has_waited: Cell<bool>,
}

/// To end the resource.
pub(super) struct ToDestroy {
    caller: Owner,
}

impl ToModify {
    pub(super) fn new(caller: Owner) -> Self {
        Self { caller, is_counted: Cell::new(false) }
    }
}

impl ToPromote {
    pub(super) fn new(caller: Owner) -> Self {
        Self { caller, has_waited: Cell::new(false) }
    }
}

impl ToDestroy {
    pub(super) fn new(caller: Owner) -> Self {
        Self { caller }
    }
}

fn began_waiting(first: bool) {
    if first {
        emit(|| ConcurrencyResourceContention {});
    }
}

/// What every request but an access is refused for.
fn refusal(word: u32, caller: Owner) -> Option<LockError> {
    if is_destroyed(word) {
        Some(LockError::Destroyed)
    } else if word & OWNER == owned_by(caller) {
        Some(LockError::AlreadyOwned)
    } else {
        None
    }
}

impl Request for ToAccess {
    #[inline(always)]
    fn verdict(&self, word: u32, _: bool) -> Verdict {
        if is_destroyed(word) {
            Verdict::Refuse(LockError::Destroyed)
        } else if !admits_accessors(word) {
            Verdict::Wait
        } else if accessors(word) == MAX_ACCESSORS {
            Verdict::Refuse(LockError::TooManyHolders { limit: MAX_ACCESSORS })
        } else {
            Verdict::Take(word + 1)
        }
    }

    fn began_waiting(&self, first: bool) {
        began_waiting(first);
    }

    fn is_timed(&self) -> bool {
        is_on(ConcurrencyResourceAccessing::KIND)
    }
}

impl Request for ToModify {
    #[inline(always)]
    fn verdict(&self, word: u32, _: bool) -> Verdict {
        match refusal(word, self.caller) {
            Some(error) => Verdict::Refuse(error),
            None if is_unowned(word) && word & DESTROYER == 0 => Verdict::Take(word | owned_by(self.caller)),
            None => Verdict::Wait,
        }
    }

    /// Beyond fifteen they wait uncounted: accessors stay out as long as one of those that are counted waits.
    fn enlist(&self, word: u32) -> Result<u32, LockError> {
        let is_counted = word & MODIFIERS != MODIFIERS;
        self.is_counted.set(is_counted);
        Ok(if is_counted { word + MODIFIER } else { word })
    }

    fn delist(&self, word: u32) -> u32 {
        if self.is_counted.get() { word - MODIFIER } else { word }
    }

    fn began_waiting(&self, first: bool) {
        began_waiting(first);
    }

    fn is_timed(&self) -> bool {
        is_on(ConcurrencyResourceModify::KIND)
    }
}

impl Request for ToPromote {
    fn verdict(&self, word: u32, enlisted: bool) -> Verdict {
        if let Some(error) = refusal(word, self.caller) {
            Verdict::Refuse(error)
        } else if accessors(word) == 0 {
            Verdict::Refuse(LockError::NotShared)
        } else if is_unowned(word) && (accessors(word) == 1 || planted(Fault::PromoteShared)) {
            Verdict::Take((word - 1) | owned_by(self.caller))
        } else if word & PROMOTER != 0 && !enlisted && !planted(Fault::SecondPromoterWaits) {
            Verdict::Refuse(LockError::PromotionInProgress)
        } else {
            Verdict::Wait
        }
    }

    fn enlist(&self, word: u32) -> Result<u32, LockError> {
        Ok(word | PROMOTER)
    }

    fn delist(&self, word: u32) -> u32 {
        word & !PROMOTER
    }

    fn began_waiting(&self, first: bool) {
        self.has_waited.set(true);
        began_waiting(first);
    }

    fn is_timed(&self) -> bool {
        is_on(ConcurrencyResourceModify::KIND) || is_on(ConcurrencyResourceModifyPromotion::KIND)
    }
}

impl Request for ToDestroy {
    fn verdict(&self, word: u32, enlisted: bool) -> Verdict {
        if let Some(error) = refusal(word, self.caller) {
            Verdict::Refuse(error)
        } else if word & DESTROYER != 0 && !enlisted {
            Verdict::Refuse(LockError::DestructionInProgress)
        } else if is_unowned(word) && (accessors(word) == 0 || planted(Fault::DestroyEarly)) {
            Verdict::Take(word | DESTROYED)
        } else {
            Verdict::Wait
        }
    }

    fn enlist(&self, word: u32) -> Result<u32, LockError> {
        Ok(word | DESTROYER)
    }

    fn delist(&self, word: u32) -> u32 {
        word & !DESTROYER
    }

    fn began_waiting(&self, first: bool) {
        began_waiting(first);
    }

    fn is_timed(&self) -> bool {
        is_on(ConcurrencyResourceDestroy::KIND)
    }
}

/// The word with one accessor less.
#[inline(always)]
pub(super) fn without_accessor(word: u32) -> Result<u32, LockError> {
    if accessors(word) == 0 { Err(LockError::NotShared) } else { Ok(word - 1) }
}

/// The word with nobody modifying.
#[inline(always)]
pub(super) fn without_modifier(word: u32, caller: Owner) -> Result<u32, LockError> {
    if word & OWNER == owned_by(caller) { Ok(word & !OWNER) } else { Err(LockError::NotOwner) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn b11_no_counter_spills_into_its_neighbour() {
        let too_many = LockError::TooManyHolders { limit: 511 };
        assert!(matches!(ToAccess.verdict(ACCESSORS, false), Verdict::Refuse(error) if error == too_many));
        assert_eq!(without_accessor(OWNER), Err(LockError::NotShared));
        // The sixteenth modifier waits without being counted, and does not take another's count with it.
        let request = ToModify::new(Owner::current().unwrap());
        assert_eq!(request.enlist(MODIFIERS), Ok(MODIFIERS));
        assert_eq!(request.delist(MODIFIERS), MODIFIERS);
        assert_eq!(request.enlist(MODIFIERS - MODIFIER), Ok(MODIFIERS));
        assert_eq!(request.delist(MODIFIERS), MODIFIERS - MODIFIER);
    }
}
