//! Who may ask: checks on every request before anything looks at it, and the headers of every answer (brief 11 F-2 to
//! F-4).
//!
//! The server listens on loopback, but every page in the user's browser can send requests there. Four checks keep them
//! out: `Host` must name this server (a foreign name that resolves to 127.0.0.1 does not), `Origin` must be this
//! server's own where a request may change something, browsers say themselves that a request comes from another site,
//! and `/api` wants the token, which no other page knows.

use crate::app::App;
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Where everything but the page lives.
pub(crate) const API: &str = "/api";
const HEALTH: &str = "/api/v1/health";
const WEBSOCKET: &str = "/api/v1/ws";

const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' blob:; font-src 'self'; worker-src 'self'; manifest-src 'self'; \
    frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Middleware around everything.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&app, &request) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn refusal(app: &App, request: &Request) -> Option<Problem> {
    let headers = request.headers();
    let path = request.uri().path();
    let Some(host) = only(headers, &header::HOST).filter(|host| is_own_host(host, app.port)) else {
        let detail = "this server answers only under its own name, such as 127.0.0.1 with its port";
        return Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, "wrong-host", detail));
    };
    let is_api = path == API || path.starts_with("/api/");
    let forbidden = |detail: &str| Some(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail));
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if is_api && site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return forbidden("requests of other sites are not answered");
    }
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD) && path != WEBSOCKET;
    let own_origin = format!("http://{host}");
    if !is_safe && only(headers, &header::ORIGIN) != Some(own_origin.as_str()) {
        return forbidden("this needs an Origin header with this server's own origin");
    }
    // A request that states a foreign origin is refused even where it need not state one.
    if headers.contains_key(header::ORIGIN) && only(headers, &header::ORIGIN) != Some(own_origin.as_str()) {
        return forbidden("requests of other origins are not answered");
    }
    // The WebSocket has the token in its first message.
    let is_open = !is_api || path == HEALTH || path == WEBSOCKET;
    if !is_open && !has_token(app, headers) {
        let detail = "this needs the token of this run; open the address that `typhon ui` printed";
        return Some(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail));
    }
    None
}

/// The value of a header that is there exactly once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Compared as a whole, never by its beginning: `127.0.0.1.example.org` is somebody else.
fn is_own_host(host: &str, port: u16) -> bool {
    let Some((name, of_host)) = host.rsplit_once(':') else { return false };
    matches!(name, "127.0.0.1" | "localhost" | "[::1]") && of_host == port.to_string()
}

fn has_token(app: &App, headers: &HeaderMap) -> bool {
    let given = only(headers, &header::AUTHORIZATION);
    given.and_then(|given| given.strip_prefix("Bearer ")).is_some_and(|token| app.token.is(token))
}

#[cfg(test)]
mod tests {
    use super::is_own_host;

    #[test]
    fn hosts_are_compared_as_a_whole() {
        for host in ["127.0.0.1:5200", "localhost:5200", "[::1]:5200"] {
            assert!(is_own_host(host, 5200), "{host}");
        }
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1:05200",
            "127.0.0.1:5200.attacker.example",
            "127.attacker.example:5200",
            "localhost.attacker.example:5200",
            "::1:5200",
            "0.0.0.0:5200",
            "LOCALHOST:5200",
            "user@127.0.0.1:5200",
            "127.0.0.2:5200",
            "",
            ":5200",
            "[::ffff:127.0.0.1]:5200",
        ] {
            assert!(!is_own_host(host, 5200), "{host}");
        }
    }
}
