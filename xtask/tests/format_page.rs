//! `docs/trace-format.md` against the recordings it quotes and the registry it summarises.
//!
//! Fenced examples name their place in the first line: `hex FILE OFFSET` are bytes of a file in `corpus/`, and
//! `record FILE BLOCK OFFSET` bytes of a decompressed block.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use typhon_trace::block::{BLOCK_HEADER_BYTES, BlockHeader};
use typhon_trace::header::HEADER_BYTES;
use typhon_trace::registry;
use typhon_trace::tables::Tables;

const PAGE: &str = "docs/trace-format.md";

/// Marks the paragraph that lists the kinds that are spans.
const SPAN_KINDS_MARK: &str = "<!-- span kinds: checked against the registry -->";

#[test]
fn examples_of_the_page_are_in_the_recordings() {
    let examples = examples(&read_page());
    assert!(examples.len() > 10, "only {} examples found", examples.len());
    for example in &examples {
        assert_eq!(example.fault(), None, "{}", example.place);
    }
}

#[test]
fn the_page_lists_the_span_kinds_of_the_registry() {
    assert_eq!(span_kinds_fault(&read_page()), None);
}

#[test]
fn a_wrong_example_is_found() {
    let found = examples("```hex guide-shard.typhon-trace 0\n54 59 | 54 53\n```\n");
    assert_eq!(found[0].bytes, [0x54, 0x59, 0x54, 0x53]);
    assert_eq!(found[0].fault().as_deref(), Some("differs from the file"));
}

#[test]
fn a_wrong_shape_is_found() {
    let fault = span_kinds_fault(&format!("{SPAN_KINDS_MARK}\n0–9,\n10\n\nand so on")).unwrap();
    assert!(fault.contains("[0, 1, 2,"), "{fault}");
    assert_eq!(parse_range("7–9"), 7..=9);
    assert_eq!(parse_range("x").count(), 0);
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read_page() -> String {
    fs::read_to_string(root().join(PAGE)).unwrap()
}

/// A fenced example.
#[derive(Debug, PartialEq, Eq)]
struct Example {
    /// The words after the fence.
    place: String,
    bytes: Vec<u8>,
}

impl Example {
    /// How the example differs from its file, if it does.
    fn fault(&self) -> Option<String> {
        let words: Vec<&str> = self.place.split_whitespace().collect();
        let (data, offset) = match words.as_slice() {
            ["hex", file, offset] => (read_corpus(file), *offset),
            ["record", file, block, offset] => {
                (nth_block(&read_corpus(file), block.parse().unwrap()), *offset)
            }
            _ => return Some("is neither `hex FILE OFFSET` nor `record FILE BLOCK OFFSET`".to_owned()),
        };
        let expected =
            offset.parse().ok().and_then(|offset: usize| data.get(offset..offset + self.bytes.len()));
        (expected != Some(&self.bytes)).then(|| "differs from the file".to_owned())
    }
}

/// All fenced blocks whose fence says `hex` or `record`.
fn examples(page: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(place) =
            line.strip_prefix("```").filter(|rest| rest.starts_with("hex") || rest.starts_with("record"))
        else {
            continue;
        };
        let body = lines.by_ref().take_while(|line| *line != "```");
        let bytes =
            body.flat_map(|line| line.split([' ', '|'])).filter_map(|byte| u8::from_str_radix(byte, 16).ok());
        found.push(Example { place: place.to_owned(), bytes: bytes.collect() });
    }
    found
}

fn read_corpus(file: &str) -> Vec<u8> {
    fs::read(root().join("corpus").join(file)).unwrap()
}

/// The decompressed bytes of a block of a sound file, counted from 0.
fn nth_block(file: &[u8], index: usize) -> Vec<u8> {
    let tables = Tables::read(&mut &file[HEADER_BYTES..]).unwrap();
    let mut rest = &file[HEADER_BYTES + tables.raw.len()..];
    for _ in 0..index {
        rest = &rest[block_header(rest).total_bytes() as usize..];
    }
    let mut buffer = Vec::new();
    let header = block_header(rest);
    let data = &rest[BLOCK_HEADER_BYTES..header.total_bytes() as usize];
    header.decompress(data, &mut buffer).unwrap().to_vec()
}

fn block_header(block: &[u8]) -> BlockHeader {
    BlockHeader::parse(block.first_chunk().unwrap()).unwrap()
}

fn span_kinds_fault(page: &str) -> Option<String> {
    let Some((_, after)) = page.split_once(SPAN_KINDS_MARK) else {
        return Some(format!("{PAGE}: the list of span kinds is gone"));
    };
    let list = after.trim_start().split("\n\n").next().unwrap_or_default();
    let listed: BTreeSet<u8> = list.split([',', '\n']).flat_map(|range| parse_range(range.trim())).collect();
    let expected: BTreeSet<u8> = (0..=u8::MAX).filter(|kind| registry::is_span(*kind)).collect();
    let wrong: Vec<&u8> = listed.symmetric_difference(&expected).collect();
    (!wrong.is_empty()).then(|| format!("{PAGE}: shape of kinds {wrong:?}"))
}

/// `7` or `7–9`; nothing for anything else.
fn parse_range(text: &str) -> std::ops::RangeInclusive<u8> {
    let (first, last) = text.split_once('–').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) => first..=last,
        _ => std::ops::RangeInclusive::new(1, 0),
    }
}
