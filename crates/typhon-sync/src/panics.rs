//! Code of others that panics, down to the last destructor.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Drops a value whose destructor may panic, and goes on if it does; the panic hook has said so by then. What catches a
/// panic drops its payload like this: that is a value of the code that panicked.
pub fn drop_guarded<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // The payload of a panic in a destructor may panic again, and so on for ever.
        std::mem::forget(payload);
    }
}

/// Calls code of others; false if it panicked. Nothing of the panic goes any further.
pub fn guarded(call: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(call)).map_err(drop_guarded).is_ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Spite;

    impl Drop for Spite {
        fn drop(&mut self) {
            // A payload that is forgotten leaks what it owns, and this one owns nothing: leaks fail tests.
            std::panic::resume_unwind(Box::new(()));
        }
    }

    #[test]
    fn nothing_of_a_panic_goes_any_further() {
        assert!(guarded(|| {}));
        assert!(!guarded(|| std::panic::resume_unwind(Box::new(Spite))));
        drop_guarded(Spite);
    }
}
