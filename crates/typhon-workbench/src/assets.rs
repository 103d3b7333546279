//! The page's files: embedded, or from the folder of a development build (brief 11 F-4, §10).

use crate::app::App;
use crate::guard::API;
use crate::problem::Problem;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

static EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

const INDEX: &str = "index.html";
/// Where the page tells the hash of the bundle it came from.
const HASH_PLACE: &str = r#"<meta name="typhon-assets" content="">"#;
/// Files of a development build, at most, and the bytes of one: it may be any folder.
const FOLDER_FILES_MAX: usize = 2_000;
const FILE_BYTES_MAX: u64 = 32 << 20;

/// Where the page comes from.
#[derive(Debug)]
pub(crate) enum Assets {
    Embedded,
    Folder(PathBuf),
}

impl Assets {
    fn read(&self, name: &str) -> Option<Cow<'static, [u8]>> {
        if !name.split('/').all(is_plain) {
            return None;
        }
        match self {
            Self::Embedded => {
                let found = EMBEDDED.iter().find(|(of, _)| *of == name)?;
                Some(Cow::Borrowed(found.1))
            }
            Self::Folder(folder) => {
                let path = folder.join(name).canonicalize().ok()?;
                let data = path.metadata().ok()?;
                let is_inside = path.starts_with(folder) && data.is_file() && data.len() <= FILE_BYTES_MAX;
                if is_inside { fs::read(path).ok().map(Cow::Owned) } else { None }
            }
        }
    }

    /// A hash over all files: a page with another one is from another build.
    pub(crate) fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        match self {
            Self::Embedded => {
                for (name, bytes) in EMBEDDED {
                    hasher.update(name.as_bytes()).update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
                }
            }
            // A folder that cannot be listed has the hash of what was seen of it.
            Self::Folder(folder) => drop(hash_folder(folder, &mut hasher, &mut 0)),
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }
}

/// Sizes and times stand for the contents.
fn hash_folder(folder: &Path, hasher: &mut blake3::Hasher, seen: &mut usize) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        *seen += 1;
        if *seen > FOLDER_FILES_MAX {
            break;
        }
        let data = entry.metadata()?;
        hasher.update(entry.file_name().as_encoded_bytes()).update(&data.len().to_le_bytes());
        if let Ok(since) = data.modified()?.duration_since(std::time::UNIX_EPOCH) {
            hasher.update(&since.as_nanos().to_le_bytes());
        }
        if data.is_dir() {
            hash_folder(&entry.path(), hasher, seen)?;
        }
    }
    Ok(())
}

/// A part of a path without anything special about it.
fn is_plain(part: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_allowed)
}

/// Answers whatever has no route: files of the page, and 404 for the rest.
pub(crate) async fn serve(
    State(app): State<Arc<App>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let path = uri.path();
    if path == API || path.starts_with("/api/") {
        return Problem::unknown(format!("such address as {path}")).into_response();
    }
    if !matches!(method, Method::GET | Method::HEAD) {
        return method_not_allowed().await;
    }
    let name = match path.trim_start_matches('/') {
        "" => INDEX,
        name => name,
    };
    match app.assets.read(name) {
        Some(bytes) if name == INDEX => index(&app.assets, &bytes),
        Some(bytes) => file(name, bytes, &headers),
        None if name == INDEX => {
            let text = "This build of typhon has no page: it was built without crates/typhon-workbench/assets.\n\
                `cargo xtask ui` makes it, and --ui-dir DIR serves one from a folder.\n";
            (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text)
                .into_response()
        }
        None => Problem::unknown("such file").into_response(),
    }
}

pub(crate) async fn method_not_allowed() -> Response {
    let detail = "this address does not take such requests";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "bad-request", detail).into_response()
}

fn index(assets: &Assets, bytes: &[u8]) -> Response {
    let filled = HASH_PLACE.replace(r#"content="""#, &format!(r#"content="{}""#, assets.hash()));
    let text = String::from_utf8_lossy(bytes).replace(HASH_PLACE, &filled);
    ([(header::CONTENT_TYPE, mime(INDEX)), (header::CACHE_CONTROL, "no-store")], text).into_response()
}

fn file(name: &str, bytes: Cow<'static, [u8]>, headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", &blake3::hash(&bytes).to_hex()[..32]);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or("");
    let is_known = known.split(',').any(|of| of.trim().trim_start_matches("W/") == tag);
    let common = [
        (header::ETAG, tag),
        (header::CACHE_CONTROL, "no-cache".to_owned()),
        (header::CONTENT_TYPE, mime(name).to_owned()),
    ];
    if is_known {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let body = match bytes {
        Cow::Borrowed(bytes) => Body::from(bytes),
        Cow::Owned(bytes) => Body::from(bytes),
    };
    (common, body).into_response()
}

fn mime(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("wasm") => "application/wasm",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_nothing_from_outside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("ui/sub")).unwrap();
        fs::write(root.join("secret.js"), "secret").unwrap();
        fs::write(root.join("ui/sub/a.js"), "a").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.join("secret.js"), root.join("ui/link.js")).unwrap();
        let assets = Assets::Folder(root.join("ui"));
        assert_eq!(assets.read("sub/a.js").as_deref(), Some(&b"a"[..]));
        let absolute = root.join("secret.js").to_string_lossy().into_owned();
        for name in [
            "../secret.js",
            "sub/../../secret.js",
            "link.js",
            "%2e%2e/secret.js",
            "sub",
            "",
            "sub//a.js",
            &absolute,
        ] {
            assert_eq!(assets.read(name), None, "{name}");
        }
    }

    #[test]
    fn the_hash_of_a_folder_follows_its_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.js"), "1").unwrap();
        let assets = Assets::Folder(folder.path().to_owned());
        let before = assets.hash();
        assert_eq!(before, assets.hash());
        fs::write(folder.path().join("a.js"), "12").unwrap();
        assert_ne!(before, assets.hash());
    }
}
