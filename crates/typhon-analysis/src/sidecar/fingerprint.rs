//! What tells one trace from another.

use std::io;
use typhon_trace::reader::ReadAt;

/// Bytes that are looked at, at either end.
const END_BYTES: u64 = 64 * 1024;

/// Length of a trace and a hash of its ends. The header is in it, since closing a recording rewrites it; the time of
/// modification is not, so that copies stay valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    length: u64,
    hash: [u8; 32],
}

impl Fingerprint {
    /// Looks at a trace.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn of(data: &impl ReadAt) -> io::Result<Self> {
        let length = data.size()?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; END_BYTES as usize];
        for from in [0, length.saturating_sub(END_BYTES)] {
            let wanted = (length - from).min(END_BYTES) as usize;
            let mut filled = 0;
            while filled < wanted {
                match data.read_at(&mut buffer[filled..wanted], from + filled as u64) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            hasher.update(&buffer[..wanted]);
        }
        Ok(Self { length, hash: *hasher.finalize().as_bytes() })
    }

    /// Bytes of the trace.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// As in the header of a sidecar.
    pub(super) fn to_bytes(self) -> [u8; 40] {
        let mut bytes = [0; 40];
        bytes[..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..].copy_from_slice(&self.hash);
        bytes
    }

    /// As part of a file's name.
    pub(crate) fn name(&self) -> String {
        self.hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}
