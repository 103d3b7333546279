//! What is recorded: the tables that give names to the numbers in the records (format spec, "Metadata tables").
//!
//! Whoever knows the program's schedule or schema calls [`describe`], once, at any time. Before a recording starts is
//! best, since the format has its tables in front of the first record. A recording that runs already gets the tables
//! when its file is closed, and beside the file until then; readers find them in all three places.
#![forbid(unsafe_code)]

use std::panic::Location;
use typhon_trace::header::FileHeader;
use typhon_trace::tables::Tables;

/// Ids of call sites from here on mean the code of a system: this plus its index.
pub(crate) const SYSTEM_SITES: u16 = 0x8000;

/// The description of a program.
///
/// ```
/// use typhon_profiler::Program;
/// use typhon_trace::tables::{System, Tables};
///
/// let movement = System { index: 0, name: "Movement".into(), ..System::default() };
/// let tables = Tables { systems: vec![movement], ..Tables::default() };
/// let registered_at = std::panic::Location::caller();
/// let program = Program::new(tables).with_system_source(0, "demo::movement", registered_at);
/// typhon_profiler::describe(program);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub(crate) header: FileHeader,
    pub(crate) tables: Tables,
    pub(crate) systems: Vec<SystemSource>,
}

/// Where a system comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SystemSource {
    pub(crate) index: u16,
    pub(crate) function: String,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
}

impl Program {
    /// A program with these tables, and nothing else known about it.
    pub fn new(tables: Tables) -> Self {
        Self { header: FileHeader::new(0), tables, systems: Vec::new() }
    }

    /// Adds identity, rates and transaction numbers. Creation time and clock of the header are set by the recording,
    /// the counts follow from the tables.
    pub fn with_header(mut self, header: FileHeader) -> Self {
        self.header = header;
        self
    }

    /// Says where the code of a system is, as a rule where it was registered: `index` is that of the system table, at
    /// most 32,767, `function` a name for people. Spans refer to it by [`emit_system_span`](crate::emit_system_span).
    /// Larger indexes are ignored, since a record could not name them.
    pub fn with_system_source(
        mut self,
        index: u16,
        function: impl Into<String>,
        location: &Location<'static>,
    ) -> Self {
        if index < SYSTEM_SITES {
            let (file, line) = (location.file(), location.line());
            self.systems.push(SystemSource { index, function: function.into(), file, line });
        }
        self
    }
}

impl Default for Program {
    fn default() -> Self {
        Self::new(Tables::default())
    }
}

/// Describes the program in the recording that runs and in those that follow, until it is described anew. Never starts
/// a recording, and costs nothing where none is made.
pub fn describe(program: Program) {
    crate::session::describe(program);
}
