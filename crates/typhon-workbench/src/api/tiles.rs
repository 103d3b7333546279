//! Tiles over HTTP. The WebSocket has the same with cancellation.

use super::body;
use crate::app::App;
use crate::problem::Problem;
use crate::work::Weight;
use axum::extract::{Path, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use typhon_analysis::session::SessionError;
use typhon_analysis::tile::{MAX_ANSWER_BYTES, TileRequest};

pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let opened = app.session(&id)?;
    let bytes = body(request).await?;
    let request = TileRequest::decode(&bytes).map_err(SessionError::from)?;
    let room = app.answers.room(MAX_ANSWER_BYTES).await;
    let frames = app.pool.run(Weight::Light, move |cancel| {
        let mut out = Vec::new();
        opened.session.tiles(&request, cancel, |tile| tile.encode(&mut out))?;
        Ok(out)
    });
    let frames = room.filled(frames.await?);
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], frames).into_response())
}
