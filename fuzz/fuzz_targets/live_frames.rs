//! A live stream in both directions: the bytes may arrive in any pieces, and what is understood can be sent again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typhon_trace::live::{ClientMessage, Direction, FrameDecoder, Outgoing, ServerMessage};

fuzz_target!(|stream: &[u8]| {
    for direction in [Direction::FromServer, Direction::FromClient] {
        let whole = decode(direction, stream, stream.len().max(1));
        let piecewise = decode(direction, stream, 61);
        assert_eq!(whole, piecewise, "frames do not depend on how they arrive");
        for (kind, payload) in &whole.frames {
            check_frame(direction, *kind, payload);
        }
    }
});

#[derive(Debug, PartialEq, Eq)]
struct Decoded {
    frames: Vec<(u8, Vec<u8>)>,
    broken: bool,
}

fn decode(direction: Direction, stream: &[u8], piece_bytes: usize) -> Decoded {
    let mut decoder = FrameDecoder::new(direction);
    let mut decoded = Decoded { frames: Vec::new(), broken: false };
    for piece in stream.chunks(piece_bytes) {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => decoded.frames.push((frame.kind, frame.payload.to_vec())),
                Ok(None) => break,
                Err(_) => {
                    decoded.broken = true;
                    return decoded;
                }
            }
        }
        assert!(decoder.partial_bytes() <= direction.max_payload_bytes() + 5);
    }
    decoded
}

/// Sent again, a frame is the same frame; its meaning does not depend on anything else.
fn check_frame(direction: Direction, kind: u8, payload: &[u8]) {
    let sent = Outgoing::new(direction, kind, payload).expect("a frame that arrived can be sent");
    let again = decode(direction, sent.bytes(), 1009);
    assert_eq!(again.frames, [(kind, payload.to_vec())]);
    let frame = typhon_trace::live::Frame { kind, payload };
    match direction {
        Direction::FromServer => {
            let _ = ServerMessage::parse(frame).map(check_server_message);
        }
        Direction::FromClient => {
            let _ = ClientMessage::parse(frame).map(|message| check_client_message(&message, payload));
        }
    }
}

fn check_server_message(message: ServerMessage<'_>) {
    if let ServerMessage::Block(block) = message {
        assert_eq!(block.header.compressed_bytes as usize, block.data.len());
    }
}

fn check_client_message(message: &ClientMessage, payload: &[u8]) {
    let sent = match message {
        ClientMessage::Auth { token } => Outgoing::auth(token).expect("a token that arrived can be sent"),
        ClientMessage::SetKinds { mask } => Outgoing::set_kinds(mask),
        ClientMessage::ArmTicks { count } => Outgoing::arm_ticks(*count),
        ClientMessage::Dump => Outgoing::dump(),
        ClientMessage::Unknown { .. } => return,
    };
    assert_eq!(&sent.bytes()[5..], payload);
}
