//! Snapshots as text.

use super::metrics::Metric;
use super::snapshot::{NodeView, Snapshot};
use serde_json::{Map, Value, json};
use std::time::SystemTime;

impl Snapshot {
    /// The snapshot as JSON: health, and all nodes in the order of [`Snapshot::nodes`]. Numbers of the first three kinds
    /// are objects, those of the others lists.
    pub fn to_json(&self) -> Value {
        let since = self.taken_at_utc().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        json!({
            "takenAtUnixMs": since.as_millis() as u64,
            "health": self.health().name(),
            "nodes": self.nodes().map(node).collect::<Vec<_>>(),
        })
    }
}

fn node(node: NodeView<'_>) -> Value {
    let mut object = Map::new();
    object.insert("path".to_owned(), node.path().into());
    object.insert("type".to_owned(), node.node_type().name().into());
    object.insert("exhaustionPolicy".to_owned(), node.exhaustion().name().into());
    if node.utilization().is_some() {
        object.insert("health".to_owned(), node.health().name().into());
    }
    node.metrics().iter().for_each(|each| metric(&mut object, each));
    object.into()
}

fn metric(object: &mut Map<String, Value>, metric: &Metric) {
    let mut insert = |key: &str, value| _ = object.insert(key.to_owned(), value);
    match *metric {
        Metric::Memory { allocated_bytes, peak_bytes } => {
            insert("memory", json!({ "allocatedBytes": allocated_bytes, "peakBytes": peak_bytes }));
        }
        Metric::Capacity { current, max } => {
            insert("capacity", json!({ "current": current, "max": max }));
        }
        Metric::DiskIo { read_ops, write_ops, read_bytes, write_bytes } => insert(
            "diskIo",
            json!({
                "readOps": read_ops,
                "writeOps": write_ops,
                "readBytes": read_bytes,
                "writeBytes": write_bytes,
            }),
        ),
        Metric::Throughput { name, count } => {
            append(object, "throughput", json!({ "name": name, "count": count }));
        }
        Metric::Duration { name, last_us, average_us, max_us } => append(
            object,
            "duration",
            json!({ "name": name, "lastUs": last_us, "averageUs": average_us, "maxUs": max_us }),
        ),
    }
}

fn append(object: &mut Map<String, Value>, key: &str, value: Value) {
    let list = object.entry(key).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.push(value);
    }
}
