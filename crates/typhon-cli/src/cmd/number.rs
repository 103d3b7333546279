//! Numbers, as options say them. The parser of the command line adds which option it was, and what was given.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Parses whole numbers in a range, and says in words what is expected instead of anything else.
pub(crate) fn whole<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    in_range("whole number", range)
}

/// The same for numbers with a decimal point.
pub(crate) fn real(
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    in_range("number", range)
}

fn in_range<T>(
    what: &'static str,
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("write a {what} from {} to {}", range.start(), range.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::{real, whole};
    use crate::cli::Cli;
    use clap::{Arg, Command, CommandFactory};
    use std::any::TypeId;
    use std::time::Duration;

    #[test]
    fn numbers_are_in_their_range() {
        let few = whole(1..=300_u16);
        assert_eq!((few("1"), few("300")), (Ok(1), Ok(300)));
        for text in ["0", "301", "65536", "-1", "", " 1", "1.0", "1k", "0x10", "١"] {
            assert_eq!(few(text), Err("write a whole number from 1 to 300".to_owned()), "{text}");
        }
        let share = real(0.0..=1.0);
        assert_eq!((share("0.05"), share("1e-3")), (Ok(0.05), Ok(0.001)));
        for text in ["nan", "inf", "-0.1", "1.01", "x", ""] {
            assert_eq!(share(text), Err("write a number from 0 to 1".to_owned()), "{text}");
        }
    }

    /// Does an option take a number, or something with a unit that is one?
    fn is_number(arg: &Arg) -> bool {
        let types = [
            TypeId::of::<u8>(),
            TypeId::of::<u16>(),
            TypeId::of::<u32>(),
            TypeId::of::<u64>(),
            TypeId::of::<usize>(),
            TypeId::of::<i8>(),
            TypeId::of::<i16>(),
            TypeId::of::<i32>(),
            TypeId::of::<i64>(),
            TypeId::of::<isize>(),
            TypeId::of::<f32>(),
            TypeId::of::<f64>(),
            TypeId::of::<Duration>(),
        ];
        let is_counted = matches!(arg.get_action(), clap::ArgAction::Count);
        !is_counted && types.iter().any(|of| arg.get_value_parser().type_id() == *of)
    }

    /// Every option of every command that takes a number, with the commands before it.
    fn numbers(command: &Command, path: &[String], found: &mut Vec<(Vec<String>, String)>) {
        for arg in command.get_arguments().filter(|arg| is_number(arg)) {
            let long = arg.get_long().expect("numbers are given by name, not by place");
            found.push((path.to_vec(), format!("--{long}")));
        }
        for sub in command.get_subcommands() {
            let path: Vec<String> = path.iter().cloned().chain([sub.get_name().to_owned()]).collect();
            numbers(sub, &path, found);
        }
    }

    /// No option answers in the words of the standard library, such as `invalid digit found in string`.
    #[test]
    fn every_option_with_a_number_says_which_it_is_what_was_given_and_what_is_expected() {
        let mut found = Vec::new();
        numbers(&Cli::command(), &["typhon".to_owned()], &mut found);
        assert!(found.len() >= 14, "{found:?}");
        for (path, option) in &found {
            for given in ["x", "", "-1", "1.5.2", "99999999999999999999999", "12x"] {
                let args = path.iter().chain([option]).map(String::as_str).chain([given]);
                let error = Cli::command().try_get_matches_from(args).expect_err("no number").to_string();
                let line = error.lines().next().expect("a line");
                let context = format!("{path:?} {option} {given:?}: {error}");
                assert!(line.contains(&format!("'{given}' for '{option}")), "{context}");
                let is_said = line.contains(": write ") || line.contains(" are needed");
                assert!(is_said && line.contains(|c: char| c.is_ascii_digit()), "{context}");
            }
        }
    }
}
