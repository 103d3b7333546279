//! A connection that ends when the other side does not take what is written to it.
//!
//! An answer takes memory, and its connection is one of few, until it is written. A page that was stopped in the middle
//! would keep both forever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// Time in which at least a byte must go through.
const STALL_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Unstalled {
    stream: TcpStream,
    /// Runs while bytes wait to be taken.
    stalls: Option<Pin<Box<Sleep>>>,
    longest: Duration,
}

impl Unstalled {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, stalls: None, longest: STALL_MAX }
    }

    /// Gives up when a write has waited for too long.
    fn watch(&mut self, cx: &mut Context<'_>, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if wrote.is_ready() {
            self.stalls = None;
            return wrote;
        }
        let longest = self.longest;
        let stalls = self.stalls.get_or_insert_with(|| Box::pin(sleep(longest)));
        ready!(stalls.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Unstalled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Unstalled {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.watch(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn a_side_that_takes_nothing_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let _reads_nothing = std::net::TcpStream::connect(listener.local_addr().expect("an address"));
        let (stream, _) = listener.accept().expect("a connection");
        stream.set_nonblocking(true).expect("a socket");
        let ended = runtime.block_on(async {
            let stream = TcpStream::from_std(stream).expect("a socket");
            let mut stream = Unstalled { longest: Duration::from_millis(20), ..Unstalled::new(stream) };
            loop {
                let wrote = poll_fn(|cx| Pin::new(&mut stream).poll_write(cx, &[0; 1 << 16])).await;
                if let Err(error) = wrote {
                    return error.kind();
                }
            }
        });
        assert_eq!(ended, io::ErrorKind::TimedOut);
    }
}
