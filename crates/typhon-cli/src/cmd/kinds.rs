//! `typhon kinds`: the event registry, as a table or as the entries of its file.

use crate::cli::{DefaultFilter, Kinds};
use crate::failure::{Exit, Failure};
use crate::output::json;
use crate::output::stream::{Style, print};
use crate::output::table::{Align, Table};
use serde_json::{Value, json};
use typhon_analysis::filter::{glob_matches, nearest};
use typhon_trace::registry::{self, DefaultState, FieldInfo, KindInfo, Shape, Status, Variable};

pub(crate) fn run(args: &Kinds, style: &Style) -> Result<u8, Failure> {
    let chosen: Vec<&KindInfo> = registry::KINDS.iter().filter(|kind| is_chosen(kind, args)).collect();
    if chosen.is_empty() {
        return Err(nothing_chosen(args));
    }
    if style.json {
        return print(&registry_entries(&chosen)?).map(|()| 0);
    }
    let table = if args.fields { fields(&chosen) } else { overview(&chosen) };
    let mut text = table.render(style.width(), style.is_colored());
    if chosen.len() < registry::KINDS.len() {
        text.push_str(&format!("{} of {} kinds\n", chosen.len(), registry::KINDS.len()));
    }
    print(text.as_bytes())?;
    Ok(0)
}

fn is_chosen(kind: &KindInfo, args: &Kinds) -> bool {
    let by_pattern = args.pattern.as_deref().is_none_or(|pattern| match pattern.parse::<u8>() {
        Ok(id) => kind.id == id,
        Err(_) => glob_matches(pattern, kind.name),
    });
    let by_family = args.family.as_deref().is_none_or(|family| is_in_family(kind.family, family));
    let by_default = args.default.is_none_or(|state| state == default_filter(kind.default));
    by_pattern && by_family && by_default
}

/// `Spatial` holds `Spatial` and `Spatial.Cell`.
fn is_in_family(family: &str, wanted: &str) -> bool {
    let below = || {
        let head = family.get(..wanted.len())?;
        Some(head.eq_ignore_ascii_case(wanted) && family[wanted.len()..].starts_with('.'))
    };
    glob_matches(wanted, family) || below().unwrap_or(false)
}

fn default_filter(state: DefaultState) -> DefaultFilter {
    match state {
        DefaultState::On => DefaultFilter::On,
        DefaultState::Off => DefaultFilter::Off,
        DefaultState::SuppressedUntilGate | DefaultState::SuppressedUntilNamed => DefaultFilter::Suppressed,
    }
}

fn nothing_chosen(args: &Kinds) -> Failure {
    let failure = Failure::usage("no kind matches");
    let by_name =
        args.pattern.as_deref().and_then(|p| nearest(p, registry::KINDS.iter().map(|kind| kind.name)));
    let by_family =
        args.family.as_deref().and_then(|f| nearest(f, registry::KINDS.iter().map(|kind| kind.family)));
    let part = args.pattern.as_deref().map(|pattern| format!("*{pattern}*"));
    let by_part = part.filter(|glob| registry::KINDS.iter().any(|kind| glob_matches(glob, kind.name)));
    match (by_part, by_name.or(by_family)) {
        (Some(glob), _) => failure.hint(format!("for a part of the name: typhon kinds '{glob}'")),
        (None, Some(near)) => failure.hint(format!("did you mean `{near}`?")),
        (None, None) => failure.hint("`typhon kinds` lists all"),
    }
}

/// The registry file, or the same document with the chosen entries and their counts.
fn registry_entries(chosen: &[&KindInfo]) -> Result<Vec<u8>, Failure> {
    if chosen.len() == registry::KINDS.len() {
        return Ok(registry::REGISTRY_JSON.as_bytes().to_vec());
    }
    let broken = |what: &str| Failure::new(Exit::Internal, format!("the built-in registry {what}"));
    let mut document: Value =
        serde_json::from_str(registry::REGISTRY_JSON).map_err(|err| broken("is no JSON").caused_by(err))?;
    let entries = document["kinds"].as_array_mut().ok_or_else(|| broken("has no kinds"))?;
    entries.retain(|entry| chosen.iter().any(|kind| entry["id"] == json!(kind.id)));
    let count = |predicate: &dyn Fn(&KindInfo) -> bool| chosen.iter().filter(|kind| predicate(kind)).count();
    document["counts"] = json!({
        "entries": chosen.len(),
        "live": count(&|kind| kind.status == Status::Live),
        "retired": count(&|kind| kind.status == Status::Retired),
        "removed": count(&|kind| kind.status == Status::Removed),
        "span": count(&|kind| kind.shape == Shape::Span),
        "instant": count(&|kind| kind.shape == Shape::Instant),
    });
    Ok(json::document(&document))
}

fn overview(chosen: &[&KindInfo]) -> Table {
    let mut table = Table::new(&[
        ("ID", Align::Right),
        ("KIND", Align::Left),
        ("SHAPE", Align::Left),
        ("FAMILY", Align::Left),
        ("DEFAULT", Align::Left),
        ("SUMMARY", Align::Left),
    ]);
    for kind in chosen {
        table.push(vec![
            kind.id.to_string(),
            kind.name.into(),
            shape(kind.shape).into(),
            kind.family.into(),
            state(kind).into(),
            kind.summary.into(),
        ]);
    }
    table
}

fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Instant => "instant",
        Shape::Span => "span",
    }
}

fn state(kind: &KindInfo) -> &'static str {
    match (kind.status, kind.default) {
        (Status::Retired, _) => "retired",
        (Status::Removed, _) => "removed",
        (Status::Live, DefaultState::On) => "on",
        (Status::Live, DefaultState::Off) => "off",
        (Status::Live, _) => "suppressed",
    }
}

fn fields(chosen: &[&KindInfo]) -> Table {
    let mut table = Table::new(&[
        ("ID", Align::Right),
        ("KIND", Align::Left),
        ("FIELD", Align::Left),
        ("TYPE", Align::Left),
        ("PRESENT", Align::Left),
        ("MEANING", Align::Left),
    ]);
    for kind in chosen {
        let mut rows = field_rows(kind);
        if rows.is_empty() {
            rows.push(["-".into(), String::new(), String::new(), "no payload".into()]);
        }
        for (index, [name, ty, present, meaning]) in rows.into_iter().enumerate() {
            let first = index == 0;
            let id = if first { kind.id.to_string() } else { String::new() };
            let kind_name = if first { kind.name.to_owned() } else { String::new() };
            table.push(vec![id, kind_name, name, ty, present, meaning]);
        }
    }
    table
}

/// Name, type, presence and meaning of each field in wire order.
fn field_rows(kind: &KindInfo) -> Vec<[String; 4]> {
    let row = |field: &FieldInfo, present: String| {
        [field.name.to_owned(), format!("{:?}", field.ty).to_lowercase(), present, meaning(field)]
    };
    let required = kind.required.iter().map(|field| row(field, "always".into()));
    let optional =
        kind.optional.iter().map(|optional| row(&optional.field, format!("mask 0x{:02x}", optional.mask)));
    let variable = variable_rows(kind.variable)
        .iter()
        .map(|(name, ty, meaning)| [name.to_string(), ty.to_string(), "always".into(), meaning.to_string()]);
    required.chain(optional).chain(variable).collect()
}

fn meaning(field: &FieldInfo) -> String {
    let enumeration = field.enumeration.map(|names| {
        let values: Vec<String> =
            names.values.iter().map(|(value, name)| format!("{value} {name}")).collect();
        values.join(", ")
    });
    let parts = [field.unit.to_owned(), field.sentinel.to_owned(), enumeration.unwrap_or_default()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn variable_rows(variable: Variable) -> &'static [(&'static str, &'static str, &'static str)] {
    match variable {
        Variable::None => &[],
        Variable::Gauges => &[("gauges", "list", "gauge id, value kind, value")],
        Variable::ThreadName => &[("name", "text", "as many bytes as counted"), ("threadKind", "u8", "")],
        Variable::SpanName => &[("name", "text", "up to a zero byte")],
        Variable::QueryDefinition => &[
            ("evaluators", "list", "field index, comparison"),
            ("fieldDependencies", "list", "field indexes"),
        ],
        Variable::Thresholds => &[("thresholds", "list", "i64")],
    }
}
