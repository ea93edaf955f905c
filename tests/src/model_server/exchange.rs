//! One request and what a test does about it.

use super::answer::{Answer, sse};
use super::wire::Wire;
use super::{PATIENCE, Request, Speaks};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// A request that waits for its answer. Dropped, its connection closes.
pub struct Exchange {
    /// What was asked.
    pub request: Request,
    pub(super) speaks: Speaks,
    pub(super) wire: Wire,
}

impl Exchange {
    /// A whole answer, streamed.
    pub fn answer(self, answer: &Answer) -> Request {
        let body = answer.stream(self.speaks);
        let mut stream = self.stream();
        stream.send(&body);
        stream.end()
    }

    /// A stream of these events and the dialect's terminal one.
    pub fn events(self, events: &[Value]) -> Request {
        let speaks = self.speaks;
        let mut stream = self.stream();
        for event in events {
            stream.event(event);
        }
        match speaks {
            Speaks::Openai => stream.send("data: [DONE]\n\n"),
            Speaks::Responses => {
                let response = serde_json::json!({"status": "completed", "output": []});
                stream.event(&serde_json::json!({"type": "response.completed", "response": response}));
            }
            Speaks::Anthropic => stream.event(&serde_json::json!({"type": "message_stop"})),
        }
        stream.end()
    }

    /// One JSON text.
    pub fn json(self, status: u16, body: &Value) -> Request {
        self.whole(status, &[("content-type", "application/json")], &body.to_string())
    }

    /// Any answer in one piece.
    pub fn whole(mut self, status: u16, headers: &[(&str, &str)], body: &str) -> Request {
        let head: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        self.raw(format!(
            "HTTP/1.1 {status} x\r\n{head}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        ));
        self.wire.close();
        self.request
    }

    /// Begins a stream; what comes in it, and when, is the test's.
    pub fn stream(mut self) -> Stream {
        self.raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n");
        Stream { exchange: self }
    }

    /// Any bytes at all. A client that has gone does not hear them.
    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        let _gone = self.wire.write_all(bytes.as_ref()).and_then(|()| self.wire.flush());
    }

    /// Waits until the client closes the connection.
    pub fn until_closed(mut self) {
        self.wire.socket().set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut bytes = [0; 1024];
        loop {
            match self.wire.read(&mut bytes) {
                Ok(0) => return,
                Ok(_) => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    panic!("the client keeps the connection open")
                }
                // However it closes.
                Err(_) => return,
            }
        }
    }
}

/// An answer that goes out bit by bit. Dropped without [`Stream::end`] it breaks off.
pub struct Stream {
    exchange: Exchange,
}

impl Stream {
    /// What was asked.
    pub fn request(&self) -> &Request {
        &self.exchange.request
    }

    /// Sends bytes of the body, at once.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        if !bytes.is_empty() {
            let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
            self.exchange.raw(chunk);
        }
    }

    /// Sends one event.
    pub fn event(&mut self, event: &Value) {
        let text = sse(self.exchange.speaks, event);
        self.send(text);
    }

    /// Waits until the client has taken everything out of its socket.
    pub fn until_taken(&self) {
        let socket = self.exchange.wire.socket();
        let (own, peer) = (socket.local_addr().expect("bound"), socket.peer_addr().expect("connected"));
        let port = |at: std::net::SocketAddr| format!(":{:04X}", at.port());
        // The kernel's table: address and port of either end, the state, and what is unsent and unread.
        let waits = |from: &str, to: &str| {
            let table = std::fs::read_to_string("/proc/net/tcp").expect("/proc reads");
            table.lines().any(|line| {
                let fields: Vec<&str> = line.split_whitespace().collect();
                fields.get(1).is_some_and(|at| at.ends_with(from))
                    && fields[2].ends_with(to)
                    && fields[4] != "00000000:00000000"
            })
        };
        let since = Instant::now();
        while waits(&port(own), &port(peer)) || waits(&port(peer), &port(own)) {
            assert!(since.elapsed() < PATIENCE, "the client does not read");
            std::thread::yield_now();
        }
    }

    /// Sends the same again and again, at a steady pace, until the client closes the connection.
    pub fn repeat_until_closed(&mut self, bytes: &str) {
        let since = Instant::now();
        let pace = Duration::from_millis(20);
        self.exchange.wire.socket().set_read_timeout(Some(pace)).expect("a timeout");
        while since.elapsed() < PATIENCE {
            self.send(bytes);
            match self.exchange.wire.read(&mut [0; 64]) {
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        panic!("the client keeps the connection open");
    }

    /// Sends the same again and again, as fast as it is taken, until the client takes no more.
    pub fn repeat_until_refused(&mut self, bytes: &str) {
        let since = Instant::now();
        let chunk = format!("{:x}\r\n{bytes}\r\n", bytes.len());
        while self.exchange.wire.write_all(chunk.as_bytes()).is_ok() {
            assert!(since.elapsed() < PATIENCE, "the client takes everything");
        }
    }

    /// Ends the body properly.
    pub fn end(mut self) -> Request {
        self.exchange.raw("0\r\n\r\n");
        self.exchange.wire.close();
        self.exchange.request
    }

    /// Waits until the client closes the connection.
    pub fn until_closed(self) {
        self.exchange.until_closed();
    }
}
