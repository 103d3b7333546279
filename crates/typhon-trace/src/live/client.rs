//! What a viewer says. Every frame is answered by one Reply.

use super::framing::{Frame, Outgoing};
use super::{LiveError, frame_type};
use crate::wire::{Wire, WireFault, WireReader, long_text};

/// A frame from a viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessage {
    /// Shows that the client may see and control the session. The first frame, where a token is needed at all.
    Auth {
        /// The token.
        token: String,
    },
    /// Switches kinds on and off.
    SetKinds {
        /// Bit k of the 256 bits, lowest bit of the first byte first, is kind k.
        mask: [u8; 32],
    },
    /// Records everything for a number of ticks.
    ArmTicks {
        /// The number.
        count: u32,
    },
    /// Writes the flight recorder to a file.
    Dump,
    /// A type that this build does not know; to be answered with status 3.
    Unknown {
        /// Its type.
        kind: u8,
    },
}

impl ClientMessage {
    /// Gives a frame its meaning. Strict: a control frame must have exactly its form.
    ///
    /// # Errors
    /// [`LiveError::Malformed`]; to be answered with status 2.
    pub fn parse(frame: Frame<'_>) -> Result<Self, LiveError> {
        let Frame { kind, payload } = frame;
        let mut reader = WireReader::new(payload, payload.len() as u64);
        let message = Self::read(kind, &mut reader)
            .map_err(|_| LiveError::Malformed { kind, reason: "the payload ends early".to_owned() })?;
        let surplus = payload.len() as u64 - reader.position();
        let known = !matches!(message, Self::Unknown { .. });
        let reason = match (reader.replaced_texts(), surplus) {
            (1.., _) => "the token is not UTF-8".to_owned(),
            (0, 1..) if known => format!("{surplus} bytes too many"),
            _ => return Ok(message),
        };
        Err(LiveError::Malformed { kind, reason })
    }

    fn read(kind: u8, reader: &mut WireReader<&[u8]>) -> Result<Self, WireFault> {
        Ok(match kind {
            frame_type::AUTH => Self::Auth { token: long_text::read(reader)? },
            frame_type::SET_KINDS => Self::SetKinds { mask: reader.array()? },
            frame_type::ARM_TICKS => Self::ArmTicks { count: u32::read(reader)? },
            frame_type::DUMP => Self::Dump,
            kind => Self::Unknown { kind },
        })
    }
}

/// Frames from a viewer.
impl Outgoing {
    /// Auth.
    ///
    /// # Errors
    /// [`LiveError::TooLarge`] for a token above 65,534 bytes: with its length it has to fit into 64 KiB.
    pub fn auth(token: &str) -> Result<Self, LiveError> {
        const LIMIT: usize = super::MAX_CLIENT_PAYLOAD_BYTES - 2;
        if token.len() > LIMIT {
            return Err(LiveError::TooLarge { kind: frame_type::AUTH, length: token.len(), limit: LIMIT });
        }
        let length = (token.len() as u16).to_le_bytes();
        Ok(Self::within_limit(frame_type::AUTH, &[&length[..], token.as_bytes()].concat()))
    }

    /// Switches kinds: bit k of the 256 bits is kind k.
    pub fn set_kinds(mask: &[u8; 32]) -> Self {
        Self::within_limit(frame_type::SET_KINDS, mask)
    }

    /// Records everything for `count` ticks.
    pub fn arm_ticks(count: u32) -> Self {
        Self::within_limit(frame_type::ARM_TICKS, &count.to_le_bytes())
    }

    /// Writes the flight recorder to a file.
    pub fn dump() -> Self {
        Self::within_limit(frame_type::DUMP, &[])
    }
}
