//! Where settings come from, and which source wins (brief 02 §5.1).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::arguments;
use super::fault::{Fault, FaultCode, printable};
use super::json;
use super::keys::ROOT;

/// Name of the configuration file.
pub const FILE_NAME: &str = "typhon.telemetry.json";

/// The source of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: what happens without configuration.
    Default,
    /// Code of the host program, before the profiler started.
    Host,
    /// Code of the host program, while the profiler runs.
    Runtime,
    /// An argument of the command line, as written without its value.
    CommandLine(String),
    /// An environment variable, by its name.
    Environment(String),
    /// A configuration file.
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Host => f.write_str("program"),
            Self::Runtime => f.write_str("program at run time"),
            Self::CommandLine(option) => write!(f, "command line {}", printable(option)),
            Self::Environment(name) => write!(f, "environment {}", printable(name)),
            Self::File(path) => f.write_str(&printable(&path.to_string_lossy())),
        }
    }
}

/// One value as a source wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Full key (`Typhon:Profiler:…`) in the spelling of the source.
    pub key: String,
    /// The value as text.
    pub value: String,
    /// Who wrote it.
    pub origin: Origin,
}

/// Values that the program itself sets; they win over every other source.
///
/// ```
/// use typhon_profiler::config::{Overrides, Settings, resolve};
///
/// let overrides = Overrides::new().trace("run.typhon-trace").gate("Scheduler", true).buffer_budget_mib(8);
/// let resolved = resolve(&Settings::builder().overrides(overrides).build());
/// assert!(resolved.faults.is_empty());
/// assert!(resolved.options.enabled, "an explicit trace path turns the profiler on");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Overrides(Vec<(String, String)>);

impl Overrides {
    /// No override.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Any key of the reference page, with or without its leading `Typhon:`, as text. Faults show up in
    /// [`resolve`](super::resolve), together with those of the other sources.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        let full = match key.get(..ROOT.len()) {
            Some(root) if root.eq_ignore_ascii_case(ROOT) => key.to_owned(),
            _ => format!("{ROOT}{key}"),
        };
        self.0.push((full, value.to_string()));
        self
    }

    /// The master switch.
    pub fn enabled(self, on: bool) -> Self {
        self.set("Profiler:Enabled", on)
    }

    /// Capture file. Paths that are not UTF-8 cannot be expressed here.
    pub fn trace(self, path: &str) -> Self {
        self.set("Profiler:Trace", path)
    }

    /// Collect, but write no file.
    pub fn no_trace_file(self) -> Self {
        self.set("Profiler:Trace", "none")
    }

    /// A gate below `Typhon:Profiler:`, for example `Scheduler:Worker`.
    pub fn gate(self, path: &str, on: bool) -> Self {
        self.set(&format!("Profiler:{path}:Enabled"), on)
    }

    /// Kinds to switch off by name or number. Replaces the list of every other source.
    pub fn suppress<I: IntoIterator<Item: fmt::Display>>(self, kinds: I) -> Self {
        self.set("Profiler:Kinds:Suppress", comma_list(kinds))
    }

    /// Kinds to take from the deny-list by name or number. Replaces the list of every other source.
    pub fn unsuppress<I: IntoIterator<Item: fmt::Display>>(self, kinds: I) -> Self {
        self.set("Profiler:Kinds:Unsuppress", comma_list(kinds))
    }

    /// Memory of all capture buffers together, in MiB.
    pub fn buffer_budget_mib(self, mib: u32) -> Self {
        self.set("Profiler:BufferBudgetMiB", mib)
    }
}

fn comma_list<I: IntoIterator<Item: fmt::Display>>(items: I) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}

/// The values of one source, by lower-case key.
#[derive(Debug, Clone, Default)]
struct Layer(BTreeMap<String, Setting>);

impl Layer {
    fn insert(&mut self, setting: Setting, faults: &mut Vec<Fault>) {
        let code = FaultCode::DuplicateKey;
        let (key, origin) = (setting.key.clone(), setting.origin.clone());
        if self.0.insert(setting.key.to_lowercase(), setting).is_some() {
            faults.push(Fault::new(
                code,
                &origin,
                &key,
                "set twice, the last one counts",
                "keep one of them",
            ));
        }
    }
}

/// Everything that was configured, source by source. Reading is the only thing that touches the outside world;
/// [`resolve`](super::resolve) is a pure function of this value.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    layers: Vec<Layer>,
    files: Vec<PathBuf>,
    pub(crate) working_directory: Option<PathBuf>,
    pub(crate) faults: Vec<Fault>,
}

impl Settings {
    /// What a program without any code of its own for configuration runs with: the environment, then
    /// [`FILE_NAME`] in the working directory, then the one beside the executable.
    pub fn from_process() -> Self {
        Self::builder().process().build()
    }

    /// Collects sources one by one; the order of the calls matters only between files.
    pub fn builder() -> SettingsBuilder {
        SettingsBuilder::default()
    }

    /// The files that were read, strongest first.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// True when no source holds a value: nothing to do, nothing to say.
    pub fn is_empty(&self) -> bool {
        self.layers.iter().all(|layer| layer.0.is_empty())
    }

    /// All values of a lower-case full key, strongest first.
    pub(crate) fn all(&self, lower_key: &str) -> Vec<&Setting> {
        self.layers.iter().filter_map(|layer| layer.0.get(lower_key)).collect()
    }

    /// Of the strongest source that holds anything at or below a lower-case full key: those values, in key order.
    pub(crate) fn list(&self, lower_key: &str) -> Vec<&Setting> {
        let below = format!("{lower_key}:");
        let at_or_below = |key: &str| key == lower_key || key.starts_with(&below);
        let of_layer = |layer: &'_ Layer| layer.0.keys().any(|key| at_or_below(key));
        let Some(layer) = self.layers.iter().find(|layer| of_layer(layer)) else { return Vec::new() };
        layer.0.iter().filter(|(key, _)| at_or_below(key)).map(|(_, setting)| setting).collect()
    }

    /// Every value of every source with its lower-case key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.layers.iter().flat_map(|layer| layer.0.iter().map(|(key, setting)| (key.as_str(), setting)))
    }
}

/// Collects the sources of [`Settings`].
#[derive(Debug, Default)]
pub struct SettingsBuilder {
    overrides: Overrides,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    files: Vec<Result<(PathBuf, Vec<u8>), Fault>>,
    working_directory: Option<PathBuf>,
}

impl SettingsBuilder {
    /// Values set by the program.
    pub fn overrides(mut self, overrides: Overrides) -> Self {
        self.overrides.0.extend(overrides.0);
        self
    }

    /// The program's command line without its name: `--trace <path>`, `--live [port]` and `--live-wait <ms>` are
    /// picked out of it (also as `--trace=<path>`), everything else is the program's own.
    pub fn arguments<I: IntoIterator<Item: Into<OsString>>>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Environment variables; those that do not start with `TYPHON__` are ignored.
    pub fn environment<I, K, V>(mut self, variables: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: Into<OsString>,
        V: Into<OsString>,
    {
        self.environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// A file to read, weaker than those added before. A file that does not exist is no fault.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        match read_file(&path) {
            Ok(Some(text)) => self.files.push(Ok((path, text))),
            Ok(None) => {}
            Err(error) => self.files.push(Err(unreadable(path, &error))),
        }
        self
    }

    /// A file whose text is already at hand, weaker than those added before.
    pub fn file_text(mut self, path: impl Into<PathBuf>, text: impl Into<Vec<u8>>) -> Self {
        self.files.push(Ok((path.into(), text.into())));
        self
    }

    /// Environment and files of this process, as [`Settings::from_process`] takes them.
    pub fn process(mut self) -> Self {
        self = self.environment(std::env::vars_os());
        let here = std::env::current_dir().ok();
        self.working_directory.clone_from(&here);
        let executable = std::env::current_exe().ok().and_then(|path| path.parent().map(Path::to_owned));
        for directory in distinct_directories(here, executable) {
            self = self.file(directory.join(FILE_NAME));
        }
        self
    }

    /// Reads everything into layers. Files that are not valid are left out as a whole.
    pub fn build(self) -> Settings {
        let mut settings = Settings { working_directory: self.working_directory, ..Settings::default() };
        let host =
            self.overrides.0.into_iter().map(|(key, value)| Setting { key, value, origin: Origin::Host });
        // Calling a setter twice is how code overrides itself, hence no duplicates here.
        let host = host.map(|setting| (setting.key.to_lowercase(), setting)).collect();
        settings.layers.push(Layer(host));
        let given = arguments::settings(&self.arguments, &mut settings.faults);
        settings.push_layer(given);
        let variables = environment_settings(self.environment, &mut settings.faults);
        settings.push_layer(variables);
        for file in self.files {
            let parsed = file.and_then(|(path, text)| Ok((file_settings(&path, &text)?, path)));
            match parsed {
                Ok((values, path)) => {
                    settings.push_layer(values);
                    settings.files.push(path);
                }
                Err(fault) => settings.faults.push(fault),
            }
        }
        settings
    }
}

impl Settings {
    fn push_layer(&mut self, values: Vec<Setting>) {
        let mut layer = Layer::default();
        for setting in values {
            layer.insert(setting, &mut self.faults);
        }
        self.layers.push(layer);
    }
}

/// The two directories, once if they are the same.
fn distinct_directories(here: Option<PathBuf>, executable: Option<PathBuf>) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match (here, executable) {
        (Some(here), Some(executable)) if real(&here) == real(&executable) => vec![here],
        (here, executable) => here.into_iter().chain(executable).collect(),
    }
}

/// Bytes of a regular file up to one more than the limit; `None` if there is no such file.
fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Opening a pipe would wait for its writer.
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(json::MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
    Ok(Some(text))
}

fn unreadable(path: PathBuf, error: &io::Error) -> Fault {
    let remedy = "make it readable or remove it; the file is ignored";
    Fault::new(
        FaultCode::UnreadableFile,
        &Origin::File(path),
        "",
        format!("cannot be read ({error})"),
        remedy,
    )
}

fn file_settings(path: &Path, text: &[u8]) -> Result<Vec<Setting>, Fault> {
    let origin = Origin::File(path.to_owned());
    let malformed = |problem: String| {
        let remedy = "correct it; the whole file is ignored, the environment still counts";
        Fault::new(FaultCode::MalformedFile, &origin, "", problem, remedy)
    };
    if text.len() as u64 > json::MAX_FILE_BYTES {
        return Err(malformed(format!("larger than {} KiB", json::MAX_FILE_BYTES >> 10)));
    }
    let pairs = json::flatten(text).map_err(|fault| {
        malformed(format!("line {} column {}: {}", fault.line, fault.column, printable(&fault.message)))
    })?;
    Ok(pairs.into_iter().map(|(key, value)| Setting { key, value, origin: origin.clone() }).collect())
}

/// `TYPHON__A__B` becomes `TYPHON:A:B`. Sorted by name: the order of an environment means nothing.
fn environment_settings(mut variables: Vec<(OsString, OsString)>, faults: &mut Vec<Fault>) -> Vec<Setting> {
    const PREFIX: &str = "typhon__";
    variables.retain(|(name, _)| {
        let name = name.as_encoded_bytes();
        name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX.as_bytes()))
    });
    variables.sort();
    let mut settings = Vec::new();
    for (name, value) in variables {
        let origin = Origin::Environment(name.to_string_lossy().into_owned());
        let key = name.to_string_lossy().replace("__", ":");
        match value.into_string() {
            Ok(value) => settings.push(Setting { key, value, origin }),
            Err(_) => {
                let fault = Fault::new(
                    FaultCode::InvalidValue,
                    &origin,
                    &key,
                    "value is not UTF-8",
                    "set it again as UTF-8; it is ignored",
                );
                faults.push(fault);
            }
        }
    }
    settings
}
