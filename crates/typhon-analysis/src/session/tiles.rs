//! Answers to tile requests.

use super::{Cancel, Session, SessionError};
use crate::index::Index;
use crate::index::lane::Lane;
use crate::index::row::Row;
use crate::tile::spans::RowPainter;
use crate::tile::{
    CONTENT_COUNTERS, CONTENT_INSTANTS, CONTENT_SPANS, CONTENT_TICKS, Content, Entries, LaneRows,
    MAX_ANSWER_BYTES, NO_LANE, TILE_CAPPED, TILE_INCOMPLETE, TILE_NOTICE, TILE_STALE, Tile, TileRequest,
    counters, end_frame, tick_strip, tile_range_ns,
};
use std::time::{Duration, Instant};

impl Session {
    /// Sends the tiles of a request to `send`, the last frame included. The order is: ticks, then lane by lane as
    /// asked, tile by tile.
    ///
    /// # Errors
    /// [`SessionError::Cancelled`] after `cancel`; when the index is not ready or cannot be read.
    pub fn tiles(
        &self,
        request: &TileRequest,
        cancel: &Cancel,
        send: impl FnMut(Tile),
    ) -> Result<(), SessionError> {
        let answered = self.answer(request, cancel, send);
        if answered.as_ref().is_err_and(SessionError::is_damaged_index) {
            self.discard_index();
        }
        answered
    }

    fn answer(
        &self,
        request: &TileRequest,
        cancel: &Cancel,
        mut send: impl FnMut(Tile),
    ) -> Result<(), SessionError> {
        let (index, is_complete) = self.visible()?;
        let filtered = match request.filter {
            0 => None,
            _ if !is_complete => return Err(SessionError::NotReady),
            id => Some(self.shared.filtered(id)?),
        };
        let store = filtered.as_ref().map_or(&index.store, |filtered| &filtered.store);
        let mut answer = Answer {
            index: &index,
            request,
            painter: RowPainter::new(store, &index.names, index.time, request.level),
            instants: RowPainter::new(store, &index.names, index.time, request.level),
            is_complete,
            is_stale: request.generation != self.generation(),
            started: Instant::now(),
            time: self.shared.answer_time,
            tiles: 0,
            bytes: 0,
        };
        let last = request.first_tile.saturating_add(u64::from(request.tile_count));
        for tile in request.first_tile..last {
            if request.content & CONTENT_TICKS != 0 {
                answer.ticks(tile, &mut send);
            }
        }
        for rows in &request.lanes {
            let number = rows.lane as usize;
            let Some(lane) = index.lanes.get(number) else {
                return Err(SessionError::unknown(format!("lane {}", rows.lane)));
            };
            let drawn = match filtered.as_ref().map(|filtered| &filtered.lanes[number]) {
                Some(matches) => Drawn { rows: &matches.rows, instants: &matches.instants, lane },
                None => Drawn { rows: &lane.rows, instants: &lane.instants, lane },
            };
            answer.painter.next_lane();
            answer.instants.next_lane();
            for tile in request.first_tile..last {
                cancel.check()?;
                answer.lane(drawn, *rows, tile, &mut send)?;
            }
        }
        send(end_frame(
            request.request_id,
            answer.tiles,
            answer.started.elapsed().as_micros() as u64,
            request.level,
        ));
        Ok(())
    }
}

/// A lane, and those of its entries that are drawn.
#[derive(Clone, Copy)]
struct Drawn<'i> {
    lane: &'i Lane,
    rows: &'i [Row],
    instants: &'i Row,
}

struct Answer<'i> {
    index: &'i Index,
    request: &'i TileRequest,
    painter: RowPainter<'i>,
    instants: RowPainter<'i>,
    is_complete: bool,
    is_stale: bool,
    started: Instant,
    time: Duration,
    tiles: u32,
    bytes: usize,
}

impl Answer<'_> {
    fn ticks(&mut self, tile: u64, send: &mut impl FnMut(Tile)) {
        let rows = LaneRows { lane: NO_LANE, first_row: 0, row_count: 0 };
        let entries = tick_strip::entries(&self.index.ticks, self.request.level, tile);
        self.send(Content::Ticks, rows, tile, Entries::Ticks(entries), false, send);
    }

    fn lane(
        &mut self,
        drawn: Drawn<'_>,
        rows: LaneRows,
        tile: u64,
        send: &mut impl FnMut(Tile),
    ) -> Result<(), SessionError> {
        let content = self.request.content;
        let wants = |of: u8| content & of != 0;
        if wants(CONTENT_SPANS) && !drawn.rows.is_empty() {
            let mut entries = Vec::new();
            let is_capped = self.is_over();
            if !is_capped {
                let first = usize::from(rows.first_row).min(drawn.rows.len());
                let asked = drawn.rows[first..].iter().take(rows.row_count.into());
                for (row, offset) in asked.zip(0u8..) {
                    self.painter.paint(row, offset, tile, false, &mut entries)?;
                }
            }
            self.send(Content::Spans, rows, tile, Entries::Spans(entries), is_capped, send);
        }
        if wants(CONTENT_INSTANTS) && drawn.lane.instants.count() > 0 {
            let mut entries = Vec::new();
            let is_capped = self.is_over();
            if !is_capped {
                self.instants.paint(drawn.instants, 0, tile, true, &mut entries)?;
            }
            self.send(Content::Instants, rows, tile, Entries::Spans(entries), is_capped, send);
        }
        if wants(CONTENT_COUNTERS)
            && let Some(series) = &drawn.lane.series
        {
            let mut entries = Vec::new();
            let is_capped = self.is_over();
            if !is_capped {
                entries =
                    counters::entries(series, self.request.level, tile, self.index.time, &self.index.store)?;
            }
            self.send(Content::Counter, rows, tile, Entries::Counter(entries), is_capped, send);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.bytes > MAX_ANSWER_BYTES || self.started.elapsed() > self.time
    }

    fn send(
        &mut self,
        content: Content,
        rows: LaneRows,
        tile: u64,
        entries: Entries,
        is_capped: bool,
        send: &mut impl FnMut(Tile),
    ) {
        let range = tile_range_ns(self.request.level, tile);
        let touches = |notice: &std::ops::Range<u64>| notice.start < range.end && notice.end >= range.start;
        let has_notice =
            self.index.notices.iter().any(|notice| notice.range_ns.as_ref().is_some_and(touches));
        let frame = Tile {
            content,
            flags: if self.is_complete { 0 } else { TILE_INCOMPLETE }
                | if self.is_stale { TILE_STALE } else { 0 }
                | if has_notice { TILE_NOTICE } else { 0 }
                | if is_capped { TILE_CAPPED } else { 0 },
            request_id: self.request.request_id,
            lane: rows.lane,
            tile,
            level: self.request.level,
            row_count: rows.row_count,
            first_row: rows.first_row,
            entries,
        };
        self.tiles += 1;
        self.bytes += frame.encoded_bytes();
        send(frame);
    }
}
