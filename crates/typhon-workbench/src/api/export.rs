//! A part of a trace as a file.

use super::Json;
use crate::app::App;
use crate::problem::Problem;
use crate::work::Weight;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use typhon_analysis::session::SessionError;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 256 << 10;
/// Pieces that wait to be sent.
const PIECES_WAITING: usize = 2;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    #[serde(default)]
    from_ns: u64,
    to_ns: Option<u64>,
}

pub(crate) async fn part(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(part): Json<Part>,
) -> Result<Response, Problem> {
    let opened = app.session(&id)?;
    let name = format!("{}-part.typhon-trace", stem(&opened.name()));
    let range = part.from_ns..part.to_ns.unwrap_or(u64::MAX);
    let written = app.pool.run(Weight::Heavy, move |cancel| {
        // It has no name, so nothing is left of it whatever happens.
        let mut file = tempfile::tempfile().map_err(SessionError::from)?;
        let sink = file.try_clone().map_err(SessionError::from)?;
        opened.session.cut(range, sink, cancel)?;
        file.rewind().map_err(SessionError::from)?;
        let bytes = file.metadata().map_err(SessionError::from)?.len();
        Ok((file, bytes))
    });
    let (file, bytes) = written.await?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, bytes.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, streamed(file).map_err(SessionError::from)?).into_response())
}

/// A file's name without its ending, as it may stand in a header.
fn stem(name: &str) -> String {
    let stem = name.strip_suffix(".typhon-trace").unwrap_or(name);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    stem.chars().map(plain).take(200).collect()
}

/// Reads a file on a thread of its own, a few pieces ahead of the page.
fn streamed(mut file: File) -> io::Result<Body> {
    let (sender, receiver) = mpsc::channel(PIECES_WAITING);
    let read = move || loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let read = (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece);
        // An answer that ends before its length is one that has failed. A page that went away needs none.
        if !matches!(read, Ok(1..)) || sender.blocking_send(Bytes::from(piece)).is_err() {
            return;
        }
    };
    std::thread::Builder::new().name("typhon-export".to_owned()).spawn(read)?;
    Ok(Body::new(Pieces(receiver)))
}

struct Pieces(mpsc::Receiver<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|bytes| Ok(http_body::Frame::data(bytes))))
    }
}
