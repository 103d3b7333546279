//! Typed and dynamic decoding of every kind, against frozen bytes and against a writer driven by the registry alone.

mod examples;
mod forms;
mod golden;
mod properties;
mod registry_writer;
mod sweeps;
mod typed;
mod variable;

/// Bytes of a hex string; spaces and dots between groups are skipped.
fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|letter| letter.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
