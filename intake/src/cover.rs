//! Covers: pictures that the site itself shows, known by their content and bounded.

/// What is wrong with the bytes of a cover, if anything is.
pub fn problem(bytes: &[u8]) -> Option<String> {
    let limits = &policy::limits().work;
    if bytes.len() as u64 > limits.cover_bytes_max {
        return Some(format!(
            "a picture of {} bytes, more than the {} allowed",
            bytes.len(),
            limits.cover_bytes_max
        ));
    }
    match size(bytes) {
        None => Some("this is no PNG, JPEG, WebP or GIF".to_owned()),
        Some((width, height)) if width == 0 || height == 0 => Some("a picture without a size".to_owned()),
        Some((width, height)) if width.max(height) > limits.cover_side_px_max => Some(format!(
            "a picture of {width} by {height} pixels, more than {} on a side",
            limits.cover_side_px_max
        )),
        Some(_) => None,
    }
}

/// Width and height of a PNG, JPEG, WebP or GIF.
pub fn size(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize, length: usize, is_big: bool| -> Option<u32> {
        let part = bytes.get(at..at + length)?;
        let add = |sum: u32, byte: &u8| sum << 8 | u32::from(*byte);
        Some(if is_big { part.iter().fold(0, add) } else { part.iter().rev().fold(0, add) })
    };
    if bytes.starts_with(b"\x89PNG\r\n\x1A\n") && bytes.get(12..16) == Some(b"IHDR") {
        return Some((number(16, 4, true)?, number(20, 4, true)?));
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        return Some((number(6, 2, false)?, number(8, 2, false)?));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return match bytes.get(12..16)? {
            b"VP8X" => Some((number(24, 3, false)? + 1, number(27, 3, false)? + 1)),
            b"VP8 " => Some((number(26, 2, false)? & 0x3FFF, number(28, 2, false)? & 0x3FFF)),
            b"VP8L" => {
                let bits = number(21, 4, false)?;
                Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
            }
            _ => None,
        };
    }
    if bytes.starts_with(b"\xFF\xD8") {
        let mut at = 2;
        loop {
            let kind = (bytes.get(at)? == &0xFF).then(|| bytes.get(at + 1).copied()).flatten()?;
            match kind {
                0xFF => at += 1,
                0xC0..=0xCF if !matches!(kind, 0xC4 | 0xC8 | 0xCC) => {
                    return Some((number(at + 7, 2, true)?, number(at + 5, 2, true)?));
                }
                _ => at += 2 + usize::try_from(number(at + 2, 2, true)?).ok()?.max(2),
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_the_headers() {
        let png = b"\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\x02\x80\0\0\x01\xE0\x08\x06\0\0\0";
        let jpeg = b"\xFF\xD8\xFF\xE0\0\x04ab\xFF\xC0\0\x0B\x08\x01\xE0\x02\x80\x01";
        let webp = b"RIFF\0\0\0\0WEBPVP8X\x0A\0\0\0\0\0\0\0\x7F\x02\0\xDF\x01\0";
        for picture in [png.as_slice(), jpeg, webp, b"GIF89a\x80\x02\xE0\x01"] {
            assert_eq!(size(picture), Some((640, 480)), "{picture:?}");
            assert_eq!(problem(picture), None);
        }
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2F\x7F\xC2\x77\0";
        assert_eq!(size(lossless), Some((640, 480)));
        for broken in [
            b"".as_slice(),
            b"<svg>",
            b"\x89PNG\r\n\x1A\n",
            b"\xFF\xD8\xFF",
            b"\xFF\xD8\xFF\xE0\0\0",
            b"GIF89a",
        ] {
            assert_eq!(size(broken), None, "{broken:?}");
        }
        assert!(problem(b"GIF89a\0\0\0\0").unwrap().contains("without a size"));
        assert!(problem(b"GIF89a\xFF\xFF\x01\0").unwrap().contains("65535 by 1"));
    }
}
