//! One HTTP request in and one answer out, on a connection of its own.

use super::Seen;
use crate::model_server::wire::Wire;
use serde_json::Value;
use std::io::{Read, Write};

pub(super) fn request(stream: &mut Wire) -> std::io::Result<Option<Seen>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            n => bytes.extend_from_slice(&piece[..n]),
        }
    };
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = text.lines();
    let verb = lines.next().and_then(|line| line.split(' ').next()).unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, n)| n.parse().ok());
    let mut body = bytes[end + 4..].to_vec();
    let mut rest = vec![0; length.unwrap_or(0_usize).saturating_sub(body.len())];
    stream.read_exact(&mut rest)?;
    body.append(&mut rest);
    let message = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).expect("JSON") };
    Ok(Some(Seen { verb, headers, message }))
}

pub(super) fn head(status: u16, kind: &str, more: &[(&str, &str)], length: Option<usize>) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} said\r\nConnection: close\r\n");
    if !kind.is_empty() {
        head.push_str(&format!("Content-Type: {kind}\r\n"));
    }
    if let Some(length) = length {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    for (name, value) in more {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

pub(super) fn answer(stream: &mut Wire, status: u16, kind: &str, body: &str) -> std::io::Result<()> {
    stream.write_all(&head(status, kind, &[], Some(body.len())))?;
    stream.write_all(body.as_bytes())
}

/// Waits for the client to hang up.
pub(super) fn until_closed(stream: &mut Wire) {
    let mut piece = [0; 64];
    while let Ok(1..) = stream.read(&mut piece) {}
}
