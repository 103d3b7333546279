//! A web server as one would write it anyway: axum, tokio, and `tracing` for what it does. The only line about the
//! profiler is the layer in `main`.
//!
//! ```sh
//! TYPHON__PROFILER__TRACE=server.typhon-trace cargo run --release
//! curl 'http://127.0.0.1:3000/primes?below=100000'   # in another terminal; then end the server with Ctrl-C
//! ```

use axum::extract::Query;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tower_http::trace::TraceLayer;
use tracing::{info, instrument, warn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use typhon_profiler::bridge::ProfilerLayer;

/// Address the server listens on.
const ADDRESS: &str = "127.0.0.1:3000";
/// Largest number that a client may ask for.
const BELOW_MAX: u32 = 10_000_000;

#[derive(Debug, Deserialize)]
struct Range {
    below: u32,
}

#[derive(Debug, Serialize)]
struct Answer {
    count: u32,
    largest: Option<u32>,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    tracing_subscriber::registry().with(ProfilerLayer::new()).init();
    let routes = Router::new().route("/primes", get(primes)).layer(TraceLayer::new_for_http());
    let listener = tokio::net::TcpListener::bind(ADDRESS).await?;
    println!("listening on http://{ADDRESS}; end with Ctrl-C");
    axum::serve(listener, routes).with_graceful_shutdown(interrupted()).await
}

/// The server's own handler for Ctrl-C. The profiler leaves the signal to it and closes its file when `main` returns.
async fn interrupted() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        warn!(%error, "no signals; end the server some other way");
        std::future::pending::<()>().await;
    }
}

#[instrument]
async fn primes(Query(range): Query<Range>) -> Result<Json<Answer>, (StatusCode, String)> {
    if range.below > BELOW_MAX {
        warn!(range.below, "refused");
        return Err((StatusCode::BAD_REQUEST, format!("at most {BELOW_MAX}")));
    }
    admission().await;
    let answer = sieve(range.below);
    info!(answer.count, "counted");
    Ok(Json(answer))
}

/// Stands for something worth waiting for.
#[instrument]
async fn admission() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

/// Counts the primes below a bound by crossing out multiples.
#[instrument]
fn sieve(below: u32) -> Answer {
    let mut is_prime = vec![true; below as usize];
    is_prime.iter_mut().take(2).for_each(|number| *number = false);
    for number in (2..).take_while(|number| number * number < below as usize) {
        if is_prime[number] {
            is_prime[number * number..].iter_mut().step_by(number).for_each(|multiple| *multiple = false);
        }
    }
    let primes = (0..).zip(&is_prime).filter(|(_, is_prime)| **is_prime).map(|(number, _)| number);
    primes.fold(Answer { count: 0, largest: None }, |answer, prime| Answer {
        count: answer.count + 1,
        largest: Some(prime),
    })
}
