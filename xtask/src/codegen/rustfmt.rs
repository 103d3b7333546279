//! Runs generated Rust through the toolchain's own formatter.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

/// Formats Rust source with the repository's settings.
pub(super) fn format(source: &str, config: &Path) -> Result<String, String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(config)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            format!("cannot run rustfmt ({error}); `rustup component add rustfmt` installs it")
        })?;
    // rustfmt reads all of its input before it writes, so writing first cannot block both sides.
    let mut stdin = child.stdin.take().ok_or("rustfmt has no standard input")?;
    stdin.write_all(source.as_bytes()).map_err(|error| format!("cannot write to rustfmt: {error}"))?;
    drop(stdin);
    let output = child.wait_with_output().map_err(|error| format!("rustfmt: {error}"))?;
    if !output.status.success() {
        return Err(format!("rustfmt refused it: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("rustfmt output: {error}"))
}
