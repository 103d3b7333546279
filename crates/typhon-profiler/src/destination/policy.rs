//! `retention.json`: how much automatic captures may take, and which ones stay (brief 02 B-34).

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;

use crate::config::{Fault, FaultCode, MAX_FILE_BYTES, Origin, flatten, nearest, printable};

/// Name of the policy file, beside the captures.
pub const POLICY_FILE: &str = "retention.json";

/// What may be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Captures are deleted, oldest first, while they take more than this; zero or less: never.
    pub budget_bytes: i64,
    /// This many of the newest captures are never deleted.
    pub keep_latest: usize,
    /// File names that are never deleted. They count for the budget and among the newest.
    pub pinned: BTreeSet<String>,
}

impl Default for RetentionPolicy {
    /// 20 GiB, the ten newest.
    fn default() -> Self {
        Self { budget_bytes: 20 << 30, keep_latest: 10, pinned: BTreeSet::new() }
    }
}

impl RetentionPolicy {
    /// The policy of a directory. Whatever is missing or wrong has its default, and what is wrong is a fault.
    pub fn of_directory(directory: &Path, faults: &mut Vec<Fault>) -> Self {
        let path = directory.join(POLICY_FILE);
        let text = match read_bounded(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::default(),
            Err(error) => {
                let remedy = "make it readable or remove it; the default policy applies";
                let problem = format!("cannot be read ({error})");
                faults.push(Fault::new(FaultCode::UnreadableFile, &Origin::File(path), "", problem, remedy));
                return Self::default();
            }
        };
        Self::parse(&text, &path, faults)
    }

    /// A policy from the text of a file; `path` is for messages only.
    pub fn parse(text: &[u8], path: &Path, faults: &mut Vec<Fault>) -> Self {
        let origin = Origin::File(path.to_owned());
        let mut policy = Self::default();
        let pairs = match flatten(text) {
            Ok(pairs) => pairs,
            Err(fault) => {
                let place = format!("line {} column {}", fault.line, fault.column);
                let problem = format!("{place}: {}", printable(&fault.message));
                let remedy = "correct it; the default policy applies";
                faults.push(Fault::new(FaultCode::MalformedFile, &origin, "", problem, remedy));
                return policy;
            }
        };
        for (key, value) in pairs {
            if let Err((code, problem, remedy)) = policy.set(&key, &value) {
                faults.push(Fault::new(code, &origin, &key, problem, remedy));
            }
        }
        policy
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), (FaultCode, String, String)> {
        let invalid = |expected: &str| {
            let problem = format!("\"{}\" is not a valid value", printable(value));
            (FaultCode::InvalidValue, problem, format!("write {expected}; the default applies"))
        };
        let name = key.split(':').next().unwrap_or_default();
        match name.to_lowercase().as_str() {
            "budgetbytes" => {
                self.budget_bytes = value.parse().map_err(|_| invalid("a whole number of bytes"))?
            }
            "keeplatest" => self.keep_latest = value.parse().map_err(|_| invalid("a number of captures"))?,
            "pinned" => _ = self.pinned.insert(value.to_owned()),
            _ => {
                let remedy = match nearest(name, ["budgetBytes", "keepLatest", "pinned"]) {
                    Some(known) => format!("did you mean {known}?"),
                    None => "remove it; it is ignored".to_owned(),
                };
                return Err((FaultCode::UnknownKey, "no such key".to_owned(), remedy));
            }
        }
        Ok(())
    }
}

/// A larger file fails to parse, since it is cut.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (RetentionPolicy, Vec<String>) {
        let mut faults = Vec::new();
        let policy = RetentionPolicy::parse(text.as_bytes(), Path::new(POLICY_FILE), &mut faults);
        (policy, faults.iter().map(Fault::to_string).collect())
    }

    #[test]
    fn b34_policy_is_read_in_any_case_with_comments() {
        let (policy, faults) =
            parse("{ \"BudgetBytes\": 5, /* few */ \"keepLatest\": 2, \"pinned\": [\"a.typhon-trace\",] }");
        assert_eq!(policy.budget_bytes, 5);
        assert_eq!(policy.keep_latest, 2);
        assert_eq!(policy.pinned, BTreeSet::from(["a.typhon-trace".to_owned()]));
        assert_eq!(faults, [""; 0]);
    }

    #[test]
    fn b34_malformed_policy_is_the_default_and_one_line() {
        let (policy, faults) = parse("{ \"budgetBytes\": ");
        assert_eq!(policy, RetentionPolicy::default());
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("retention.json: line 1 column 17"), "{faults:?}");
    }

    #[test]
    fn b34_one_bad_value_does_not_lose_the_pins() {
        let (policy, faults) =
            parse(r#"{"budgetBytes": "lots", "keepLatest": -1, "pinned": ["p"], "pined": ["q"]}"#);
        assert_eq!(policy.budget_bytes, 20 << 30);
        assert_eq!(policy.keep_latest, 10);
        assert!(policy.pinned.contains("p"));
        assert_eq!(
            faults,
            [
                "retention.json: budgetBytes: \"lots\" is not a valid value; \
                 write a whole number of bytes; the default applies",
                "retention.json: keepLatest: \"-1\" is not a valid value; \
                 write a number of captures; the default applies",
                "retention.json: pined:0: no such key; did you mean pinned?",
            ]
        );
    }

    #[test]
    fn b34_unreadable_policy_is_the_default_and_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let mut faults = Vec::new();
        assert_eq!(RetentionPolicy::of_directory(directory.path(), &mut faults), RetentionPolicy::default());
        assert!(faults.is_empty(), "a missing policy is no fault");
        std::fs::create_dir(directory.path().join(POLICY_FILE)).unwrap();
        assert_eq!(RetentionPolicy::of_directory(directory.path(), &mut faults), RetentionPolicy::default());
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].code, FaultCode::UnreadableFile);
    }
}
