//! The command line.

use crate::durable::Case;
use std::path::PathBuf;
use std::time::Duration;

pub const HELP: &str = "\
The log of Typhon beside the logs of other engines, at equal durability, in one run.

Usage: cargo run --release [--features peers,rocksdb] -- [OPTIONS]

  --directory DIR      Where the logs are made, on the file system to be measured [default: target/log-peers]
  --only NAME,...      Contenders: floor, typhon, rocksdb, sqlite, lmdb, redb, fjall, raft-engine, okaywal
  --parts PART,...     durable, deferred, amplification, recovery, growth [default: all but growth]
  --threads N,...      Durable appends with so many threads only, of 1, 2 and 8
  --group N,...        With so many records to a wait only, of 1 and 16
  --record-bytes N,... With records of these sizes only, of 64 and 1024
  --rounds N           Rounds of each measurement, contenders in turn [default: 15]
  --slice-ms N         What a contender has in each round [default: 150]
  --recovery-mib N     Bytes of records in a recovered log [default: 256]
  --fixed-sync-us N    floor and typhon only: a sync that sleeps so long in place of the device's
  --json               One JSON object in place of the tables
  --help               This text
";

#[derive(Debug)]
pub struct Arguments {
    pub directory: PathBuf,
    pub only: Vec<String>,
    pub parts: Vec<String>,
    /// Cases of durable appends that are wanted; all if empty.
    pub threads: Vec<u64>,
    pub group: Vec<u64>,
    pub record_bytes: Vec<u64>,
    pub rounds: usize,
    pub slice: Duration,
    pub recovery_bytes: u64,
    pub fixed_sync: Option<Duration>,
    pub json: bool,
}

const PARTS: [&str; 5] = ["durable", "deferred", "amplification", "recovery", "growth"];

impl Arguments {
    /// `None` if help was asked for.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut parsed = Self {
            directory: PathBuf::from("target/log-peers"),
            only: Vec::new(),
            parts: PARTS[..4].iter().map(|part| (*part).to_owned()).collect(),
            threads: Vec::new(),
            group: Vec::new(),
            record_bytes: Vec::new(),
            rounds: 15,
            slice: Duration::from_millis(150),
            recovery_bytes: 256 << 20,
            fixed_sync: None,
            json: false,
        };
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{name} needs a value; see --help"));
            match name.as_str() {
                "--directory" => parsed.directory = PathBuf::from(value()?),
                "--only" => parsed.only = list(&value()?),
                "--parts" => parsed.parts = list(&value()?),
                "--threads" => parsed.threads = numbers(&name, &value()?)?,
                "--group" => parsed.group = numbers(&name, &value()?)?,
                "--record-bytes" => parsed.record_bytes = numbers(&name, &value()?)?,
                "--rounds" => parsed.rounds = number(&name, &value()?)?.max(1) as usize,
                "--slice-ms" => parsed.slice = Duration::from_millis(number(&name, &value()?)?),
                "--recovery-mib" => parsed.recovery_bytes = number(&name, &value()?)? << 20,
                "--fixed-sync-us" => {
                    parsed.fixed_sync = Some(Duration::from_micros(number(&name, &value()?)?));
                }
                "--json" => parsed.json = true,
                "--help" => return Ok(None),
                other => return Err(format!("unknown option {other}; see --help")),
            }
        }
        if let Some(part) = parsed.parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
            return Err(format!("unknown part {part}; there are {}", PARTS.join(", ")));
        }
        Ok(Some(parsed))
    }

    /// Is this case of durable appends wanted?
    pub fn wants(&self, case: Case) -> bool {
        let includes = |wanted: &[u64], value: usize| wanted.is_empty() || wanted.contains(&(value as u64));
        includes(&self.threads, case.threads)
            && includes(&self.group, case.group)
            && includes(&self.record_bytes, case.record_bytes)
    }

    pub fn has(&self, part: &str) -> bool {
        self.parts.iter().any(|name| name == part)
    }
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::to_owned).collect()
}

fn numbers(name: &str, value: &str) -> Result<Vec<u64>, String> {
    value.split(',').map(|value| number(name, value)).collect()
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name}: {value} is not a number"))
}
