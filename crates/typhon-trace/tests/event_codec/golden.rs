//! Golden vectors: frozen bytes of every kind. `TYPHON_BLESS=1 cargo test -p typhon-trace --test event_codec` writes
//! the file anew after a kind was added; the diff then shows only new lines.

use std::{fmt::Write, fs, path::Path};

use typhon_trace::{
    decode,
    record::Record,
    registry::{self, KINDS, KindInfo, Shape, Variable},
};

use super::{
    hex,
    registry_writer::{Header, all_bits, full_payload, largest, payload, record, zero_payload},
    typed, unhex,
};

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Vector {
    /// Name of the kind and of the case.
    pub(crate) name: String,
    /// The record.
    pub(crate) bytes: Vec<u8>,
}

impl Vector {
    pub(crate) fn record(&self) -> Record<'_> {
        Record::parse(&self.bytes).unwrap_or_else(|fault| panic!("{}: {fault}", self.name))
    }

    pub(crate) fn kind(&self) -> &'static KindInfo {
        registry::kind(self.record().kind()).unwrap_or_else(|| panic!("{} has no kind", self.name))
    }
}

/// What the registry says the vectors should be.
fn from_registry() -> Vec<Vector> {
    let mut vectors = vec![];
    for kind in KINDS {
        let mut add = |case: &str, header: &Header, payload: &[u8]| {
            let name = format!("{}/{case}", kind.name);
            vectors.push(Vector { name, bytes: record(kind, header, payload) });
        };
        let header = Header::EXAMPLE;
        add("zero", &Header::ZERO, &zero_payload(kind));
        add("max", &header, &full_payload(kind, 0));
        for optional in kind.optional {
            let alone = payload(kind, optional.mask, &mut largest);
            add(optional.field.name, &header, &alone);
        }
        let all = all_bits(kind);
        if kind.optional.len() > 1 {
            add("all-optional", &header, &payload(kind, all, &mut largest));
        }
        if kind.shape == Shape::Span {
            let trace_id = Some(*b"\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36");
            let site = Some(0x0123);
            let body = full_payload(kind, all);
            add("context", &Header { trace_id, ..header }, &body);
            add("site", &Header { site, ..header }, &body);
            add("context-and-site", &Header { trace_id, site, ..header }, &body);
        }
    }
    vectors
}

/// The frozen vectors.
pub(crate) fn frozen() -> Vec<Vector> {
    let text = fs::read_to_string(path()).expect("tests/golden/records.hex is committed");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let vector = |line: &str| {
        let (name, bytes) = line.split_once(' ').expect("name, then bytes");
        Vector { name: name.into(), bytes: unhex(bytes) }
    };
    lines.map(vector).collect()
}

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/records.hex")
}

#[test]
fn golden_vectors_are_what_the_registry_gives() {
    let expected = from_registry();
    if std::env::var_os("TYPHON_BLESS").is_some() {
        let mut text = String::from("# One record per line: kind, slash, case; then its bytes.\n");
        for vector in &expected {
            writeln!(text, "{} {}", vector.name, hex(&vector.bytes)).expect("a String takes any text");
        }
        fs::write(path(), text).expect("the file is writable");
    }
    let found = frozen();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(hex(&found.bytes), hex(&expected.bytes), "{}", expected.name);
    }
}

#[test]
fn golden_vectors_survive_typed_decoding_and_encoding() {
    for vector in frozen() {
        let again = typed::reencode(&vector.record());
        let expected = vector.kind().is_writable().then(|| hex(&vector.bytes));
        assert_eq!(again.map(|bytes| hex(&bytes)), expected, "{}", vector.name);
    }
}

#[test]
fn golden_vectors_survive_dynamic_decoding() {
    for vector in frozen() {
        let record = vector.record();
        let kind = vector.kind();
        if kind.variable != Variable::None {
            continue;
        }
        let fields: Vec<decode::Field<'_>> = decode::fields(&record).collect();
        let mask = kind.optional.iter().fold(0, |mask, optional| {
            let present = fields.iter().any(|field| field.name == optional.field.name);
            mask | if present { optional.mask } else { 0 }
        });
        let mut raw = |info: &registry::FieldInfo| {
            let field = fields.iter().find(|field| field.name == info.name);
            raw_bits(&field.unwrap_or_else(|| panic!("{} lacks {}", vector.name, info.name)).value)
        };
        let again = payload(kind, mask, &mut raw);
        assert_eq!(record.payload().map(hex), Some(hex(&again)), "{}", vector.name);
    }
}

#[test]
fn golden_vectors_have_the_expected_layout() {
    for vector in frozen().iter().filter(|vector| vector.name.ends_with("/zero")) {
        let check = decode::check_layout(&vector.record()).expect("a known kind");
        assert!(!check.is_unexpected_length && !check.is_list_cut, "{}: {check:?}", vector.name);
        assert_eq!(check.unknown_mask_bits, 0, "{}", vector.name);
    }
}

/// The bits of a scalar, sign-extended or zero-extended as its type has it.
pub(crate) fn raw_bits(value: &decode::Value<'_>) -> u64 {
    match *value {
        decode::Value::Unsigned(value) => value,
        decode::Value::Signed(value) => value as u64,
        decode::Value::F32(value) => value.to_bits().into(),
        decode::Value::F64(value) => value.to_bits(),
        decode::Value::Bool(value) => value.into(),
        ref other => panic!("{other:?} is no scalar"),
    }
}
