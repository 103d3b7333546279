//! `TraceWriter` beside LZ4 compression alone of the same bytes, cut into blocks of the same size.

use std::error::Error;
use std::hint::black_box;
use std::io::Cursor;

use bench::Pair;
use bench::recording::start;
use bench::world::World;
use typhon_trace::block::MAX_EVENT_BYTES;
use typhon_trace::writer::CloseInfo;

const RECORDS: u64 = 1_000_000;
const ROUNDS: usize = 21;

fn main() -> Result<(), Box<dyn Error>> {
    let mut world = World::new(1);
    let (mut ticks, mut records): (Vec<Vec<u8>>, u64) = (Vec::new(), 0);
    while records < RECORDS {
        let (bytes, count) = world.next_tick();
        ticks.push(bytes.to_vec());
        records += count;
    }
    let all = ticks.concat();
    println!(
        "{:.2} M records, {:.1} MB, written a tick at a time",
        records as f64 / 1e6,
        all.len() as f64 / 1e6
    );

    let mut compressed = vec![0; lz4_flex::block::get_maximum_output_size(MAX_EVENT_BYTES)];
    let mut room = vec![0; all.len() / 2];
    let floor = || {
        for block in all.chunks(MAX_EVENT_BYTES) {
            black_box(
                lz4_flex::block::compress_into(block, &mut compressed).expect("the output is large enough"),
            );
        }
    };
    let subject = || {
        let mut sink = std::mem::take(&mut room);
        sink.clear();
        let mut writer = start(Cursor::new(sink)).expect("writing to memory succeeds");
        for tick in &ticks {
            writer.write_records(tick).expect("writing to memory succeeds");
        }
        assert!(writer.close(&CloseInfo::default()).complete);
        room = writer.into_inner().into_inner();
    };
    let pair = Pair::measure(ROUNDS, floor, subject);
    println!("{}", pair.report("writer", records as f64 / 1e6, "M records/s"));
    println!("{:.0} MB/s of records", all.len() as f64 / 1e6 / pair.fastest_subject().as_secs_f64());
    Ok(())
}
