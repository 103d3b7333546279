//! What can be asked over HTTP; `API.md` has every request and answer.

mod catalogue;
pub(crate) mod event;
mod export;
pub(crate) mod filters;
mod kept;
mod meta;
mod sessions;
mod source;
mod stats;
mod ticks;
mod tiles;

use crate::app::App;
use crate::problem::Problem;
use crate::sessions::Opened;
use crate::work::Weight;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use typhon_analysis::facts::TimeWindow;
use typhon_analysis::session::{Cancel, Session};

/// Bytes of a request's body (brief 11 F-7).
const BODY_BYTES_MAX: usize = 1 << 20;
/// Time for a body to arrive.
const BODY_DEADLINE: Duration = Duration::from_secs(30);
/// Rows of a page.
pub(crate) const PAGE_MAX: usize = 10_000;

/// Every address below `/api`.
pub(crate) fn routes() -> Router<Arc<App>> {
    let of_session = Router::new()
        .route("/", get(sessions::one).delete(sessions::close))
        .route("/cancel", post(sessions::cancel))
        .route("/meta", get(meta::meta))
        .route("/names", get(meta::names))
        .route("/gauges", get(meta::gauges))
        .route("/gc", get(meta::collections))
        .route("/notices", get(meta::notices))
        .route("/ticks", get(ticks::page))
        .route("/ticks/slowest", get(ticks::slowest))
        .route("/event/{event}", get(event::by_id))
        .route("/event/{event}/children", get(event::children))
        .route("/event/{event}/siblings", get(event::siblings))
        .route("/event/{event}/links", get(event::links))
        .route("/row/{lane}/{row}/{index}", get(event::by_place))
        .route("/nearest", get(event::nearest))
        .route("/stats", get(stats::table))
        .route("/histogram", get(stats::histogram))
        .route("/top", get(stats::top))
        .route("/filters", post(filters::add))
        .route("/filters/check", post(filters::check))
        .route("/filters/{filter}", delete(filters::remove))
        .route("/search", get(filters::search))
        .route("/source", get(source::around))
        .route("/export", post(export::part))
        .route("/bookmarks", get(kept::bookmarks).put(kept::set_bookmarks))
        .route("/tiles", post(tiles::answer));
    let version_1 = Router::new()
        .route("/health", get(catalogue::health))
        .route("/kinds", get(catalogue::kinds))
        .route("/files", get(sessions::files))
        .route("/settings", get(kept::settings).put(kept::set_settings))
        .route("/sessions", get(sessions::list).post(sessions::open))
        .nest("/sessions/{session}", of_session)
        .route("/ws", get(crate::ws::upgrade));
    Router::new().nest("/api/v1", version_1)
}

/// Parameters in the query of an address.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Self(params)),
            Err(refused) => Err(Problem::bad_request(refused.body_text())),
        }
    }
}

/// Everything that a request carries.
pub(crate) async fn body(request: Request) -> Result<axum::body::Bytes, Problem> {
    let read = tokio::time::timeout(BODY_DEADLINE, to_bytes(request.into_body(), BODY_BYTES_MAX)).await;
    match read {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body did not arrive")),
    }
}

fn too_large() -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "bodies of requests are at most 1 MiB")
}

/// A body of JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let bytes = body(request).await?;
        let parsed = serde_json::from_slice(&bytes);
        parsed
            .map(Self)
            .map_err(|fault| Problem::bad_request(format!("the body is not what it should be: {fault}")))
    }
}

/// An answer of JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => (status, [(header::CONTENT_TYPE, "application/json")], bytes).into_response(),
        Err(_) => Problem::internal().into_response(),
    }
}

/// Answers from a session, on the pool.
pub(crate) async fn from_session<T: Serialize + Send + 'static>(
    app: &App,
    session: &str,
    weight: Weight,
    work: impl FnOnce(&Opened, &Cancel) -> Result<T, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let opened = app.session(session)?;
    // Turning an answer into text is work as well.
    let answer = app.pool.run(weight, move |cancel| {
        let value = opened.noticing(work(&opened, cancel))?;
        serde_json::to_vec(&value).map_err(|_| Problem::internal())
    });
    let bytes = answer.await?;
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], bytes).into_response())
}

/// The window between two moments, if there is one.
pub(crate) fn window(
    session: &Session,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
) -> Result<Option<TimeWindow>, Problem> {
    if from_ns.is_none() && to_ns.is_none() {
        return Ok(None);
    }
    let range = from_ns.unwrap_or(0)..to_ns.unwrap_or(u64::MAX);
    Ok(Some(session.window(range)?))
}
