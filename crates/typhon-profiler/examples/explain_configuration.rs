//! Prints what the configuration of this directory and environment records, gate by gate:
//! `TYPHON__PROFILER__ENABLED=true cargo run -p typhon-profiler --example explain_configuration`.

fn main() {
    print!("{}", typhon_profiler::config::explain());
}
