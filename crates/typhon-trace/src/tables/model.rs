//! The entries of the eleven metadata tables, field by field in wire order (format spec, "Metadata tables").
//!
//! Enumerations stay numbers: a file may hold values that this build does not know.

use crate::wire::wire_struct;

/// Routing id of an archetype whose id in the database file is unknown or ambiguous.
pub const ROUTING_ID_UNKNOWN: u16 = 0xFFFF;
/// [`ArchetypeDefinition::parent_archetype_id`] of an archetype without a parent.
pub const NO_PARENT_ARCHETYPE: u16 = 0xFFFF;
/// [`FieldDefinition::flags`]: the field has an index.
pub const FIELD_INDEXED: u8 = 0x01;
/// [`FieldDefinition::flags`]: the index allows equal keys.
pub const FIELD_MULTIPLE: u8 = 0x02;
/// [`FieldDefinition::flags`]: the index was created without being asked for.
pub const FIELD_AUTO: u8 = 0x04;
/// [`FieldDefinition::flags`]: the field places the entity in space.
pub const FIELD_SPATIAL: u8 = 0x08;
/// [`FieldDefinition::flags`]: the field refers to another component.
pub const FIELD_FOREIGN_KEY: u8 = 0x10;
/// [`FieldDefinition::flags`], this project's files only: the number type is unsigned.
pub const FIELD_UNSIGNED: u8 = 0x20;
/// [`FieldDefinition::flags`], this project's files only: the number type has double precision.
pub const FIELD_DOUBLE: u8 = 0x40;

wire_struct! {
    /// Table 1: one system of the schedule.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct System {
        /// Index that events name.
        index: u16,
        /// Name.
        name: String,
        /// 0 pipeline, 1 query, 2 callback.
        r#type: u8,
        /// 0 critical, 1 high, 2 normal, 3 low.
        priority: u8,
        /// May its chunks run on several workers at once?
        is_parallel: bool,
        /// Bits 0..=3: simulation tiers 0..=3 that it runs for.
        tier_filter: u8,
        /// Indexes of systems that run before it. The format holds at most 255.
        predecessors: Vec<u16> => short_list,
        /// Indexes of systems that run after it. The format holds at most 255.
        successors: Vec<u16> => short_list,
        /// Phase of its DAG.
        phase_name: String,
        /// Does it have its phase for itself?
        is_exclusive_phase: bool,
        /// Component types that it reads.
        reads: Vec<String>,
        /// Component types that it reads after this tick's writers.
        reads_fresh: Vec<String>,
        /// Component types that it reads as of the start of the tick.
        reads_snapshot: Vec<String>,
        /// Component types that it reads besides those of its query.
        additional_reads: Vec<String>,
        /// Component types that it writes.
        writes: Vec<String>,
        /// Component types that it writes outside its own entities.
        side_writes: Vec<String>,
        /// Event types that it publishes.
        writes_events: Vec<String>,
        /// Event types that it consumes.
        reads_events: Vec<String>,
        /// Resources that it changes.
        writes_resources: Vec<String>,
        /// Resources that it looks at.
        reads_resources: Vec<String>,
        /// Systems that it was told to follow.
        explicit_after: Vec<String>,
        /// Systems that it was told to precede.
        explicit_before: Vec<String>,
        /// Its DAG.
        dag_id: u16,
    }
}

wire_struct! {
    /// Table 2: the bridge between the two id spaces of archetypes. Event payloads and the other tables use the
    /// *catalogue* id, which is valid in one process; entity ids carry the persistent *routing* id. Never compare
    /// one with the other.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Archetype {
        /// Catalogue id, at most 4095.
        archetype_id: u16,
        /// Name.
        name: String,
        /// Routing id, or [`ROUTING_ID_UNKNOWN`].
        routing_id: u16,
    }
}

wire_struct! {
    /// Table 3: one component type. Ids of -2 and below are tables of the engine itself, -1 is "missing".
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct ComponentType {
        /// Id that events name.
        component_type_id: i32,
        /// Name.
        name: String,
    }
}

wire_struct! {
    /// Table 4: one track, a sequence of DAGs within the tick.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Track {
        /// Name.
        name: String,
        /// Place among the tracks.
        order_index: i32,
        /// Free words.
        tags: Vec<String>,
    }
}

wire_struct! {
    /// Table 5: one graph of systems.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Dag {
        /// Id that systems name.
        id: i32,
        /// Name.
        name: String,
        /// Position of its track in table 4.
        track_index: i32,
        /// Phases in order.
        phase_names: Vec<String>,
    }
}

wire_struct! {
    /// Table 6: the stored form of one component.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct ComponentDefinition {
        /// Id of table 3.
        component_type_id: i32,
        /// Name.
        name: String,
        /// Schema revision.
        revision: i32,
        /// 0 versioned, 1 single version, 2 transient.
        storage_mode: u8,
        /// Always false so far.
        allow_multiple: bool,
        /// Payload bytes of one component.
        component_storage_size: i32,
        /// Bytes of management data of one component.
        component_storage_overhead: i32,
        /// Sum of the two.
        component_storage_total_size: i32,
        /// Number of indexed fields.
        indices_count: u16,
        /// Number of indexed fields that allow equal keys.
        multiple_indices_count: u16,
        /// Name of the spatial field, empty = none.
        spatial_field: String,
        /// Fields in order of their ids.
        fields: Vec<FieldDefinition>,
    }
}

wire_struct! {
    /// One field of a [`ComponentDefinition`]. The spatial part is always present and meaningful only with
    /// [`FIELD_SPATIAL`].
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct FieldDefinition {
        /// Id within the component.
        field_id: i32,
        /// Name.
        name: String,
        /// Type number of the format without its modifiers, see [`FIELD_UNSIGNED`] and [`FIELD_DOUBLE`].
        field_type: u8,
        /// Element type of collections and the like, same numbers.
        underlying_type: u8,
        /// Offset in the component, bytes.
        offset: i32,
        /// Size, bytes.
        size: i32,
        /// Elements of an inline array, 0 = not an array.
        array_length: i32,
        /// `FIELD_*` bits.
        flags: u8,
        /// Shape: 0..=3 are AABB2F, AABB3F, BSphere2F, BSphere3F; 4..=7 the same in double precision.
        spatial_field_type: u8,
        /// 0 dynamic, 1 static.
        spatial_mode: u8,
        /// Edge of a grid cell, world units.
        spatial_cell_size: f32,
        /// Distance that an entity may move before it is filed again, world units.
        spatial_margin: f32,
        /// Category bits, 0xFFFF_FFFF = unset.
        spatial_category: u32,
        /// Component type that a foreign key refers to, empty = none.
        foreign_key_target_type: String,
    }
}

wire_struct! {
    /// Table 7: the stored form of one archetype.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct ArchetypeDefinition {
        /// Catalogue id.
        archetype_id: u16,
        /// Name.
        name: String,
        /// Schema revision.
        revision: i32,
        /// Catalogue id of the parent, [`NO_PARENT_ARCHETYPE`] at the root.
        parent_archetype_id: u16,
        /// Catalogue ids of the children.
        child_archetype_ids: Vec<u16>,
        /// Number of components, at most 16.
        component_count: u8,
        /// Their ids in slot order.
        component_type_ids: Vec<i32> => short_list,
        /// Bit n: slot n holds a versioned component.
        versioned_slot_mask: u16,
        /// Bit n: slot n holds a transient component.
        transient_slot_mask: u16,
        /// Catalogue ids of archetypes that are deleted along.
        cascade_targets: Vec<u16>,
        /// 0x01 cluster eligible, 0x02 cluster indexes, 0x04 cluster spatial.
        flags: u8,
        /// Cluster layout; present or not on its own, whatever `flags` say.
        cluster_info: Option<ClusterInfo>,
    }
}

wire_struct! {
    /// Layout of the clusters of an archetype.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ClusterInfo {
        /// Entities per cluster.
        cluster_size: u16,
        /// Bytes from one cluster to the next.
        cluster_stride: u32,
        /// Bytes of the cluster header.
        header_size: u32,
        /// Offset of the entity ids, bytes.
        entity_ids_offset: u32,
        /// Offset of the index element ids, bytes.
        index_element_ids_base_offset: u32,
        /// Indexed fields that allow equal keys.
        multiple_indexed_field_count: u16,
    }
}

wire_struct! {
    /// Table 8: one index.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct IndexEntry {
        /// Component type.
        component_type_id: i32,
        /// Field of it.
        field_id: i32,
        /// Low nibble: 0 byte, 1 short, 2 int, 3 long, 4 float, 5 double, 6 char, 7 string64, 15 unknown; bit 0x10:
        /// equal keys allowed; 0xFF: spatial.
        variant: u8,
        /// Are equal keys allowed?
        allow_multiple: bool,
        /// Is it a spatial index?
        is_spatial: bool,
        /// Was it created without being asked for?
        is_auto: bool,
    }
}

wire_struct! {
    /// Table 9: options of the runtime.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct RuntimeConfig {
        /// Ticks per second.
        base_tick_rate: i32,
        /// Workers.
        worker_count: i32,
        /// Ticks kept by the runtime's own telemetry.
        telemetry_ring_capacity: i32,
        /// Smallest chunk of a parallel query, entities.
        parallel_query_min_chunk_size: i32,
    }
}

wire_struct! {
    /// Table 10: one event queue.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct EventQueue {
        /// Index that events name.
        queue_index: u16,
        /// Name.
        name: String,
        /// Events that it can hold.
        capacity: i32,
        /// Type of its events.
        event_type_name: String,
    }
}

wire_struct! {
    /// Table 11: one node of the resource tree, in preorder.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct ResourceNode {
        /// Id from 1.
        id: i64,
        /// Name.
        name: String,
        /// Type number: 1 node, 10 service, 11 engine, 30 component table …
        r#type: u8,
        /// Parent, -1 at the root.
        parent_id: i64,
        /// Creation, in 100 ns units since 0001-01-01 UTC.
        created_at_utc_ticks: i64,
        /// 0 none, 1 fail fast, 2 wait, 3 evict, 4 degrade.
        exhaustion_policy: u8,
    }
}
