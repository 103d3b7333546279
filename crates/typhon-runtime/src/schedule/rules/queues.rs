//! Event queues: producers before consumers, and no event that nobody can see.

use super::{Conflict, Derivation};
use crate::graph::{QueueNode, Reason, SystemNode};
use crate::schedule::{ScheduleFault, Subject};
use crate::{QueueId, SystemIndex};

/// What a system does with one queue.
#[derive(Debug, Clone, Copy)]
struct QueueUse {
    system: SystemIndex,
    pushes: bool,
    consumes: bool,
    drains: bool,
}

impl Derivation<'_> {
    /// Orders the users of every queue.
    pub(super) fn events(&mut self) {
        let nodes = self.nodes;
        for (at, queue) in nodes.queues.iter().enumerate() {
            let users = self.users_of(QueueId::new(at as u16), queue);
            for (at, &first) in users.iter().enumerate() {
                for &second in &users[at + 1..] {
                    let (a, b) = (self.system(first.system), self.system(second.system));
                    if a.phase < b.phase {
                        self.queue_across_phases(queue, first, second);
                    } else if b.phase < a.phase {
                        self.queue_across_phases(queue, second, first);
                    } else {
                        self.queue_in_one_phase(queue, first, second);
                    }
                }
            }
            if !queue.options.carry_over {
                self.consumers_that_can_miss(queue);
            }
        }
    }

    /// Everybody who uses the queue, by index.
    fn users_of(&self, id: QueueId, queue: &QueueNode) -> Vec<QueueUse> {
        let mut users: Vec<SystemIndex> = queue.producers.iter().chain(&queue.consumers).copied().collect();
        users.sort_unstable();
        users.dedup();
        let uses = users.into_iter().map(|system| {
            let queues = &self.system(system).queues;
            let drains = queues.may_drain(id);
            QueueUse { system, pushes: queues.may_write(id), consumes: queues.may_read(id), drains }
        });
        uses.collect()
    }

    fn queue_across_phases(&mut self, queue: &QueueNode, early: QueueUse, late: QueueUse) {
        let both_consume = early.consumes && late.consumes;
        if early.pushes && late.consumes || both_consume && (early.drains || late.drains) {
            self.edge(early.system, late.system, Reason::CrossPhase);
        }
        if early.consumes && late.pushes {
            if queue.options.carry_over {
                self.edge(early.system, late.system, Reason::Event);
            } else {
                self.faults.push(ScheduleFault::EarlyConsumer {
                    queue: queue.name.clone(),
                    consumer: self.name(early.system),
                    producer: self.name(late.system),
                });
            }
        }
    }

    fn queue_in_one_phase(&mut self, queue: &QueueNode, first: QueueUse, second: QueueUse) {
        match (first.pushes && second.consumes, second.pushes && first.consumes) {
            (true, true) => self.faults.push(ScheduleFault::MutualEvents {
                first: self.name(first.system),
                second: self.name(second.system),
                phase: self.phase_name(first.system),
                queue: queue.name.clone(),
            }),
            (true, false) => self.edge(first.system, second.system, Reason::Event),
            (false, true) => self.edge(second.system, first.system, Reason::Event),
            (false, false) if first.drains || second.drains => {
                let subject = Subject::Queue(queue.name.clone());
                if first.consumes && second.consumes {
                    self.needs_order(first.system, second.system, Conflict::Drain, &subject);
                }
            }
            (false, false) => {}
        }
    }

    /// Consumers of a queue that begins every tick empty must run whenever a producer does.
    fn consumers_that_can_miss(&mut self, queue: &QueueNode) {
        for &consumer in &queue.consumers {
            for &producer in queue.producers.iter().filter(|&&producer| producer != consumer) {
                if let Some(because) = can_miss(self.system(consumer), self.system(producer)) {
                    self.faults.push(ScheduleFault::ConsumerCanMiss {
                        queue: queue.name.clone(),
                        consumer: self.name(consumer),
                        producer: self.name(producer),
                        because,
                    });
                }
            }
        }
    }
}

/// Why the consumer may be left out of a tick in which the producer runs. Failures aside: they are reported as such.
/// Systems that share a queue count their divisors from the same tick.
fn can_miss(consumer: &SystemNode, producer: &SystemNode) -> Option<&'static str> {
    if consumer.is_gated {
        return Some("it has a gate of its own");
    }
    if !producer.tick_divisor.is_multiple_of(consumer.tick_divisor) {
        return Some("its tick_divisor is no divisor of the other's");
    }
    if producer.is_sheddable() {
        return None;
    }
    if consumer.is_sheddable() {
        return Some("it can be shed under overload");
    }
    let divisors = (producer.overload_tick_divisor(), consumer.overload_tick_divisor());
    (!divisors.0.is_multiple_of(divisors.1))
        .then_some("its divisor under overload is no divisor of the other's")
}
