//! The filter language: what parses prints as text that means the same, and every mistake points into the text.
#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use typhon_analysis::filter::{self, Facts, FieldFact, Number, SystemRef};

/// Longer filters only make the regular expressions slower.
const FILTER_BYTES_MAX: usize = 512;

fuzz_target!(|text: &str| {
    if text.len() > FILTER_BYTES_MAX {
        return;
    }
    match filter::parse(text) {
        Ok(parsed) => {
            let printed = parsed.to_string();
            let again = match filter::parse(&printed) {
                Ok(again) => again,
                Err(error) => panic!("{text:?} prints as {printed:?}: {error}"),
            };
            assert_eq!(again, parsed, "{text:?} prints as {printed:?}");
            for record in [Sample { kind: 5 }, Sample { kind: 41 }, Sample { kind: 255 }] {
                assert_eq!(again.matches(&record), parsed.matches(&record));
            }
        }
        Err(error) => {
            let columns = text.chars().count();
            assert!((1..=columns + 1).contains(&error.column), "{error} in {columns} columns");
            assert!(error.pointer().ends_with('^'));
        }
    }
});

/// A record that has everything a filter may ask for.
struct Sample {
    kind: u8,
}

impl Facts for Sample {
    fn kind(&self) -> u8 {
        self.kind
    }
    fn slot(&self) -> u8 {
        3
    }
    fn tick(&self) -> u64 {
        17
    }
    fn ts_ns(&self) -> i64 {
        -1
    }
    fn dur_ns(&self) -> Option<i64> {
        Some(50_000)
    }
    fn self_ns(&self) -> Option<i64> {
        Some(20_000)
    }
    fn depth(&self) -> Option<u32> {
        Some(2)
    }
    fn span_id(&self) -> Option<u64> {
        Some(u64::MAX)
    }
    fn parent_span_id(&self) -> Option<u64> {
        Some(1)
    }
    fn trace_id(&self) -> Option<Cow<'_, str>> {
        Some("00112233445566778899aabbccddeeff".into())
    }
    fn site_id(&self) -> Option<u16> {
        Some(9)
    }
    fn site_texts(&self) -> [Option<Cow<'_, str>>; 2] {
        [Some("src/sim.rs:76".into()), Some("step".into())]
    }
    fn name(&self) -> Option<Cow<'_, str>> {
        Some("Movement".into())
    }
    fn thread(&self) -> Option<Cow<'_, str>> {
        Some("Worker-2".into())
    }
    fn system(&self) -> Option<SystemRef<'_>> {
        Some(SystemRef { index: 4, name: Some("Movement") })
    }
    fn field(&self, name: &str) -> Option<FieldFact<'_>> {
        let number = Some(Number::Int(name.len() as i128));
        Some(FieldFact { number, nanoseconds: number, text: Some("Explicit".into()) })
    }
}
