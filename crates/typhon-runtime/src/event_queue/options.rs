//! How a queue is declared.

/// What happens to an event for which the queue has no room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FullPolicy {
    /// `push` fails once one chunk alone has pushed as many events as the queue holds.
    #[default]
    Error,
    /// `push` never fails; the newest events are dropped.
    DropNewest,
    /// The queue grows up to this many events, a power of two, then behaves like [`FullPolicy::Error`].
    Grow(u32),
}

/// Capacity and behaviour of a queue (brief 04 B-45, B-46). `1024.into()` is a queue for 1,024 events with the default
/// for everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueOptions {
    /// Events for which there is room; a power of two.
    pub capacity: u32,
    /// What happens without room.
    pub full: FullPolicy,
    /// Events stay until every reader has passed them, over any number of ticks. Otherwise the queue is empty when a
    /// tick starts.
    pub carry_over: bool,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self { capacity: 1024, full: FullPolicy::Error, carry_over: false }
    }
}

impl From<u32> for QueueOptions {
    fn from(capacity: u32) -> Self {
        Self { capacity, ..Self::default() }
    }
}

impl QueueOptions {
    /// The same queue with another answer to being full.
    pub fn full(self, full: FullPolicy) -> Self {
        Self { full, ..self }
    }

    /// The same queue, keeping what was not read for the next tick.
    pub fn carry_over(self) -> Self {
        Self { carry_over: true, ..self }
    }

    /// The rules that these options break, each in one sentence without the queue's name.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |what: &str, count: u32| {
            if !count.is_power_of_two() {
                let next = count.max(1).checked_next_power_of_two().unwrap_or(1 << 31);
                faults.push(format!("{what} of {count} events is not a power of two; use {next}"));
            }
        };
        check("capacity", self.capacity);
        if let FullPolicy::Grow(max) = self.full {
            check("limit", max);
            if max < self.capacity {
                faults.push(format!("limit of {max} events is below the capacity of {}", self.capacity));
            }
        }
        faults
    }

    /// Most events that the queue ever holds.
    pub fn limit(&self) -> u32 {
        match self.full {
            FullPolicy::Grow(max) => max.max(self.capacity),
            FullPolicy::Error | FullPolicy::DropNewest => self.capacity,
        }
    }
}
