//! What a recorder leaves beside a trace until it is closed: the source locations.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use typhon_trace::reader::{ReadAt, Sections, TraceFile};
use typhon_trace::{Notice, NoticeCode, TraceError};

/// Opens the trace in a file that stands at `path`. One that was not closed has its source locations beside it.
///
/// # Errors
/// Those of [`TraceFile::open`].
pub fn trace_of<A: ReadAt>(data: A, path: &Path) -> Result<TraceFile<A>, TraceError> {
    let trace = TraceFile::open(data)?;
    if trace.header().is_closed() {
        return Ok(trace);
    }
    let (sections, notices) = sections_beside(path);
    Ok(trace.with_beside(&sections, notices))
}

/// Opens a regular file; anything else is an error. Opening a named pipe would wait for its writer.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file"));
    }
    File::open(path)
}

/// What a recorder left in `<path>.sites`; nothing when there is no such file. One that cannot be read is a notice.
pub fn sections_beside(path: &Path) -> (Sections, Vec<Notice>) {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".sites");
    let unreadable = |why: String| {
        let message = format!("the file beside the trace, {}, cannot be read: {why}", beside.display());
        (Sections::default(), vec![Notice::new(NoticeCode::SectionDamaged, message)])
    };
    match open_regular(beside.as_ref()) {
        Ok(file) => {
            Sections::read_beside(BufReader::new(file)).unwrap_or_else(|err| unreadable(err.to_string()))
        }
        Err(err) if err.kind() == io::ErrorKind::NotFound => (Sections::default(), Vec::new()),
        Err(err) => unreadable(err.to_string()),
    }
}
