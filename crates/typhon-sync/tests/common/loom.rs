//! How every model is checked: it holds, and it finds what it should.

use std::panic::{AssertUnwindSafe, catch_unwind};
use typhon_sync::model::{Fault, plant};

/// Checks the protocol in every schedule with at most this many preemptions, then that each fault is found.
pub(crate) fn holds_and_finds(
    preemptions: usize,
    faults: &[Fault],
    scenario: impl Fn() + Sync + Send + Clone + 'static,
) {
    let check = |fault: Option<Fault>| {
        plant(fault);
        let scenario = scenario.clone();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        let result = catch_unwind(AssertUnwindSafe(|| builder.check(scenario)));
        plant(None);
        result
    };
    if let Err(panic) = check(None) {
        std::panic::resume_unwind(panic);
    }
    let missed: Vec<_> = faults.iter().filter(|fault| check(Some(**fault)).is_ok()).collect();
    assert!(missed.is_empty(), "the model does not notice {missed:?}");
}

/// Something that is not dropped by a panic that unwinds: in a model that has failed, nothing can be done any more, and
/// a second panic would end the process.
pub(crate) struct Held<T>(Option<T>);

impl<T> Held<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect("there until now")
    }
}

impl<T> std::ops::Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("there until dropped")
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::mem::forget(self.0.take());
        }
    }
}
