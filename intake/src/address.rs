//! Addresses: what a browser would do with the text of a `src`, an `href` or a `url()`.

/// What an address leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address<'a> {
    /// Nothing, or a place in the same page.
    Inside,
    /// A `data:` address.
    Data,
    /// A `blob:` address, which can only name what the work made itself.
    Blob,
    /// A `javascript:` address.
    Script(&'a str),
    /// Another machine, by http, https, ws, wss, or without a scheme (`//host`).
    Remote,
    /// A program of the reader's machine: mail, telephone, an app.
    Scheme,
    /// A file beside the work.
    File(&'a str),
}

/// Removes what a browser ignores: white space around, and tabs and line breaks anywhere in it.
pub fn normalise(text: &str) -> String {
    let trimmed = text.trim_matches(|c: char| c <= ' ');
    trimmed.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect()
}

/// What the (normalised) address leads to.
pub fn classify(address: &str) -> Address<'_> {
    if address.is_empty() || address.starts_with('#') || address == "about:blank" {
        return Address::Inside;
    }
    let slashes = address.bytes().take_while(|b| matches!(b, b'/' | b'\\')).count();
    if slashes >= 2 {
        return Address::Remote;
    }
    let Some((scheme, rest)) = address.split_once(':') else {
        return Address::File(address);
    };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    if !is_scheme {
        return Address::File(address);
    }
    match scheme.to_ascii_lowercase().as_str() {
        "data" => Address::Data,
        "blob" => Address::Blob,
        "javascript" | "vbscript" => Address::Script(rest),
        "http" | "https" | "ws" | "wss" | "ftp" => Address::Remote,
        _ => Address::Scheme,
    }
}

/// The web addresses in running text, as ranges, without those that are only names (XML namespaces).
pub fn in_text(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("://") {
        let scheme_start = text[..at]
            .rfind(|c: char| !c.is_ascii_alphabetic())
            .map_or(0, |i| i + text[i..].chars().next().map_or(1, char::len_utf8));
        let scheme = text[scheme_start..at].to_ascii_lowercase();
        if !["http", "https", "ws", "wss", "ftp"].contains(&scheme.as_str()) {
            continue;
        }
        let rest = &text[at + 3..];
        let stop = |c: char| c.is_whitespace() || "\"'`<>()[]{}\\,;".contains(c);
        let end = at + 3 + rest.find(stop).unwrap_or(rest.len());
        let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
        let is_name = host.ends_with("w3.org") || host == "ns.adobe.com" || host == "purl.org";
        if end > at + 3 && !is_name {
            found.push(scheme_start..end);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_a_browser_reads_them() {
        for (text, expected) in [
            ("", Address::Inside),
            ("#top", Address::Inside),
            ("data:,x", Address::Data),
            ("DaTa:,x", Address::Data),
            ("//host/x", Address::Remote),
            ("\\\\host", Address::Remote),
            ("/\\host", Address::Remote),
            ("HTTPS://x", Address::Remote),
            ("https:x", Address::Remote),
            ("game.js", Address::File("game.js")),
            ("/game.js", Address::File("/game.js")),
            ("a b:c", Address::File("a b:c")),
            ("mailto:me", Address::Scheme),
            ("javascript:x", Address::Script("x")),
            ("blob:null/1", Address::Blob),
        ] {
            assert_eq!(classify(text), expected, "{text:?}");
        }
        assert_eq!(classify(&normalise(" java\nscript:x")), Address::Script("x"));
        assert_eq!(classify(&normalise("\u{1}ht\ttps://x")), Address::Remote);
    }

    #[test]
    fn web_addresses_are_found_in_text() {
        let text = "see https://a.example/x, http://www.w3.org/2000/svg and ws://b";
        let found: Vec<_> = in_text(text).into_iter().map(|r| &text[r]).collect();
        assert_eq!(found, ["https://a.example/x", "ws://b"]);
        assert!(in_text("é://x ://").is_empty());
    }
}
