//! Gates and options of the profiler, resolved from `typhon.telemetry.json` and `TYPHON__…` variables.
#![forbid(unsafe_code)]
