//! Bookmarks and settings.

use super::{Json, json};
use crate::app::App;
use crate::kept;
use crate::problem::Problem;
use crate::work::Weight;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json as value};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

const BOOKMARKS_MAX: usize = 1_000;
const NOTE_BYTES_MAX: usize = 4_096;
const ID_BYTES_MAX: usize = 64;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bookmark {
    id: String,
    from_ns: u64,
    to_ns: Option<u64>,
    event: Option<String>,
    note: String,
}

#[derive(Deserialize)]
pub(crate) struct Bookmarks {
    bookmarks: Vec<Bookmark>,
}

fn not_kept(error: &io::Error) -> Problem {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    Problem::new(status, "unreadable", format!("what is kept for this user cannot be used: {error}"))
}

fn not_written(error: &io::Error) -> Problem {
    if error.kind() == io::ErrorKind::FileTooLarge {
        let detail = format!("all of it together would be more than {} KiB", kept::BYTES_MAX >> 10);
        return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
            .hint("remove some, or make notes shorter");
    }
    let status = StatusCode::INSUFFICIENT_STORAGE;
    Problem::new(status, "unwritable", format!("this cannot be kept: {error}"))
}

fn nowhere() -> Problem {
    let detail = "there is no folder to keep this in";
    Problem::new(StatusCode::NOT_FOUND, "unknown", detail).hint("set TYPHON_CACHE_DIR, or HOME")
}

/// Where the bookmarks of a session's trace are.
fn bookmark_file(app: &App, session: &str) -> Result<PathBuf, Problem> {
    let opened = app.session(session)?;
    let folder = app.cache_folder.as_ref().ok_or_else(nowhere)?;
    Ok(folder.join("bookmarks").join(opened.session.content_name()?).with_extension("json"))
}

fn bookmark_document(list: Value) -> Value {
    value!({ "schema": "typhon.bookmarks/1", "bookmarks": list })
}

pub(crate) async fn bookmarks(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let of_work = app.clone();
    let list = app.pool.run(Weight::Light, move |_| {
        let mut found = kept::read(&bookmark_file(&of_work, &id)?).map_err(|error| not_kept(&error))?;
        Ok(found.remove("bookmarks").unwrap_or_else(|| value!([])))
    });
    Ok(json(StatusCode::OK, &bookmark_document(list.await?)))
}

pub(crate) async fn set_bookmarks(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(new): Json<Bookmarks>,
) -> Result<Response, Problem> {
    let is_too_large = |of: &Bookmark| {
        of.note.len() > NOTE_BYTES_MAX
            || of.id.len() > ID_BYTES_MAX
            || of.event.as_ref().is_some_and(|event| super::event::event_id(event).is_err())
    };
    if new.bookmarks.len() > BOOKMARKS_MAX || new.bookmarks.iter().any(is_too_large) {
        return Err(Problem::bad_request(
            "at most 1,000 bookmarks with notes of at most 4,096 bytes can be kept",
        ));
    }
    let of_work = app.clone();
    let document = app.pool.run(Weight::Light, move |_| {
        let list = serde_json::to_value(&new.bookmarks).map_err(|_| Problem::internal())?;
        let file = Map::from_iter([("bookmarks".to_owned(), list.clone())]);
        kept::write(&bookmark_file(&of_work, &id)?, &file).map_err(|error| not_written(&error))?;
        Ok(bookmark_document(list))
    });
    Ok(json(StatusCode::OK, &document.await?))
}

fn settings_document(app: &App, settings: Map<String, Value>) -> Value {
    let path = app.settings_file.as_ref().map(|path| path.to_string_lossy());
    value!({ "schema": "typhon.settings/1", "settings": settings, "path": path })
}

pub(crate) async fn settings(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let of_work = app.clone();
    let document = app.pool.run(Weight::Light, move |_| {
        let path = of_work.settings_file.as_ref().ok_or_else(nowhere)?;
        let settings = kept::read(path).map_err(|error| not_kept(&error))?;
        Ok(settings_document(&of_work, settings))
    });
    Ok(json(StatusCode::OK, &document.await?))
}

pub(crate) async fn set_settings(
    State(app): State<Arc<App>>,
    Json(new): Json<Map<String, Value>>,
) -> Result<Response, Problem> {
    let of_work = app.clone();
    let document = app.pool.run(Weight::Light, move |_| {
        let path = of_work.settings_file.as_ref().ok_or_else(nowhere)?;
        // Two pages may write at the same time.
        let _one = of_work.settings_lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // What cannot be read is the user's own text, with a mistake in it perhaps: it is not overwritten.
        let mut settings = kept::read(path).map_err(|error| not_kept(&error))?;
        for (name, value) in new {
            if value.is_null() {
                settings.shift_remove(&name);
            } else {
                settings.insert(name, value);
            }
        }
        kept::write(path, &settings).map_err(|error| not_written(&error))?;
        Ok(settings_document(&of_work, settings))
    });
    Ok(json(StatusCode::OK, &document.await?))
}
