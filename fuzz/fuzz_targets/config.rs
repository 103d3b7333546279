//! Two configuration files and some environment variables, separated by zero bytes: any input resolves, twice the same,
//! and everything wrong with it fits on lines of their own.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use typhon_profiler::config::{Settings, resolve};
use typhon_profiler::destination::RetentionPolicy;
use typhon_trace::registry::{Status, kind};

fuzz_target!(|input: &[u8]| {
    let mut parts = input.split(|&byte| byte == 0);
    let mut settings = Settings::builder();
    for file in parts.by_ref().take(2) {
        settings = settings.file_text("typhon.telemetry.json", file);
        let mut faults = Vec::new();
        RetentionPolicy::parse(file, Path::new("retention.json"), &mut faults);
        faults.iter().for_each(|fault| assert_one_line(&fault.to_string()));
    }
    let variables = parts.filter_map(|part| std::str::from_utf8(part).ok()?.split_once('='));
    let settings = settings.environment(variables).build();

    let resolved = resolve(&settings);
    resolved.faults.iter().for_each(|fault| assert_one_line(&fault.to_string()));
    let mask = resolved.mask();
    assert!(resolved.options.enabled || mask.is_empty());
    assert!(mask.iter().all(|id| kind(id).is_some_and(|info| info.status == Status::Live)));
    assert_eq!(resolve(&settings).gates, resolved.gates);
    assert!(resolved.explain().lines().count() > 250, "every gate and kind has a line");
});

fn assert_one_line(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
