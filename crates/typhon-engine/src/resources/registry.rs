//! The tree: who is in it, and who is told when that changes.

use super::error::ResourceError;
use super::health::Thresholds;
use super::kinds::{ExhaustionPolicy, NodeId, NodeType, Subsystem};
use super::metrics::MetricSource;
use super::shape::{Shape, ShapeNode};
use super::snapshot::Snapshot;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};
use typhon_sync::panics::guarded;
use typhon_trace::tables::ResourceNode;

/// A tree of resources. Cloning gives another handle.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    tree: Mutex<Tree>,
    /// Held while the tree changes and subscribers are told, so that they are told in order.
    edits: Mutex<()>,
    subscribers: Mutex<Subscribers>,
    /// Nodes dropped in the middle of a change, to be removed after it.
    dropped: Mutex<Vec<NodeId>>,
}

#[derive(Default)]
struct Subscribers {
    next: u64,
    all: Vec<(u64, Arc<Subscriber>)>,
}

type Subscriber = dyn Fn(&Mutation) + Send + Sync;

struct Tree {
    next: u64,
    entries: HashMap<NodeId, Entry>,
    /// What the entries look like; `None` after a change.
    shape: Option<Arc<Shape>>,
}

struct Entry {
    parent: Option<NodeId>,
    name: Arc<str>,
    node: Node,
    created_at: SystemTime,
    children: BTreeMap<Arc<str>, NodeId>,
    waits_for: Vec<NodeId>,
}

/// What a node is.
#[derive(Clone)]
#[must_use = "it has to be registered"]
pub struct Node {
    node_type: NodeType,
    exhaustion: ExhaustionPolicy,
    thresholds: Thresholds,
    source: Option<Arc<dyn MetricSource>>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, exhaustion {:?}, {:?}", self.node_type, self.exhaustion, self.thresholds)
    }
}

impl Node {
    /// A node without numbers that cannot be used up.
    pub fn new(node_type: NodeType) -> Self {
        let (exhaustion, thresholds) = (ExhaustionPolicy::None, Thresholds::DEFAULT);
        Self { node_type, exhaustion, thresholds, source: None }
    }

    /// What happens when it is used up.
    pub fn exhaustion(self, exhaustion: ExhaustionPolicy) -> Self {
        Self { exhaustion, ..self }
    }

    /// When its use becomes a worry.
    pub fn thresholds(self, thresholds: Thresholds) -> Self {
        Self { thresholds, ..self }
    }

    /// Where its numbers come from.
    pub fn metrics(self, source: Arc<dyn MetricSource>) -> Self {
        Self { source: Some(source), ..self }
    }
}

/// A registered node. Dropping it removes the node with everything below it.
#[must_use = "dropping it removes the node"]
pub struct Resource {
    registry: Registry,
    id: NodeId,
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Resource {
    /// The node, as the parent of others.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Calls that want more of this resource may have to wait for `other`.
    ///
    /// # Errors
    /// One of the two was removed together with its parent.
    pub fn waits_for(&self, other: impl Into<NodeId>) -> Result<(), ResourceError> {
        let (mut tree, other) = (self.registry.tree(), other.into());
        if !tree.entries.contains_key(&other) {
            return Err(ResourceError::UnknownNode);
        }
        tree.entries.get_mut(&self.id).ok_or(ResourceError::UnknownNode)?.waits_for.push(other);
        tree.shape = None;
        Ok(())
    }
}

impl From<&Resource> for NodeId {
    fn from(resource: &Resource) -> Self {
        resource.id
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        match Edit::begin(&self.registry) {
            Some(edit) => edit.remove(self.id),
            None => lock(&self.registry.0.dropped).push(self.id),
        }
    }
}

/// What happened to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MutationKind {
    /// It was registered.
    Added,
    /// It was removed.
    Removed,
}

/// A change of the tree: identifiers only, the node itself may be gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    /// What happened.
    pub kind: MutationKind,
    /// To which node.
    pub id: NodeId,
    /// Where it is, or was.
    pub path: String,
    /// What it is, or was.
    pub node_type: NodeType,
}

/// A subscription; dropping it ends it.
#[must_use = "dropping it ends the subscription"]
pub struct Subscription {
    registry: Registry,
    number: u64,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        lock(&self.registry.0.subscribers).all.retain(|(number, _)| *number != self.number);
    }
}

thread_local! {
    /// Registries whose tree this thread is changing, by address.
    static EDITING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A change of the tree, of which there is one at a time. What foreign code drops meanwhile, a subscriber or the source
/// of a removed node, is removed when the change is over.
struct Edit<'a> {
    registry: &'a Registry,
    _turn: MutexGuard<'a, ()>,
}

impl<'a> Edit<'a> {
    /// `None` if this thread is in the middle of a change.
    fn begin(registry: &'a Registry) -> Option<Self> {
        if registry.is_editing() {
            return None;
        }
        let turn = lock(&registry.0.edits);
        EDITING.with_borrow_mut(|editing| editing.push(registry.address()));
        Some(Self { registry, _turn: turn })
    }

    fn remove(&self, id: NodeId) {
        let (mutations, removed) = self.registry.tree().remove(id);
        // Sources are foreign code, which must not end under a lock of the tree.
        drop(removed);
        self.registry.tell(&mutations);
    }
}

impl Drop for Edit<'_> {
    fn drop(&mut self) {
        loop {
            let dropped = std::mem::take(&mut *lock(&self.registry.0.dropped));
            if dropped.is_empty() {
                break;
            }
            dropped.into_iter().for_each(|id| self.remove(id));
        }
        let address = self.registry.address();
        EDITING.with_borrow_mut(|editing| editing.retain(|other| *other != address));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("nodes", &self.tree().entries.len()).finish()
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// A tree with the root and the subsystems.
    pub fn new() -> Self {
        let root = Entry::new(None, "Root", Node::new(NodeType::Node));
        let mut tree = Tree { next: 1, entries: HashMap::from([(NodeId::ROOT, root)]), shape: None };
        for subsystem in Subsystem::ALL {
            let name = subsystem.path().rsplit('/').next().unwrap_or_default();
            let id = tree.insert(subsystem.parent(), name, Node::new(NodeType::Node));
            debug_assert_eq!(id, subsystem.id());
        }
        Self(Arc::new(Inner {
            tree: Mutex::new(tree),
            edits: Mutex::new(()),
            subscribers: Mutex::default(),
            dropped: Mutex::default(),
        }))
    }

    /// The tree of this process, in which engines and runtimes register.
    pub fn process() -> &'static Self {
        static PROCESS: OnceLock<Registry> = OnceLock::new();
        PROCESS.get_or_init(Self::new)
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    fn is_editing(&self) -> bool {
        EDITING.with_borrow(|editing| editing.contains(&self.address()))
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        lock(&self.0.tree)
    }

    /// Adds a node below another one.
    ///
    /// # Errors
    /// The name is no name or taken, the parent or the thresholds are not valid, or a subscriber calls this while it is
    /// told of a change.
    pub fn register(
        &self,
        parent: impl Into<NodeId>,
        name: &str,
        node: Node,
    ) -> Result<Resource, ResourceError> {
        if name.is_empty() || name.contains('/') {
            return Err(ResourceError::InvalidName { name: name.to_owned() });
        }
        node.thresholds.check()?;
        let (parent, node_type) = (parent.into(), node.node_type);
        let edit = Edit::begin(self).ok_or(ResourceError::ReentrantEdit)?;
        let mut tree = self.tree();
        let siblings = &tree.entries.get(&parent).ok_or(ResourceError::UnknownNode)?.children;
        if let Some(taken) = siblings.get(name) {
            return Err(ResourceError::DuplicateName { path: tree.path(*taken) });
        }
        let id = tree.insert(parent, name, node);
        let path = tree.path(id);
        drop(tree);
        self.tell(&[Mutation { kind: MutationKind::Added, id, path, node_type }]);
        drop(edit);
        Ok(Resource { registry: self.clone(), id })
    }

    /// Tells everybody. What a subscriber's panic says, the panic hook has said; it ends there.
    fn tell(&self, mutations: &[Mutation]) {
        let subscribers: Vec<_> = lock(&self.0.subscribers).all.clone();
        for mutation in mutations {
            for (_, subscriber) in &subscribers {
                guarded(|| subscriber(mutation));
            }
        }
    }

    /// Has `told` called with every change from now on, in order, by the thread that makes it. It may take snapshots but
    /// not change the tree; what it drops is removed afterwards.
    pub fn subscribe(&self, told: impl Fn(&Mutation) + Send + Sync + 'static) -> Subscription {
        let mut subscribers = lock(&self.0.subscribers);
        let number = subscribers.next;
        subscribers.next += 1;
        subscribers.all.push((number, Arc::new(told)));
        Subscription { registry: self.clone(), number }
    }

    /// Changes when the use of a node becomes a worry.
    ///
    /// # Errors
    /// There is no such node now, or the thresholds are not valid.
    pub fn set_thresholds(&self, path: &str, thresholds: Thresholds) -> Result<(), ResourceError> {
        thresholds.check()?;
        let mut tree = self.tree();
        let unknown = || ResourceError::UnknownPath { path: path.to_owned() };
        let id = tree.find(path).ok_or_else(unknown)?;
        tree.entries.get_mut(&id).ok_or_else(unknown)?.node.thresholds = thresholds;
        tree.shape = None;
        Ok(())
    }

    pub(super) fn shape(&self) -> Arc<Shape> {
        self.tree().shape()
    }

    /// The numbers of all nodes, as they are now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.shape(), Instant::now())
    }

    /// Begins a new window of peaks everywhere.
    pub fn reset_peaks(&self) {
        let shape = self.shape();
        shape.nodes.iter().filter_map(|node| node.source.as_ref()).for_each(|source| source.reset_peaks());
    }

    /// What a node says about the many things below it that are no nodes, by name (brief 04 B-64): such as the systems of
    /// a runtime. They are asked for now, and only for this node; none for a node that has nothing to say.
    ///
    /// # Errors
    /// There is no such node now.
    pub fn debug_properties(&self, path: &str) -> Result<Vec<(String, String)>, ResourceError> {
        let shape = self.shape();
        let place = shape.by_path.get(path);
        let node = place.and_then(|&place| shape.nodes.get(place));
        let node = node.ok_or_else(|| ResourceError::UnknownPath { path: path.to_owned() })?;
        let mut said = Vec::new();
        if let Some(source) = &node.source {
            source.debug_properties(&mut |name, value| said.push((name.to_owned(), value.to_string())));
        }
        Ok(said)
    }

    /// The tree as a trace has it (brief 01, table 11).
    pub fn trace_table(&self) -> Vec<ResourceNode> {
        let shape = self.shape();
        let node = |(id, node): (i64, &ShapeNode)| ResourceNode {
            id,
            name: node.name.to_string(),
            r#type: node.node_type.number(),
            parent_id: node.parent.map_or(-1, |parent| parent as i64 + 1),
            created_at_utc_ticks: utc_ticks(node.created_at),
            exhaustion_policy: node.exhaustion.number(),
        };
        (1..).zip(&shape.nodes).map(node).collect()
    }
}

/// 100 ns units since the first day of the first year.
fn utc_ticks(moment: SystemTime) -> i64 {
    const UNIX_EPOCH_TICKS: i64 = 621_355_968_000_000_000;
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH_TICKS + (since.as_nanos() / 100) as i64
}

impl Entry {
    fn new(parent: Option<NodeId>, name: &str, node: Node) -> Self {
        let created_at = SystemTime::now();
        Self { parent, name: name.into(), node, created_at, children: BTreeMap::new(), waits_for: Vec::new() }
    }
}

impl Tree {
    fn insert(&mut self, parent: NodeId, name: &str, node: Node) -> NodeId {
        let id = NodeId(self.next);
        self.next += 1;
        let entry = Entry::new(Some(parent), name, node);
        if let Some(parent) = self.entries.get_mut(&parent) {
            parent.children.insert(Arc::clone(&entry.name), id);
        }
        self.entries.insert(id, entry);
        self.shape = None;
        id
    }

    /// Removes a node with everything below it, the lowest first. Nothing if it is gone.
    fn remove(&mut self, id: NodeId) -> (Vec<Mutation>, Vec<Entry>) {
        let (mut mutations, mut removed) = (Vec::new(), Vec::new());
        let Some(entry) = self.entries.get(&id) else { return (mutations, removed) };
        let (parent, name) = (entry.parent, Arc::clone(&entry.name));
        let mut order = vec![id];
        let mut at = 0;
        while let Some(id) = order.get(at).copied() {
            order.extend(self.entries.get(&id).into_iter().flat_map(|entry| entry.children.values()));
            at += 1;
        }
        for id in order.into_iter().rev() {
            let path = self.path(id);
            if let Some(entry) = self.entries.remove(&id) {
                let (kind, node_type) = (MutationKind::Removed, entry.node.node_type);
                mutations.push(Mutation { kind, id, path, node_type });
                removed.push(entry);
            }
        }
        if let Some(parent) = parent.and_then(|parent| self.entries.get_mut(&parent)) {
            parent.children.remove(&name);
        }
        self.shape = None;
        (mutations, removed)
    }

    fn path(&self, id: NodeId) -> String {
        let ancestry = std::iter::successors(self.entries.get(&id), |entry| self.entries.get(&entry.parent?));
        let mut names: Vec<&str> = ancestry.map(|entry| &*entry.name).collect();
        if names.len() > 1 {
            names.pop();
        }
        names.reverse();
        names.join("/")
    }

    fn find(&self, path: &str) -> Option<NodeId> {
        let mut at = NodeId::ROOT;
        for name in path.split('/') {
            at = *self.entries.get(&at)?.children.get(name)?;
        }
        Some(at)
    }

    fn shape(&mut self) -> Arc<Shape> {
        if let Some(shape) = &self.shape {
            return Arc::clone(shape);
        }
        let mut shape = Shape::default();
        let mut places = HashMap::new();
        self.add_to(&mut shape, NodeId::ROOT, None, &mut places);
        for (id, entry) in &self.entries {
            let targets = entry.waits_for.iter().filter_map(|target| places.get(target).copied());
            if let Some(&place) = places.get(id) {
                shape.nodes[place].waits_for = targets.collect();
            }
        }
        let shape = Arc::new(shape);
        self.shape = Some(Arc::clone(&shape));
        shape
    }

    /// Adds a node and everything below it, in the order of names.
    fn add_to(
        &self,
        shape: &mut Shape,
        id: NodeId,
        parent: Option<usize>,
        places: &mut HashMap<NodeId, usize>,
    ) {
        let Some(entry) = self.entries.get(&id) else { return };
        let place = shape.nodes.len();
        let path: Arc<str> = self.path(id).into();
        places.insert(id, place);
        shape.by_path.insert(Arc::clone(&path), place);
        shape.nodes.push(ShapeNode {
            path,
            name: Arc::clone(&entry.name),
            node_type: entry.node.node_type,
            exhaustion: entry.node.exhaustion,
            thresholds: entry.node.thresholds,
            created_at: entry.created_at,
            parent,
            end: 0,
            waits_for: Vec::new(),
            source: entry.node.source.clone(),
        });
        for child in entry.children.values() {
            self.add_to(shape, *child, Some(place), places);
        }
        shape.nodes[place].end = shape.nodes.len();
    }
}
