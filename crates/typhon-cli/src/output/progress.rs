//! One line on standard error that says how far long work is. Only on a terminal, and only when it takes long.

use super::stream::Style;
use super::units;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Work shorter than this shows nothing.
const QUIET_FOR: Duration = Duration::from_millis(500);
const REDRAW_EVERY: Duration = Duration::from_millis(100);

pub(crate) struct Progress {
    label: &'static str,
    total_bytes: Option<u64>,
    started: Instant,
    next_draw: Option<Instant>,
    drawn: bool,
}

impl Progress {
    /// `total_bytes` is unknown for a pipe.
    pub(crate) fn new(style: &Style, label: &'static str, total_bytes: Option<u64>) -> Self {
        let shown = style.progress && !style.quiet && io::stderr().is_terminal();
        let started = Instant::now();
        Self { label, total_bytes, started, next_draw: shown.then(|| started + QUIET_FOR), drawn: false }
    }

    /// Reports how many bytes are done.
    pub(crate) fn update(&mut self, done_bytes: u64) {
        let Some(next_draw) = self.next_draw else { return };
        let now = Instant::now();
        if now < next_draw {
            return;
        }
        self.next_draw = Some(now + REDRAW_EVERY);
        self.drawn = true;
        let line = line(self.label, done_bytes, self.total_bytes, now - self.started);
        // A progress line that cannot be shown is no reason to stop.
        let _ = write!(io::stderr(), "\r{line}\x1b[K");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// `indexing 43% 412 MiB/s 4 s left`.
fn line(label: &str, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
    let speed = units::bytes(rate as u64);
    match total {
        Some(total) if total > 0 => {
            let percent = done.min(total) as u128 * 100 / u128::from(total);
            let left = (total.saturating_sub(done) as f64 / rate.max(1.0)).ceil();
            let left = units::duration((left * 1e9).min(i64::MAX as f64) as i64);
            format!("{label} {percent}% {speed}/s {left} left")
        }
        _ => format!("{label} {} {speed}/s", units::bytes(done)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_share_rate_and_remaining_time() {
        let mib = 1 << 20;
        let text = line("indexing", 412 * mib, Some(2060 * mib), Duration::from_secs(1));
        assert_eq!(text, "indexing 20% 412 MiB/s 4 s left");
    }

    #[test]
    fn unknown_size_has_no_share() {
        assert_eq!(line("reading", 2048, None, Duration::from_secs(2)), "reading 2 KiB 1 KiB/s");
    }

    #[test]
    fn growing_files_do_not_pass_one_hundred() {
        assert!(line("reading", 300, Some(200), Duration::ZERO).contains("100%"));
    }
}
