//! Reads a body into memory: never more than its limit, never longer than its time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use policy::limits;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// It is longer than allowed.
    TooLarge {
        /// How long it may be.
        bytes_max: usize,
    },
    /// It did not arrive in time.
    Slow,
    /// It ended early, or its framing is wrong.
    Broken,
}

/// Of a body that is too large, this many times what is allowed is read and thrown away: its sender, who is still
/// writing, then gets to see the answer.
const PATIENCE: usize = 4;

/// Reads a body of at most `bytes_max`.
pub async fn read(body: Incoming, bytes_max: usize) -> Result<Bytes, BodyError> {
    let most = Duration::from_secs(limits().api.body_seconds_max.into());
    tokio::time::timeout(most, collect(body, bytes_max)).await.unwrap_or(Err(BodyError::Slow))
}

async fn collect(mut body: Incoming, bytes_max: usize) -> Result<Bytes, BodyError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let (mut first, mut rest, mut total) = (Bytes::new(), BytesMut::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        total = total.saturating_add(data.len());
        if total > bytes_max {
            (first, rest) = (Bytes::new(), BytesMut::new());
            if total > bytes_max.saturating_mul(PATIENCE) {
                break;
            }
        } else if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.reserve(announced.min(bytes_max));
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    match total {
        _ if total > bytes_max => Err(BodyError::TooLarge { bytes_max }),
        _ if rest.is_empty() => Ok(first),
        _ => Ok(rest.freeze()),
    }
}
