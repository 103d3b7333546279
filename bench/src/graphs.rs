//! Shapes of schedules, the same for everybody who is measured.

/// Who waits for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nobody for anybody.
    Independent,
    /// Each for the one before.
    Chain,
    /// All for the first, and the last for all.
    Fan,
    /// Twenty layers of equal size; each system for two of the layer before.
    Layers,
}

impl Shape {
    /// Systems that system `at` of `systems` waits for.
    pub fn predecessors(self, at: usize, systems: usize) -> Vec<usize> {
        match self {
            Self::Independent => Vec::new(),
            Self::Chain => at.checked_sub(1).into_iter().collect(),
            Self::Fan if at == 0 => Vec::new(),
            Self::Fan if at + 1 == systems => (1..at).collect(),
            Self::Fan => vec![0],
            Self::Layers => {
                let width = (systems / 20).max(2);
                match at.checked_sub(width) {
                    None => Vec::new(),
                    Some(same) => vec![same, same - same % width + (same % width + 1) % width],
                }
            }
        }
    }
}
