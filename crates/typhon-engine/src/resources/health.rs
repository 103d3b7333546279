//! How close to their limits resources are.

use super::error::ResourceError;
use super::metrics::Metric;

/// How much of a capacity may be in use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// From this utilisation on, a node is degraded.
    pub degraded: f64,
    /// From this utilisation on, it is unhealthy.
    pub unhealthy: f64,
}

impl Thresholds {
    /// Of nodes without thresholds of their own.
    pub const DEFAULT: Self = Self { degraded: 0.80, unhealthy: 0.95 };
    /// Of nodes without which nothing goes on.
    pub const CRITICAL: Self = Self { degraded: 0.60, unhealthy: 0.80 };

    pub(super) fn check(self) -> Result<Self, ResourceError> {
        let Self { degraded, unhealthy } = self;
        let is_valid = degraded > 0.0 && degraded <= unhealthy && unhealthy.is_finite();
        if is_valid { Ok(self) } else { Err(ResourceError::InvalidThresholds { degraded, unhealthy }) }
    }

    /// What this much in use means.
    pub fn judge(self, utilization: f64) -> Health {
        match utilization {
            _ if utilization >= self.unhealthy => Health::Unhealthy,
            _ if utilization >= self.degraded => Health::Degraded,
            _ => Health::Healthy,
        }
    }
}

/// How a node, or everything, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Health {
    /// Enough is left.
    Healthy = 0,
    /// Not much is left.
    Degraded = 1,
    /// Hardly anything is left.
    Unhealthy = 2,
}

impl Health {
    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Degraded => "Degraded",
            Self::Unhealthy => "Unhealthy",
        }
    }
}

/// The part of its capacity that a node uses; `None` of nodes without one, or with nothing of nothing.
pub(super) fn utilization(metrics: &[Metric]) -> Option<f64> {
    metrics.iter().find_map(|metric| match *metric {
        Metric::Capacity { current, max: 0 } => (current > 0).then_some(1.0),
        Metric::Capacity { current, max } => Some(current as f64 / max as f64),
        _ => None,
    })
}
