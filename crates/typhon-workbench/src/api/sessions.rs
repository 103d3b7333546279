//! Opening, listing and closing traces.

use super::{Json, Params, json};
use crate::app::App;
use crate::problem::Problem;
use crate::sessions::{Summary, open_allowed};
use crate::work::Weight;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Serialize)]
struct List {
    schema: &'static str,
    sessions: Vec<Summary>,
}

#[derive(Serialize)]
struct One {
    schema: &'static str,
    #[serde(flatten)]
    summary: Summary,
}

impl One {
    fn new(summary: Summary) -> Self {
        Self { schema: "typhon.session/1", summary }
    }
}

pub(crate) async fn list(State(app): State<Arc<App>>) -> Response {
    json(StatusCode::OK, &List { schema: "typhon.sessions/1", sessions: app.sessions.summaries() })
}

#[derive(Deserialize)]
pub(crate) struct Open {
    path: String,
}

pub(crate) async fn open(State(app): State<Arc<App>>, Json(body): Json<Open>) -> Result<Response, Problem> {
    let of_work = app.clone();
    let (opened, is_new) = app
        .pool
        .run(Weight::Light, move |_| open_allowed(&of_work.sessions, &of_work.paths, &body.path))
        .await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &One::new(opened.summary())))
}

pub(crate) async fn one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response, Problem> {
    Ok(json(StatusCode::OK, &One::new(app.session(&id)?.summary())))
}

pub(crate) async fn close(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let opened = app.session(&id)?;
    let closed = app.sessions.close(opened.id).ok_or_else(|| Problem::unknown(format!("session {id}")))?;
    // Whoever has the last reference waits for the indexing thread to notice. That is nothing for the two threads
    // which everybody shares; and nobody needs to know how it went.
    drop(tokio::task::spawn_blocking(move || drop((opened, closed))));
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    app.session(&id)?.session.cancel();
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
pub(crate) struct Files {
    dir: Option<String>,
}

pub(crate) async fn files(
    State(app): State<Arc<App>>,
    Params(params): Params<Files>,
) -> Result<Response, Problem> {
    let of_work = app.clone();
    let listing = app.pool.run(Weight::Light, move |_| of_work.paths.list(params.dir.as_deref())).await?;
    Ok(json(StatusCode::OK, &listing))
}
