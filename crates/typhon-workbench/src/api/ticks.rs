//! Ticks, in columns: a trace has up to millions of them.

use super::{PAGE_MAX, Params, from_session};
use crate::app::App;
use crate::problem::Problem;
use crate::work::Weight;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use typhon_analysis::index::Tick;

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Columns {
    numbers: Vec<i64>,
    start_ns: Vec<u64>,
    duration_ns: Vec<Option<u64>>,
    levels: Vec<u8>,
    multipliers: Vec<u8>,
    collections: Vec<u16>,
    missing_before: Vec<i64>,
}

impl Columns {
    fn push(&mut self, tick: &Tick) {
        self.numbers.push(tick.number);
        self.start_ns.push(tick.start_ns);
        self.duration_ns.push(tick.duration_ns);
        self.levels.push(tick.level);
        self.multipliers.push(tick.multiplier);
        self.collections.push(tick.collections);
        self.missing_before.push(tick.missing_before);
    }
}

#[derive(Serialize)]
struct Page {
    schema: &'static str,
    total: usize,
    first: usize,
    #[serde(flatten)]
    columns: Columns,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Which {
    first: Option<usize>,
    count: Option<usize>,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
    number: Option<i64>,
}

pub(crate) async fn page(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Params(which): Params<Which>,
) -> Result<Response, Problem> {
    from_session(&app, &id, Weight::Light, move |opened, _| {
        let count = which.count.unwrap_or(1_000).min(PAGE_MAX);
        opened.session.with_ticks(|ticks| {
            let (first, count) = match which.number {
                Some(number) => match ticks.iter().position(|tick| tick.number == number) {
                    Some(at) => (at, 1),
                    None => return Err(Problem::unknown(format!("tick {number}"))),
                },
                None => {
                    let from =
                        which.from_ns.map_or(0, |from| ticks.partition_point(|tick| tick.start_ns < from));
                    (from + which.first.unwrap_or(0).min(ticks.len()), count)
                }
            };
            let end = which.to_ns.map_or(ticks.len(), |to| ticks.partition_point(|tick| tick.start_ns < to));
            let mut columns = Columns::default();
            ticks.iter().take(end).skip(first).take(count).for_each(|tick| columns.push(tick));
            Ok(Page { schema: "typhon.ticks/1", total: ticks.len(), first, columns })
        })?
    })
    .await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Slowest {
    count: Option<usize>,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
}

#[derive(Serialize)]
struct SlowestTicks {
    schema: &'static str,
    places: Vec<usize>,
    #[serde(flatten)]
    columns: Columns,
}

pub(crate) async fn slowest(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Params(which): Params<Slowest>,
) -> Result<Response, Problem> {
    from_session(&app, &id, Weight::Light, move |opened, _| {
        let count = which.count.unwrap_or(20).min(1_000);
        let range = which.from_ns.unwrap_or(0)..which.to_ns.unwrap_or(u64::MAX);
        let found = opened.session.with_ticks(|ticks| {
            let first = ticks.partition_point(|tick| tick.start_ns < range.start);
            let end = ticks.partition_point(|tick| tick.start_ns < range.end);
            let mut places: Vec<usize> = (first..end).filter(|at| ticks[*at].duration_ns.is_some()).collect();
            let key = |at: &usize| (std::cmp::Reverse(ticks[*at].duration_ns), *at);
            if places.len() > count && count > 0 {
                places.select_nth_unstable_by_key(count - 1, key);
            }
            places.truncate(count);
            places.sort_by_key(key);
            let mut columns = Columns::default();
            places.iter().for_each(|at| columns.push(&ticks[*at]));
            SlowestTicks { schema: "typhon.slowest-ticks/1", places, columns }
        })?;
        Ok(found)
    })
    .await
}
