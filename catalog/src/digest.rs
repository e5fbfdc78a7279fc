//! SHA-256 digests: the names of everything that is stored.

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes (FIPS 180-4). Shown as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

/// A text that is not a digest.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0:?} is not a SHA-256 digest: expected 64 lower-case hexadecimal digits")]
pub struct DigestError(String);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of what `reader` yields, read in pieces, and how many bytes that was.
    pub fn of_reader(mut reader: impl std::io::Read) -> std::io::Result<(Self, u64)> {
        let (mut hasher, mut buffer, mut total) = (Sha256::new(), vec![0; 64 * 1024], 0);
        loop {
            let read = reader.read(&mut buffer)?;
            if read == 0 {
                return Ok((Self(hasher.finalize().into()), total));
            }
            hasher.update(&buffer[..read]);
            total += read as u64;
        }
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The name of a directory: 52 symbols of lower-case base32 (RFC 4648), short enough that a symlink to it is
    /// kept in its inode.
    pub fn dir_name(&self) -> String {
        BASE32_NOPAD.encode(&self.0).to_ascii_lowercase()
    }

    /// The digest that [`Digest::dir_name`] was made from.
    pub fn from_dir_name(name: &str) -> Option<Self> {
        let bytes = BASE32_NOPAD.decode(name.to_ascii_uppercase().as_bytes()).ok()?;
        Some(Self(bytes.try_into().ok()?)).filter(|d| d.dir_name() == name)
    }

    /// A modification time in whole seconds made from the digest, from 2001 to 2035. nginx builds its `ETag` from
    /// time and size, so bytes that differ get tags that differ, and the same bytes the same tag in every tree.
    pub fn mtime_seconds(&self) -> i64 {
        let [a, b, c, d, ..] = self.0;
        1_000_000_000 + i64::from(u32::from_be_bytes([a, b, c, d]) >> 2)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(|_| DigestError(text.to_owned()))?;
        bytes.try_into().map(Self).map_err(|_| DigestError(text.to_owned()))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests() {
        // FIPS 180-4, examples "abc" and the empty message.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), abc);
        assert_eq!(Digest::of_reader(&b"abc"[..]).unwrap(), (abc.parse().unwrap(), 3));
        assert_eq!(
            Digest::of(b"").to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn texts_that_are_not_digests() {
        let upper = Digest::of(b"abc").to_string().to_uppercase();
        for text in ["", "ab", upper.as_str(), &"0".repeat(65), &"g".repeat(64)] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_directory_name_is_reversible_and_its_link_is_short() {
        let digest = Digest::of(b"abc");
        assert_eq!(Digest::from_dir_name(&digest.dir_name()), Some(digest));
        assert_eq!(Digest::from_dir_name("lock"), None);
        assert!(format!("../{}", digest.dir_name()).len() < 60, "longer targets take a block each on ext4");
    }
}
