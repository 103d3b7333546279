//! The strict codec of kinds 247 and 248: what it accepts it writes again byte by byte, and it agrees with the views.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typhon_trace::event::{QueryArgsView, QueryDefinitionDescribeView};
use typhon_trace::query_definition::{QueryArgsRecord, QueryDefinitionRecord};
use typhon_trace::record::Record;

fuzz_target!(|input: &[u8]| {
    if let Ok(definition) = QueryDefinitionRecord::decode(input) {
        let mut out = vec![0; input.len()];
        let size = definition.encode(&mut out).expect("what was read fits where it came from");
        assert_eq!(QueryDefinitionRecord::decode(&out[..size]), Ok(definition));
        let record = Record::parse(input).expect("the codec accepts sound records only");
        let view = QueryDefinitionDescribeView::new(&record).expect("the codec checks the kind");
        let evaluators = view.evaluators();
        assert!(!evaluators.is_cut());
        assert!(evaluators.iter().eq(definition.evaluator_list().iter()));
    }
    if let Ok(arguments) = QueryArgsRecord::decode(input) {
        let mut out = vec![0; input.len()];
        let size = arguments.encode(&mut out).expect("what was read fits where it came from");
        assert_eq!(QueryArgsRecord::decode(&out[..size]), Ok(arguments));
        let record = Record::parse(input).expect("the codec accepts sound records only");
        let view = QueryArgsView::new(&record).expect("the codec checks the kind");
        assert!(view.thresholds().iter().eq(arguments.threshold_list().iter()));
    }
    check_sizes(input);
});

/// An output that is one byte too small is refused and left alone.
fn check_sizes(input: &[u8]) {
    let Ok(arguments) = QueryArgsRecord::decode(input) else { return };
    let size = QueryArgsRecord::compute_size(arguments.thresholds.len() / 8).expect("it was decoded");
    let mut small = vec![0xA5; size - 1];
    assert!(arguments.encode(&mut small).is_err());
    assert!(small.iter().all(|byte| *byte == 0xA5));
}
