//! What does not depend on a session.

use super::json;
use crate::app::App;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use typhon_analysis::index::families;
use typhon_trace::registry::REGISTRY_JSON;

#[derive(Serialize)]
struct Health {
    schema: &'static str,
    version: &'static str,
    assets: String,
}

pub(crate) async fn health(State(app): State<Arc<App>>) -> Response {
    let health =
        Health { schema: "typhon.health/1", version: env!("CARGO_PKG_VERSION"), assets: app.assets.hash() };
    json(StatusCode::OK, &health)
}

#[derive(Serialize)]
struct Kinds<'r> {
    schema: &'static str,
    families: Vec<&'static str>,
    registry: &'r RawValue,
}

pub(crate) async fn kinds() -> Response {
    match serde_json::from_str(REGISTRY_JSON) {
        Ok(registry) => {
            json(StatusCode::OK, &Kinds { schema: "typhon.kinds/1", families: families(), registry })
        }
        Err(_) => axum::response::IntoResponse::into_response(crate::problem::Problem::internal()),
    }
}
