//! The log of Typhon beside the logs of other engines, at equal durability, in one run.
//!
//! `cargo run --release --features peers,rocksdb -- --help`

mod arguments;
mod contender;
mod crowd;
mod deferred;
mod device;
mod durable;
mod floor;
mod growth;
mod order;
mod ours;
mod peers;
mod process;
mod recovery;
mod statistics;

use arguments::{Arguments, HELP};
use contender::{Contender, Kind, Result};
use crowd::Crowd;
use durable::{Case, Figures};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use typhon_store::{Io, PoolIo};

/// The storage of the floor and of Typhon.
fn io() -> Arc<dyn Io> {
    Arc::clone(IO.get().expect("set before anything is measured"))
}

static IO: OnceLock<Arc<dyn Io>> = OnceLock::new();

/// The floor first: everything is compared with it.
fn kinds() -> Vec<Kind> {
    #[allow(unused_mut, reason = "without features there are no more")]
    let mut kinds = vec![
        Kind {
            name: "floor",
            does: "write + fdatasync of the same bytes, plainest group commit; no framing, no checksum",
            create: |directory| Ok(Box::new(floor::Floor::create(&*io(), directory)?)),
            recover: |directory| floor::recover(&*io(), directory),
        },
        Kind {
            name: "typhon",
            does: "records with position and sequence number, three checksums; recovery trusts no cache",
            create: |directory| Ok(Box::new(ours::Ours::create(io(), directory)?)),
            recover: |directory| ours::recover(io(), directory),
        },
    ];
    #[cfg(feature = "rocksdb")]
    kinds.push(Kind {
        name: "rocksdb",
        does: "write-ahead log and a sorted table in memory",
        create: peers::rocksdb::create,
        recover: peers::rocksdb::recover,
    });
    #[cfg(feature = "peers")]
    kinds.extend([
        Kind {
            name: "sqlite",
            does: "tree on disk, page images in a write-ahead log",
            create: peers::sqlite::create,
            recover: peers::sqlite::recover,
        },
        Kind {
            name: "lmdb",
            does: "tree on disk, no log",
            create: peers::lmdb::create,
            recover: peers::lmdb::recover,
        },
        Kind {
            name: "redb",
            does: "tree on disk, no log",
            create: peers::redb::create,
            recover: peers::redb::recover,
        },
        Kind {
            name: "fjall",
            does: "journal and a sorted table in memory",
            create: peers::fjall::create,
            recover: peers::fjall::recover,
        },
        Kind {
            name: "raft-engine",
            does: "log and an index in memory",
            create: peers::raft_engine::create,
            recover: peers::raft_engine::recover,
        },
        Kind {
            name: "okaywal",
            does: "log only",
            create: peers::okaywal::create,
            recover: peers::okaywal::recover,
        },
    ]);
    kinds
}

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let io: Arc<dyn Io> = match arguments.fixed_sync {
        Some(sync) => Arc::new(device::FixedSyncIo { io: PoolIo::new(), sync }),
        None => Arc::new(PoolIo::new()),
    };
    IO.set(io).expect("set once");
    let mut kinds = kinds();
    if let Some(name) = arguments.only.iter().find(|name| kinds.iter().all(|kind| kind.name != **name)) {
        return Err(format!("no contender is called {name}; are its features on? See --help").into());
    }
    kinds.retain(|kind| {
        let is_wanted = arguments.only.is_empty() || arguments.only.iter().any(|name| name == kind.name);
        is_wanted && (arguments.fixed_sync.is_none() || ["floor", "typhon"].contains(&kind.name))
    });
    let place = Place::new(&arguments.directory)?;
    let mut report = Map::new();
    if arguments.has("durable") {
        report.insert("durable".into(), durable_part(arguments, &kinds, &place)?);
    }
    if arguments.has("deferred") {
        report.insert("deferred".into(), deferred::part(arguments, &kinds, &place)?);
    }
    if arguments.has("amplification") {
        report.insert("amplification".into(), amplification(arguments, &kinds, &place)?);
    }
    if arguments.has("recovery") {
        report.insert("recovery".into(), recovery::part(arguments, &kinds, &place)?);
    }
    if arguments.has("growth") {
        report.insert("growth".into(), growth::part(arguments, &kinds, &place)?);
    }
    if arguments.json {
        println!("{}", Value::Object(report));
    } else {
        for kind in &kinds {
            println!("{:<12} {}", kind.name, kind.does);
        }
    }
    Ok(())
}

/// A directory of this run's own, removed at its end.
pub struct Place(PathBuf);

impl Place {
    fn new(parent: &Path) -> Result<Self> {
        let path = parent.join(format!("run-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// An empty directory.
    pub fn empty(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        Ok(path)
    }

    /// A log of each kind, all open.
    pub fn open_all(&self, kinds: &[Kind]) -> Result<Vec<(Kind, Box<dyn Contender>)>> {
        let open = |kind: &Kind| -> Result<_> { Ok((*kind, (kind.create)(&self.empty(kind.name)?)?)) };
        kinds.iter().map(open).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} remains: {error}", self.0.display());
        }
    }
}

fn durable_part(arguments: &Arguments, kinds: &[Kind], place: &Place) -> Result<Value> {
    let mut report = Vec::new();
    for case in durable::cases().into_iter().filter(|case| arguments.wants(*case)) {
        let logs = place.open_all(kinds)?;
        let mut figures: Vec<Figures> = kinds.iter().map(|_| Figures::default()).collect();
        // What one thread does that brings all records of a group in one write: nothing groups better.
        let ideal_case = Case { threads: 1, group: case.threads * case.group, ..case };
        let (mut ideal, mut crowd) = (Figures::default(), Figures::default());
        let floor = floor::Floor::create(&*io(), &place.empty("crowd")?)?;
        for round in 0..=arguments.rounds {
            // The first round warms up.
            for turn in order::shuffled(logs.len() + 2, round) {
                let (mut own, crowd_log) = (Figures::default(), Crowd::new(&floor, case.threads));
                let (log, case, kept): (&dyn Contender, _, _) = match turn.checked_sub(logs.len()) {
                    None => (&*logs[turn].1, case, &mut figures[turn]),
                    Some(0) => (&*logs[0].1, ideal_case, &mut ideal),
                    Some(_) => (&crowd_log, case, &mut crowd),
                };
                let figures = if round == 0 { &mut own } else { kept };
                figures.add_round(log, case, arguments.slice)?;
            }
            logs.iter().try_for_each(|(_, log)| log.rest())?;
        }
        if !arguments.json {
            print_durable(case, &logs, &figures, [&ideal, &crowd]);
        }
        let contenders: Map<String, Value> = logs
            .iter()
            .zip(&figures)
            .map(|((kind, _), figures)| (kind.name.into(), figures.to_json()))
            .collect();
        report.push(json!({
            "threads": case.threads,
            "group": case.group,
            "record_bytes": case.record_bytes,
            "ideal": ideal.to_json(),
            "crowd": crowd.to_json(),
            "contenders": contenders,
        }));
    }
    Ok(Value::Array(report))
}

fn print_durable(
    case: Case,
    logs: &[(Kind, Box<dyn Contender>)],
    figures: &[Figures],
    [ideal, crowd]: [&Figures; 2],
) {
    println!("\n{case}");
    println!(
        "{:<12} {:>11} {:>11}  {:>13} {:>13} {:>13}  {:>9} {:>9} {:>9} {:>9}",
        "", "records/s", "best", "of floor", "of ideal", "of crowd", "min µs", "p50", "p99", "p99.9"
    );
    let print = |name: &str, figures: &Figures, floor: &Figures| {
        let ratios = [floor, ideal, crowd].map(|other| {
            let (median, best) = figures.relative_to(other);
            format!("{median:>6.2}/{best:>6.2}")
        });
        let us = |per_mille| figures.latency_ns(per_mille) as f64 / 1e3;
        println!(
            "{name:<12} {:>11.0} {:>11.0}  {}  {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
            figures.rate(),
            figures.best_rate(),
            ratios.join(" "),
            us(0),
            us(500),
            us(990),
            us(999),
        );
    };
    for ((kind, _), own) in logs.iter().zip(figures) {
        print(kind.name, own, &figures[0]);
    }
    print("ideal", ideal, &figures[0]);
    print("crowd", crowd, &figures[0]);
}

/// Bytes written to the device for each byte of a record.
fn amplification(arguments: &Arguments, kinds: &[Kind], place: &Place) -> Result<Value> {
    const WAITS: usize = 64;
    let cases = [(64, 1), (64, 16), (64, 256), (1024, 1), (1024, 16)];
    let mut report = Map::new();
    if !arguments.json {
        println!("\nBytes written for each byte of a record, one thread");
        let heads = cases.map(|(bytes, group)| format!("{group} × {bytes} B"));
        println!("{:<12} {}", "", heads.map(|head| format!("{head:>12}")).concat());
    }
    for kind in kinds {
        let mut row = Vec::new();
        for (bytes, group) in cases {
            let log = (kind.create)(&place.empty(kind.name)?)?;
            let record = vec![0xA5; bytes];
            log.append_durable(&record, group)?;
            // What it prepares in the background is over.
            std::thread::sleep(std::time::Duration::from_millis(300));
            let before = process::written_bytes()?;
            for _ in 0..WAITS {
                log.append_durable(&record, group)?;
            }
            let written = process::written_bytes()? - before;
            row.push(written as f64 / (WAITS * group * bytes) as f64);
        }
        if !arguments.json {
            let cells: String = row.iter().map(|value| format!("{value:>12.2}")).collect();
            println!("{:<12} {cells}", kind.name);
        }
        report.insert(kind.name.into(), json!(row));
    }
    let cases = cases.map(|(bytes, group)| json!({ "record_bytes": bytes, "group": group }));
    Ok(json!({ "cases": cases, "bytes_per_byte": report }))
}
