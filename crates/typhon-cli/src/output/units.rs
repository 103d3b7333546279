//! Numbers for people: three significant digits, the unit that fits, thousands separators.

/// `58,231,904`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `412 B`, `84.3 KiB`, `1.02 GiB`.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if value < 1024 {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as 1024, hence the limit below it.
    while scaled >= 1023.5 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{} {}", significant(scaled), UNITS[unit])
}

/// `145 µs`, `9.8 ms`, `61.2 s`, `4m 11.2s`, `2h 03m 11s`.
pub(crate) fn duration(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let seconds = ns as f64 / 1e9;
    let text = match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..999_500 => format!("{} µs", significant(ns as f64 / 1e3)),
        999_500..999_500_000 => format!("{} ms", significant(ns as f64 / 1e6)),
        999_500_000..99_950_000_000 => format!("{} s", significant(seconds)),
        99_950_000_000..3_600_000_000_000 => {
            let tenths = ns / 100_000_000;
            format!("{}m {:02}.{}s", tenths / 600, tenths % 600 / 10, tenths % 10)
        }
        _ => {
            let whole = ns / 1_000_000_000;
            format!("{}h {:02}m {:02}s", whole / 3600, whole / 60 % 60, whole % 60)
        }
    };
    format!("{sign}{text}")
}

/// Three significant digits, no trailing zeros after the point.
fn significant(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `1 block`, `2 blocks`.
pub(crate) fn plural(value: u64, noun: &str) -> String {
    let ending = if value == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        for (value, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (58_231_904, "58,231,904")] {
            assert_eq!(count(value), text);
        }
    }

    #[test]
    fn byte_sizes() {
        for (value, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (86_382, "84.4 KiB"),
            (1_095_216_660, "1.02 GiB"),
            (1_048_575, "1 MiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(bytes(value), text);
        }
    }

    #[test]
    fn durations() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 µs"),
            (145_000, "145 µs"),
            (74_300, "74.3 µs"),
            (999_499, "999 µs"),
            (999_500, "1 ms"),
            (9_800_000, "9.8 ms"),
            (1_910_000_000, "1.91 s"),
            (61_200_000_000, "61.2 s"),
            (251_200_000_000, "4m 11.2s"),
            (3_600_000_000_000, "1h 00m 00s"),
            (-5_000, "-5 µs"),
            (i64::MIN, "-2562047h 47m 16s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }
}
