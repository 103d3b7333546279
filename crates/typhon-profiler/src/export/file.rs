//! The trace file.
#![forbid(unsafe_code)]

use super::{Batch, ExportError, Exporter, SessionEnd, SessionStart, names};
use crate::destination::create_in_use;
use crate::site::SiteInfo;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use typhon_trace::header::{FileHeader, utc_ticks_from_unix_ns};
use typhon_trace::tables::Tables;
use typhon_trace::trailer::{FileEntry, FileTable, SourceLocation, SourceManifest, SpanNames};
use typhon_trace::writer::{CloseInfo, TraceSink, TraceWriter, WriterOptions};

/// Writes a `.typhon-trace` file, one block per batch, each handed to the operating system at once: a killed process
/// leaves a file that is whole up to its last block.
///
/// While the file is open, `<file>.sites` beside it holds the call sites, which a closed file has in its trailer.
pub struct FileExporter<S = File> {
    destination: Destination<S>,
    header: FileHeader,
    tables: Tables,
    writer: Option<TraceWriter<S>>,
    /// Names with lower ids stand in the file.
    named: u32,
    sources: Option<(FileTable, SourceManifest)>,
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
            header: FileHeader::new(0),
            tables: Tables::default(),
            writer: None,
            named: 0,
            sources: None,
            sites_path: None,
        }
    }

    /// Describes the program that is recorded: `header` for identity, rates and transaction numbers, `tables` for
    /// systems, archetypes and components. Its creation time and clock are set when the session starts.
    pub fn describe(mut self, header: FileHeader, tables: Tables) -> Self {
        (self.header, self.tables) = (header, tables);
        self
    }

    fn open(&mut self, sink: S, start: &SessionStart) -> Result<(), ExportError> {
        let since_epoch = start.wall_clock.duration_since(UNIX_EPOCH).unwrap_or_default();
        let created = utc_ticks_from_unix_ns(i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX));
        let header = FileHeader { created_utc_ticks: created, ..self.header.clone() };
        self.writer =
            Some(TraceWriter::create(sink, header, &self.tables, WriterOptions::new(start.consumer_slot))?);
        self.named = 0;
        self.sources = (!start.sites.is_empty()).then(|| sources(start.sites));
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
        let report = writer.close(&CloseInfo {
            stop_timestamp: end.time_ns,
            duration_ticks: end.time_ns - end.start_ns,
            sources: self.sources.take(),
            ..CloseInfo::default()
        });
        match report.problems.first() {
            None => self.remove_sites(),
            Some(problem) => {
                Err(ExportError::new(format!("closing ({:?}): {}", problem.step, problem.error)))
            }
        }
    }

    fn remove_sites(&mut self) -> Result<(), ExportError> {
        let Some(path) = self.sites_path.take() else { return Ok(()) };
        std::fs::remove_file(&path).map_err(|error| io_error("remove", &path, error))
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
                self.open(sink, start)?;
                self.write_sites(&path)
            }
            Destination::Sink(sink) => self.open(sink, start),
            Destination::Taken => Err(ExportError::new("a file exporter serves one session")),
        }
    }

    fn process(&mut self, batch: &Batch) -> Result<(), ExportError> {
        self.write(batch)
    }

    fn close(&mut self, end: &SessionEnd) -> Result<(), ExportError> {
        self.finish(end)
    }
}

impl<S> FileExporter<S> {
    /// Puts the call sites beside the file, for readers of a file that was not closed.
    fn write_sites(&mut self, trace: &Path) -> Result<(), ExportError> {
        let Some((files, manifest)) = &self.sources else { return Ok(()) };
        let mut bytes = Vec::new();
        files.encode(&mut bytes)?;
        manifest.encode(&mut bytes)?;
        let mut path = trace.as_os_str().to_owned();
        path.push(".sites");
        let path = PathBuf::from(path);
        std::fs::write(&path, bytes).map_err(|error| io_error("write", &path, error))?;
        self.sites_path = Some(path);
        Ok(())
    }
}

fn io_error(action: &str, path: &Path, error: std::io::Error) -> ExportError {
    let storage_full =
        matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
    let message = format!("cannot {action} {}: {error}", path.display());
    ExportError { message, storage_full, source: Some(Box::new(error)) }
}

/// File table and manifest of the call sites, which are in the order of their files.
fn sources(sites: &[SiteInfo]) -> (FileTable, SourceManifest) {
    let (mut files, mut manifest) = (FileTable::default(), SourceManifest::default());
    for site in sites {
        if files.files.last().is_none_or(|file| file.path != site.file) {
            // At most 32,767 sites, so that their files fit.
            files.files.push(FileEntry { file_id: files.files.len() as u16, path: site.file.to_owned() });
        }
        manifest.entries.push(SourceLocation {
            id: site.id,
            file_id: (files.files.len() - 1) as u16,
            line: site.line,
            kind: 0,
            method: site.function.clone(),
        });
    }
    (files, manifest)
}
