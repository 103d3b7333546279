//! The command line itself: names, options and help. They are a contract (brief 11 §5).

#[cfg(unix)]
mod db;
mod demo;

use crate::cmd::number::{real, whole};
use clap::{ArgAction, ArgGroup, Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[cfg(unix)]
pub(crate) use db::{Db, DbLog};
pub(crate) use demo::Demo;

/// Open, check, explain and repair .typhon-trace files.
#[derive(Debug, Parser)]
#[command(
    name = "typhon",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
#[command(after_help = "Examples:
  typhon demo --ui
  typhon ui run.typhon-trace
  typhon trace info run.typhon-trace
  typhon trace dump run.typhon-trace --where 'kind=BTree* dur>50us'
  typhon kinds --fields TransactionCommit")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Memory that the Workbench keeps to, bytes, unless told otherwise.
pub(crate) const UI_MEMORY: usize = 512 << 20;

/// Options that every command has stand apart from its own.
const GLOBAL: &str = "Options of every command";

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// When to use colours
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    #[arg(
        long_help = "When to use colours. With `auto`, only on a terminal; NO_COLOR, CLICOLOR_FORCE and TERM=dumb are obeyed."
    )]
    pub(crate) color: When,
    /// Say nothing but results and errors
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,
    /// Say more; twice for backtraces of internal errors
    #[arg(short, long, global = true, help_heading = GLOBAL, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Show no progress line
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) no_progress: bool,
    /// Print the result as JSON
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List event kinds and their fields
    Kinds(Kinds),
    /// Work with .typhon-trace files
    #[command(subcommand, arg_required_else_help = true)]
    Trace(Trace),
    /// Look at the files of a database
    #[cfg(unix)]
    #[command(subcommand, arg_required_else_help = true)]
    Db(Db),
    /// Look into traces in a browser
    Ui(Ui),
    /// Run a sample world and record it
    Demo(Demo),
    /// Record the garbage collections of a .NET process
    Gc(Gc),
    /// Write shell completions to standard output
    Completions(Completions),
    /// Write man pages into a folder
    Man(Man),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    /// What a trace is, what is in it, and whether it is whole
    Info(Info),
    /// Print the records of a trace
    Dump(Dump),
    /// Where the time went: counts, durations, self times, ticks, collections
    Stats(Stats),
    /// What got slower or faster between two traces
    Diff(Diff),
    /// Check a trace and say what is wrong with it
    Verify(Verify),
    /// Write a whole, closed copy of a damaged trace
    Repair(Repair),
    /// Convert a trace, or cut a part out of it
    Export(Export),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  typhon kinds                        every kind
  typhon kinds 'BTree*'               by name
  typhon kinds --family Spatial       by family, with the families below it
  typhon kinds 20 --fields            one kind with its payload
  typhon kinds --default on --json    entries of the registry file")]
pub(crate) struct Kinds {
    /// Name, glob or id of the kinds to list
    pub(crate) pattern: Option<String>,
    /// Only kinds of this family and those below it
    #[arg(long, value_name = "FAMILY")]
    pub(crate) family: Option<String>,
    /// Only kinds in this state when just the profiler's master switch is on
    #[arg(long, value_name = "STATE", value_enum)]
    pub(crate) default: Option<DefaultFilter>,
    /// List the payload fields of each kind
    #[arg(long)]
    pub(crate) fields: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DefaultFilter {
    On,
    Off,
    Suppressed,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  typhon trace info run.typhon-trace
  typhon trace info run.typhon-trace --scan --json
  cat run.typhon-trace | typhon trace info -")]
pub(crate) struct Info {
    /// Trace file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Read every record: counts per kind, and what a file that was not closed lacks
    #[arg(long)]
    pub(crate) scan: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  typhon trace dump run.typhon-trace --limit 20
  typhon trace dump run.typhon-trace --where 'kind=BTree* dur>50us thread~Worker'
  typhon trace dump run.typhon-trace --kind TransactionCommit --sort dur --limit 10
  typhon trace dump run.typhon-trace --kind 'Gc*' --range 1.2s..1.3s --json
  typhon trace dump run.typhon-trace --kind TransactionCommit --format csv > commits.csv

Filter language (--where):
  key op value    keys: kind id name family thread slot system tick ts dur site span parent
                  trace field.NAME; operators: = != < <= > >= ~ (regular expression)
  a b   a | b     both, either; ! negates, ( ) groups; a word alone is a part of the name
  *  a..b  a..=b  globs for texts, ranges for numbers (b excluded, included)
  units           ns us ms s, KiB MiB GiB, k M

Ticks are numbered by counting TickStart records in file order. `stats` reads the whole trace
first and goes by times and the engine's own numbers: it can number them differently. In text, a
chunk bears the name of its system, and the last column, such as @11.204, is the record's block
and its place in it.")]
pub(crate) struct Dump {
    /// Trace file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Only records of these ticks: one number, or a range such as 10..20
    #[arg(long, value_name = "A..B")]
    pub(crate) ticks: Option<String>,
    /// Only kinds with this name, glob or id; may be repeated, or several separated by commas
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) kind: Vec<String>,
    /// Only threads with this name or glob; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Vec<String>,
    /// Stop after this many records
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(0..=u64::MAX))]
    pub(crate) limit: Option<u64>,
    /// Only the last records
    #[arg(long, value_name = "N", conflicts_with = "limit")]
    #[arg(allow_negative_numbers = true, value_parser = whole(0..=u64::MAX))]
    pub(crate) tail: Option<u64>,
    /// Only these payload fields, separated by commas
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) fields: Vec<String>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Times since the first record, since the Unix epoch, or in clock ticks as stored
    #[arg(long, value_enum, default_value_t = Time::Rel)]
    pub(crate) time: Time,
    /// Order by time or duration instead of place in the file
    #[arg(long, value_enum, value_name = "KEY")]
    pub(crate) sort: Option<Sort>,
    /// How 64-bit integers are written in JSON
    #[arg(long, value_enum, default_value_t = Int64::Number)]
    pub(crate) int64: Int64,
    /// Add the bytes of each record
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  typhon trace stats run.typhon-trace                          by kind, with ticks and collections
  typhon trace stats run.typhon-trace --ticks 42 --by name     what filled tick 42
  typhon trace stats run.typhon-trace --by system --self       which system itself takes the time
  typhon trace stats run.typhon-trace --hist TransactionCommit how its durations are spread
  typhon trace stats run.typhon-trace --where 'thread~Worker' --top 0 --json

Filters know everything about a record but self and depth, which depend on the spans around it;
--self and the column SELF are about self time. Filters decide what enters the table; ticks,
collections and losses are about the whole window.

A record belongs to the tick in which it starts, and to a --range when any part of it lies
inside. Ticks count from 1 at the first that the engine ran, if the trace holds the engine's
own numbers (which count from 0), else at the first in the trace. SELF is a span's duration
without the spans inside it on the same thread. Percentiles are exact up to 65,536 spans a row;
beyond, they are within 1 % and marked with ≈. With --by system only the spans in which systems
run count.")]
pub(crate) struct Stats {
    /// Trace file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// What a row stands for
    #[arg(long, value_enum, default_value_t = By::Kind)]
    pub(crate) by: By,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Only the time of these ticks: one number, or a range such as 10..20
    #[arg(long, value_name = "A..B")]
    pub(crate) ticks: Option<String>,
    /// Rows to show; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(allow_negative_numbers = true, value_parser = whole(0..=usize::MAX))]
    pub(crate) top: usize,
    /// Order rows by self time instead of total time
    #[arg(long = "self")]
    pub(crate) by_self: bool,
    /// Draw how the durations of this row are spread
    #[arg(long, value_name = "NAME")]
    pub(crate) hist: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0 no significant change   1 changes

A change counts when it is unlikely to be chance (Wilcoxon-Mann-Whitney rank-sum test over the
single durations, p below --max-p) and large enough to matter (mean, --threshold), and when both
point the same way.

Examples:
  typhon trace diff before.typhon-trace after.typhon-trace
  typhon trace diff run.typhon-trace run.typhon-trace --range-a 0s..10s --range-b 50s..60s
  typhon trace diff before.typhon-trace after.typhon-trace --by system --threshold 2% --json")]
pub(crate) struct Diff {
    /// Trace to compare with
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) a: PathBuf,
    /// Trace to compare
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) b: PathBuf,
    /// What is compared
    #[arg(long, value_enum, default_value_t = By::Name)]
    pub(crate) by: By,
    /// Only this time of the first trace, such as 1s..2s
    #[arg(long, value_name = "A..B", allow_hyphen_values = true)]
    pub(crate) range_a: Option<String>,
    /// Only this time of the second trace
    #[arg(long, value_name = "A..B", allow_hyphen_values = true)]
    pub(crate) range_b: Option<String>,
    /// Only these ticks of the first trace, numbered as in `stats`: one number, or a range such as 10..20
    #[arg(long, value_name = "A..B")]
    pub(crate) ticks_a: Option<String>,
    /// Only these ticks of the second trace
    #[arg(long, value_name = "A..B")]
    pub(crate) ticks_b: Option<String>,
    /// Only records that pass this filter
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Smallest change of the mean that counts
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    pub(crate) threshold: String,
    /// Largest p-value that counts
    #[arg(long, value_name = "P", default_value_t = 0.01)]
    #[arg(allow_negative_numbers = true, value_parser = real(0.0..=1.0))]
    pub(crate) max_p: f64,
    /// Spans that each side must have
    #[arg(long, value_name = "N", default_value_t = 30)]
    #[arg(allow_negative_numbers = true, value_parser = whole(0..=u64::MAX))]
    pub(crate) min_count: u64,
}

/// What a row of statistics stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Event kind
    Kind,
    /// Family of kinds
    Family,
    /// System of a chunk, text of a named span, else the kind
    Name,
    /// System of the schedule
    System,
    /// Thread
    Thread,
}

/// Which records.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Only records that pass this filter
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Only records in this time since the first record, such as 1.2s..1.3s; spans that reach into it count
    #[arg(long, value_name = "A..B", allow_hyphen_values = true)]
    pub(crate) range: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line
    Jsonl,
    /// One line a record, for reading
    Text,
    /// Comma-separated values (RFC 4180)
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Time {
    Rel,
    Abs,
    Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Earliest first
    Time,
    /// Longest first
    Dur,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Int64 {
    Number,
    String,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0 sound   1 sound, with notices   2 parts disagree   3 data loss   4 cannot be opened
  66 no such file

Examples:
  typhon trace verify run.typhon-trace
  typhon trace verify run.typhon-trace --deep --json")]
pub(crate) struct Verify {
    /// Trace file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Also compare every record with the registry
    #[arg(long)]
    pub(crate) deep: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "The source is never changed. Exit code 3 tells that something was lost.

Examples:
  typhon trace repair cut.typhon-trace -o fixed.typhon-trace
  typhon trace repair damaged.typhon-trace -o fixed.typhon-trace --salvage")]
pub(crate) struct Repair {
    /// Damaged trace file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// File to write
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "dry_run")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Search for sound blocks after damage, and keep what can be read of damaged ones
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Report what would be lost, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Targets:
  trace     a valid trace file with the same tables, holding the selected records and what
            is needed to understand them: thread names, query definitions, capacities.
            Without a selection it is a copy with checksums.
  csv       one line a record; ticks and threads by time, as in `stats`, and self times
            (texts as they are: some spreadsheets take one that begins with = + - or @ for a
            formula, so import files of strangers as text)
  perfetto  protobuf for ui.perfetto.dev and its trace processor
  chrome    JSON for about:tracing, Speedscope and others; perfetto is better for large files

Examples:
  typhon trace export run.typhon-trace -o slow.typhon-trace --to trace --range 1.2s..1.3s
  typhon trace export run.typhon-trace -o commits.csv --to csv --where 'kind=TransactionCommit'
  typhon trace export run.typhon-trace -o run.perfetto-trace --to perfetto
  typhon trace export run.typhon-trace -o run.json.gz --to chrome --compress --range 1s..2s")]
pub(crate) struct Export {
    /// Trace file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// File to write
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// What to write
    #[arg(long, value_enum)]
    pub(crate) to: Target,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Only the time of these ticks, numbered as in `stats`: one number, or a range such as 10..20
    #[arg(long, value_name = "A..B")]
    pub(crate) ticks: Option<String>,
    /// Compress the output with gzip (not for traces, whose blocks are compressed already)
    #[arg(long)]
    pub(crate) compress: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    Trace,
    Csv,
    Perfetto,
    Chrome,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["pid", "listen", "from", "command"])))]
#[command(
    override_usage = "typhon gc [OPTIONS] -o <FILE> --pid <PID>
       typhon gc [OPTIONS] -o <FILE> -- <COMMAND>...
       typhon gc [OPTIONS] -o <FILE> --listen <PATH>
       typhon gc [OPTIONS] -o <FILE> --from <FILE.nettrace>",
    after_help = "Every collection is shown when it has ended: as one line, or with --json as one object a line.
Ctrl+C ends the recording; the file is complete then (exit code 130). A command's exit code is
passed on; its standard output goes to standard error, so that the collections have their own.

Examples:
  typhon gc -o gc.typhon-trace --pid 4711 --duration 30s
  typhon gc -o gc.typhon-trace -- dotnet app.dll
  typhon gc -o gc.typhon-trace --listen /tmp/gc.sock
    and elsewhere DOTNET_DiagnosticPorts=/tmp/gc.sock app
  typhon gc -o gc.typhon-trace --from run.nettrace --json"
)]
pub(crate) struct Gc {
    /// Trace file to write
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Stop after this time of recording, such as 30s, 500ms or 5min; a number alone is seconds
    #[arg(
        long,
        visible_alias = "seconds",
        value_name = "TIME",
        conflicts_with = "from",
        allow_hyphen_values = true
    )]
    #[arg(value_parser = crate::cmd::duration::parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// A running process
    #[arg(long, value_name = "PID", allow_negative_numbers = true, value_parser = whole(1..=u32::MAX))]
    pub(crate) pid: Option<u32>,
    /// Wait at this socket for a process that was started with DOTNET_DiagnosticPorts=PATH
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) listen: Option<PathBuf>,
    /// A recorded stream, such as dotnet-trace writes; its clock is kept
    #[arg(long, value_name = "FILE.nettrace", value_hint = ValueHint::FilePath)]
    pub(crate) from: Option<PathBuf>,
    /// A program to start, recorded from its first collection on (.NET 5 and newer)
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The Workbench is served on this machine only, to whoever knows the address that is printed; it
holds a token that is new with every run. On another machine, forward the port:
  ssh -L 5200:127.0.0.1:5200 HOST     and open the address that `typhon ui --no-browser` prints

An index (.typhon-index) is kept beside traces of 16 MiB and more, else in the cache folder, so
that they open at once the next time. Ctrl+C ends the Workbench (exit code 130).

TYPHON_BROWSER   program to open the page with, instead of the system's choice
TYPHON_UI_PORT   first port to try, instead of 5200
TYPHON_UI_MEMORY memory to keep to, unless --memory says it
TYPHON_CACHE_DIR folder for indexes and bookmarks

Examples:
  typhon ui run.typhon-trace
  typhon ui before.typhon-trace after.typhon-trace
  typhon ui --no-browser --port 5300 run.typhon-trace"
)]
pub(crate) struct Ui {
    /// Trace files to open
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Port to listen on; by default the first free one from 5200 on
    #[arg(long, value_name = "PORT", allow_negative_numbers = true, value_parser = whole(1..=u16::MAX))]
    pub(crate) port: Option<u16>,
    /// Print the address only
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Neither use nor keep index files
    #[arg(long)]
    pub(crate) no_index: bool,
    /// Folder below which the page may open files; by default the working directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
    /// Folder below which source files may be shown; may be repeated; by default the repository around the
    /// working directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) source_root: Vec<PathBuf>,
    /// View to open, as links of the page have it behind the #
    #[arg(long, value_name = "LINK", value_parser = crate::cmd::ui::parse_view)]
    pub(crate) at: Option<String>,
    /// Memory to keep to, such as 1G; by default 512M
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    #[arg(value_parser = crate::cmd::ui::parse_memory)]
    pub(crate) memory: Option<usize>,
    /// Serve a development build of the page from this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) ui_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  typhon completions bash > ~/.local/share/bash-completion/completions/typhon
  typhon completions zsh > ~/.zfunc/_typhon")]
pub(crate) struct Completions {
    /// Shell to complete for
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  typhon man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Folder to write the pages into; created if it is missing
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}
