//! Numbers of errors never change.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::BTreeSet;
use typhon_engine::ErrorCode;

/// Every number that there ever was; lines are only ever added.
const REMEMBERED: &str = include_str!("error_codes.txt");

#[test]
fn b71_numbers_are_as_remembered() {
    let mut all = ErrorCode::ALL.to_vec();
    all.sort_unstable();
    let lines =
        all.iter().map(|code| format!("{code}{}\n", if code.is_transient() { " transient" } else { "" }));
    assert_eq!(
        lines.collect::<String>(),
        REMEMBERED,
        "add new numbers to tests/error_codes.txt, change none"
    );
}

#[test]
fn b71_numbers_and_names_are_unique() {
    let numbers: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.get()).collect();
    let names: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
    assert_eq!((numbers.len(), names.len()), (ErrorCode::ALL.len(), ErrorCode::ALL.len()));
}

#[test]
fn b71_only_timeouts_and_exhausted_resources_are_transient() {
    for code in ErrorCode::ALL {
        let is_expected = code.name().contains("Timeout") || code.name() == "ResourceExhausted";
        assert_eq!(code.is_transient(), is_expected, "{code}");
    }
}
