//! What tracing costs the .NET process that is traced, and what it costs us.
//!
//! One process does the same work again and again, in turns with tracing off and on, and says how long it took. The tracing is
//! the profiler's, with everything that belongs to it: the session, the threads, the file. Its files are read
//! afterwards: a turn counts only if all collections of it are there.
//!
//! `gc-tracing [PAIRS] [EVERY]`, after `cargo xtask dotnet` in the repository's root. With EVERY, the process induces a
//! collection after so many operations, besides those that it needs.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use typhon_profiler::config::Overrides;
use typhon_profiler::{Init, Status, shutdown};
use typhon_trace::reader::{ReadOptions, StreamReader};

/// For the beginning of the session with the runtime, which nothing else tells.
const ATTACH: Duration = Duration::from_millis(150);
/// A turn: some tenths of a second.
const OPERATIONS: u32 = 1_500_000;
/// How long the threads are watched at rest.
const REST: Duration = Duration::from_secs(30);
const THREADS: [&str; 2] = ["Typhon.GcReader", "Typhon.GcIngest"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let pairs: usize = arguments.next().map_or(Ok(150), |text| text.parse())?;
    let every: u32 = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let folder = std::env::temp_dir().join(format!("typhon-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let measured = measure(&folder, pairs, every);
    fs::remove_dir_all(&folder)?;
    measured
}

fn measure(folder: &Path, pairs: usize, every: u32) -> Result<(), Box<dyn Error>> {
    let mut target = Target::start(folder, every)?;
    for _ in 0..5 {
        target.work()?;
    }
    let trace = folder.join("run.typhon-trace");
    let overrides = Overrides::new()
        .enabled(true)
        .trace(trace.to_str().ok_or("a path that is not text")?)
        .gate("GcTracing", true)
        .set("Profiler:GcTracing:Target", target.child.id().to_string());
    let mut recording = Some(Init::new().overrides(overrides));
    let untraced = |target: &mut Target| {
        // As long an idle time as the other has before its turn.
        thread::sleep(ATTACH);
        target.work()
    };
    let mut traced = |target: &mut Target| -> Result<(Round, Vec<Duration>), Box<dyn Error>> {
        let status = recording.take().map_or_else(typhon_profiler::init, Init::start);
        if status != Status::Recording {
            return Err("no recording".into());
        }
        thread::sleep(ATTACH);
        let before = processor_times()?;
        let round = target.work()?;
        let spent = processor_times()?.iter().zip(before).map(|(after, before)| *after - before).collect();
        shutdown();
        Ok((round, spent))
    };
    let mut figures = Figures::default();
    for pair in 0..pairs {
        // Off, on, on, off: what grows with time falls on both sides alike.
        let (off, (on, spent)) = if pair % 2 == 0 {
            let off = untraced(&mut target)?;
            (off, traced(&mut target)?)
        } else {
            let on = traced(&mut target)?;
            (untraced(&mut target)?, on)
        };
        let path = numbered(&trace, pair + 1);
        let recorded = count_ends(&path)?;
        fs::remove_file(&path)?;
        if recorded < on.collections {
            return Err(format!("{recorded} of {} collections were recorded", on.collections).into());
        }
        let ratio = |on: Duration, off: Duration| on.as_secs_f64() / off.as_secs_f64();
        figures.time.push(ratio(on.time, off.time));
        figures.processor_time.push(ratio(on.processor_time, off.processor_time));
        let more_ns = on.processor_time.as_nanos() as f64 - off.processor_time.as_nanos() as f64;
        figures.each_us.push(more_ns / 1e3 / on.collections.max(1) as f64);
        figures.ours.push(ratio(spent.iter().sum(), on.time));
        figures.collections += on.collections;
        figures.traced += on.time;
    }
    figures.report();
    at_rest()
}

/// What was found, pair by pair.
#[derive(Default)]
struct Figures {
    /// Time and processor time of the target, on by off.
    time: Vec<f64>,
    processor_time: Vec<f64>,
    /// Processor time of the target that a collection costs more, µs. With many collections a second it stands out of
    /// the noise, and says what they cost at any other rate.
    each_us: Vec<f64>,
    /// Processor time of our threads by the time.
    ours: Vec<f64>,
    collections: u64,
    traced: Duration,
}

impl Figures {
    fn report(mut self) {
        let rate = self.collections as f64 / self.traced.as_secs_f64();
        println!("{} pairs, {rate:.0} collections a second", self.time.len());
        for (name, ratios) in [("time", &mut self.time), ("processor time", &mut self.processor_time)] {
            let (median, low, high) = median_with_confidence(ratios);
            let [median, low, high] = [median, low, high].map(|ratio| 100.0 * (ratio - 1.0));
            println!(
                "{name} of the target, on by off: median {median:+.2} %, 95 % confidence {low:+.2} % to {high:+.2} %"
            );
        }
        let (median, low, high) = median_with_confidence(&mut self.each_us);
        println!(
            "a collection costs the target {median:.0} µs more, 95 % confidence {low:.0} µs to {high:.0} µs"
        );
        let (median, ..) = median_with_confidence(&mut self.ours);
        println!("processor time of our threads meanwhile: median {:.3} % of one core", 100.0 * median);
    }
}

/// The median, and the bounds of its 95 % confidence interval: order statistics, so that no distribution is assumed.
fn median_with_confidence(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let reach = 1.96 * count.sqrt() / 2.0;
    let at = |rank: f64| values[(rank.max(0.0) as usize).min(values.len() - 1)];
    (at(count / 2.0), at(count / 2.0 - reach), at(count / 2.0 + reach))
}

/// The target waits for work, so that its runtime has nothing to say.
fn at_rest() -> Result<(), Box<dyn Error>> {
    if typhon_profiler::init() != Status::Recording {
        return Err("no recording".into());
    }
    thread::sleep(ATTACH);
    let (before, start) = (processor_times()?, Instant::now());
    thread::sleep(REST);
    for ((name, after), before) in THREADS.iter().zip(processor_times()?).zip(before) {
        let share = (after - before).as_secs_f64() / start.elapsed().as_secs_f64();
        println!("at rest: {name} {:.4} % of one core", 100.0 * share);
    }
    shutdown();
    Ok(())
}

/// What each of our threads has spent so far.
fn processor_times() -> Result<Vec<Duration>, Box<dyn Error>> {
    let mut times = vec![None; THREADS.len()];
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        let name = fs::read_to_string(task.join("comm"))?;
        if let Some(index) = THREADS.iter().position(|known| *known == name.trim_end()) {
            let spent = fs::read_to_string(task.join("schedstat"))?;
            let nanoseconds = spent.split_whitespace().next().ok_or("an empty schedstat")?.parse()?;
            times[index] = Some(Duration::from_nanos(nanoseconds));
        }
    }
    times.into_iter().map(|time| time.ok_or_else(|| "a thread of the tracing is missing".into())).collect()
}

fn numbered(trace: &Path, number: usize) -> PathBuf {
    if number == 1 { trace.to_owned() } else { trace.with_file_name(format!("run-{number}.typhon-trace")) }
}

fn count_ends(path: &Path) -> Result<u64, Box<dyn Error>> {
    let mut reader = StreamReader::from_file(File::open(path)?, ReadOptions::default())?;
    let mut ends = 0;
    while let Some(block) = reader.next_delivered()? {
        ends += block.payload.events().filter(|record| record.kind() == 8).count() as u64;
    }
    Ok(ends)
}

/// What one turn took.
struct Round {
    time: Duration,
    processor_time: Duration,
    collections: u64,
}

/// The .NET process.
struct Target {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Target {
    fn start(folder: &Path, every: u32) -> Result<Self, Box<dyn Error>> {
        let dotnet = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/dotnet");
        let config = folder.join("runtimeconfig.json");
        let text = r#"{"runtimeOptions":{"framework":{"name":"Microsoft.NETCore.App","version":"8.0.0"},
            "configProperties":{"System.GC.Concurrent":false,"System.Globalization.Invariant":true}}}"#;
        fs::write(&config, text)?;
        let mut command = Command::new(dotnet.join("net8/dnv/net/runtime/.net/dotnet"));
        command
            .args(["exec", "--runtimeconfig"])
            .arg(config)
            .arg(dotnet.join("throughput.exe"))
            .args(["1", &every.to_string()]);
        // Code that stays as it is.
        command.env("DOTNET_TieredCompilation", "0");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        output.next().ok_or("cargo xtask dotnet installs what this bench runs")??;
        Ok(Self { child, input, output })
    }

    fn work(&mut self) -> Result<Round, Box<dyn Error>> {
        writeln!(self.input, "{OPERATIONS}")?;
        let line = self.output.next().ok_or("the target has ended")??;
        let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [time, processor_time, collections] = numbers[..] else { return Err("not a report".into()) };
        let [time, processor_time] = [time, processor_time].map(Duration::from_nanos);
        Ok(Round { time, processor_time, collections })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // It waits for work that does not come.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
