//! Every single changed bit of a file written here is reported, except in the few bytes that are documented as
//! unprotected.

use typhon_trace::Severity;
use typhon_trace::reader::FileVerdict;
use typhon_trace::tables::Tables;

use super::fixture::{PLAIN, Recipe, SALVAGE, verify_bytes};

/// File offsets of the routing ids, the only bytes without protection in a closed file.
fn unprotected(file: &[u8]) -> Vec<usize> {
    let tables = Tables::read(&mut &file[207..]).unwrap();
    tables.routing_id_offsets.iter().flat_map(|at| [207 + at, 207 + at + 1]).collect()
}

fn flip_every_bit(file: &[u8]) {
    let clean = verify_bytes(file, PLAIN).unwrap();
    assert_eq!((clean.verdict, &clean.findings), (FileVerdict::Sound, &vec![]));
    let unprotected = unprotected(file);
    let mut silent = Vec::new();
    for byte in 0..file.len() {
        for bit in 0..8 {
            let mut flipped = file.to_vec();
            flipped[byte] ^= 1 << bit;
            for options in [PLAIN, SALVAGE] {
                let Ok(report) = verify_bytes(&flipped, options) else { continue };
                let reported = report.findings.iter().any(|finding| finding.severity() > Severity::Info);
                if !reported && !unprotected.contains(&byte) {
                    silent.push((byte, bit, report.findings));
                }
            }
        }
    }
    assert!(
        silent.is_empty(),
        "{} flips of {} bytes go unseen: {:?}",
        silent.len(),
        file.len(),
        &silent[..1]
    );
}

#[test]
fn b38_every_bit_flip_is_reported_in_a_file_with_everything() {
    flip_every_bit(&Recipe::full().write());
}

#[test]
fn b38_every_bit_flip_is_reported_in_a_file_with_one_block() {
    flip_every_bit(&Recipe { blocks: vec![2], names_before: None, sections: false, close: true }.write());
}

#[test]
fn b38_every_bit_flip_is_reported_in_a_file_without_events() {
    flip_every_bit(&Recipe { blocks: vec![], names_before: None, sections: false, close: true }.write());
    flip_every_bit(&Recipe { blocks: vec![], names_before: None, sections: true, close: true }.write());
}
