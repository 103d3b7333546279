//! What could not be answered, as a document (RFC 9457).

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::error::Error;
use typhon_analysis::filter::FilterError;
use typhon_analysis::session::SessionError;

/// Code of an index that is not what was written.
pub(crate) const INDEX_DAMAGED: &str = "index-damaged";

/// A request without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// Stable, for programs; listed in API.md.
    pub(crate) code: &'static str,
    pub(crate) detail: String,
    hint: Option<String>,
    /// Column and length of a mistake in a filter, in characters from 0.
    place: Option<(usize, usize)>,
}

#[derive(Serialize)]
pub(crate) struct Document<'p> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: &'p str,
    hint: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<usize>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), hint: None, place: None }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    pub(crate) fn unknown(what: impl AsRef<str>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown", format!("there is no {}", what.as_ref()))
    }

    pub(crate) fn not_allowed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "not-allowed", detail)
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(StatusCode::CONFLICT, "cancelled", "cancelled")
    }

    pub(crate) fn internal() -> Self {
        let detail = "the server met an internal error; please report it";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn document(&self) -> Document<'_> {
        Document {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            code: self.code,
            detail: &self.detail,
            hint: self.hint.as_deref(),
            column: self.place.map(|(column, _)| column),
            length: self.place.map(|(_, length)| length),
        }
    }
}

impl From<SessionError> for Problem {
    fn from(error: SessionError) -> Self {
        let mut detail = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let text = inner.to_string();
            if !detail.contains(&text) {
                detail = format!("{detail}: {text}");
            }
            cause = inner.source();
        }
        let (status, code) = match &error {
            SessionError::Filter(fault) => return Self::from(fault.clone()),
            SessionError::Cancelled => return Self::cancelled(),
            SessionError::Cut(_) => (StatusCode::INSUFFICIENT_STORAGE, "unwritable"),
            SessionError::NoRoom => (StatusCode::CONFLICT, "busy"),
            SessionError::NotReady => (StatusCode::CONFLICT, "not-ready"),
            SessionError::TooLarge { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "index-failed"),
            SessionError::Failed(_) => (StatusCode::UNPROCESSABLE_ENTITY, "index-failed"),
            damaged if damaged.is_damaged_index() => (StatusCode::INTERNAL_SERVER_ERROR, INDEX_DAMAGED),
            SessionError::Index(_) => (StatusCode::INTERNAL_SERVER_ERROR, "index-failed"),
            SessionError::Unknown { .. } => (StatusCode::NOT_FOUND, "unknown"),
            SessionError::Request(_) => (StatusCode::BAD_REQUEST, "bad-request"),
            SessionError::Trace(typhon_trace::TraceError::Io { .. })
            | SessionError::Open { .. }
            | SessionError::Truncated { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "unreadable"),
            SessionError::Trace(_) => (StatusCode::UNPROCESSABLE_ENTITY, "not-a-trace"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        Self::new(status, code, detail)
    }
}

impl From<FilterError> for Problem {
    fn from(fault: FilterError) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code: "filter",
            detail: fault.message,
            hint: fault.hint,
            place: Some((fault.column - 1, fault.width)),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.document()).unwrap_or_default();
        (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response()
    }
}
