//! A native library for .NET applications: an engine in Rust that a C# program loads with `DllImport`.
//!
//! Everything in `include/typhon_profiler.h` is exported too, because the profiler is inside.

use typhon_profiler::{events::NamedSpan, span};

/// Calls back into the application, and records how long that took.
#[unsafe(no_mangle)]
pub extern "C" fn library_call(application: extern "C" fn()) {
    let _span = span!(NamedSpan { name: "library_call" });
    application();
}
