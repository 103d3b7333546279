//! The Workbench as its page sees it: `typhon ui` in a process of its own, asked over HTTP and WebSocket.
//!
//! `workbench (--records N | FILE) [--views N] [--typhon PROGRAM] [--enforce]`. Prints one line per figure with its goal;
//! with `--enforce` a goal that is missed is a failure. An index file beside FILE is removed and written anew.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bench::recording::{Length, record};
use bench::served::{Answer, Page, Served};
use serde_json::{Value, json};
use typhon_analysis::tile::{
    CONTENT_COUNTERS, CONTENT_INSTANTS, CONTENT_SPANS, CONTENT_TICKS, LaneRows, TILE_CAPPED, TileRequest,
};

const USAGE: &str = "usage: workbench (--records N | FILE) [--views N] [--typhon PROGRAM] [--enforce]";
/// Device pixels of a view.
const PIXELS: u64 = 3_840;
/// Rows of a view.
const ROWS: usize = 64;
/// Index files are not kept for smaller recordings.
const INDEX_FILE_FROM_BYTES: u64 = 16 << 20;
const MEMORY_MAX_BYTES: u64 = 512 << 20;

struct Arguments {
    file: Option<PathBuf>,
    records: u64,
    views: usize,
    typhon: PathBuf,
    enforces: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let folder = tempfile::tempdir()?;
    let file = match &arguments.file {
        Some(file) => file.clone(),
        None => {
            let file = folder.path().join("made-up.typhon-trace");
            record(File::create(&file)?, Length::Records(arguments.records), 1)?;
            file
        }
    };
    let mut report = Report { missed: 0 };
    let beside = file.with_extension("typhon-index");
    if beside.exists() {
        fs::remove_file(&beside)?;
    }
    println!("file                  {:.1} MiB", mib(fs::metadata(&file)?.len()));
    without_index(&arguments.typhon, &file, &mut report)?;
    with_index(&arguments, &file, &mut report)?;
    match report.missed {
        missed if missed > 0 && arguments.enforces => Err(format!("{missed} goals are missed").into()),
        _ => Ok(()),
    }
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let typhon = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/typhon");
    let mut found = Arguments { file: None, records: 0, views: 2_000, typhon, enforces: false };
    let mut rest = std::env::args().skip(1);
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--records" => found.records = rest.next().ok_or(USAGE)?.parse()?,
            "--views" => found.views = rest.next().ok_or(USAGE)?.parse()?,
            "--typhon" => found.typhon = rest.next().ok_or(USAGE)?.into(),
            "--enforce" => found.enforces = true,
            path if !path.starts_with('-') && found.file.is_none() => found.file = Some(path.into()),
            _ => return Err(USAGE.into()),
        }
    }
    if found.file.is_none() == (found.records == 0) { Err(USAGE.into()) } else { Ok(found) }
}

/// Prints figures and counts the goals that they miss.
struct Report {
    missed: usize,
}

impl Report {
    fn goal(&mut self, name: &str, value: f64, goal: f64, unit: &str) {
        let is_missed = value > goal;
        self.missed += usize::from(is_missed);
        let verdict = if is_missed { "MISSED" } else { "holds" };
        println!("{name:<21} {value:.1} {unit}, goal {goal} {unit}: {verdict}");
    }

    fn memory(&mut self, name: &str, served: &Served) -> Result<(), Box<dyn Error>> {
        let peak = served.peak_memory_bytes().ok_or("the system does not tell the server's memory")?;
        self.goal(name, mib(peak), mib(MEMORY_MAX_BYTES), "MiB");
        Ok(())
    }
}

/// The first opening: ticks while it is being indexed, the whole index, the index file.
fn without_index(typhon: &Path, file: &Path, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let served = Served::start(typhon, file)?;
    let mut page = served.page()?;
    let mut ticks_after = None;
    loop {
        let session = served.get("/sessions/1")?;
        let is_ready = session["state"]["is"] == "ready";
        if !is_ready && session["state"]["is"] != "opening" {
            return Err(session["state"].to_string().into());
        }
        // As the page does: whenever the generation has changed there may be more to see.
        if ticks_after.is_none() && (is_ready || session["generation"].as_u64() > Some(1)) {
            let meta = served.get("/sessions/1/meta")?;
            let view = View::new(&meta)?.request(0, 0, CONTENT_TICKS);
            ticks_after = page.tiles(view)?.has_ticks().then(|| served.age());
        }
        if is_ready {
            break;
        }
        page.hear()?;
    }
    let ready_after = served.age();
    let meta = served.get("/sessions/1/meta")?;
    println!("records               {}", meta["totals"]["events"]);
    report.goal("tick strip, no index", millis(ticks_after.ok_or("no ticks")?), 1_000.0, "ms");
    report.goal("whole index", ready_after.as_secs_f64(), 8.0, "s");
    let view = View::new(&meta)?;
    page.tiles(view.request(0, 0, ALL))?;
    println!("tiles of the whole    {:.0} ms after the start", millis(served.age()));
    report.memory("memory, indexing", &served)?;
    if fs::metadata(file)?.len() >= INDEX_FILE_FROM_BYTES {
        let beside = file.with_extension("typhon-index");
        let waiting = Instant::now();
        while !beside.exists() {
            if waiting.elapsed() > Duration::from_secs(120) {
                return Err("no index file is written".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let bytes = fs::metadata(beside)?.len();
        println!(
            "index file            {:.1} MiB, {:.1} s after the start",
            mib(bytes),
            served.age().as_secs_f64()
        );
    }
    Ok(())
}

/// Opening again, with the index file; then everything that a page asks.
fn with_index(arguments: &Arguments, file: &Path, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let served = Served::start(&arguments.typhon, file)?;
    let mut page = served.page()?;
    while served.get("/sessions/1")?["state"]["is"] == "opening" {
        page.hear()?;
    }
    let meta = served.get("/sessions/1/meta")?;
    let view = View::new(&meta)?;
    let first = page.tiles(view.request(0, 0, ALL))?;
    if first.entries() == 0 {
        return Err("the first tiles are empty".into());
    }
    let first_tiles = millis(served.age());
    match file.with_extension("typhon-index").exists() {
        true => report.goal("first tiles", first_tiles, 300.0, "ms"),
        false => println!("first tiles           {first_tiles:.0} ms, indexed anew: the file is small"),
    }
    zoom_and_pan(&mut page, &view, arguments.views, report)?;
    report.memory("memory, tiles", &served)?;
    panels(&served, &mut page, &view, report)?;
    report.memory("memory, in all", &served)
}

/// Views at random zooms; at each some steps to the side.
fn zoom_and_pan(
    page: &mut Page,
    view: &View,
    views: usize,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    const STEPS: usize = 8;
    let (mut random, mut answers, mut capped) = (Random(7), Vec::new(), 0);
    let deepest = (view.end_ns / PIXELS).max(1).ilog2();
    while answers.len() < views {
        let zoom = random.below(u64::from(deepest) + 1) as u32;
        let place = random.below(view.end_ns);
        for step in 0..STEPS as u64 {
            let window = view.end_ns >> zoom;
            let answer = page.tiles(view.request(zoom, place.saturating_add(step * window / 4), ALL))?;
            capped += usize::from(answer.tiles.iter().any(|tile| tile.flags & TILE_CAPPED != 0));
            answers.push(answer);
        }
    }
    let figure = |name: &str, of: fn(&Answer) -> Duration| {
        let mut times: Vec<f64> = answers.iter().map(|answer| millis(of(answer))).collect();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        println!(
            "{name:<21} p50 {:.1} ms  p95 {:.1} ms  p99 {:.1} ms  max {:.1} ms",
            at(0.5),
            at(0.95),
            at(0.99),
            at(1.0)
        );
        (at(0.5), at(0.99))
    };
    figure("tiles, in the server", |answer| answer.server_time);
    let (p50, p99) = figure("tiles, to the page", |answer| answer.time);
    let bytes = answers.iter().map(|answer| answer.bytes).max().unwrap_or(0);
    println!("                      {} views, {:.2} MiB at most, {capped} capped", answers.len(), mib(bytes));
    report.goal("tiles p50", p50, 15.0, "ms");
    report.goal("tiles p99", p99, 50.0, "ms");
    Ok(())
}

/// Inspector, statistics, search.
fn panels(served: &Served, page: &mut Page, view: &View, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let timed = |path: &str| -> Result<(Value, f64), Box<dyn Error>> {
        let started = Instant::now();
        Ok((served.get(path)?, millis(started.elapsed())))
    };
    let mut slowest = 0.0f64;
    let mut random = Random(11);
    for _ in 0..50 {
        let (lane, at) = (view.lanes[0].lane, random.below(view.end_ns));
        let (found, _) = timed(&format!("/sessions/1/nearest?lane={lane}&row=0&atNs={at}"))?;
        let event = found["event"].as_str().ok_or("no event")?;
        slowest = slowest.max(timed(&format!("/sessions/1/event/{event}"))?.1);
    }
    report.goal("inspector, slowest", slowest, 20.0, "ms");
    println!("statistics, by name   {:.0} ms", timed("/sessions/1/stats?by=name")?.1);
    println!("longest spans         {:.0} ms", timed("/sessions/1/top?count=100")?.1);
    let search = |text: &str| -> Result<(u16, f64, Value), Box<dyn Error>> {
        let started = Instant::now();
        let filter = served.post("/sessions/1/filters", &json!({ "text": text }))?;
        let filter = filter["filterId"].as_u64().and_then(|id| u16::try_from(id).ok()).ok_or("no filter")?;
        let hits = served.get(&format!("/sessions/1/search?filter={filter}&count=100"))?;
        Ok((filter, started.elapsed().as_secs_f64(), hits))
    };
    // The index knows names and times; fields are in the records.
    let (_, of_field_s, _) = search("field.archetypeId=5")?;
    report.goal("search, of a field", of_field_s, 3.0, "s");
    let (filter, of_times_s, hits) = search("dur>100us")?;
    report.goal("search", of_times_s, 3.0, "s");
    println!(
        "                      {} matches, {} shown",
        hits["matches"],
        hits["hits"].as_array().map_or(0, Vec::len)
    );
    for text in ["field.archetypeId=5", "dur>100us"] {
        // Of a few that are found at once there are no first ones.
        if let (Some(first), _) = page.search(text)? {
            report.goal("first hits", millis(first), 100.0, "ms");
        }
    }
    let drawn = page.tiles(TileRequest { filter, ..view.request(0, 0, ALL) })?;
    println!("tiles of the filter   {:.0} ms", millis(drawn.time));
    Ok(())
}

const ALL: u8 = CONTENT_SPANS | CONTENT_INSTANTS | CONTENT_COUNTERS | CONTENT_TICKS;

/// The fullest lanes of a trace.
struct View {
    end_ns: u64,
    generation: u32,
    lanes: Vec<LaneRows>,
}

impl View {
    fn new(meta: &Value) -> Result<Self, Box<dyn Error>> {
        let number = |of: &Value, name: &str| of[name].as_u64().ok_or_else(|| format!("no {name}"));
        let mut lanes: Vec<&Value> = meta["lanes"].as_array().ok_or("no lanes")?.iter().collect();
        lanes.sort_by_key(|lane| std::cmp::Reverse(lane["spans"].as_u64().unwrap_or(0)));
        let (mut left, mut rows) = (ROWS, Vec::new());
        for lane in lanes {
            let row_count = (number(lane, "rows")? as usize).max(1).min(left);
            left -= row_count;
            rows.push(LaneRows {
                lane: number(lane, "id")? as u32,
                first_row: 0,
                row_count: row_count as u8,
            });
            if left == 0 {
                break;
            }
        }
        let generation = number(meta, "generation")? as u32;
        Ok(Self { end_ns: number(&meta["time"], "endNs")?.max(1), generation, lanes: rows })
    }

    /// The part of `zoom` halvings of the whole that begins at `place_ns`, or as near as there is so much.
    fn request(&self, zoom: u32, place_ns: u64, content: u8) -> TileRequest {
        let window = (self.end_ns >> zoom).max(PIXELS);
        let level = (window / PIXELS).max(1).ilog2() as u8;
        let place = place_ns.min(self.end_ns.saturating_sub(window));
        let first_tile = place >> (level + 9);
        let tile_count = ((place + window) >> (level + 9)) - first_tile + 1;
        TileRequest {
            generation: self.generation,
            level,
            content,
            first_tile,
            tile_count: tile_count.min(64) as u16,
            lanes: self.lanes.clone(),
            ..TileRequest::default()
        }
    }
}

/// Numbers that look random and are the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
