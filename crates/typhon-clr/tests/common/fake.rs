//! A stand-in for a runtime's diagnostics server, on a real Unix socket: the other side of the protocol, so that every
//! good and bad behaviour of a runtime can be had at will.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use typhon_clr::ipc::Endpoint;

pub(crate) const COLLECT_TRACING: (u8, u8) = (2, 2);
pub(crate) const COLLECT_TRACING_2: (u8, u8) = (2, 3);
pub(crate) const COLLECT_TRACING_3: (u8, u8) = (2, 4);
pub(crate) const STOP_TRACING: (u8, u8) = (2, 1);
pub(crate) const RESUME_RUNTIME: (u8, u8) = (4, 1);
pub(crate) const UNKNOWN_COMMAND: u32 = 0x8013_1385;

/// How the stand-in behaves. The default is a healthy runtime with an empty stream.
#[derive(Clone, Default)]
pub(crate) struct Behaviour {
    /// Sent right after a session starts.
    pub(crate) stream: Vec<u8>,
    /// Sent after the stop command arrived and before it is answered.
    pub(crate) rest: Vec<u8>,
    /// The stream is closed after `stream`, as when the process ends.
    pub(crate) dies: bool,
    /// `stream` is sent again and again, whatever the other side asks for.
    pub(crate) floods: bool,
    /// Commands that are refused, with the code.
    pub(crate) refused: Vec<((u8, u8), u32)>,
    /// Commands that are answered with these raw bytes, in small pieces, before the connection is closed.
    pub(crate) raw_answers: Vec<((u8, u8), Vec<u8>)>,
    /// Commands that are never answered.
    pub(crate) ignored: Vec<(u8, u8)>,
}

pub(crate) struct FakeRuntime {
    folder: tempfile::TempDir,
    path: PathBuf,
    shared: Arc<Shared>,
    server: Option<JoinHandle<()>>,
}

struct Shared {
    behaviour: Behaviour,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    commands: Vec<(u8, u8)>,
    requests: Vec<Vec<u8>>,
    stop_asked: bool,
    rest_sent: bool,
    over: bool,
}

impl FakeRuntime {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dotnet-diagnostic-1-2-socket");
        let listener = UnixListener::bind(&path).unwrap();
        let shared = Arc::new(Shared::new(behaviour));
        let for_server = Arc::clone(&shared);
        let server = std::thread::spawn(move || {
            let mut connections = Vec::new();
            for stream in listener.incoming() {
                if for_server.state.lock().unwrap().over {
                    break;
                }
                let (stream, shared) = (stream.unwrap(), Arc::clone(&for_server));
                connections.push(std::thread::spawn(move || shared.serve(stream)));
            }
            // A connection that fails its own checks fails the test.
            connections.into_iter().for_each(|connection| connection.join().unwrap());
        });
        Self { folder, path, shared, server: Some(server) }
    }

    pub(crate) fn endpoint(&self) -> Box<Endpoint> {
        Box::new(Endpoint { process_id: 1, path: self.path.clone() })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends the server and gives the commands that it got, in order.
    pub(crate) fn finish(mut self) -> Vec<(u8, u8)> {
        self.end();
        self.shared.state.lock().unwrap().commands.clone()
    }

    /// Whole messages that it got so far.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        self.shared.state.lock().unwrap().requests.clone()
    }

    fn end(&mut self) {
        self.shared.change(|state| state.over = true);
        drop(UnixStream::connect(&self.path));
        if let Some(server) = self.server.take() {
            let result = server.join();
            if !std::thread::panicking() {
                result.unwrap();
            }
        }
    }
}

impl Drop for FakeRuntime {
    fn drop(&mut self) {
        self.end();
    }
}

/// Serves one connection that the runtime itself has opened, as on a reverse port.
pub(crate) fn serve_reverse(
    behaviour: Behaviour,
    path: &Path,
    cookie: [u8; 16],
    connections: usize,
) -> Vec<(u8, u8)> {
    let shared = Arc::new(Shared::new(behaviour));
    let serving: Vec<_> = (0..connections)
        .map(|_| {
            let mut stream = UnixStream::connect(path).unwrap();
            stream.write_all(&advertise(cookie)).unwrap();
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.serve(stream))
        })
        .collect();
    serving.into_iter().for_each(|serving| serving.join().unwrap());
    std::mem::take(&mut shared.state.lock().unwrap().commands)
}

pub(crate) fn advertise(cookie: [u8; 16]) -> Vec<u8> {
    [&b"ADVR_V1\0"[..], &cookie, &4711u64.to_le_bytes(), &[0; 2]].concat()
}

impl Shared {
    fn new(behaviour: Behaviour) -> Self {
        Self { behaviour, state: Mutex::default(), changed: Condvar::new() }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait_until(&self, condition: impl Fn(&State) -> bool) {
        let mut state = self.state.lock().unwrap();
        while !condition(&state) && !state.over {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn serve(&self, mut stream: UnixStream) {
        let mut header = [0; 20];
        if stream.read_exact(&mut header).is_err() {
            return;
        }
        assert_eq!(&header[..14], b"DOTNET_IPC_V1\0");
        assert_eq!(header[18..], [0, 0]);
        let size = usize::from(u16::from_le_bytes([header[14], header[15]]));
        let mut payload = vec![0; size - 20];
        stream.read_exact(&mut payload).unwrap();
        let command = (header[16], header[17]);
        self.change(|state| {
            state.commands.push(command);
            state.requests.push([&header[..], &payload].concat());
        });
        let behaviour = &self.behaviour;
        if let Some((_, raw)) = behaviour.raw_answers.iter().find(|(known, _)| *known == command) {
            // The reader may have had enough before the last byte.
            let _ = raw.chunks(3).try_for_each(|piece| stream.write_all(piece));
        } else if let Some((_, code)) = behaviour.refused.iter().find(|(known, _)| *known == command) {
            stream.write_all(&answer(0xff, &code.to_le_bytes())).unwrap();
        } else if behaviour.ignored.contains(&command) {
            // Until the other side gives up.
            let _ = stream.read(&mut [0]);
        } else {
            self.answer(command, &payload, stream);
        }
    }

    fn answer(&self, command: (u8, u8), payload: &[u8], mut stream: UnixStream) {
        match command {
            COLLECT_TRACING | COLLECT_TRACING_2 | COLLECT_TRACING_3 => {
                assert_eq!(payload[4..8], [1, 0, 0, 0], "format");
                assert_ne!(payload[..4], [0; 4], "buffer size");
                self.run_session(stream);
            }
            STOP_TRACING => {
                assert_eq!(payload, 42u64.to_le_bytes(), "session");
                self.change(|state| state.stop_asked = true);
                self.wait_until(|state| state.rest_sent);
                // The other side may have seen the stream's end and left.
                let _ = stream.write_all(&answer(0, payload));
            }
            RESUME_RUNTIME => stream.write_all(&answer(0, &[0; 4])).unwrap(),
            _ => stream.write_all(&answer(0xff, &UNKNOWN_COMMAND.to_le_bytes())).unwrap(),
        }
    }

    /// As a real runtime: tiny writes, and the rest of the stream before the stop command is answered.
    fn run_session(&self, mut stream: UnixStream) {
        stream.write_all(&answer(0, &42u64.to_le_bytes())).unwrap();
        let sent = self.behaviour.stream.chunks(997).try_for_each(|piece| stream.write_all(piece));
        if self.behaviour.floods {
            while stream.write_all(&self.behaviour.stream).is_ok() {}
        } else if sent.is_ok() && !self.behaviour.dies {
            self.wait_until(|state| state.stop_asked);
            // Fails when the session was abandoned, which a real runtime would notice here too.
            let _ = stream.write_all(&self.behaviour.rest);
        }
        drop(stream);
        self.change(|state| state.rest_sent = true);
    }
}

pub(crate) fn answer(id: u8, payload: &[u8]) -> Vec<u8> {
    let mut message = b"DOTNET_IPC_V1\0".to_vec();
    message.extend((20 + payload.len() as u16).to_le_bytes());
    message.extend([0xff, id, 0, 0]);
    message.extend(payload);
    message
}
