//! Where the sockets are to which .NET runtimes connect that we start.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use tempfile::{Builder, TempDir};

/// Of the 104 bytes of a socket's path that every system has, some are for the folder and the socket in it.
const MOST_BYTES: usize = 72;
/// A file in the folder that is locked as long as its owner lives.
const OWNER: &str = "owner";

/// A folder of our own, which goes when it is dropped.
#[derive(Debug)]
pub(super) struct SocketFolder {
    folder: TempDir,
    /// Let go of after the folder is gone, or when the process dies.
    _owner: File,
}

impl SocketFolder {
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A folder whose name begins with `prefix`: in the system's folder for temporary files, unless runtimes could not be
/// told of a socket there. Its path is too long then, or holds a separator of `DOTNET_DiagnosticPorts`. Folders of the
/// same prefix whose owners were killed are removed.
///
/// # Errors
/// The folder cannot be created.
pub(super) fn create(prefix: &str) -> io::Result<SocketFolder> {
    let usual = std::env::temp_dir();
    create_in(if suits(&usual) { &usual } else { Path::new("/tmp") }, prefix)
}

fn suits(folder: &Path) -> bool {
    let bytes = folder.as_os_str().as_encoded_bytes();
    bytes.len() <= MOST_BYTES && !bytes.iter().any(|byte| matches!(byte, b',' | b';'))
}

fn create_in(parent: &Path, prefix: &str) -> io::Result<SocketFolder> {
    let folder = Builder::new().prefix(prefix).tempdir_in(parent)?;
    // Locked before it has its name, so that nobody ever finds it without an owner.
    let unnamed = folder.path().join("owner-to-be");
    let owner = File::create(&unnamed)?;
    // Without locks on this file system the folder stays unclaimed, and a killed owner's is left behind.
    if owner.lock().is_ok() {
        fs::rename(unnamed, folder.path().join(OWNER))?;
    }
    let created = SocketFolder { folder, _owner: owner };
    // What a killed process left is not needed for anything: a failure to remove it is none of ours.
    let _ = remove_abandoned(parent, prefix, &created);
    Ok(created)
}

fn remove_abandoned(parent: &Path, prefix: &str, own: &SocketFolder) -> io::Result<()> {
    let own = own.path().symlink_metadata()?;
    for entry in fs::read_dir(parent)?.flatten() {
        let is_named_so = entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes());
        if is_named_so && entry.metadata().is_ok_and(|data| data.is_dir() && is_of_same_user(&data, &own)) {
            let _ = remove_if_abandoned(&entry.path());
        }
    }
    Ok(())
}

fn remove_if_abandoned(folder: &Path) -> io::Result<()> {
    let owner = File::open(folder.join(OWNER))?;
    match owner.try_lock() {
        Ok(()) => fs::remove_dir_all(folder),
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(unix)]
fn is_of_same_user(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    one.uid() == other.uid()
}

#[cfg(not(unix))]
fn is_of_same_user(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
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

    #[test]
    fn what_a_killed_owner_left_goes_and_everything_else_stays() {
        let place = tempfile::tempdir().expect("a folder");
        let create = |prefix| create_in(place.path(), prefix).expect("it is ours");
        let abandon = |SocketFolder { folder, _owner: owner }: SocketFolder| {
            drop(owner);
            folder.keep()
        };
        let living = create("demo-");
        let killed = abandon(create("demo-"));
        fs::write(killed.join("port"), "").expect("it is ours");
        let of_others = abandon(create("gc-"));
        let not_ours = place.path().join("demo-of-somebody");
        fs::create_dir(&not_ours).expect("it is ours");
        drop(create("demo-"));
        assert!(!killed.exists(), "nobody owns it any more");
        assert!(living.path().join(OWNER).exists() && of_others.exists() && not_ours.exists());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
