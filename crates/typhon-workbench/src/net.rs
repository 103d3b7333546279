//! Sockets: loopback only, and not too many connections (brief 11 F-1, F-7).

use crate::unstalled::Unstalled;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Port that is tried first, when none is asked for.
pub const DEFAULT_PORT: u16 = 5200;
/// How many ports are tried before a free one is taken.
const PORTS_TRIED: u16 = 10;
/// Free ports that are tried: the one of IPv4 may be taken on IPv6.
const FREE_TRIED: usize = 16;
const CONNECTIONS_MAX: usize = 32;
/// Time for the head of a request, and between two requests.
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for answers that are under way when the server ends.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Listens on both loopback addresses, on the port asked for, else on the first free one of ten from `first` on, else on
/// any.
pub(crate) fn listen(asked: Option<u16>, first: u16) -> io::Result<(u16, Vec<TcpListener>)> {
    if let Some(port) = asked {
        return on_both(port);
    }
    for port in (first..=first.saturating_add(PORTS_TRIED - 1)).filter(|port| *port != 0) {
        match on_both(port) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) => {}
            other => return other,
        }
    }
    on_both(0)
}

fn on_both(port: u16) -> io::Result<(u16, Vec<TcpListener>)> {
    let mut tried = 0;
    loop {
        tried += 1;
        let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let of_v4 = v4.local_addr()?.port();
        match TcpListener::bind((Ipv6Addr::LOCALHOST, of_v4)) {
            Ok(v6) => return Ok((of_v4, vec![v4, v6])),
            // Somebody else would get what is meant for localhost.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if port != 0 || tried == FREE_TRIED {
                    return Err(error);
                }
            }
            // A machine without IPv6.
            Err(_) => return Ok((of_v4, vec![v4])),
        }
    }
}

/// One of the connections that there may be. Every request of a connection has it; a WebSocket holds it for as long as it
/// is open, which is longer than HTTP goes on.
#[derive(Debug, Clone)]
pub(crate) struct Connection(#[expect(dead_code, reason = "it is held")] Arc<OwnedSemaphorePermit>);

/// Answers the connections of a listener until `stop` says so.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    connections: Arc<Semaphore>,
    header_timeout: Duration,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ended(&mut stop) => return Ok(()),
        };
        let Ok((stream, peer)) = accepted else {
            // Out of descriptors, or a connection that was gone at once: neither ends the server.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        if !is_loopback(peer) {
            continue;
        }
        let (router, stop) = (router.clone(), stop.clone());
        match connections.clone().try_acquire_owned() {
            Ok(permit) => {
                let connection = Connection(Arc::new(permit));
                let router = router.layer(Extension(connection));
                drop(tokio::spawn(serve(stream, router, header_timeout, stop)));
            }
            Err(_) => drop(tokio::spawn(refuse(stream))),
        }
    }
}

/// Waits for the end of the server.
pub(crate) async fn ended(stop: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which is an end as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

pub(crate) fn connections() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(CONNECTIONS_MAX))
}

/// Waits until no connection is open any more, for as long as the last answers may take.
pub(crate) async fn all_closed(connections: &Semaphore) {
    // Those that take longer are cut off.
    let _ = tokio::time::timeout(LAST_ANSWERS, connections.acquire_many(CONNECTIONS_MAX as u32)).await;
}

fn is_loopback(peer: SocketAddr) -> bool {
    match peer.ip() {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback()),
    }
}

async fn serve(stream: TcpStream, router: Router, header_timeout: Duration, mut stop: watch::Receiver<bool>) {
    // Tiles are small and wanted at once. Without it they only come later.
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(header_timeout);
    let stream = TokioIo::new(Unstalled::new(stream));
    let connection = http.serve_connection(stream, TowerToHyperService::new(router)).with_upgrades();
    let mut connection = pin!(connection);
    // What a broken connection says interests nobody: the other side is gone.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = ended(&mut stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = tokio::time::timeout(LAST_ANSWERS, connection).await;
}

/// Says why before it closes.
async fn refuse(stream: TcpStream) {
    let body = r#"{"type":"about:blank","title":"Service Unavailable","status":503,"code":"busy","detail":"32 connections are open already; close other pages of the Workbench","hint":null}"#;
    let text = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    let write = async {
        let mut rest = text.as_bytes();
        while !rest.is_empty() && stream.writable().await.is_ok() {
            match stream.try_write(rest) {
                Ok(0) => break,
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), write).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream as Client;

    #[test]
    fn f7_heads_that_come_a_byte_at_a_time_make_room_for_others() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, of_stop) = watch::channel(false);
        let router = Router::new().fallback(|| async { "here" });
        let patience = Duration::from_millis(200);
        let accepting = runtime.spawn(accept(listener, router, connections(), patience, of_stop));
        let connect = || {
            let client = Client::connect(address).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            client
        };
        let slow: Vec<Client> = (0..CONNECTIONS_MAX).map(|_| connect()).collect();
        let dribbling = std::thread::spawn(move || {
            // All of them go on until the server has closed every one.
            let head = b"GET / HTTP/1.1\r\nHost: x\r\nX: ".iter().chain(std::iter::repeat(&b'y'));
            let mut open = slow;
            for byte in head {
                open.retain_mut(|client| client.write_all(&[*byte]).is_ok());
                if open.is_empty() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let answer = loop {
            let mut client = connect();
            // One that is refused may be closed before it has said anything.
            let _ = client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer);
            if answer.starts_with(b"HTTP/1.1 200") {
                break answer;
            }
        };
        assert!(answer.ends_with(b"here"));
        dribbling.join().unwrap();
        stop.send_replace(true);
        runtime.block_on(accepting).unwrap().unwrap();
    }

    #[test]
    fn a_port_that_is_taken_gives_way_to_the_next() {
        let (taken, _listeners) = listen(None, 45_200).unwrap();
        let (next, listeners) = listen(None, taken).unwrap();
        assert_ne!(taken, next);
        assert!(listeners.iter().all(|listener| listener.local_addr().unwrap().ip().is_loopback()));
        assert!(listen(Some(taken), 0).is_err());
    }

    #[test]
    fn a_port_that_is_taken_on_ipv6_is_not_used_on_ipv4() {
        let Ok(v6) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else { return };
        let taken = v6.local_addr().unwrap().port();
        assert!(listen(Some(taken), 0).is_err());
    }

    #[test]
    fn ports_at_the_end_of_the_range_are_no_problem() {
        assert!(listen(None, u16::MAX - 2).is_ok());
    }
}
