//! Call sites: where in the source a span was begun, as a number in its record.
//!
//! The macros place one static per call site. The linker collects them, and the profiler numbers them by file, line
//! and column when it starts: the same build gives the same numbers, and a call site costs one load.
#![forbid(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Ids from here on mean registered systems.
const MAX_SITES: usize = 0x7FFF;

/// All call sites that were linked into the program.
#[doc(hidden)]
#[linkme::distributed_slice]
pub static SITES: [Site];

/// One call site.
#[derive(Debug)]
pub struct Site {
    file: &'static str,
    line: u32,
    column: u32,
    module: &'static str,
    function: fn() -> &'static str,
    id: AtomicU16,
}

impl Site {
    /// For the macros of this crate.
    #[doc(hidden)]
    pub const fn new(
        file: &'static str,
        line: u32,
        column: u32,
        module: &'static str,
        function: fn() -> &'static str,
    ) -> Self {
        Self { file, line, column, module, function, id: AtomicU16::new(0) }
    }

    /// The number in records; 0 before the profiler started, and for sites beyond 32,767.
    #[inline(always)]
    pub(crate) fn id(&self) -> u16 {
        self.id.load(Ordering::Relaxed)
    }
}

/// A numbered call site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteInfo {
    /// Number in the records, 1..=32,767.
    pub id: u16,
    /// Source file as the compiler was given it, relative to the package where that is known.
    pub file: &'static str,
    /// Line, from 1.
    pub line: u32,
    /// Module and function.
    pub function: String,
}

/// Numbers the call sites, once per process, and lists them by number.
pub(crate) fn all() -> &'static [SiteInfo] {
    static INFOS: OnceLock<Vec<SiteInfo>> = OnceLock::new();
    INFOS.get_or_init(|| {
        let mut sites: Vec<&'static Site> = SITES.iter().collect();
        sites.sort_by_key(|site| (site.file, site.line, site.column));
        (1..).zip(sites).take(MAX_SITES).map(|(id, site)| number(site, id)).collect()
    })
}

fn number(site: &'static Site, id: u16) -> SiteInfo {
    site.id.store(id, Ordering::Relaxed);
    let function = function_name((site.function)(), site.module);
    SiteInfo { id, file: site.file, line: site.line, function }
}

/// The path of the enclosing function from the type name of an item inside it.
fn function_name(marker: &str, module: &str) -> String {
    let mut path = marker.strip_suffix("::marker").unwrap_or(marker);
    while let Some(outer) = path.strip_suffix("::{{closure}}") {
        path = outer;
    }
    if path.is_empty() { module.to_owned() } else { path.to_owned() }
}

/// The static of one call site.
#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    () => {{
        fn marker() {}
        #[$crate::__private::linkme::distributed_slice($crate::__private::SITES)]
        #[linkme(crate = $crate::__private::linkme)]
        static SITE: $crate::Site = $crate::Site::new(
            ::std::file!(),
            ::std::line!(),
            ::std::column!(),
            ::std::module_path!(),
            || ::std::any::type_name_of_val(&marker),
        );
        &SITE
    }};
}
