//! Any bytes taken as a decompressed block: the walk accounts for each of them, and no field lies outside its record.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typhon_trace::decode;
use typhon_trace::record::RecordWalk;

fuzz_target!(|block: &[u8]| {
    let mut walk = RecordWalk::new(block);
    let mut walked = 0;
    while let Some(record) = walk.next() {
        assert_eq!(record.bytes(), &block[walked..walked + record.size()]);
        assert!((12..=65_534).contains(&record.size()));
        walked += record.size();
        assert_eq!(walked, walk.offset());
        if let Some(payload) = record.payload() {
            assert!(record.bytes().ends_with(payload));
        }
        let fields = decode::fields(&record).count();
        assert!(fields <= record.size(), "{fields} fields in {} bytes", record.size());
        if let Some(layout) = decode::check_layout(&record) {
            assert!(layout.payload_bytes < record.size());
        }
    }
    assert_eq!(walk.fault().is_none(), walked == block.len());
});
