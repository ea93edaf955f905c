//! What can be told of a provider's address without telling a secret, and whether it is of this machine.

use std::net::IpAddr;

/// Host and port of an address, for people: without a path, a query or a user's name, which may hold a secret.
pub fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = &rest[..rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len())];
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// Whether an address is of this machine and nowhere else.
pub fn is_loopback(url: &str) -> bool {
    let host = host(url);
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((v6, _)) => v6,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_shown_without_what_may_be_secret() {
        for (url, shown, loopback) in [
            ("https://api.example/v1?key=k", "api.example", false),
            ("https://user:pw@api.example:8443", "api.example:8443", false),
            ("http://127.0.0.1:80/x", "127.0.0.1:80", true),
            ("http://127.9.9.9", "127.9.9.9", true),
            ("http://[::1]:80/x", "[::1]:80", true),
            ("http://LOCALHOST:1", "LOCALHOST:1", true),
            ("http://localhost@evil.example", "evil.example", false),
            ("http://localhost.evil.example", "localhost.evil.example", false),
            ("http://evil.example/@localhost", "evil.example", false),
            ("http://evil.example\\@localhost", "evil.example", false),
            ("nonsense", "nonsense", false),
            ("", "", false),
        ] {
            assert_eq!((host(url), is_loopback(url)), (shown, loopback), "{url}");
        }
    }
}
