//! `multipart/form-data` (RFC 7578), read as it arrives: never more in memory than one piece of the body and what could
//! be the beginning of a delimiter.
//!
//! Only what browsers and command-line programs send is understood; anything else is an error and ends the upload.
//! Called by `upload`. It knows nothing of what the parts are for.

use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes as Data};

/// Why a body cannot be read as parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultipartError {
    /// It is not of this form.
    Malformed(&'static str),
    /// It is longer than allowed.
    TooLarge,
    /// The connection ended before the body did.
    Broken,
}

/// The head of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its field.
    pub name: String,
    /// The file's name, as the client gave it; none for a plain field.
    pub file_name: Option<String>,
}

/// A body in parts.
pub struct Multipart<B> {
    body: B,
    /// `\r\n--boundary`: what ends a part.
    delimiter: Vec<u8>,
    buffer: BytesMut,
    bytes_left: u64,
    head_bytes_max: usize,
    is_in_part: bool,
}

/// The longest boundary of RFC 2046.
const BOUNDARY_CHARS_MAX: usize = 70;

/// The boundary that a Content-Type names, if it is one of this form.
pub fn boundary(content_type: &str) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameters.split(';').find_map(|p| {
        let (name, value) = p.trim().split_once('=')?;
        name.eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"').to_owned())
    })?;
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(&b);
    (!boundary.is_empty() && boundary.len() <= BOUNDARY_CHARS_MAX && boundary.bytes().all(is_plain))
        .then_some(boundary)
}

impl<B: Body<Data = Data> + Unpin> Multipart<B> {
    /// Reads `body`, of at most `bytes_max`, whose parts have heads of at most `head_bytes_max`.
    pub fn new(body: B, boundary: &str, bytes_max: u64, head_bytes_max: usize) -> Self {
        let delimiter = format!("\r\n--{boundary}").into_bytes();
        // The first delimiter may come without the line break before it.
        let buffer = BytesMut::from(&b"\r\n"[..]);
        Self { body, delimiter, buffer, bytes_left: bytes_max, head_bytes_max, is_in_part: false }
    }

    /// The next part, after what is left of this one; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Part>, MultipartError> {
        if !self.is_in_part {
            // What stands before the first part is no part, and nobody sends it.
            while self.buffer.len() < self.delimiter.len() {
                self.more().await?;
            }
            if !self.buffer.starts_with(&self.delimiter) {
                return Err(MultipartError::Malformed("the body does not begin with its boundary"));
            }
        }
        while self.chunk().await?.is_some() {}
        self.buffer.advance(self.delimiter.len());
        while self.buffer.len() < 2 {
            self.more().await?;
        }
        if self.buffer.starts_with(b"--") {
            return Ok(None);
        }
        if !self.buffer.starts_with(b"\r\n") {
            return Err(MultipartError::Malformed("a boundary is followed by something else"));
        }
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            if self.buffer.len() > self.head_bytes_max {
                return Err(MultipartError::Malformed("the head of a part is too long"));
            }
            self.more().await?;
        };
        if end > self.head_bytes_max {
            return Err(MultipartError::Malformed("the head of a part is too long"));
        }
        let head = self.buffer.split_to(end);
        self.buffer.advance(4);
        self.is_in_part = true;
        part(&head).map(Some)
    }

    /// The next piece of this part; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, MultipartError> {
        loop {
            if let Some(end) = find(&self.buffer, &self.delimiter) {
                return Ok((end > 0).then(|| self.buffer.split_to(end).freeze()));
            }
            // What may be the beginning of a delimiter stays.
            let safe = self.buffer.len().saturating_sub(self.delimiter.len() - 1);
            if safe > 0 && self.is_in_part {
                return Ok(Some(self.buffer.split_to(safe).freeze()));
            }
            self.more().await?;
        }
    }

    /// Reads what is left and forgets it: whoever still sends then gets to see the answer.
    pub async fn drain(&mut self) {
        while self.more().await.is_ok() {
            self.buffer.clear();
        }
    }

    async fn more(&mut self) -> Result<(), MultipartError> {
        loop {
            let frame = self.body.frame().await.ok_or(MultipartError::Broken)?;
            let Ok(data) = frame.map_err(|_| MultipartError::Broken)?.into_data() else { continue };
            let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
            self.bytes_left = self.bytes_left.checked_sub(length).ok_or(MultipartError::TooLarge)?;
            self.buffer.extend_from_slice(&data);
            return Ok(());
        }
    }
}

/// Reads the one header that says what a part is.
fn part(head: &[u8]) -> Result<Part, MultipartError> {
    let malformed = MultipartError::Malformed("a part does not say which field it is");
    let text = std::str::from_utf8(head).map_err(|_| malformed.clone())?;
    let disposition = text.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then(|| value.trim())
    });
    let value = disposition.and_then(|d| d.strip_prefix("form-data")).ok_or(malformed.clone())?;
    let (mut name, mut file_name, mut rest) = (None, None, value);
    while let Some(parameter) = rest.trim_start().strip_prefix(';') {
        let (key, value) = parameter.split_once("=\"").ok_or(malformed.clone())?;
        let (value, after) = value.split_once('"').ok_or(malformed.clone())?;
        match key.trim() {
            "name" => name = Some(value.to_owned()),
            "filename" => file_name = Some(value.to_owned()),
            _ => {}
        }
        rest = after;
    }
    Ok(Part { name: name.ok_or(malformed)?, file_name })
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    let first = *what.first()?;
    let mut from = 0;
    while let Some(place) = text.get(from..)?.iter().position(|b| *b == first) {
        let start = from + place;
        if text.get(start..start + what.len()) == Some(what) {
            return Some(start);
        }
        from = start + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Frame;

    type Read = Result<Vec<(Part, Vec<u8>)>, MultipartError>;

    /// Reads a body that arrives in pieces of that size.
    fn read(text: &[u8], piece: usize) -> Read {
        let body = Pieces(text.chunks(piece).map(Bytes::copy_from_slice).collect());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut parts = Multipart::new(body, "xYz", 400, 120);
            let mut all = Vec::new();
            while let Some(part) = parts.next().await? {
                let mut bytes = Vec::new();
                while let Some(chunk) = parts.chunk().await? {
                    assert!(!chunk.is_empty());
                    bytes.extend_from_slice(&chunk);
                }
                all.push((part, bytes));
            }
            Ok(all)
        })
    }

    /// A body that arrives in pieces.
    struct Pieces(std::collections::VecDeque<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            std::task::Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
        }
    }

    #[test]
    fn parts_are_the_same_however_they_arrive() {
        let text = b"--xYz\r\nContent-Disposition: form-data; name=\"payload\"; filename=\"a.html\"\r\nContent-Type: text/html\r\n\r\n\
                     <p>\r\n--xY\r\n--\r\n\r\n--xYz\r\ncontent-disposition: form-data; name=\"empty\"\r\n\r\n\r\n--xYz--\r\n";
        let part =
            |name: &str, file: Option<&str>| Part { name: name.into(), file_name: file.map(Into::into) };
        let expected = [
            (part("payload", Some("a.html")), b"<p>\r\n--xY\r\n--\r\n".to_vec()),
            (part("empty", None), vec![]),
        ];
        for piece in 1..text.len() + 1 {
            assert_eq!(read(text, piece).unwrap(), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_not_of_this_form_ends_the_upload() {
        let good = "--xYz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--xYz--";
        assert!(read(good.as_bytes(), 7).is_ok());
        let long = "x".repeat(500);
        for (text, error) in [
            (String::new(), MultipartError::Broken),
            (good[..good.len() - 2].to_owned(), MultipartError::Broken),
            (good[..40].to_owned(), MultipartError::Broken),
            (
                good.replace("--xYz", "--other"),
                MultipartError::Malformed("the body does not begin with its boundary"),
            ),
            (
                format!("hello\r\n{good}"),
                MultipartError::Malformed("the body does not begin with its boundary"),
            ),
            (
                good.replace("1\r\n--xYz--", "1\r\n--xYzzz"),
                MultipartError::Malformed("a boundary is followed by something else"),
            ),
            (
                good.replace("form-data", "attachment"),
                MultipartError::Malformed("a part does not say which field it is"),
            ),
            (
                good.replace("name=", "nome="),
                MultipartError::Malformed("a part does not say which field it is"),
            ),
            (
                good.replace("=\"a\"", "=a"),
                MultipartError::Malformed("a part does not say which field it is"),
            ),
            (
                good.replace("name=", &format!("x=\"{}\"; name=", &long[..200])),
                MultipartError::Malformed("the head of a part is too long"),
            ),
            (good.replace('1', &long), MultipartError::TooLarge),
        ] {
            for piece in [1, 7, 1000] {
                assert_eq!(read(text.as_bytes(), piece), Err(error.clone()), "{text} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn boundaries() {
        assert_eq!(boundary("multipart/form-data; boundary=xYz").as_deref(), Some("xYz"));
        assert_eq!(boundary("Multipart/Form-Data; charset=utf-8; Boundary=\"x-1\"").as_deref(), Some("x-1"));
        for bad in [
            "",
            "multipart/form-data",
            "multipart/mixed; boundary=x",
            "multipart/form-data; boundary=",
            "multipart/form-data; boundary=a b",
            "multipart/form-data; boundary=a\r\nb",
            &format!("multipart/form-data; boundary={}", "x".repeat(71)),
        ] {
            assert_eq!(boundary(bad), None, "{bad:?}");
        }
    }
}
