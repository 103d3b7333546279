//! Folders of this user.

use std::env;
use std::path::PathBuf;

/// Where what can be made anew is kept: indexes, bookmarks. `TYPHON_CACHE_DIR`, else the platform's folder.
pub fn cache_folder() -> Option<PathBuf> {
    if let Some(folder) = folder_of("TYPHON_CACHE_DIR") {
        return Some(folder);
    }
    let base = if cfg!(windows) {
        folder_of("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library/Caches"))
    } else {
        folder_of("XDG_CACHE_HOME").or_else(|| home().map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("typhon"))
}

/// Where settings are kept.
pub fn config_folder() -> Option<PathBuf> {
    let base = if cfg!(windows) {
        folder_of("APPDATA")
    } else if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library/Application Support"))
    } else {
        folder_of("XDG_CONFIG_HOME").or_else(|| home().map(|home| home.join(".config")))
    };
    base.map(|base| base.join("typhon"))
}

/// Relative paths would depend on the working directory.
fn folder_of(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn home() -> Option<PathBuf> {
    env::home_dir().filter(|home| home.is_absolute())
}
