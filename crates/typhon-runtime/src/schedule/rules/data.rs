//! Components and resources that several systems touch.

use std::collections::HashMap;

use super::{Conflict, Derivation, systems_of};
use crate::SystemIndex;
use crate::graph::{Component, ComponentAccess, Reason, ResourceAccess, TrackNode};
use crate::schedule::Subject;

/// What a system does with one thing, all of its declarations together.
#[derive(Debug, Clone, Copy, Default)]
struct Access {
    /// Reads, without saying when.
    reads: bool,
    /// Reads what writers of its phase wrote.
    reads_fresh: bool,
    /// Reads before writers of its phase write.
    reads_snapshot: bool,
    writes: bool,
}

/// One thing, and the systems that touch it, by index.
struct Shared {
    subject: Subject,
    /// Why a reader in the writer's phase comes after the writer.
    reason: Reason,
    users: Vec<(SystemIndex, Access)>,
}

impl Derivation<'_> {
    /// Orders, within a track, the systems that share components or resources.
    pub(super) fn shared_data(&mut self, track: &TrackNode) {
        for Shared { subject, reason, users } in self.users_by_subject(track) {
            if !users.iter().any(|(_, access)| access.writes) {
                continue;
            }
            for (at, &first) in users.iter().enumerate() {
                for &second in &users[at + 1..] {
                    if first.1.writes || second.1.writes {
                        self.shared_by_two(&subject, reason, first, second);
                    }
                }
            }
        }
    }

    /// Everything that systems of a track touch, in the order of its first use.
    fn users_by_subject(&self, track: &TrackNode) -> Vec<Shared> {
        let mut shared = Vec::new();
        let mut components = HashMap::<&Component, usize>::new();
        let mut resources = HashMap::<&str, usize>::new();
        for index in systems_of(track, self.nodes) {
            let system = self.system(index);
            for used in system.components.iter().filter(|used| used.access != ComponentAccess::SideWrite) {
                let place = *components.entry(&used.component).or_insert_with(|| {
                    let subject = Subject::Component(used.component.name().to_owned());
                    shared.push(Shared { subject, reason: Reason::Fresh, users: Vec::new() });
                    shared.len() - 1
                });
                let access = access_of(&mut shared[place], index);
                match used.access {
                    ComponentAccess::Read => access.reads = true,
                    ComponentAccess::ReadFresh | ComponentAccess::AdditionalRead => access.reads_fresh = true,
                    ComponentAccess::ReadSnapshot => access.reads_snapshot = true,
                    ComponentAccess::Write => access.writes = true,
                    ComponentAccess::SideWrite => {}
                }
            }
            for used in &system.resources {
                let place = *resources.entry(&used.resource).or_insert_with(|| {
                    let subject = Subject::Resource(used.resource.clone());
                    shared.push(Shared { subject, reason: Reason::Resource, users: Vec::new() });
                    shared.len() - 1
                });
                let access = access_of(&mut shared[place], index);
                match used.access {
                    ResourceAccess::Read => access.reads_fresh = true,
                    ResourceAccess::Write => access.writes = true,
                }
            }
        }
        shared
    }

    /// Two systems that share something that at least one of them writes.
    fn shared_by_two(
        &mut self,
        subject: &Subject,
        reason: Reason,
        first: (SystemIndex, Access),
        second: (SystemIndex, Access),
    ) {
        let (a, b) = (self.system(first.0), self.system(second.0));
        if a.dag != b.dag {
            self.conflict(first.0, second.0, Conflict::Track, subject);
        } else if a.phase < b.phase {
            self.edge(first.0, second.0, Reason::CrossPhase);
        } else if b.phase < a.phase {
            self.edge(second.0, first.0, Reason::CrossPhase);
        } else if first.1.writes && second.1.writes {
            self.needs_order(first.0, second.0, Conflict::Write, subject);
        } else if first.1.writes {
            self.reader_beside_writer(subject, reason, first.0, second);
        } else {
            self.reader_beside_writer(subject, reason, second.0, first);
        }
    }

    /// A reader and a writer in one phase. The more exact of several declarations of the reader counts.
    fn reader_beside_writer(
        &mut self,
        subject: &Subject,
        reason: Reason,
        writer: SystemIndex,
        (reader, access): (SystemIndex, Access),
    ) {
        if access.reads_fresh {
            self.edge(writer, reader, reason);
        }
        if access.reads_snapshot {
            self.edge(reader, writer, Reason::Snapshot);
        }
        if !access.reads_fresh && !access.reads_snapshot {
            self.needs_order(reader, writer, Conflict::Read, subject);
        }
    }
}

/// What the system does with this thing. Systems come in order, so that it is the last one or new.
fn access_of(shared: &mut Shared, system: SystemIndex) -> &mut Access {
    if shared.users.last().is_none_or(|(last, _)| *last != system) {
        shared.users.push((system, Access::default()));
    }
    let last = shared.users.len() - 1;
    &mut shared.users[last].1
}
