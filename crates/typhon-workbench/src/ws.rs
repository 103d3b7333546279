//! One WebSocket per page: tiles with cancellation, progress, filters (brief 11 §3.3, §3.4).
//!
//! The task of a connection owns the socket; what runs elsewhere hands it messages. An answer holds a permit until its
//! last byte is written, so that a page that reads slowly has at most [`ANSWERS_MAX`] of them in memory.

use crate::answers::Room;
use crate::api::event::SpanRef;
use crate::api::filters::as_hits;
use crate::app::App;
use crate::net::{self, ended};
use crate::problem::Problem;
use crate::sessions::{Event, Opened, Summary};
use crate::work::Weight;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use typhon_analysis::session::{Cancel, SessionError};
use typhon_analysis::tile::{MAX_ANSWER_BYTES, TileRequest};

const MESSAGE_BYTES_MAX: usize = 1 << 20;
const HELLO_DEADLINE: Duration = Duration::from_secs(2);
/// Time for a page to take a message.
const SEND_DEADLINE: Duration = Duration::from_secs(30);
/// Answers of a connection that are made or wait to be written.
const ANSWERS_MAX: usize = 2;
const VIEWS_MAX: usize = 256;
/// Filters that are evaluated at a time for a connection.
const FILTERS_MAX: usize = 8;
/// Frames are put together until a message has about so many bytes.
const MESSAGE_BYTES: usize = 256 << 10;
/// Hits that are shown before all are known, and the time for looking for them: a tenth of a second is felt as at once. Mostly
/// they take a tenth of that.
const FIRST_HITS: usize = 100;
const FIRST_HITS_WITHIN: Duration = Duration::from_millis(100);
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

const CLOSE_AWAY: u16 = 1001;
const CLOSE_TOO_BIG: u16 = 1009;
const CLOSE_UNAUTHORIZED: u16 = 4401;
const CLOSE_NO_HELLO: u16 = 4408;

/// What a page says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum FromPage {
    Hello { token: String },
    Bind { view_id: u16, session: String },
    Cancel { view_id: u16 },
    Filter { request_id: u32, session: String, text: String },
    CancelFilter { request_id: u32 },
}

/// A message on its way to the page.
struct Outgoing {
    message: Message,
    /// Once thrown, the message is of no use any more.
    of: Option<Cancel>,
    /// Given back when the message is written.
    _answer: Option<(Option<OwnedSemaphorePermit>, Room)>,
}

#[derive(Debug, Default)]
struct View {
    session: Option<u32>,
    /// Newest request so far.
    newest: Option<u32>,
    /// The one that is being answered.
    running: Option<Cancel>,
    /// The one that comes next. Those between the two have been replaced before anybody began with them.
    next: Option<TileRequest>,
}

impl View {
    /// Nobody wants what is being answered any more.
    fn cancel(&mut self) {
        self.next = None;
        if let Some(cancel) = &self.running {
            cancel.cancel();
        }
    }
}

/// What has ended.
enum Done {
    Tiles { view_id: u16 },
    Filter { request_id: u32 },
}

struct Connection {
    app: Arc<App>,
    out: mpsc::UnboundedSender<Outgoing>,
    answers: Arc<Semaphore>,
    views: HashMap<u16, View>,
    filters: HashMap<u32, Evaluated>,
    tasks: JoinSet<Done>,
}

pub(crate) async fn upgrade(
    State(app): State<Arc<App>>,
    Extension(connection): Extension<net::Connection>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let limited = upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
    limited.on_upgrade(move |socket| async move {
        run(app, socket).await;
        drop(connection);
    })
}

async fn run(app: Arc<App>, mut socket: WebSocket) {
    let refused = match timeout(HELLO_DEADLINE, hello(&mut socket)).await {
        Err(_) => Some((CLOSE_NO_HELLO, "the token did not come within 2 s")),
        Ok(Some(token)) if app.token.is(&token) => None,
        Ok(_) => Some((CLOSE_UNAUTHORIZED, "this needs the token of this run")),
    };
    if let Some((code, reason)) = refused {
        close(&mut socket, code, reason).await;
        return;
    }
    let (out, outgoing) = mpsc::unbounded_channel();
    let answers = Arc::new(Semaphore::new(ANSWERS_MAX));
    let (views, filters, tasks) = (HashMap::new(), HashMap::new(), JoinSet::new());
    Connection { app, out, answers, views, filters, tasks }.serve(socket, outgoing).await;
}

/// The token in the first message; `None` when that is something else or does not come.
async fn hello(socket: &mut WebSocket) -> Option<String> {
    let Message::Text(text) = socket.recv().await?.ok()? else { return None };
    match serde_json::from_str(&text) {
        Ok(FromPage::Hello { token }) => Some(token),
        _ => None,
    }
}

/// The page may be gone already.
async fn close(socket: &mut WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let _ = timeout(Duration::from_secs(1), socket.send(Message::Close(Some(frame)))).await;
}

fn text(value: &impl Serialize) -> Message {
    // Everything that is sent has strings as keys.
    Message::Text(serde_json::to_string(value).unwrap_or_default().into())
}

fn changed(summary: &Summary) -> Message {
    text(&json!({ "type": "session", "session": summary }))
}

impl Connection {
    async fn serve(mut self, mut socket: WebSocket, mut outgoing: mpsc::UnboundedReceiver<Outgoing>) {
        // Before the welcome, so that nothing is missed between the two.
        let mut events = self.app.sessions.subscribe();
        let mut stop = self.app.stop.subscribe();
        self.tell(text(&self.welcome()));
        loop {
            tokio::select! {
                received = socket.recv() => match received {
                    Some(Ok(message)) => self.received(message),
                    Some(Err(error)) => {
                        if is_too_big(&error) {
                            close(&mut socket, CLOSE_TOO_BIG, "messages are at most 1 MiB").await;
                        }
                        break;
                    }
                    None => break,
                },
                Some(out) = outgoing.recv() => {
                    let is_stale = out.of.as_ref().is_some_and(Cancel::is_cancelled);
                    if !is_stale && !matches!(timeout(SEND_DEADLINE, socket.send(out.message)).await, Ok(Ok(()))) {
                        break;
                    }
                }
                event = events.recv() => match event {
                    Ok(Event::Changed(summary)) => self.tell(changed(&summary)),
                    Ok(Event::Closed(id)) => self.tell(text(&json!({ "type": "closed", "session": id.to_string() }))),
                    Err(RecvError::Lagged(_)) => {
                        self.app.sessions.summaries().iter().for_each(|summary| self.tell(changed(summary)));
                    }
                    Err(RecvError::Closed) => break,
                },
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    match done {
                        Ok(Done::Tiles { view_id }) => self.answered(view_id),
                        Ok(Done::Filter { request_id }) => drop(self.filters.remove(&request_id)),
                        // Tasks only wait for work, whose panics are answers.
                        Err(_) => {}
                    }
                }
                () = ended(&mut stop) => {
                    close(&mut socket, CLOSE_AWAY, "typhon ui has ended").await;
                    break;
                }
            }
        }
        self.views.values_mut().for_each(View::cancel);
        self.filters.values_mut().for_each(Evaluated::call_off);
    }

    fn welcome(&self) -> Value {
        json!({
            "type": "welcome",
            "schema": "typhon.ws/1",
            "version": env!("CARGO_PKG_VERSION"),
            "assets": self.app.assets.hash(),
            "sessions": self.app.sessions.summaries(),
        })
    }

    /// The receiver lives as long as the connection.
    fn tell(&self, message: Message) {
        let _ = self.out.send(Outgoing { message, of: None, _answer: None });
    }

    fn complain(&self, problem: &Problem) {
        self.tell(text(&json!({ "type": "error", "problem": problem.document() })));
    }

    fn received(&mut self, message: Message) {
        let outcome = match message {
            Message::Binary(bytes) => self.tiles(&bytes),
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(message) => self.said(message),
                Err(fault) => Err(Problem::bad_request(format!("this is no message: {fault}"))),
            },
            // The library answers pings; after a close comes the end.
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) => Ok(()),
        };
        if let Err(problem) = outcome {
            self.complain(&problem);
        }
    }

    fn said(&mut self, message: FromPage) -> Result<(), Problem> {
        match message {
            FromPage::Hello { .. } => Ok(()),
            FromPage::Bind { view_id, session } => {
                let session = self.app.session(&session)?.id;
                self.view(view_id)?.session = Some(session);
                Ok(())
            }
            FromPage::Cancel { view_id } => {
                self.view(view_id)?.cancel();
                Ok(())
            }
            FromPage::Filter { request_id, session, text } => {
                self.filter(request_id, &session, text);
                Ok(())
            }
            FromPage::CancelFilter { request_id } => {
                self.filters.get_mut(&request_id).into_iter().for_each(Evaluated::call_off);
                Ok(())
            }
        }
    }

    fn view(&mut self, id: u16) -> Result<&mut View, Problem> {
        if self.views.len() >= VIEWS_MAX && !self.views.contains_key(&id) {
            return Err(Problem::bad_request("a connection has at most 256 views"));
        }
        Ok(self.views.entry(id).or_default())
    }

    /// The session that a view is about.
    fn session_of(&self, view: u16) -> Result<Arc<Opened>, Problem> {
        let bound = |view: u16| self.views.get(&view).and_then(|view| view.session);
        match bound(view).or_else(|| bound(0)) {
            Some(id) => self.app.sessions.get(id).ok_or_else(|| Problem::unknown(format!("session {id}"))),
            None => self.app.sessions.all().into_iter().next().ok_or_else(|| Problem::unknown("session")),
        }
    }

    /// Takes a tile request; a newer one of the same view takes the place of older ones. However fast they come, there is
    /// one task per view and one request that waits.
    fn tiles(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        let request = TileRequest::decode(bytes).map_err(SessionError::from)?;
        let view = self.view(request.view)?;
        if view.newest.is_some_and(|newest| newest >= request.request_id) {
            return Ok(());
        }
        view.newest = Some(request.request_id);
        view.cancel();
        match view.running {
            Some(_) => view.next = Some(request),
            None => self.answer(request),
        }
        Ok(())
    }

    /// A view has its answer, or has given it up.
    fn answered(&mut self, view_id: u16) {
        let Some(view) = self.views.get_mut(&view_id) else { return };
        view.running = None;
        if let Some(request) = view.next.take() {
            self.answer(request);
        }
    }

    /// Begins with the answer to a request.
    fn answer(&mut self, request: TileRequest) {
        let (view_id, request_id) = (request.view, request.request_id);
        let opened = match self.session_of(view_id) {
            Ok(opened) => opened,
            Err(problem) => return self.tell(tile_failed(request_id, view_id, &problem)),
        };
        let cancel = Cancel::new();
        self.views.entry(view_id).or_default().running = Some(cancel.clone());
        let (app, out, answers) = (self.app.clone(), self.out.clone(), self.answers.clone());
        self.tasks.spawn(async move {
            let permit = answers.acquire_owned().await.ok();
            let room = app.answers.room(MAX_ANSWER_BYTES).await;
            let sender = Sender { out: out.clone(), cancel: cancel.clone(), held: Vec::new(), sent_bytes: 0 };
            let work = app.pool.run_with(Weight::Light, cancel.clone(), move |cancel| {
                answer(&opened, &request, cancel, sender)
            });
            let (message, bytes) = match work.await {
                Ok(last) => last,
                Err(problem) if problem.code == "cancelled" => return Done::Tiles { view_id },
                Err(problem) => (tile_failed(request_id, view_id, &problem), 0),
            };
            // Messages are written in order: with the last one the whole answer is.
            let answer = Some((permit, room.shrunk_to(bytes)));
            let _ = out.send(Outgoing { message, of: Some(cancel), _answer: answer });
            Done::Tiles { view_id }
        });
    }

    fn filter(&mut self, request_id: u32, session: &str, filter: String) {
        let found = self.app.session(session).and_then(|opened| {
            let wanted = self.filters.values().filter(|filter| filter.wanted.is_some()).count();
            if wanted >= FILTERS_MAX || self.filters.contains_key(&request_id) {
                return Err(Problem::bad_request("this many filters are being evaluated already"));
            }
            Ok(opened)
        });
        let opened = match found {
            Ok(opened) => opened,
            Err(problem) => return self.tell(filter_failed(request_id, &problem)),
        };
        let id = opened.id;
        self.filters.values_mut().filter(|older| older.session == id).for_each(Evaluated::call_off);
        let (wanted, called_off) = oneshot::channel::<()>();
        self.filters.insert(request_id, Evaluated { session: id, wanted: Some(wanted) });
        let (app, out) = (self.app.clone(), self.out.clone());
        self.tasks.spawn(async move {
            let progress = Progress {
                request_id,
                bytes_total: opened.session.file_bytes(),
                out: out.clone(),
                told: Instant::now(),
            };
            let work = app.pool.run_with(Weight::Heavy, Cancel::new(), move |cancel| {
                let mut progress = progress;
                let session = &opened.session;
                let found = session
                    .first_matches(&filter, FIRST_HITS, FIRST_HITS_WITHIN, cancel)
                    .and_then(|first| as_hits(session, &first))
                    .map(|hits| progress.first(&hits))
                    .and_then(|()| session.add_filter(&filter, cancel, |done| progress.update(done)));
                opened.noticing(found.map_err(Problem::from))
            });
            // What is not wanted any more does not wait for room either.
            let found = tokio::select! {
                biased;
                found = work => found,
                _ = called_off => Err(Problem::cancelled()),
            };
            let message = match found {
                Ok(found) => text(&json!({
                    "type": "filterReady",
                    "requestId": request_id,
                    "session": id.to_string(),
                    "filterId": found.id,
                    "matches": found.matches,
                })),
                Err(problem) => filter_failed(request_id, &problem),
            };
            let _ = out.send(Outgoing { message, of: None, _answer: None });
            Done::Filter { request_id }
        });
    }
}

/// A filter that is being evaluated.
struct Evaluated {
    session: u32,
    /// Gone when it is not wanted any more.
    wanted: Option<oneshot::Sender<()>>,
}

impl Evaluated {
    fn call_off(&mut self) {
        self.wanted = None;
    }
}

fn tile_failed(request_id: u32, view_id: u16, problem: &Problem) -> Message {
    text(
        &json!({ "type": "tileFailed", "requestId": request_id, "viewId": view_id, "problem": problem.document() }),
    )
}

fn filter_failed(request_id: u32, problem: &Problem) -> Message {
    text(&json!({ "type": "filterFailed", "requestId": request_id, "problem": problem.document() }))
}

fn is_too_big(error: &axum::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if inner.to_string().contains("too long") {
            return true;
        }
        cause = inner.source();
    }
    false
}

/// Puts frames together to messages.
struct Sender {
    out: mpsc::UnboundedSender<Outgoing>,
    cancel: Cancel,
    held: Vec<u8>,
    sent_bytes: usize,
}

/// Makes the frames of an answer, hands on all messages but the last and returns that, with the bytes of all.
fn answer(
    opened: &Opened,
    request: &TileRequest,
    cancel: &Cancel,
    mut sender: Sender,
) -> Result<(Message, usize), Problem> {
    opened.session.tiles(request, cancel, |tile| {
        if sender.held.len() + tile.encoded_bytes() > MESSAGE_BYTES && !sender.held.is_empty() {
            sender.sent_bytes += sender.held.len();
            let message = Message::Binary(Bytes::from(std::mem::take(&mut sender.held)));
            let sent = sender.out.send(Outgoing { message, of: Some(sender.cancel.clone()), _answer: None });
            if sent.is_err() {
                // The page went away.
                sender.cancel.cancel();
            }
        }
        tile.encode(&mut sender.held);
    })?;
    let bytes = sender.sent_bytes + sender.held.len();
    Ok((Message::Binary(Bytes::from(sender.held)), bytes))
}

struct Progress {
    request_id: u32,
    bytes_total: u64,
    out: mpsc::UnboundedSender<Outgoing>,
    told: Instant,
}

impl Progress {
    fn update(&mut self, bytes_done: u64) {
        if self.told.elapsed() < PROGRESS_EVERY {
            return;
        }
        self.told = Instant::now();
        let message = text(&json!({
            "type": "filterProgress",
            "requestId": self.request_id,
            "bytesDone": bytes_done,
            "bytesTotal": self.bytes_total,
        }));
        self.tell(message);
    }

    fn first(&self, hits: &[SpanRef]) {
        if !hits.is_empty() {
            self.tell(text(&json!({ "type": "filterHits", "requestId": self.request_id, "hits": hits })));
        }
    }

    fn tell(&self, message: Message) {
        // Without a page the work is cancelled by other means.
        let _ = self.out.send(Outgoing { message, of: None, _answer: None });
    }
}
