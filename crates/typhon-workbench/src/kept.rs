//! Small documents of this user: settings, and bookmarks by trace.

use serde_json::{Map, Value};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Bytes of a document, in memory and on disk.
pub(crate) const BYTES_MAX: usize = 256 << 10;

/// The object in a file; an empty one when there is no file.
///
/// # Errors
/// When it cannot be read, is too large or is no object.
pub(crate) fn read(path: &Path) -> io::Result<Map<String, Value>> {
    let bytes = match fs::metadata(path) {
        Ok(data) if data.len() > BYTES_MAX as u64 => return Err(ErrorKind::FileTooLarge.into()),
        Ok(_) => fs::read(path)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(error),
    };
    serde_json::from_slice(&bytes).map_err(|fault| io::Error::new(ErrorKind::InvalidData, fault))
}

/// Replaces a file by an object; its folder is made when it is missing.
///
/// # Errors
/// When it cannot be written, or would be too large to be read again.
pub(crate) fn write(path: &Path, object: &Map<String, Value>) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(object)?;
    bytes.push(b'\n');
    if bytes.len() > BYTES_MAX {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".typhon-").tempfile_in(folder)?;
    file.write_all(&bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_and_damage_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/workbench.json");
        assert_eq!(read(&path).unwrap(), Map::new());
        let Value::Object(object) = json!({ "theme": "dark", "n": [1, 2] }) else { unreachable!() };
        write(&path, &object).unwrap();
        assert_eq!(read(&path).unwrap(), object);
        fs::write(&path, "[1]").unwrap();
        assert!(read(&path).is_err());
        fs::write(&path, vec![b' '; BYTES_MAX + 1]).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), ErrorKind::FileTooLarge);
        let Value::Object(large) = json!({ "text": "x".repeat(BYTES_MAX) }) else { unreachable!() };
        assert_eq!(write(&path, &large).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
