//! What can go wrong with resources.

use crate::error::{Coded, ErrorCode};

/// A resource is used up to its limit. The call can succeed later.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} is used up: {current} of {limit}")]
pub struct ResourceExhausted {
    /// Path of the resource.
    pub path: String,
    /// What it is.
    pub node_type: super::NodeType,
    /// How much of it is in use.
    pub current: u64,
    /// How much there is.
    pub limit: u64,
}

impl Coded for ResourceExhausted {
    fn code(&self) -> ErrorCode {
        ErrorCode::RESOURCE_EXHAUSTED
    }
}

/// Why the tree was not changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// A node has no name, or one with a slash in it.
    #[error("\"{name}\" is no name of a resource: it must not be empty and not contain '/'")]
    InvalidName {
        /// The name.
        name: String,
    },
    /// There is a node of this name.
    #[error("there is a resource {path} already")]
    DuplicateName {
        /// Its path.
        path: String,
    },
    /// The node does not exist, or not any more.
    #[error("the resource does not exist any more")]
    UnknownNode,
    /// There is no node at this path.
    #[error("there is no resource {path}")]
    UnknownPath {
        /// The path.
        path: String,
    },
    /// Thresholds that no utilisation could meet in order.
    #[error("thresholds must be above 0 and in order, not {degraded} and {unhealthy}")]
    InvalidThresholds {
        /// From here on degraded.
        degraded: f64,
        /// From here on unhealthy.
        unhealthy: f64,
    },
    /// The tree is changed by what is called because of another change.
    #[error("a subscriber cannot change the tree while it is told of a change")]
    ReentrantEdit,
}
