//! The fields of messages (PROTOCOL.md §2, §3): taken off received bytes, put into a frame to send.
//!
//! Used by `codec` for values and by `message` for the rest. Knows bytes and bounds, and nothing of Python.

/// A rule of the protocol that the received bytes break.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Violation(pub(super) String);

impl Violation {
    pub(super) fn new(what: impl Into<String>) -> Violation {
        Violation(what.into())
    }
}

/// What is left of a message.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields in `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes }
    }

    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Violation> {
        let (part, rest) = self.rest.split_at_checked(count).ok_or_else(|| {
            Violation(format!("{count} bytes are announced and {} are left", self.rest.len()))
        })?;
        self.rest = rest;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Violation> {
        let (part, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or_else(|| Violation(format!("the message ends within a field of {N} bytes")))?;
        self.rest = rest;
        Ok(*part)
    }

    /// A `u8`.
    pub(super) fn byte(&mut self) -> Result<u8, Violation> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A `u32`.
    pub(super) fn u32(&mut self) -> Result<u32, Violation> {
        self.array().map(u32::from_le_bytes)
    }

    /// A `u64`.
    pub(super) fn u64(&mut self) -> Result<u64, Violation> {
        self.array().map(u64::from_le_bytes)
    }

    /// An `i64`.
    pub(super) fn i64(&mut self) -> Result<i64, Violation> {
        self.array().map(i64::from_le_bytes)
    }

    /// An `f64`.
    pub(super) fn f64(&mut self) -> Result<f64, Violation> {
        self.array().map(f64::from_le_bytes)
    }

    /// Bytes with their length in front; the same for a text, whose UTF-8 is left to the caller.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Violation> {
        let count = self.u32()?;
        self.take(size(count))
    }

    /// A count of things that take at least `least` bytes each, so that it can be believed.
    pub(super) fn count(&mut self, least: usize) -> Result<usize, Violation> {
        let count = size(self.u32()?);
        if count > self.rest.len() / least {
            let left = self.rest.len();
            return Err(Violation(format!("a count of {count} with {left} bytes left in the message")));
        }
        Ok(count)
    }

    /// The end of the message.
    pub(super) fn end(&self) -> Result<(), Violation> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(Violation(format!("{left} bytes follow the last field"))),
        }
    }
}

fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The message would be longer than `message_limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// A frame being made: room for the length, the kind, then fields.
#[derive(Debug)]
pub(super) struct Frame {
    bytes: Vec<u8>,
    message_max: usize,
}

/// Bytes of the length in front of a message.
pub(super) const HEAD: usize = 4;

impl Frame {
    /// A message of `kind` that may have `message_max` bytes.
    pub(super) fn new(kind: u8, message_max: usize) -> Frame {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(&[0; HEAD]);
        bytes.push(kind);
        Frame { bytes, message_max }
    }

    /// Adds raw bytes.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if bytes.len() > self.message_max.saturating_sub(self.bytes.len() - HEAD) {
            return Err(TooLong);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds a count or length.
    pub(super) fn put_count(&mut self, count: usize) -> Result<(), TooLong> {
        let count = u32::try_from(count).map_err(|_| TooLong)?;
        self.put(&count.to_le_bytes())
    }

    /// Adds bytes, or a text, with their length in front.
    pub(super) fn put_bytes(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.put_count(bytes.len())?;
        self.put(bytes)
    }

    /// The frame with its length filled in.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len() - HEAD).unwrap_or(u32::MAX);
        if let Some(head) = self.bytes.first_chunk_mut::<HEAD>() {
            *head = length.to_le_bytes();
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_where_the_bytes_do() {
        let mut fields = Fields::new(&[1, 2, 0, 0, 0, b'a', b'b', 9]);
        assert_eq!(fields.byte(), Ok(1));
        assert_eq!(fields.bytes(), Ok(&b"ab"[..]));
        assert!(fields.end().is_err());
        assert!(fields.u32().is_err());
        assert_eq!(fields.byte(), Ok(9));
        assert_eq!(fields.end(), Ok(()));
    }

    #[test]
    fn a_count_is_believed_only_when_it_fits() {
        for (count, least, fits) in
            [(2u32, 1, true), (3, 1, false), (1, 2, true), (2, 2, false), (u32::MAX, 8, false)]
        {
            let bytes = [&count.to_le_bytes()[..], b"xy"].concat();
            assert_eq!(Fields::new(&bytes).count(least).is_ok(), fits, "{count} × {least}");
        }
    }

    #[test]
    fn a_frame_holds_exactly_its_limit() {
        let mut frame = Frame::new(7, 4);
        assert_eq!(frame.put(b"abc"), Ok(()));
        assert_eq!(frame.put(b"d"), Err(TooLong));
        assert_eq!(frame.finish(), [4, 0, 0, 0, 7, b'a', b'b', b'c']);
    }
}
