use super::cursor::Cursor;
use super::{NettraceError, NettraceFault};

/// How deep field lists may nest before the list is given up as unreadable.
const MAX_FIELD_DEPTH: u32 = 8;
/// Type code of a field that is itself a list of fields.
const TYPE_OBJECT: i32 = 1;

/// What a metadata record says about one kind of event. Sent before the first such event.
///
/// Events of the runtime itself come with an empty name and no fields: their layout is known from the provider's
/// manifest by (provider, event id, version). Events of managed event sources carry both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Number by which events of this stream refer to the record; means nothing outside the stream.
    pub metadata_id: u32,
    /// Provider name, such as `Microsoft-Windows-DotNETRuntime`.
    pub provider: String,
    /// Event number within the provider.
    pub event_id: u32,
    /// Event name, empty for events of the runtime itself.
    pub event_name: String,
    /// Keywords (one bit per subject) under which the provider sends the event.
    pub keywords: u64,
    /// Version of the event's layout.
    pub version: u32,
    /// Verbosity level, 0 (always) to 5 (verbose).
    pub level: u32,
    /// Declared payload fields, or `None` where the list has a form that this reader does not know.
    pub fields: Option<Vec<Field>>,
}

/// One declared field of an event's payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// .NET type code (9 = i32, 10 = u32, 11 = i64, 12 = u64, 14 = f64, 18 = text, 1 = nested, ...).
    pub type_code: i32,
    /// Field name.
    pub name: String,
    /// Fields of a nested field (type code 1).
    pub nested: Vec<Field>,
}

impl Metadata {
    /// Reads the payload of a metadata blob. Optional tags after the fields (version 5) add nothing we need.
    pub(super) fn parse(payload: &[u8], base: u64) -> Result<Self, NettraceError> {
        let mut cursor = Cursor::new(payload, base, "metadata record");
        let metadata_id = cursor.u32()?;
        if metadata_id == 0 {
            // 0 marks metadata blobs themselves, so no event could ever refer to it.
            return Err(cursor.fault(NettraceFault::UnknownMetadata(0)));
        }
        Ok(Self {
            metadata_id,
            provider: cursor.utf16z()?,
            event_id: cursor.u32()?,
            event_name: cursor.utf16z()?,
            keywords: cursor.u64()?,
            version: cursor.u32()?,
            level: cursor.u32()?,
            fields: read_fields(&mut cursor, 0).ok(),
        })
    }
}

fn read_fields(cursor: &mut Cursor<'_>, depth: u32) -> Result<Vec<Field>, NettraceError> {
    // A field takes at least its type code and the zero that ends its name.
    let count = cursor.length("field count", cursor.remaining() / 6)?;
    if depth >= MAX_FIELD_DEPTH {
        return Err(cursor.fault(NettraceFault::TooShort("field list")));
    }
    let mut fields = Vec::new();
    for _ in 0..count {
        let type_code = cursor.i32()?;
        let nested = if type_code == TYPE_OBJECT { read_fields(cursor, depth + 1)? } else { Vec::new() };
        fields.push(Field { type_code, name: cursor.utf16z()?, nested });
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Vec<u8> {
        value.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
    }

    fn head() -> Vec<u8> {
        [&7u32.to_le_bytes()[..], &text("P"), &3u32.to_le_bytes(), &text("E"), &[0; 16]].concat()
    }

    #[test]
    fn nested_fields_are_read() {
        let fields = [
            &2i32.to_le_bytes()[..],
            &1i32.to_le_bytes(),
            &1i32.to_le_bytes(),
            &9i32.to_le_bytes(),
            &text("x"),
            &text("point"),
            &18i32.to_le_bytes(),
            &text("name"),
        ]
        .concat();
        let metadata = Metadata::parse(&[head(), fields].concat(), 0).unwrap();
        let fields = metadata.fields.unwrap();
        assert_eq!(fields[0].name, "point");
        assert_eq!(fields[0].nested, [Field { type_code: 9, name: "x".into(), nested: vec![] }]);
        assert_eq!((fields[1].type_code, fields[1].name.as_str()), (18, "name"));
    }

    #[test]
    fn an_unreadable_field_list_does_not_hide_the_event() {
        let endless_nesting: Vec<u8> = (0..100).flat_map(|_| [1i32.to_le_bytes(); 2].concat()).collect();
        for fields in [&[0xff; 4][..], &i32::MAX.to_le_bytes(), &[], &endless_nesting] {
            let metadata = Metadata::parse(&[&head(), fields].concat(), 0).unwrap();
            assert_eq!((metadata.event_id, metadata.fields), (3, None));
        }
    }
}
