//! JSON as configuration files use it: comments and trailing commas are fine, and the result is a flat list of
//! `A:B:C` keys with text values (brief 02 §5.1).

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Largest file read. A complete configuration is below 20 KiB.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most values one file may hold.
const MAX_VALUES: usize = 10_000;
/// Longest flattened key. Together with the other limits it bounds the memory a hostile file can ask for.
const MAX_KEY_BYTES: usize = 512;

/// Why a text is not a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonFault {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: String,
}

/// Key and value in document order. Objects and arrays contribute their leaves (array elements as `:0`, `:1`, …);
/// `null` is an absent value.
pub(crate) fn flatten(text: &[u8]) -> Result<Vec<(String, String)>, JsonFault> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let plain = strip_comments_and_trailing_commas(text)?;
    let mut out = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(&plain);
    let root = Node { path: &mut String::new(), out: &mut out };
    root.deserialize(&mut json).and_then(|()| json.end()).map_err(|error| JsonFault {
        line: error.line(),
        column: error.column(),
        message: without_position(&error.to_string()),
    })?;
    Ok(out)
}

/// `serde_json` appends the position to its messages; we state it ourselves.
fn without_position(message: &str) -> String {
    message.rsplit_once(" at line ").map_or(message, |(text, _)| text).to_owned()
}

/// Replaces comments and trailing commas by spaces, so that every other byte keeps its line and column.
fn strip_comments_and_trailing_commas(text: &[u8]) -> Result<Vec<u8>, JsonFault> {
    let mut out = text.to_vec();
    let mut at = 0;
    // The comma that turns out to be trailing when a closing bracket follows it.
    let mut pending_comma = None;
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            (b'"', _) => {
                pending_comma = None;
                at = end_of_string(text, at);
                continue;
            }
            (b'/', Some(b'/')) => {
                let end = text[at..].iter().position(|&b| b == b'\n').map_or(text.len(), |n| at + n);
                out[at..end].fill(b' ');
                at = end;
                continue;
            }
            (b'/', Some(b'*')) => {
                let Some(length) = text[at + 2..].windows(2).position(|w| w == b"*/") else {
                    return Err(fault_at(text, at, "comment without end"));
                };
                let end = at + length + 4;
                out[at..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
                at = end;
                continue;
            }
            (b',', _) => pending_comma = Some(at),
            (b'}' | b']', _) => {
                if let Some(comma) = pending_comma.take() {
                    out[comma] = b' ';
                }
            }
            (byte, _) if byte.is_ascii_whitespace() => {}
            _ => pending_comma = None,
        }
        at += 1;
    }
    Ok(out)
}

/// Index after the closing quote of the string that starts at `at`.
fn end_of_string(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn fault_at(text: &[u8], at: usize, message: &str) -> JsonFault {
    let before = &text[..at];
    let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
    JsonFault {
        line: before.iter().filter(|&&b| b == b'\n').count() + 1,
        column: at - line_start + 1,
        message: message.to_owned(),
    }
}

/// One JSON value below `path`; its leaves are appended to `out`.
struct Node<'a> {
    path: &'a mut String,
    out: &'a mut Vec<(String, String)>,
}

impl Node<'_> {
    fn leaf<E: Error>(self, value: String) -> Result<(), E> {
        if self.path.is_empty() {
            return Err(E::custom("the file must hold an object"));
        }
        if self.out.len() == MAX_VALUES {
            return Err(E::custom(format_args!("more than {MAX_VALUES} values")));
        }
        self.out.push((self.path.clone(), value));
        Ok(())
    }

    /// Runs `visit` with `segment` appended to the path.
    fn below<E: Error>(
        &mut self,
        segment: &str,
        visit: impl FnOnce(Node<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let length = self.path.len();
        if length + 1 + segment.len() > MAX_KEY_BYTES {
            return Err(E::custom(format_args!("key longer than {MAX_KEY_BYTES} bytes")));
        }
        if length > 0 {
            self.path.push(':');
        }
        self.path.push_str(segment);
        let result = visit(Node { path: self.path, out: self.out });
        self.path.truncate(length);
        result
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.leaf(value.to_string())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.leaf(value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.leaf(value.to_string())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.leaf(value.to_string())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.leaf(value.to_owned())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.below(&key, |node| map.next_value_seed(node))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        if self.path.is_empty() {
            return Err(A::Error::custom("the file must hold an object"));
        }
        let mut index = 0;
        let mut more = true;
        while more {
            self.below(&index.to_string(), |node| {
                more = seq.next_element_seed(node)?.is_some();
                Ok(())
            })?;
            index += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        flatten(text.as_bytes()).unwrap()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn comments_and_trailing_commas_are_accepted() {
        let text = "\u{feff}// head\n{ \"A\": { \"B\": true, /* , } */ \"C\": \"x // y\", }, \"D\": [1, \"two\",], }";
        assert_eq!(
            pairs(text),
            [pair("A:B", "true"), pair("A:C", "x // y"), pair("D:0", "1"), pair("D:1", "two")]
        );
    }

    #[test]
    fn a_comma_without_a_value_before_it_is_a_fault() {
        for text in ["{\"A\":[1,,]}", "{\"A\": 1,, \"B\": 2}", "{\"A\",}"] {
            assert!(flatten(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn quotes_inside_strings_do_not_end_them() {
        assert_eq!(pairs(r#"{"A": "x\",/*\\", "B": 1}"#), [pair("A", r#"x",/*\"#), pair("B", "1")]);
    }

    #[test]
    fn null_and_empty_objects_are_absent() {
        assert_eq!(pairs(r#"{"A": null, "B": {}, "C": []}"#), []);
    }

    #[test]
    fn faults_name_line_and_column() {
        let fault = flatten(b"{\n  // ok\n  \"A\": oops\n}").unwrap_err();
        assert_eq!((fault.line, fault.column), (3, 8), "{fault:?}");
        let fault = flatten(b"{}\n /* never").unwrap_err();
        assert_eq!((fault.line, fault.column), (2, 2), "{fault:?}");
        assert!(!fault.message.contains("line"), "{fault:?}");
    }

    #[test]
    fn roots_other_than_an_object_are_refused() {
        for text in ["1", "[]", "[1]", "\"x\"", "true", ""] {
            assert!(flatten(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn hostile_files_are_refused_without_harm() {
        let deep = b"{\"a\":".repeat(100_000);
        assert!(flatten(&deep).is_err());
        let arrays = format!("{{\"a\":{}", "[".repeat(100_000));
        assert!(flatten(arrays.as_bytes()).is_err());
        let long_key = format!("{{\"{}\": {{\"a\": 1, \"b\": 2}}}}", "k".repeat(600));
        assert!(flatten(long_key.as_bytes()).unwrap_err().message.contains("longer"));
        let many = format!("{{\"a\": [{}1]}}", "1,".repeat(20_000));
        assert!(flatten(many.as_bytes()).unwrap_err().message.contains("more than"));
        assert!(flatten(b"{\"a\": \"\xff\xfe\"}").is_err());
        assert!(flatten(b"{\"a\": \"\\ud800\"}").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_result(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = flatten(&bytes);
        }

        #[test]
        fn any_json_like_text_gives_a_result(text in r#"[\[\]{}:,/*" \\a1\n]{0,80}"#) {
            let _ = flatten(text.as_bytes());
        }
    }
}
