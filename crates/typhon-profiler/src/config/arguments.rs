//! The profiler's options on a host program's command line (brief 02 §5.1).

use std::ffi::{OsStr, OsString};

use super::fault::{Fault, FaultCode};
use super::source::{Origin, Setting};

/// What an option does with the argument after it.
enum Operand {
    Required,
    /// Taken only if it reads like a value of the option, since the next word may be the program's own.
    Optional {
        default: &'static str,
    },
}

struct Switch {
    name: &'static str,
    key: &'static str,
    operand: Operand,
}

const SWITCHES: &[Switch] = &[
    Switch { name: "--trace", key: "Typhon:Profiler:Trace", operand: Operand::Required },
    Switch { name: "--live", key: "Typhon:Profiler:Live", operand: Operand::Optional { default: "true" } },
    Switch { name: "--live-wait", key: "Typhon:Profiler:LiveWaitMs", operand: Operand::Required },
];

/// Picks our options out of a command line; everything else belongs to the program. `--` ends the options.
pub(super) fn settings(arguments: &[OsString], faults: &mut Vec<Fault>) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut rest = arguments.iter().map(OsString::as_os_str).take_while(|word| *word != "--").peekable();
    while let Some(word) = rest.next() {
        let Some((switch, attached)) = SWITCHES.iter().find_map(|switch| matches(switch, word)) else {
            continue;
        };
        let value = match (&switch.operand, attached) {
            (_, Some(value)) => Ok(value),
            (Operand::Required, None) => match rest.next() {
                Some(value) => value.to_str().map(str::to_owned).ok_or("its value is not UTF-8"),
                None => Err("its value is missing"),
            },
            (Operand::Optional { default }, None) => {
                let follows = rest.next_if(|next| next.to_str().is_some_and(reads_like_a_live_port));
                Ok(follows.and_then(OsStr::to_str).unwrap_or(default).to_owned())
            }
        };
        let origin = Origin::CommandLine(switch.name.to_owned());
        match value {
            Ok(value) => settings.push(Setting { key: switch.key.to_owned(), value, origin }),
            Err(problem) => {
                let remedy = format!("write {} <value>; the option is ignored", switch.name);
                faults.push(Fault::new(FaultCode::InvalidValue, &origin, switch.key, problem, remedy));
            }
        }
    }
    settings
}

/// The switch a word names, and the value attached to it by `=`.
fn matches<'a>(switch: &'a Switch, word: &OsStr) -> Option<(&'a Switch, Option<String>)> {
    let word = word.to_str()?;
    let rest = word.strip_prefix(switch.name)?;
    match rest.strip_prefix('=') {
        Some(value) => Some((switch, Some(value.to_owned()))),
        None => rest.is_empty().then_some((switch, None)),
    }
}

fn reads_like_a_live_port(word: &str) -> bool {
    word.parse::<u32>().is_ok()
        || ["true", "false", "on", "off"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> (Vec<(String, String)>, Vec<Fault>) {
        let mut faults = Vec::new();
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let pairs = settings(&words, &mut faults).into_iter().map(|s| (s.key, s.value)).collect();
        (pairs, faults)
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (format!("Typhon:Profiler:{key}"), value.to_owned())
    }

    #[test]
    fn our_options_are_found_between_those_of_the_program() {
        let (pairs, faults) =
            parse(&["--mine", "--trace", "a.typhon-trace", "--live", "9200", "--live-wait=50"]);
        assert_eq!(pairs, [pair("Trace", "a.typhon-trace"), pair("Live", "9200"), pair("LiveWaitMs", "50")]);
        assert!(faults.is_empty());
    }

    #[test]
    fn live_takes_the_next_word_only_if_it_is_a_port() {
        let (pairs, _) = parse(&["--live", "world.db", "--live=off"]);
        assert_eq!(pairs, [pair("Live", "true"), pair("Live", "off")]);
    }

    #[test]
    fn a_double_dash_ends_the_options() {
        assert_eq!(parse(&["--", "--trace", "x"]).0, []);
        assert_eq!(parse(&["--tracer", "x", "--trace-all"]).0, []);
    }

    #[test]
    fn a_missing_value_is_one_line() {
        let (pairs, faults) = parse(&["--trace"]);
        assert_eq!(pairs, []);
        assert_eq!(
            faults[0].to_string(),
            "command line --trace: Typhon:Profiler:Trace: its value is missing; \
             write --trace <value>; the option is ignored"
        );
    }
}
