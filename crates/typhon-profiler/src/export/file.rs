//! The trace file.
#![forbid(unsafe_code)]

use super::{Batch, ExportError, Exporter, SessionEnd, SessionStart, is_full, names};
use crate::destination::create_in_use;
use crate::program::{Program, SYSTEM_SITES, SystemSource};
use crate::site::SiteInfo;
use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use typhon_trace::header::{FileHeader, utc_ticks_from_unix_ns};
use typhon_trace::trailer::{FileEntry, FileTable, SourceLocation, SourceManifest, SpanNames};
use typhon_trace::writer::{CloseInfo, TraceSink, TraceWriter, WriterOptions};

/// Writes a `.typhon-trace` file, one block per batch, each handed to the operating system at once: a killed process
/// leaves a file that is whole up to its last block.
///
/// While the file is open, `<file>.sites` beside it holds the call sites, which a closed file has in its trailer. The
/// same goes for tables of a program that is described after the recording began.
pub struct FileExporter<S = File> {
    destination: Destination<S>,
    writer: Option<TraceWriter<S>>,
    /// Names with lower ids stand in the file.
    named: u32,
    /// The call sites; systems come in addition.
    sites: &'static [SiteInfo],
    program: Option<Arc<Program>>,
    /// The program was described after the file was begun, so that its tables are not in front.
    described_late: bool,
    /// The file; `None` for sinks without a path.
    path: Option<PathBuf>,
    /// Where the sites stand while the file is open.
    sites_path: Option<PathBuf>,
}

enum Destination<S> {
    Path { path: PathBuf, create: fn(&Path) -> std::io::Result<S> },
    Sink(S),
    Taken,
}

impl FileExporter<File> {
    /// An exporter to a new file at `path`; one that exists is replaced when the session starts, unless somebody uses
    /// it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::with(Destination::Path { path: path.into(), create: create_in_use })
    }
}

impl<S: TraceSink + Send> FileExporter<S> {
    /// An exporter to any empty sink.
    pub fn to_sink(sink: S) -> Self {
        Self::with(Destination::Sink(sink))
    }

    fn with(destination: Destination<S>) -> Self {
        Self {
            destination,
            writer: None,
            named: 0,
            sites: &[],
            program: None,
            described_late: false,
            path: None,
            sites_path: None,
        }
    }

    fn open(&mut self, sink: S, start: &SessionStart) -> Result<(), ExportError> {
        let since_epoch = start.wall_clock.duration_since(UNIX_EPOCH).unwrap_or_default();
        let created = utc_ticks_from_unix_ns(i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX));
        let program = start.program.as_deref().cloned().unwrap_or_default();
        let header = FileHeader { created_utc_ticks: created, ..program.header };
        let options = WriterOptions::new(start.consumer_slot);
        self.writer = Some(TraceWriter::create(sink, header, &program.tables, options)?);
        (self.sites, self.program) = (start.sites, start.program.clone());
        Ok(())
    }

    fn write(&mut self, batch: &Batch) -> Result<(), ExportError> {
        let Some(writer) = &mut self.writer else { return Err(ExportError::new("no file is open")) };
        if batch.name_count() > self.named {
            let mut table = SpanNames::default();
            for (id, name) in names(self.named, batch.name_count()) {
                table.push(id, name);
            }
            writer.span_names(&table)?;
            self.named = batch.name_count();
        }
        Ok(writer.write_block(batch.records())?)
    }

    fn finish(&mut self, end: &SessionEnd) -> Result<(), ExportError> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        let late = self.late_program();
        let report = writer.close(&CloseInfo {
            stop_timestamp: end.time_ns,
            duration_ticks: end.time_ns - end.start_ns,
            sources: self.sources(),
            identity: late.map(|program| program.header.clone()),
            tables: late.map(|program| program.tables.clone()),
            ..CloseInfo::default()
        });
        match report.problems.first() {
            None => self.remove_sites(),
            Some(problem) => {
                Err(ExportError::new(format!("closing ({:?}): {}", problem.step, problem.error)))
            }
        }
    }
}

impl<S: TraceSink + Send> Exporter for FileExporter<S> {
    fn name(&self) -> &str {
        "file"
    }

    fn init(&mut self, start: &SessionStart) -> Result<(), ExportError> {
        match std::mem::replace(&mut self.destination, Destination::Taken) {
            Destination::Path { path, create } => {
                let sink = create(&path).map_err(|error| io_error("create", &path, error))?;
                // The program may go to another directory meanwhile.
                let path = std::path::absolute(&path).unwrap_or(path);
                self.sites_path = Some(sites_path(&path));
                self.path = Some(path);
                self.open(sink, start)?;
                self.write_sites()
            }
            Destination::Sink(sink) => self.open(sink, start),
            Destination::Taken => Err(ExportError::new("a file exporter serves one session")),
        }
    }

    fn cancel(&mut self) {
        // Not while it is open, which some systems refuse.
        self.writer = None;
        // What cannot be removed is an empty recording, no more.
        let _ = self.remove_sites();
        let _ = self.path.take().map(|path| removed(&path));
    }

    fn process(&mut self, batch: &Batch) -> Result<(), ExportError> {
        self.write(batch).map_err(|mut error| {
            if let Some(path) = &self.path {
                error.message = format!("{}: {}", path.display(), error.message);
            }
            error
        })
    }

    fn describe(&mut self, program: &Arc<Program>) -> Result<(), ExportError> {
        self.program = Some(Arc::clone(program));
        self.described_late = true;
        self.write_sites()
    }

    fn close(&mut self, end: &SessionEnd) -> Result<(), ExportError> {
        self.finish(end)
    }
}

impl<S> FileExporter<S> {
    /// The description that came after the beginning of the file, if one did.
    fn late_program(&self) -> Option<&Program> {
        self.program.as_deref().filter(|_| self.described_late)
    }

    /// File table and manifest of call sites and systems; `None` when there are none.
    fn sources(&self) -> Option<(FileTable, SourceManifest)> {
        let systems = self.program.as_deref().map_or(&[][..], |program| &program.systems);
        let has_any = !self.sites.is_empty() || !systems.is_empty();
        has_any.then(|| sources(self.sites, systems))
    }

    /// Puts the call sites, and tables that are not in the file, beside the file, for readers of one that was not
    /// closed. A reader of the moment sees the old ones or the new ones.
    fn write_sites(&self) -> Result<(), ExportError> {
        let Some(path) = &self.sites_path else { return Ok(()) };
        let mut bytes = Vec::new();
        if let Some((files, manifest)) = self.sources() {
            files.encode(&mut bytes)?;
            manifest.encode(&mut bytes)?;
        }
        if let Some(program) = self.late_program() {
            program.tables.encode_section(&mut bytes)?;
        }
        if bytes.is_empty() {
            // One that is there belongs to an earlier recording of the same name.
            return removed(path);
        }
        let new = path.with_added_extension("new");
        let written = std::fs::write(&new, bytes).and_then(|()| std::fs::rename(&new, path));
        written.map_err(|error| {
            // Not half of it, on a disk that may just be full.
            let _ = removed(&new);
            io_error("write", path, error)
        })
    }

    fn remove_sites(&mut self) -> Result<(), ExportError> {
        self.sites_path.take().map_or(Ok(()), |path| removed(&path))
    }
}

/// Removes a file, if there is one.
fn removed(path: &Path) -> Result<(), ExportError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error("remove", path, error)),
        _ => Ok(()),
    }
}

/// The file beside a trace that holds its call sites until it is closed.
fn sites_path(trace: &Path) -> PathBuf {
    let mut path = trace.as_os_str().to_owned();
    path.push(".sites");
    path.into()
}

fn io_error(action: &str, path: &Path, error: std::io::Error) -> ExportError {
    let storage_full = is_full(error.kind());
    let message = format!("cannot {action} {}: {error}", path.display());
    ExportError { message, storage_full, source: Some(Box::new(error)) }
}

/// File table and manifest of call sites and systems.
fn sources(sites: &[SiteInfo], systems: &[SystemSource]) -> (FileTable, SourceManifest) {
    let mut table = Sources::default();
    for site in sites {
        table.add(site.id, site.file, site.line, &site.function);
    }
    for system in systems {
        table.add(SYSTEM_SITES | system.index, system.file, system.line, &system.function);
    }
    (table.files, table.manifest)
}

#[derive(Default)]
struct Sources {
    files: FileTable,
    manifest: SourceManifest,
    file_ids: HashMap<&'static str, u16>,
}

impl Sources {
    fn add(&mut self, id: u16, file: &'static str, line: u32, function: &str) {
        // At most 65,535 sites, so that their files fit.
        let file_id = *self.file_ids.entry(file).or_insert_with(|| {
            let file_id = self.files.files.len() as u16;
            self.files.files.push(FileEntry { file_id, path: file.to_owned() });
            file_id
        });
        let method = function.to_owned();
        self.manifest.entries.push(SourceLocation { id, file_id, line, kind: 0, method });
    }
}
