//! What is wrong with options.

use crate::error::{Coded, ErrorCode};
use std::fmt;

/// One option with a value outside its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionFault {
    /// Section and name, as `runtime.base_tick_rate_hz`.
    pub option: &'static str,
    /// The value.
    pub value: String,
    /// What it must be, as "from 1 to 1000".
    pub rule: String,
}

impl fmt::Display for OptionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, but must be {}", self.option, self.value, self.rule)
    }
}

/// Options that break rules: all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidOptions {
    faults: Vec<OptionFault>,
}

impl InvalidOptions {
    pub(crate) fn unless_empty(faults: Vec<OptionFault>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self { faults }) }
    }

    /// The broken rules, at least one.
    pub fn faults(&self) -> &[OptionFault] {
        &self.faults
    }
}

impl fmt::Display for InvalidOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing was started, since ")?;
        for (place, fault) in self.faults.iter().enumerate() {
            write!(f, "{}{fault}", if place == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidOptions {}

impl Coded for InvalidOptions {
    fn code(&self) -> ErrorCode {
        ErrorCode::INVALID_OPTIONS
    }
}
