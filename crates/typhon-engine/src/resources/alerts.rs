//! News about health: what got worse, and what recovered.

use super::health::Health;
use super::snapshot::Snapshot;
use std::collections::HashMap;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A node is degraded.
    Warning,
    /// A node is unhealthy.
    Critical,
}

/// A change of a node's health.
#[derive(Debug, Clone, PartialEq)]
pub enum Alert {
    /// It got worse.
    Raised {
        /// How bad it is.
        severity: Severity,
        /// The node.
        symptom: String,
        /// What that goes back to; the node itself if to nothing else.
        root_cause: String,
        /// The part of the symptom's capacity that is in use.
        utilization: f64,
    },
    /// It got better.
    Recovered {
        /// The node.
        path: String,
        /// How it was.
        from: Health,
        /// How it is.
        to: Health,
    },
}

/// Compares the health of nodes from snapshot to snapshot. Everybody who wants alerts has one of their own.
#[derive(Debug, Clone, Default)]
pub struct Alerts {
    /// Nodes that were not healthy.
    before: HashMap<String, Health>,
}

impl Alerts {
    /// Everything counts as healthy before the first snapshot.
    pub fn new() -> Self {
        Self::default()
    }

    /// What changed since the last snapshot, node by node. Of nodes that are gone nothing is said.
    pub fn update(&mut self, snapshot: &Snapshot) -> Vec<Alert> {
        let mut alerts = Vec::new();
        let mut now = HashMap::new();
        for node in snapshot.nodes() {
            let Some(utilization) = node.utilization() else { continue };
            let (path, health) = (node.path(), node.health());
            let before = self.before.get(path).copied().unwrap_or(Health::Healthy);
            if health > before {
                let cause = snapshot.root_cause(path).unwrap_or(node);
                alerts.push(Alert::Raised {
                    severity: if health == Health::Unhealthy {
                        Severity::Critical
                    } else {
                        Severity::Warning
                    },
                    symptom: path.to_owned(),
                    root_cause: cause.path().to_owned(),
                    utilization,
                });
            } else if health < before {
                alerts.push(Alert::Recovered { path: path.to_owned(), from: before, to: health });
            }
            if health != Health::Healthy {
                now.insert(path.to_owned(), health);
            }
        }
        self.before = now;
        alerts
    }
}
