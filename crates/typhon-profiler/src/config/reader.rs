//! Typed access to settings: the strongest valid value wins, and every invalid one is a fault.

use typhon_trace::registry;

use super::fault::{Fault, FaultCode, printable};
use super::keys::{PROFILER, ROOT, ValueType, option_info};
use super::nearest::nearest;
use super::source::{Origin, Setting, Settings};
use crate::gates::KindMask;

/// Why a text is not a value.
pub(super) enum Invalid {
    Text,
    Range,
}

/// Reads options and collects faults.
pub(crate) struct Reader<'a> {
    pub(super) settings: &'a Settings,
    pub(crate) faults: Vec<Fault>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(settings: &'a Settings) -> Self {
        Self { settings, faults: settings.faults.clone() }
    }

    /// The strongest value of an option that `parse` accepts. `key` is the option's key below `Typhon:`.
    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, Invalid>,
    ) -> Option<(T, &'a Origin)> {
        let expected = value_type(key).expected();
        let lower_key = format!("{ROOT}{key}").to_lowercase();
        self.settings.all(&lower_key).into_iter().find_map(|setting| match parse(setting.value.trim()) {
            Ok(value) => Some((value, &setting.origin)),
            Err(invalid) => {
                self.faults.push(invalid_value(setting, invalid, &expected));
                None
            }
        })
    }

    /// A flag at a lower-case full key, which need not be in the table of options.
    pub(crate) fn flag_at(&mut self, lower_key: &str) -> Option<(bool, &'a Origin)> {
        self.settings.all(lower_key).into_iter().find_map(|setting| match parse_flag(&setting.value) {
            Some(on) => Some((on, &setting.origin)),
            None => {
                let expected = ValueType::Flag { default: None }.expected();
                self.faults.push(invalid_value(setting, Invalid::Text, &expected));
                None
            }
        })
    }

    /// A flag with a default.
    pub(super) fn flag(&mut self, key: &'static str) -> bool {
        let default = matches!(value_type(key), ValueType::Flag { default: Some(true) });
        self.read(key, |text| parse_flag(text).ok_or(Invalid::Text)).map_or(default, |(on, _)| on)
    }

    /// A number inside its range.
    pub(super) fn number(&mut self, key: &'static str) -> u64 {
        let (default, min, max, power_of_two) = match value_type(key) {
            ValueType::Integer { default, min, max } => (default, min, max, false),
            ValueType::PowerOfTwo { default, min, max } => (default, min, max, true),
            other => unreachable!("{key} is not a number but {other:?}"),
        };
        let parse = |text: &str| {
            let number = parse_number(text)?;
            let fits = (min..=max).contains(&number) && (!power_of_two || number.is_power_of_two());
            fits.then_some(number).ok_or(Invalid::Range)
        };
        self.read(key, parse).map_or(default, |(number, _)| number)
    }

    /// The items of a list: an array, or one text with commas. The strongest source that has the key gives the
    /// whole list.
    pub(super) fn list(&self, key: &'static str) -> Vec<(&'a Setting, &'a str)> {
        let settings = self.settings.list(&format!("{ROOT}{key}").to_lowercase());
        let split = |setting: &'a Setting| setting.value.split(',').map(move |item| (setting, item.trim()));
        settings.into_iter().flat_map(split).filter(|(_, item)| !item.is_empty()).collect()
    }

    /// A list of kinds, by name in any case or by number.
    pub(crate) fn kinds(&mut self, key: &'static str) -> Vec<(u8, &'a Setting)> {
        let mut kinds = Vec::new();
        for (setting, item) in self.list(key) {
            match parse_kind(item) {
                Some(kind) => kinds.push((kind, setting)),
                None => {
                    let remedy = match nearest_kind(item) {
                        Some(name) => format!("did you mean {name}?"),
                        None => "`typhon kinds` lists names and numbers; it is left out".to_owned(),
                    };
                    let problem = format!("there is no kind \"{}\"", printable(item));
                    let (code, origin) = (FaultCode::InvalidValue, &setting.origin);
                    self.faults.push(Fault::new(code, origin, &setting.key, problem, remedy));
                }
            }
        }
        kinds
    }

    /// The kinds to suppress and to take from the deny-list. A kind on both lists stays suppressed.
    pub(crate) fn kind_lists(&mut self) -> (KindMask, Vec<(u8, &'a Setting)>) {
        let suppress: KindMask =
            self.kinds("Profiler:Kinds:Suppress").into_iter().map(|(kind, _)| kind).collect();
        let mut unsuppress = self.kinds("Profiler:Kinds:Unsuppress");
        unsuppress.retain(|(kind, setting)| {
            let both = suppress.contains(*kind);
            if both {
                let problem = format!("kind {kind} is also in {PROFILER}Kinds:Suppress and stays suppressed");
                let (code, origin) = (FaultCode::NoEffect, &setting.origin);
                self.faults.push(Fault::new(
                    code,
                    origin,
                    &setting.key,
                    problem,
                    "take it from one of the two",
                ));
            }
            !both
        });
        (suppress, unsuppress)
    }
}

fn value_type(key: &'static str) -> ValueType {
    match option_info(key) {
        Some(info) => info.value,
        None => unreachable!("{key} is not in the table of options"),
    }
}

pub(super) fn invalid_value(setting: &Setting, invalid: Invalid, expected: &str) -> Fault {
    let value = printable(&setting.value);
    let (code, problem) = match invalid {
        Invalid::Text => (FaultCode::InvalidValue, format!("\"{value}\" is not a valid value")),
        Invalid::Range => (FaultCode::OutOfRange, format!("{value} is out of range")),
    };
    let remedy = format!("write {expected}; it counts as absent");
    Fault::new(code, &setting.origin, &setting.key, problem, remedy)
}

/// `true`, `false`, `1`, `0`, `on`, `off` in any case.
pub(crate) fn parse_flag(text: &str) -> Option<bool> {
    let text = text.trim();
    let is = |words: [&str; 3]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match (is(["true", "1", "on"]), is(["false", "0", "off"])) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// A decimal whole number; digits too many or a minus sign are a question of range, not of spelling.
pub(super) fn parse_number(text: &str) -> Result<u64, Invalid> {
    text.parse().map_err(|_| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if is_number { Invalid::Range } else { Invalid::Text }
    })
}

/// A kind by its name in any case or by its number.
pub(crate) fn parse_kind(text: &str) -> Option<u8> {
    let info = match text.parse::<u8>() {
        Ok(id) => registry::kind(id),
        Err(_) => registry::KINDS.iter().find(|info| info.name.eq_ignore_ascii_case(text)),
    };
    info.map(|info| info.id)
}

/// The kind that was probably meant: nearly the same name, or one that ends like this (`BTreeSearch`).
fn nearest_kind(text: &str) -> Option<&'static str> {
    let names = || registry::KINDS.iter().map(|info| info.name);
    let lower = text.to_lowercase();
    nearest(text, names()).or_else(|| names().find(|name| name.to_lowercase().ends_with(&lower)))
}
