//! How long something goes on, as options say it.

use std::time::Duration;

/// What is accepted, for messages.
const FORM: &str = "write a time above 0 and up to 24h as 30s, 500ms or 5min; a number alone is seconds";
/// Units with their length in seconds; those that end like others come first.
const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("min", 60.0), ("s", 1.0), ("h", 3600.0)];
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// `30s`, `500ms`, `5min`, `1.5h`, or `30` for seconds; up to a day.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let with_unit = UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (number, seconds) = with_unit.unwrap_or((text, 1.0));
    let is_plain = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let parsed = number.parse::<f64>().ok().filter(|_| is_plain);
    let duration = parsed.and_then(|number| Duration::try_from_secs_f64(number * seconds).ok());
    duration.filter(|of| !of.is_zero() && *of <= LONGEST).ok_or_else(|| FORM.to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_duration;

    #[test]
    fn a_time_has_a_unit_or_is_in_seconds() {
        for (text, ms) in [
            ("500ms", 500),
            ("1.5s", 1_500),
            ("5min", 300_000),
            ("0.5h", 1_800_000),
            ("30", 30_000),
            ("0.25", 250),
            ("86400", 86_400_000),
        ] {
            assert_eq!(parse_duration(text).map(|of| of.as_millis()), Ok(ms), "{text}");
        }
        for wrong in [
            "", "abc", "-1s", "1s..2s", "0s", "0", "min", "-1h", "1smin", "5m", "+3", "1e3", "inf", "nan",
            "25h", " 3", "3 s",
        ] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
