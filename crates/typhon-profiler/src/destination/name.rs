//! Names of automatic captures: their UTC start time as `yyyyMMdd-HHmmss-fff.typhon-trace`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Extension of captures, with its dot.
pub const CAPTURE_EXTENSION: &str = ".typhon-trace";

const MS_PER_DAY: u64 = 86_400_000;

/// File name for a capture that starts at `time`. Times before 1970 count as 1970.
pub fn capture_name(time: SystemTime) -> String {
    let ms = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let (year, month, day) = date_of_day(ms / MS_PER_DAY);
    let (ms, seconds) = (ms % 1_000, ms % MS_PER_DAY / 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{ms:03}{CAPTURE_EXTENSION}")
}

/// The start time in a name made by [`capture_name`]; `None` for any other name.
pub fn time_of_name(name: &str) -> Option<SystemTime> {
    let stem = name.strip_suffix(CAPTURE_EXTENSION)?;
    let (date, rest) = stem.split_once('-')?;
    let (time, ms) = rest.split_once('-')?;
    let number = |text: &str, width: usize| {
        let digits = text.len() == width && text.bytes().all(|b| b.is_ascii_digit());
        if digits { text.parse::<u64>().ok() } else { None }
    };
    let (date, time, ms) = (number(date, 8)?, number(time, 6)?, number(ms, 3)?);
    let (hour, minute, second) = (time / 10_000, time / 100 % 100, time % 100);
    let day = day_of_date(date / 10_000, date / 100 % 100, date % 100)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = hour * 3_600 + minute * 60 + second;
    Some(UNIX_EPOCH + Duration::from_millis(day * MS_PER_DAY + seconds * 1_000 + ms))
}

/// Makes an empty file for a new capture in `directory`: the name of `time`, or of the next millisecond that is not
/// taken. Of several processes that begin at the same time each gets its own.
///
/// # Errors
/// Those of making a file there.
pub fn new_capture(directory: &Path, time: SystemTime) -> io::Result<PathBuf> {
    let mut time = time;
    loop {
        let path = directory.join(capture_name(time));
        match File::create_new(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => time += Duration::from_millis(1),
            Err(error) => return Err(error),
        }
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to the first of January; `year` ≥ 1970.
fn day_of_year_start(year: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969)
}

/// Year, month and day of a day counted from 1970 (Gregorian calendar).
fn date_of_day(day: u64) -> (u64, u64, u64) {
    let mut year = 1970 + day / 366;
    while day_of_year_start(year + 1) <= day {
        year += 1;
    }
    let mut rest = day - day_of_year_start(year);
    let mut month = 1;
    while rest >= days_in(year, month) {
        rest -= days_in(year, month);
        month += 1;
    }
    (year, month, rest + 1)
}

/// Day counted from 1970; `None` if there is no such date.
fn day_of_date(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    Some(day_of_year_start(year) + (1..month).map(|month| days_in(year, month)).sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_known_from_a_calendar() {
        let at = |seconds, ms| UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(ms);
        assert_eq!(capture_name(UNIX_EPOCH), "19700101-000000-000.typhon-trace");
        assert_eq!(capture_name(at(951_827_696, 7)), "20000229-123456-007.typhon-trace");
        assert_eq!(capture_name(at(1_798_761_599, 999)), "20261231-235959-999.typhon-trace");
        assert_eq!(capture_name(at(4_107_542_400, 0)), "21000301-000000-000.typhon-trace");
        assert_eq!(capture_name(UNIX_EPOCH - Duration::from_secs(5)), capture_name(UNIX_EPOCH));
    }

    #[test]
    fn other_names_have_no_time() {
        for name in [
            "run.typhon-trace",
            "20260229-000000-000.typhon-trace",
            "20261301-000000-000.typhon-trace",
            "20260101-240000-000.typhon-trace",
            "20260101-000000-00.typhon-trace",
            "20260101-000000-000.typhon-trace-cache",
            "2026010１-000000-000.typhon-trace",
            "",
        ] {
            assert_eq!(time_of_name(name), None, "{name}");
        }
    }

    #[test]
    fn b33_captures_that_begin_at_the_same_time_have_names_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            (0..8).for_each(|_| _ = scope.spawn(|| new_capture(directory.path(), UNIX_EPOCH).unwrap()));
        });
        let entries = std::fs::read_dir(directory.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let expected: Vec<_> = (0..8).map(|ms| format!("19700101-000000-00{ms}.typhon-trace")).collect();
        assert_eq!(names, expected);
    }

    proptest! {
        #[test]
        fn names_give_back_their_time_and_sort_by_it(
            left in 0u64..253_402_300_800_000, right in 0u64..253_402_300_800_000,
        ) {
            let time = |ms| UNIX_EPOCH + Duration::from_millis(ms);
            prop_assert_eq!(time_of_name(&capture_name(time(left))), Some(time(left)));
            prop_assert_eq!(capture_name(time(left)).cmp(&capture_name(time(right))), left.cmp(&right));
        }
    }
}
