//! Where the sockets are to which .NET runtimes connect that we start.

use std::io;
use std::path::Path;
use tempfile::{Builder, TempDir};

/// Of the 104 bytes of a socket's path that every system has, some are for the folder and the socket in it.
const MOST_BYTES: usize = 72;

/// A folder of our own, whose name begins with `prefix`: in the system's folder for temporary files, unless runtimes
/// could not be told of a socket there. Its path is too long then, or holds a separator of `DOTNET_DiagnosticPorts`.
///
/// # Errors
/// The folder cannot be created.
pub(super) fn create(prefix: &str) -> io::Result<TempDir> {
    let usual = std::env::temp_dir();
    let parent = if suits(&usual) { &usual } else { Path::new("/tmp") };
    Builder::new().prefix(prefix).tempdir_in(parent)
}

fn suits(folder: &Path) -> bool {
    let bytes = folder.as_os_str().as_encoded_bytes();
    bytes.len() <= MOST_BYTES && !bytes.iter().any(|byte| matches!(byte, b',' | b';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_folders_and_such_with_separators_do_not_suit() {
        assert!(suits(Path::new("/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T/")));
        for folder in ["/tmp/a,b", "/tmp/a;b", &"/long".repeat(20)] {
            assert!(!suits(Path::new(folder)), "{folder}");
        }
    }
}
