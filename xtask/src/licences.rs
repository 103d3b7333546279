//! Licences of everything that a build pulls in, against a list of permissive ones.
//!
//! `cargo deny` answers the same question, but building it costs a fresh machine several minutes; the graph cargo
//! already has is all that is needed.

use crate::workspace::Metadata;

/// SPDX ids of licences that may be combined with MIT OR Apache-2.0 without further duties for users.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// One line for every third-party package whose licence is missing or not on the list.
pub(crate) fn findings(metadata: &Metadata) -> Vec<String> {
    let mut found = Vec::new();
    for package in metadata.third_parties() {
        match package.license.as_deref() {
            Some(licence) if is_allowed(licence) => {}
            Some(licence) => {
                found.push(format!("{} {}: licence {licence:?}", package.name, package.version));
            }
            None => found.push(format!("{} {}: states no licence", package.name, package.version)),
        }
    }
    found
}

/// Whether an SPDX expression can be satisfied with allowed licences alone. `/` is the old spelling of `OR`.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    any_of(&mut rest).unwrap_or(false) && rest.is_empty()
}

/// `term OR term …`; `None` when the expression is malformed.
fn any_of(tokens: &mut &[&str]) -> Option<bool> {
    let mut allowed = all_of(tokens)?;
    while let Some(rest) = after(tokens, "OR") {
        *tokens = rest;
        allowed |= all_of(tokens)?;
    }
    Some(allowed)
}

/// `term AND term …`, which binds tighter than `OR`.
fn all_of(tokens: &mut &[&str]) -> Option<bool> {
    let mut allowed = term(tokens)?;
    while let Some(rest) = after(tokens, "AND") {
        *tokens = rest;
        allowed &= term(tokens)?;
    }
    Some(allowed)
}

/// A licence id, one with an exception, or an expression in parentheses.
fn term(tokens: &mut &[&str]) -> Option<bool> {
    if let Some(rest) = after(tokens, "(") {
        *tokens = rest;
        let allowed = any_of(tokens)?;
        *tokens = after(tokens, ")")?;
        return Some(allowed);
    }
    let (id, rest) = tokens.split_first()?;
    *tokens = rest;
    let Some(rest) = after(tokens, "WITH") else { return Some(ALLOWED.contains(id)) };
    let (exception, rest) = rest.split_first()?;
    *tokens = rest;
    Some(ALLOWED.contains(&format!("{id} WITH {exception}").as_str()))
}

/// What follows `expected`, if the next token is that.
fn after<'t, 's>(tokens: &'t [&'s str], expected: &str) -> Option<&'t [&'s str]> {
    tokens.split_first().filter(|(token, _)| **token == expected).map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn every_dependency_has_an_allowed_licence() {
        let metadata = workspace::metadata("Cargo.toml").unwrap();
        assert!(metadata.third_parties().next().is_some(), "no third parties: the graph was not read");
        assert_eq!(findings(&metadata), Vec::<String>::new());
    }

    #[test]
    fn spdx_expressions() {
        for allowed in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        ] {
            assert!(is_allowed(allowed), "{allowed}");
        }
        for refused in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT OR",
            "(MIT",
            "MIT Apache-2.0",
            "GPL-2.0 WITH LLVM-exception",
        ] {
            assert!(!is_allowed(refused), "{refused}");
        }
    }
}
