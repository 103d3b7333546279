//! The request: 32 bytes and 8 per lane.

/// Asks for spans.
pub const CONTENT_SPANS: u8 = 1;
/// Asks for instants.
pub const CONTENT_INSTANTS: u8 = 2;
/// Asks for times off the processor. No lane has them yet, so nothing is sent for it.
pub const CONTENT_OFF_CPU: u8 = 4;
/// Asks for gauges.
pub const CONTENT_COUNTERS: u8 = 8;
/// Asks for ticks; once per tile, whatever the lanes.
pub const CONTENT_TICKS: u8 = 16;

/// Highest level.
pub const MAX_LEVEL: u8 = 48;
/// Lanes of a request, at most.
pub const MAX_LANES: usize = 512;
/// Tiles per lane of a request, at most.
pub const MAX_TILES: u16 = 64;

const MAGIC: [u8; 4] = *b"TYRQ";
const HEAD_BYTES: usize = 32;
const LANE_BYTES: usize = 8;

/// Some rows of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaneRows {
    /// Lane, see [`crate::session::LaneInfo::id`].
    pub lane: u32,
    /// First row.
    pub first_row: u16,
    /// Number of rows; rows that the lane does not have are left out.
    pub row_count: u8,
}

/// A view's request for tiles.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TileRequest {
    /// Increasing; a newer id of the same view cancels older ones.
    pub request_id: u32,
    /// Generation that the view knows.
    pub generation: u32,
    /// Buckets are 2^level ns, 0..=48.
    pub level: u8,
    /// `CONTENT_…` bits.
    pub content: u8,
    /// First tile.
    pub first_tile: u64,
    /// Number of tiles, 1..=64.
    pub tile_count: u16,
    /// Filter whose matches alone are drawn; 0 for none.
    pub filter: u16,
    /// View that asks.
    pub view: u16,
    /// Lanes and rows, at most 512.
    pub lanes: Vec<LaneRows>,
}

/// What is wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFault {
    /// Not 32 bytes and 8 per lane.
    #[error("a tile request has 32 bytes and 8 for each of its {lanes} lanes, not {bytes}")]
    Size {
        /// Bytes found.
        bytes: usize,
        /// Lanes stated.
        lanes: usize,
    },
    /// The first four bytes are not `TYRQ`.
    #[error("a tile request begins with TYRQ")]
    Magic,
    /// A number is out of its range.
    #[error("{field} of a tile request is {value}, allowed is {allowed}")]
    Range {
        /// Field.
        field: &'static str,
        /// Value found.
        value: u64,
        /// What would be right.
        allowed: &'static str,
    },
}

impl TileRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// When the size, the magic or a number is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, RequestFault> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
            return Err(RequestFault::Size { bytes: bytes.len(), lanes: 0 });
        };
        if head[..4] != MAGIC {
            return Err(RequestFault::Magic);
        }
        let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let lanes = usize::from(u16_at(14));
        let tile_count = u16_at(24);
        for (field, value, is_right, allowed) in [
            ("level", u64::from(head[12]), head[12] <= MAX_LEVEL, "0..=48"),
            ("content mask", u64::from(head[13]), (1..32).contains(&head[13]), "1..=31"),
            ("lane count", lanes as u64, lanes <= MAX_LANES, "0..=512"),
            ("tile count", u64::from(tile_count), (1..=MAX_TILES).contains(&tile_count), "1..=64"),
            ("last field", u64::from(u16_at(30)), u16_at(30) == 0, "0"),
        ] {
            if !is_right {
                return Err(RequestFault::Range { field, value, allowed });
            }
        }
        if rest.len() != lanes * LANE_BYTES {
            return Err(RequestFault::Size { bytes: bytes.len(), lanes });
        }
        Ok(Self {
            request_id: u32_at(4),
            generation: u32_at(8),
            level: head[12],
            content: head[13],
            first_tile: u64::from(u32_at(16)) | u64::from(u32_at(20)) << 32,
            tile_count,
            filter: u16_at(26),
            view: u16_at(28),
            lanes: rest.as_chunks::<LANE_BYTES>().0.iter().map(LaneRows::decode).collect(),
        })
    }

    /// The bytes of the request.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + LANE_BYTES * self.lanes.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.request_id.to_le_bytes());
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&[self.level, self.content]);
        bytes.extend_from_slice(&(self.lanes.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&self.first_tile.to_le_bytes());
        bytes.extend_from_slice(&self.tile_count.to_le_bytes());
        bytes.extend_from_slice(&self.filter.to_le_bytes());
        bytes.extend_from_slice(&self.view.to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        for LaneRows { lane, first_row, row_count } in &self.lanes {
            bytes.extend_from_slice(&lane.to_le_bytes());
            bytes.extend_from_slice(&first_row.to_le_bytes());
            bytes.extend_from_slice(&[*row_count, 0]);
        }
        bytes
    }
}

impl LaneRows {
    fn decode(bytes: &[u8; LANE_BYTES]) -> Self {
        let [a, b, c, d, low, high, row_count, _] = *bytes;
        Self { lane: u32::from_le_bytes([a, b, c, d]), first_row: u16::from_le_bytes([low, high]), row_count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> TileRequest {
        TileRequest {
            request_id: 7,
            generation: 3,
            level: 14,
            content: CONTENT_SPANS | CONTENT_TICKS,
            first_tile: 0x1_0000_0002,
            tile_count: 8,
            filter: 5,
            view: 2,
            lanes: vec![LaneRows { lane: 9, first_row: 258, row_count: 64 }],
        }
    }

    #[test]
    fn a_request_has_the_bytes_of_the_protocol() {
        let bytes = request().encode();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "54595251070000000300000\
             00e1101000200000001000000080005000200000009000000020140\
             00"
            .replace(' ', "")
        );
        assert_eq!(TileRequest::decode(&bytes), Ok(request()));
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let bytes = request().encode();
        for (at, value) in
            [(0, b'X'), (12, 49), (13, 0), (13, 32), (14, 2), (15, 3), (24, 0), (24, 65), (30, 1)]
        {
            let mut bad = bytes.clone();
            bad[at] = value;
            assert!(TileRequest::decode(&bad).is_err(), "byte {at} = {value}");
        }
        for cut in 0..bytes.len() {
            assert!(TileRequest::decode(&bytes[..cut]).is_err(), "{cut} bytes");
        }
    }
}
