//! A logger for the `log` crate.

use std::fmt;

use log::{LevelFilter, Log, Metadata, Record, SetLoggerError};
use typhon_trace::event::Instant;

use super::names::{CallsiteNames, NameText};
use crate::event::{is_recorded, mark};

/// Records what a program logs, and passes it on to another logger if there is one.
///
/// ```
/// use typhon_profiler::bridge::ProfilerLogger;
///
/// ProfilerLogger::new().install(log::LevelFilter::Info)?;
/// log::info!("ready");
/// # Ok::<(), log::SetLoggerError>(())
/// ```
pub struct ProfilerLogger {
    next: Option<Box<dyn Log>>,
    names: CallsiteNames<(&'static str, u32)>,
}

impl ProfilerLogger {
    /// Records only.
    pub fn new() -> Self {
        Self { next: None, names: CallsiteNames::new() }
    }

    /// Records, and then hands over to `next`, which decides for itself what it wants.
    pub fn in_front_of(next: Box<dyn Log>) -> Self {
        Self { next: Some(next), names: CallsiteNames::new() }
    }

    /// Makes it the logger of this process. Records below `level` reach neither it nor the logger behind it.
    ///
    /// # Errors
    /// The process has a logger already.
    pub fn install(self, level: LevelFilter) -> Result<(), SetLoggerError> {
        log::set_boxed_logger(Box::new(self))?;
        log::set_max_level(level);
        Ok(())
    }

    fn mark(&self, record: &Record<'_>) {
        let level = record.level().as_str();
        let mut text = NameText::default();
        text.push(format_args!("{level} {}: {}", record.target(), record.args()));
        let callsite = (record.file_static().unwrap_or(""), record.line().unwrap_or(0));
        let rest = || {
            let mut text = NameText::default();
            let file = record.file().unwrap_or("?");
            text.push(format_args!("{level} {} ({file}:{})", record.target(), callsite.1));
            text
        };
        if let Some(name) = self.names.get(callsite, text.as_str(), rest, level) {
            mark(name, 0);
        }
    }
}

impl Default for ProfilerLogger {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ProfilerLogger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfilerLogger").field("next", &self.next.is_some()).finish_non_exhaustive()
    }
}

impl Log for ProfilerLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_recorded::<Instant>() || self.next.as_ref().is_some_and(|next| next.enabled(metadata))
    }

    fn log(&self, record: &Record<'_>) {
        if is_recorded::<Instant>() {
            self.mark(record);
        }
        if let Some(next) = self.next.as_ref().filter(|next| next.enabled(record.metadata())) {
            next.log(record);
        }
    }

    fn flush(&self) {
        if let Some(next) = &self.next {
            next.flush();
        }
    }
}
