//! Filters and their matches.

use super::event::{SpanRef, event_id, tick_number};
use super::{Json, Params, from_session, json};
use crate::app::App;
use crate::problem::Problem;
use crate::work::Weight;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json as value;
use std::sync::Arc;
use typhon_analysis::filter;
use typhon_analysis::session::{Direction, RelatedSpan, Session, SessionError};

const HITS_MAX: usize = 1_000;

#[derive(Deserialize)]
pub(crate) struct Text {
    text: String,
}

pub(crate) async fn add(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(Text { text }): Json<Text>,
) -> Result<Response, Problem> {
    let opened = app.session(&id)?;
    let of_work = text.clone();
    let found = app
        .pool
        .run(Weight::Heavy, move |cancel| {
            opened.noticing(opened.session.add_filter(&of_work, cancel, |_| {}).map_err(Problem::from))
        })
        .await?;
    let document =
        value!({ "schema": "typhon.filter/1", "filterId": found.id, "text": text, "matches": found.matches });
    Ok(json(StatusCode::CREATED, &document))
}

pub(crate) async fn check(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(Text { text }): Json<Text>,
) -> Result<Response, Problem> {
    // Regular expressions take a while, in which other connections go on.
    from_session(&app, &id, Weight::Light, move |_, _| {
        filter::parse(&text)?;
        Ok(value!({ "schema": "typhon.filter-check/1", "isValid": true }))
    })
    .await
}

pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Path((id, filter)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let opened = app.session(&id)?;
    let number = filter.parse().map_err(|_| Problem::unknown(format!("filter {filter}")))?;
    opened.session.remove_filter(number);
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "camelCase")]
enum Way {
    #[default]
    Next,
    Previous,
}

#[derive(Deserialize)]
pub(crate) struct Search {
    filter: u16,
    after: Option<String>,
    #[serde(default)]
    direction: Way,
    count: Option<usize>,
}

pub(crate) async fn search(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Params(of): Params<Search>,
) -> Result<Response, Problem> {
    from_session(&app, &id, Weight::Light, move |opened, _| {
        let session = &opened.session;
        let after = of.after.as_deref().map(event_id).transpose()?;
        let direction = match of.direction {
            Way::Next => Direction::Forward,
            Way::Previous => Direction::Backward,
        };
        let count = of.count.unwrap_or(100).clamp(1, HITS_MAX);
        let hits = session.matches(of.filter, after, direction, count)?;
        let matches = session.match_count(of.filter)?;
        let hits = as_hits(session, &hits)?;
        Ok(value!({ "schema": "typhon.hits/1", "matches": matches, "hits": hits }))
    })
    .await
}

/// Matches as the page gets them, with their ticks.
pub(crate) fn as_hits(session: &Session, matches: &[RelatedSpan]) -> Result<Vec<SpanRef>, SessionError> {
    session.with_ticks(|ticks| matches.iter().map(|hit| SpanRef::of(hit).in_tick(ticks)).collect())
}

impl SpanRef {
    fn in_tick(self, ticks: &[typhon_analysis::index::Tick]) -> Self {
        Self { tick: Some(tick_number(ticks, self.start_ns)), ..self }
    }
}
