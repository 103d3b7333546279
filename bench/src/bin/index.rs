//! The Workbench's index: how long a file takes to be indexed, what it weighs, how fast tiles are.
//!
//! `index FILE [VIEWS]`: FILE from `make-trace`. Prints one line per figure.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use typhon_analysis::session::{Cancel, Session, SessionOptions, State};
use typhon_analysis::tile::{
    CONTENT_COUNTERS, CONTENT_INSTANTS, CONTENT_SPANS, CONTENT_TICKS, LaneRows, TileRequest,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = PathBuf::from(args.next().ok_or("usage: index FILE [VIEWS]")?);
    let views: u64 = args.next().map_or(Ok(200), |text| text.parse())?;
    let beside = file.with_extension("typhon-index");
    if beside.exists() {
        std::fs::remove_file(&beside)?;
    }

    let started = Instant::now();
    let session = Session::open(&file, SessionOptions::default())?;
    let mut first_visible = None;
    while matches!(session.state(), State::Opening { .. }) {
        if first_visible.is_none() && session.lanes().is_ok() {
            first_visible = Some(started.elapsed());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let took = started.elapsed();
    if session.wait() != State::Ready {
        return Err(format!("{:?}", session.state()).into());
    }
    let meta = session.meta()?;
    let lanes = session.lanes()?;
    let spans: u64 = lanes.iter().map(|lane| lane.spans).sum();
    println!("records              {}", meta.totals.events);
    println!("spans drawn          {spans}");
    println!("file                 {:.1} MiB", mib(meta.file_bytes));
    if let Some(first) = first_visible {
        println!("first preview        {:.0} ms", first.as_secs_f64() * 1e3);
    }
    let rate = meta.totals.events as f64 / took.as_secs_f64() / 1e6;
    println!("indexed in           {:.2} s, {rate:.1} M records/s", took.as_secs_f64());
    println!("peak memory          {:.0} MiB", peak_mib()?);
    session.wait_until_idle();
    println!("written and synced   {:.2} s from the start", started.elapsed().as_secs_f64());
    if let Some(kept) = session.index_path() {
        let bytes = std::fs::metadata(kept)?.len();
        let share = bytes as f64 * 100.0 / meta.file_bytes as f64;
        let entries = lanes.iter().map(|lane| lane.spans + lane.instants + lane.samples).sum::<u64>().max(1);
        println!("sidecar              {:.1} MiB, {share:.0} % of the file", mib(bytes));
        println!(
            "                     {:.2} B per entry (spans, instants, values)",
            bytes as f64 / entries as f64
        );
    }
    drop(session);

    let started = Instant::now();
    let session = Session::open(&file, SessionOptions::default())?;
    session.wait();
    let opened = started.elapsed();
    let lanes = rows(&session)?;
    answer(&session, &view(meta.end_ns, 0, 0, &lanes), &mut 0)?;
    println!(
        "opened again         {:.0} ms to the index, {:.0} ms to the tiles of the whole trace",
        opened.as_secs_f64() * 1e3,
        started.elapsed().as_secs_f64() * 1e3
    );
    tiles(&session, meta.end_ns, &lanes, views)?;
    println!("memory in the end    {:.0} MiB at most", peak_mib()?);
    Ok(())
}

/// Sixty-four rows, the fullest lanes first.
fn rows(session: &Session) -> Result<Vec<LaneRows>, Box<dyn Error>> {
    let mut lanes = session.lanes()?;
    lanes.sort_by_key(|lane| std::cmp::Reverse(lane.spans + lane.instants));
    let mut left = 64;
    let mut rows = Vec::new();
    for lane in lanes {
        let row_count = lane.rows.max(1).min(left) as u8;
        left -= usize::from(row_count);
        rows.push(LaneRows { lane: lane.id, first_row: 0, row_count });
        if left == 0 {
            break;
        }
    }
    Ok(rows)
}

/// A view of 3,840 pixels: `zoom` halvings of the whole, at a place that `turn` decides.
fn view(end_ns: u64, zoom: u32, turn: u64, lanes: &[LaneRows]) -> TileRequest {
    let window = (end_ns >> zoom).max(3_840);
    let level = (window / 3_840).max(1).ilog2() as u8;
    let place = turn.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (end_ns - window.min(end_ns) + 1);
    let first_tile = place >> (level + 9);
    let tile_count = ((place + window) >> (level + 9)) - first_tile + 1;
    TileRequest {
        level,
        content: CONTENT_SPANS | CONTENT_INSTANTS | CONTENT_COUNTERS | CONTENT_TICKS,
        first_tile,
        tile_count: tile_count.min(64) as u16,
        lanes: lanes.to_vec(),
        ..TileRequest::default()
    }
}

fn answer(session: &Session, request: &TileRequest, bytes: &mut u64) -> Result<f64, Box<dyn Error>> {
    let started = Instant::now();
    session.tiles(request, &Cancel::new(), |tile| *bytes += tile.encoded_bytes() as u64)?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

fn tiles(session: &Session, end_ns: u64, lanes: &[LaneRows], views: u64) -> Result<(), Box<dyn Error>> {
    let mut all = Vec::new();
    for zoom in (0..=24).step_by(3) {
        let (mut times, mut bytes) = (Vec::new(), 0);
        for turn in 0..views {
            times.push(answer(session, &view(end_ns, zoom, turn, lanes), &mut bytes)?);
        }
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let kib = bytes as f64 / views as f64 / 1024.0;
        println!(
            "view of 1/2^{zoom:<2}        p50 {:6.2} ms  p99 {:6.2} ms  {kib:.0} KiB",
            at(0.5),
            at(0.99)
        );
        all.extend(times);
    }
    all.sort_by(f64::total_cmp);
    println!("all views            p99 {:.2} ms", all[((all.len() - 1) as f64 * 0.99) as usize]);
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Most memory this process has had, in MiB.
fn peak_mib() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(kib / 1024.0)
}
