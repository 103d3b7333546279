//! JSON: byte-level emission for records by the million, and documents.
//!
//! Control characters and direction overrides are always written as `\u` escapes. That changes nothing for a JSON
//! reader, and makes the text safe to show on a terminal.

use super::escape::is_hostile;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io::{self, Write};

/// Appends a JSON string with its quotes.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends the inside of a JSON string.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|byte| matches!(byte, 0x20..=0x7e) && byte != b'"' && byte != b'\\') {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if is_hostile(c) => push_escape(out, c),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

fn push_escape(out: &mut Vec<u8>, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        out.extend_from_slice(b"\\u");
        push_hex(out, &unit.to_be_bytes());
    }
}

/// Appends an integer.
#[inline]
pub(crate) fn push_int(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends the shortest decimal that reads back to the same number; NaN and infinities become strings.
pub(crate) fn push_float(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        push_string(out, non_finite(value));
    }
}

/// How a number that JSON cannot hold is called.
pub(crate) fn non_finite(value: f64) -> &'static str {
    match value {
        v if v.is_nan() => "NaN",
        v if v > 0.0 => "Infinity",
        _ => "-Infinity",
    }
}

/// Appends lower-case hexadecimal digits.
pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// A document with two-space indentation and a final line break.
pub(crate) fn document(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, SafePretty(PrettyFormatter::new()));
    // Writing into memory cannot fail, and no document has keys that are not strings.
    let written = value.serialize(&mut serializer);
    debug_assert!(written.is_ok());
    out.push(b'\n');
    out
}

/// A document on one line, for streams of documents.
pub(crate) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut out, SafeCompact));
    debug_assert!(written.is_ok());
    out.push(b'\n');
    out
}

/// Writes part of a string without what a terminal must not see.
fn write_safe<W: ?Sized + Write>(out: &mut W, fragment: &str) -> io::Result<()> {
    let mut safe = Vec::with_capacity(fragment.len());
    push_escaped(&mut safe, fragment);
    out.write_all(&safe)
}

/// Everything on one line, escaped as in documents.
struct SafeCompact;

impl Formatter for SafeCompact {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        write_safe(out, fragment)
    }
}

/// Pretty printing that also escapes what a terminal must not see.
struct SafePretty<'a>(PrettyFormatter<'a>);

impl Formatter for SafePretty<'_> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        write_safe(out, fragment)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }
    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }
    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }
    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn string(text: &str) -> String {
        let mut out = Vec::new();
        push_string(&mut out, text);
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    #[test]
    fn hostile_characters_are_escaped() {
        assert_eq!(string("a\"\\\x1b\u{202e}é\n"), r#""a\"\\\u001b\u202eé\n""#);
    }

    #[test]
    fn documents_escape_too() {
        let text = document(&serde_json::json!({"a\u{9b}": ["\u{202e}\x1b"]}));
        assert_eq!(String::from_utf8_lossy(&text), "{\n  \"a\\u009b\": [\n    \"\\u202e\\u001b\"\n  ]\n}\n");
    }

    #[test]
    fn lines_escape_too_and_are_single() {
        let text = line(&serde_json::json!({"a\u{9b}": ["\n", 1]}));
        assert_eq!(String::from_utf8_lossy(&text), "{\"a\\u009b\":[\"\\n\",1]}\n");
    }

    #[test]
    fn numbers_that_json_lacks_are_strings() {
        let mut out = Vec::new();
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5] {
            push_float(&mut out, value);
        }
        assert_eq!(out, br#""NaN""Infinity""-Infinity"0.5"#);
    }

    proptest! {
        #[test]
        fn every_string_survives(text in ".*") {
            prop_assert_eq!(serde_json::from_str::<String>(&string(&text)).expect("valid"), text);
        }

        #[test]
        fn every_float_survives(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            let mut out = Vec::new();
            push_float(&mut out, value);
            let read: f64 = std::str::from_utf8(&out).expect("UTF-8").parse().expect("a number");
            prop_assert_eq!(read.to_bits(), value.to_bits());
        }
    }
}
