//! Records of a stream that was recorded before.

use super::Ended;
use super::recording::Recording;
use super::trace_file::Timebase;
use crate::failure::{Exit, Failure};
use crate::output::signals;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use typhon_clr::gc::{GcItem, GcRecord, GcStream, GcStreamError};
use typhon_clr::nettrace::{TraceInfo, UtcTime};
use typhon_trace::header::utc_ticks_from_unix_ns;

const CHUNK_BYTES: usize = 64 << 10;

pub(super) fn replay(path: &Path, recording: &mut Recording<'_>) -> Result<Ended, Failure> {
    let mut file = File::open(path).map_err(|err| {
        Failure::new(Exit::of_opening(&err), "the recorded stream cannot be opened")
            .in_file(path)
            .caused_by(err)
    })?;
    let mut stream = GcStream::new();
    let mut records = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    while signals::received().is_none() {
        let bytes = file.read(&mut chunk).map_err(|err| {
            Failure::new(Exit::Io, "the recorded stream cannot be read").in_file(path).caused_by(err)
        })?;
        if bytes == 0 {
            break;
        }
        let fed = stream.feed(&chunk[..bytes], &mut collector(&mut records));
        begin(&stream, recording)?;
        recording.take(&mut records)?;
        if let Err(err) = fed {
            stopped(path, err, recording)?;
            return Ok(ended(&stream));
        }
    }
    stream.finish(&mut collector(&mut records));
    recording.take(&mut records)?;
    if !recording.has_begun() {
        return Err(not_a_stream(path, "it ends before its clock is stated"));
    }
    if signals::received().is_none() && !stream.has_ended() {
        recording.broken_off("the stream ends without its end mark; everything before is kept".to_owned());
    }
    Ok(ended(&stream))
}

fn collector(records: &mut Vec<GcRecord>) -> impl FnMut(GcItem<'_>) {
    |item| {
        if let GcItem::Record(record) = item {
            records.push(record);
        }
    }
}

fn begin(stream: &GcStream, recording: &mut Recording<'_>) -> Result<(), Failure> {
    let Some(trace) = stream.trace() else { return Ok(()) };
    let timebase = Timebase::Target { frequency: frequency(trace) };
    recording.begin(trace, timebase, utc_ticks(&trace.sync_utc))
}

fn frequency(trace: &TraceInfo) -> i64 {
    i64::try_from(trace.ticks_per_second).unwrap_or(i64::MAX)
}

/// A stream that becomes unreadable keeps what came before; one that never was one is no input.
fn stopped(path: &Path, err: GcStreamError, recording: &mut Recording<'_>) -> Result<(), Failure> {
    if !recording.has_begun() {
        return Err(not_a_stream(path, &err.to_string()));
    }
    recording.broken_off(format!("{err}; everything before is kept"));
    Ok(())
}

fn not_a_stream(path: &Path, why: &str) -> Failure {
    Failure::new(Exit::NotATrace, "this is no recorded event stream of .NET")
        .in_file(path)
        .detail(why)
        .hint("dotnet-trace writes such files with the ending .nettrace")
}

fn ended(stream: &GcStream) -> Ended {
    let stop_ticks = stream.newest_timestamp().map(|ticks| i64::try_from(ticks).unwrap_or(i64::MAX));
    Ended { stop_ticks, ..Ended::default() }
}

/// 100 ns units since 0001-01-01. Nonsense in a damaged stream gives nonsense, never a panic.
fn utc_ticks(utc: &UtcTime) -> i64 {
    const MS_PER_DAY: i64 = 86_400_000;
    let [hour, minute, second, ms] = [utc.hour, utc.minute, utc.second, utc.millisecond].map(i64::from);
    let days = days_since_epoch(i64::from(utc.year), i64::from(utc.month), i64::from(utc.day));
    let ms = days * MS_PER_DAY + ((hour * 60 + minute) * 60 + second) * 1000 + ms;
    utc_ticks_from_unix_ns(ms.saturating_mul(1_000_000))
}

/// Days from 1970-01-01 to a Gregorian date; years begin in March here, so that leap days come last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    const DAYS_FROM_MARCH_0000: i64 = 719_468;
    let year = year - i64::from(month <= 2);
    let month_from_march = (month + 9).rem_euclid(12);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + day_of_year - DAYS_FROM_MARCH_0000
}

#[cfg(test)]
mod tests {
    use super::days_since_epoch;

    #[test]
    fn dates_are_counted_in_days() {
        for (date, days) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2000, 3, 1), 11_017),
            ((2026, 11, 29), 20_786),
            ((1, 1, 1), -719_162),
        ] {
            assert_eq!(days_since_epoch(date.0, date.1, date.2), days, "{date:?}");
        }
    }
}
