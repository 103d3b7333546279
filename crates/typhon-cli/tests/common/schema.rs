//! The part of JSON Schema that `docs/schemas` uses. An unknown keyword is an error, so that no schema promises more
//! than is checked.

use super::repository;
use serde_json::Value;

/// Checks a document against a schema of `docs/schemas`; panics with the place of the first mismatch.
#[track_caller]
pub(crate) fn check(document: &Value, schema: &str) {
    if let Err(problem) = validate(document, &load(schema), "$") {
        panic!("{schema}: {problem}");
    }
}

fn load(name: &str) -> Value {
    let path = repository().join("docs/schemas").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
    serde_json::from_str(&text).expect("a schema is JSON")
}

fn validate(value: &Value, schema: &Value, at: &str) -> Result<(), String> {
    let keywords = schema.as_object().expect("a schema is an object");
    for (keyword, rule) in keywords {
        let ok = match keyword.as_str() {
            "$schema" | "$id" | "title" | "description" => true,
            "$ref" => return validate(value, &load(rule.as_str().expect("a file name")), at),
            "type" => types(rule).iter().any(|name| has_type(value, name)),
            "const" => value == rule,
            "enum" => rule.as_array().expect("a list").contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().expect("a number")),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().expect("a number")),
            "pattern" => {
                value.as_str().is_none_or(|text| matches_pattern(text, rule.as_str().expect("a pattern")))
            }
            "required" => value.as_object().is_none_or(|object| {
                rule.as_array()
                    .expect("a list")
                    .iter()
                    .all(|key| object.contains_key(key.as_str().expect("a name")))
            }),
            "properties" => {
                for (key, rule) in rule.as_object().expect("an object") {
                    if let Some(member) = value.get(key) {
                        validate(member, rule, &format!("{at}.{key}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                assert_eq!(rule, &Value::Bool(false), "only false is supported");
                let known = &schema["properties"];
                value.as_object().is_none_or(|object| object.keys().all(|key| known.get(key).is_some()))
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    validate(item, rule, &format!("{at}[{index}]"))?;
                }
                true
            }
            other => panic!("schema keyword `{other}` is not supported by this check"),
        };
        if !ok {
            return Err(format!("{at}: `{keyword}` {rule} does not hold for {value}"));
        }
    }
    Ok(())
}

fn types(rule: &Value) -> Vec<&str> {
    match rule {
        Value::String(name) => vec![name],
        list => list.as_array().expect("a type or a list").iter().filter_map(Value::as_str).collect(),
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("unknown type `{other}`"),
    }
}

fn matches_pattern(text: &str, pattern: &str) -> bool {
    regex::Regex::new(pattern).expect("a valid pattern").is_match(text)
}
