//! Lines around a source location (brief 11 F-6).

use super::{Params, from_session};
use crate::app::App;
use crate::problem::Problem;
use crate::work::Weight;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Lines before and behind the one asked for.
const AROUND: usize = 40;
/// Longer lines are cut: some files are one line.
const LINE_CHARS_MAX: usize = 500;

#[derive(Deserialize)]
pub(crate) struct Site {
    site: u16,
}

pub(crate) async fn around(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Params(Site { site }): Params<Site>,
) -> Result<Response, Problem> {
    let of_work = app.clone();
    from_session(&app, &id, Weight::Light, move |opened, _| {
        let sections = opened.session.trace().sections();
        let location = sections.source_manifest.as_ref().and_then(|manifest| manifest.get(site));
        let location = location.ok_or_else(|| Problem::unknown(format!("source location {site}")))?;
        let file = sections.file_table.as_ref().and_then(|table| table.path(location.file_id));
        let file = file.ok_or_else(|| Problem::unknown("file of this source location"))?;
        let text = of_work.paths.source(file)?;
        let first = (location.line as usize).saturating_sub(1).saturating_sub(AROUND);
        let lines: Vec<String> = text
            .lines()
            .skip(first)
            .take(2 * AROUND + 1)
            .map(|line| line.chars().take(LINE_CHARS_MAX).collect())
            .collect();
        Ok(json!({
            "schema": "typhon.source/1",
            "site": site,
            "file": file,
            "line": location.line,
            "method": location.method,
            "firstLine": first + 1,
            "lines": lines,
        }))
    })
    .await
}
