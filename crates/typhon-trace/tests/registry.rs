//! The registry is complete and says the same thing everywhere.

use typhon_trace::registry::{
    self, DefaultState, ENUMS, FieldRole, GAUGES, KINDS, KindInfo, REGISTRY_JSON, Shape, Status, Variable,
};

/// Size table of the format: id or range, shape (I instant, S span), bytes of the required fields, `+m` for a mask
/// byte, `+v` for a variable part.
const SIZE_TABLE: &str = "\
    0 I0, 1 I2, 2-3 I1, 4 I4, 5 I7, 6 I8, 7 I7, 8 I69, 9 I19, 10 S10, 20-21 S8+m, 22 S12+m, 23 S8+m, 30 S2+m, \
    31 S8+m, 32-35 S2+m, 36 I24, 40-43 S0, 50-58 S4+m, 59 S12, 60 S10+m, 61 S2+m, 62-63 S6+m, 64 S14+m, 65 I34, \
    66 I155, 67 I46, 68 I44, 69 I26, 70 I148, 71 I22, 72 I14, 73 I13, 75 S1+m, 76 I10+v, 77 I6+v, 80 S16, 81 S4, \
    82 S8, 83 S9+m, 84 S0, 85 S0+m, 86 S0, 87-88 S0+m, 89 S12, 90 I5, 91 I2, 92 I5, 93 I2, 94 I3, 95 I0, \
    96-99 I2, 100 I0, 101 I4, 102 I5, 103 I3, 104 I2, 105 I0, 106 I6, 107 I5, 108 I4, 109 I8, 110-111 I6, 112 I3, \
    113 I5, 114 I8, 115 I4, 116 I8, 117 S11, 118-119 S9, 120 S6, 121 S9, 122 S7, 123 S11, 124 S9, 125 S4, 126 S8, \
    127 I6, 128 I9, 129 I10, 130 I16, 131 I8, 132 I12, 133 I14, 134 I8, 135 I10, 136 S14, 137 I7, 138 S11, \
    139 S14, 140 I11, 141 I10, 142 I7, 143 S8, 144-145 I10, 146 I2, 147 I7, 148 I6, 149 S5, 150 S7, 151 I5, \
    152 S6, 153 I7, 154 I8, 155 S6, 156 I12, 157 I6, 158 I10, 159 S6, 160 S5, 161 I8, 162 I12, 163 S7, 164 S19, \
    165 S12, 166 I8, 167 I12, 168 I8, 169 I12, 170 I6, 171 I8, 172 I10, 173 S10, 174 S8, 175 S12, 176 I21, \
    177 S12, 178 I10, 179 S10, 180 I2, 181 S5, 182-183 I1, 184 S8, 185 I6, 186 I8, 187 S3, 188 S4, 189 S19+m, \
    190 S10, 191 I3, 192 S5, 193 S3, 194 S8, 195 S5, 196 S9, 197 I1, 198-199 S4, 200 I5, 201 S4, 202 I3, 203 I17, \
    204 S6, 205 S5, 206 I18, 207 I11, 208 I13, 209 S12, 210 S9, 211-212 I6, 213 I9, 214 S8, 215 S16, 216 S8, \
    217-218 I6, 219 S8, 220 I6, 221 S10, 222 S8, 223-224 S5, 225 I9, 226 S16, 227 S17, 228 I13, 229-230 S12, \
    231 S4, 232 S16, 233 I5, 234 I17, 235 S10, 236 S14, 237 S11, 238 S10, 239 S8, 240 S12, 241 S11, 242 I24, \
    243 S1, 244 I28, 245 S12, 246 S0+v, 247 I22+v, 248 I2+v, 249-253 S6+m, 254 I13";

/// One row per kind: id and the rest of its entry in the size table.
fn size_rows() -> Vec<(u8, &'static str)> {
    let mut rows = vec![];
    for entry in SIZE_TABLE.split(", ") {
        let (ids, layout) = entry.trim().split_once(' ').expect("id, then layout");
        let (first, last) = ids.split_once('-').unwrap_or((ids, ids));
        for id in first.parse::<u8>().expect("id")..=last.parse::<u8>().expect("id") {
            rows.push((id, layout));
        }
    }
    rows
}

fn layout_of(kind: &KindInfo) -> String {
    let shape = if kind.shape == Shape::Span { 'S' } else { 'I' };
    let mask = if kind.has_mask_byte { "+m" } else { "" };
    let variable = if kind.variable == Variable::None { "" } else { "+v" };
    format!("{shape}{}{mask}{variable}", kind.required_bytes())
}

#[test]
fn every_kind_has_the_size_and_shape_of_the_format() {
    let found: Vec<(u8, String)> = KINDS.iter().map(|kind| (kind.id, layout_of(kind))).collect();
    let expected: Vec<(u8, String)> = size_rows().into_iter().map(|(id, row)| (id, row.into())).collect();
    assert_eq!(found, expected);
}

#[test]
fn b1_the_shape_table_agrees_with_the_registry_for_all_256_ids() {
    for id in 0..=255 {
        let is_span = size_rows().iter().any(|(row, layout)| *row == id && layout.starts_with('S'));
        assert_eq!(registry::is_span(id), is_span, "kind {id}");
        assert_eq!(
            registry::kind(id).map(|kind| kind.id),
            size_rows().iter().find(|row| row.0 == id).map(|row| row.0)
        );
    }
}

#[test]
fn b2_ids_and_names_are_unique_and_counted() {
    let count = |status| KINDS.iter().filter(|kind| kind.status == status).count();
    assert_eq!((count(Status::Live), count(Status::Retired), count(Status::Removed)), (216, 5, 7));
    assert!(KINDS.is_sorted_by(|a, b| a.id < b.id));
    let mut names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 228);
    assert!(KINDS.iter().all(|kind| registry::kind_by_name(kind.name) == Some(kind)));
}

#[test]
fn b2_removed_and_retired_kinds_are_not_writable() {
    let read_only: Vec<u8> = KINDS.iter().filter(|kind| !kind.is_writable()).map(|kind| kind.id).collect();
    assert_eq!(read_only, [138, 139, 140, 141, 164, 235, 236, 237, 238, 239, 240, 253]);
}

#[test]
fn b3_unassigned_ids_have_no_entry() {
    let unassigned: Vec<u8> = (0..=255).filter(|id| registry::kind(*id).is_none()).collect();
    let expected: Vec<u8> =
        [11..=19, 24..=29, 37..=39, 44..=49, 74..=74, 78..=79, 255..=255].into_iter().flatten().collect();
    assert_eq!(unassigned, expected);
}

#[test]
fn the_json_file_and_the_tables_state_the_same_sizes() {
    let json: serde_json::Value = serde_json::from_str(REGISTRY_JSON).expect("valid JSON");
    let entries = json["kinds"].as_array().expect("a list");
    assert_eq!(entries.len(), KINDS.len());
    for (entry, kind) in entries.iter().zip(KINDS) {
        let fixed = kind.required_bytes() + usize::from(kind.has_mask_byte);
        let optional: usize = kind.optional.iter().map(|optional| usize::from(optional.slot_bytes)).sum();
        let varies = kind.variable != Variable::None;
        let exact = (optional == 0 && !varies).then_some(fixed);
        let most = (!varies).then_some(fixed + optional);
        let bytes = |key: &str| entry[key].as_u64().map(|bytes| bytes as usize);
        assert_eq!(entry["id"], kind.id);
        assert_eq!(entry["name"], kind.name);
        assert_eq!(bytes("required_bytes"), Some(kind.required_bytes()), "{}", kind.name);
        assert_eq!(bytes("size_after_header"), exact, "{}", kind.name);
        assert_eq!(bytes("size_after_header_max"), most, "{}", kind.name);
    }
}

#[test]
fn mask_bits_of_a_kind_are_distinct_single_bits() {
    for kind in KINDS {
        let all = kind.optional.iter().fold(0, |all, optional| {
            assert_eq!(optional.mask.count_ones(), 1, "{}", kind.name);
            all | u32::from(optional.mask)
        });
        assert_eq!(all.count_ones() as usize, kind.optional.len(), "{}", kind.name);
    }
}

#[test]
fn older_and_alternative_sizes_differ_from_the_current_one() {
    for kind in KINDS {
        let smallest = kind.required_bytes() + usize::from(kind.has_mask_byte);
        for bytes in kind.append_history {
            assert!(usize::from(*bytes) < smallest, "{}", kind.name);
        }
        for layout in kind.alt_layouts {
            let fields: usize = layout.required.iter().map(|field| field.ty.bytes()).sum();
            assert_eq!(fields, usize::from(layout.payload_bytes), "{}", kind.name);
        }
    }
}

#[test]
fn defaults_are_those_of_the_format() {
    let with = |state| -> Vec<u8> {
        KINDS.iter().filter(|kind| kind.default == state).map(|kind| kind.id).collect()
    };
    let on = [0..=6, 10..=10, 20..=23, 30..=36, 40..=43, 60..=60, 77..=77, 80..=89, 243..=243, 245..=246];
    assert_eq!(with(DefaultState::On), on.into_iter().flatten().collect::<Vec<u8>>());
    assert_eq!(with(DefaultState::SuppressedUntilGate), (51..=59).collect::<Vec<u8>>());
    let named = [50, 174, 178, 180, 186, 194, 195, 196, 200, 207, 208, 220, 228];
    assert_eq!(with(DefaultState::SuppressedUntilNamed), named);
}

#[test]
fn b15_externally_timed_kinds_and_their_kick_offs() {
    let timed: Vec<u8> = KINDS.iter().filter(|kind| kind.external_timestamps).map(|kind| kind.id).collect();
    assert_eq!(timed, [10, 56, 57, 58, 75, 241, 245, 254]);
    let pairs: Vec<(u8, u8)> =
        KINDS.iter().filter_map(|kind| Some((kind.id, kind.correlates_span_id?))).collect();
    assert_eq!(pairs, [(56, 51), (57, 52), (58, 54)]);
}

#[test]
fn every_kind_explains_itself() {
    for kind in KINDS {
        assert!(kind.summary.ends_with('.'), "{}", kind.name);
        assert!(!kind.gate.is_empty() && !kind.family.is_empty(), "{}", kind.name);
    }
    for id in [54, 58, 59, 184, 186, 229, 231, 251, 252] {
        let notes = registry::kind(id).map(|kind| kind.notes).unwrap_or_default();
        assert!(notes.contains("Here"), "the narrower meaning of kind {id} is told");
    }
}

#[test]
fn counts_and_padding_are_marked() {
    let marked: Vec<(u8, &str, FieldRole)> = KINDS
        .iter()
        .flat_map(|kind| kind.required.iter().map(|field| (kind.id, field.name, field.role)))
        .filter(|(_, _, role)| *role != FieldRole::Value)
        .collect();
    let expected = [
        (76, "fieldCount", FieldRole::Count),
        (77, "nameByteCount", FieldRole::Count),
        (244, "pad0", FieldRole::Padding),
        (247, "evaluatorCount", FieldRole::Count),
        (248, "evaluatorCount", FieldRole::Count),
    ];
    assert_eq!(marked, expected);
}

#[test]
fn enumerations_name_their_values() {
    assert_eq!(ENUMS.len(), 39);
    assert!(ENUMS.is_sorted_by(|a, b| a.name < b.name));
    let skip =
        registry::kind(5).and_then(|kind| kind.field("skipReason")).and_then(|field| field.enumeration);
    let skip = skip.expect("the skip reason is named");
    assert_eq!(skip.name_of(5), Some("Shed"));
    assert_eq!(skip.name_of(9), None);
    assert!(skip.covers(8) && !skip.covers(9));
}

#[test]
fn flag_sets_cover_combinations_of_known_bits_only() {
    let flags =
        registry::kind(241).and_then(|kind| kind.field("phaseFlags")).and_then(|field| field.enumeration);
    let flags = flags.expect("the phase flags are named");
    assert!(flags.is_flags);
    assert!(flags.covers(0) && flags.covers(7));
    assert!(!flags.covers(8) && !flags.covers(9));
}

#[test]
fn gauges_are_found_by_id() {
    assert_eq!(GAUGES.len(), 44);
    assert!(GAUGES.is_sorted_by(|a, b| a.id < b.id));
    let total = registry::gauge(0x0200).expect("total pages");
    assert_eq!((total.name, total.once), ("PageCacheTotalPages", true));
    assert_eq!(registry::gauge(0x0FFF), None);
}
