//! The body of a request, and reading it into memory: never more than its limit, never longer than its time.
//!
//! What a handler leaves unread comes back to `route`, which reads it away before it answers. An answer that comes while
//! its client still sends is lost to clients that write first and read later; and nginx, which takes the connection
//! for good and sends its next request there, would find it closed and answer that one with 502.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use policy::limits;
use tokio::sync::oneshot;

/// The body of a request, in the hands of its handler.
pub struct Unread {
    /// There until it is dropped.
    inner: Option<Incoming>,
    back: Option<oneshot::Sender<Incoming>>,
}

/// What is left of a body when its handler is done with it.
pub struct Rest(oneshot::Receiver<Incoming>);

/// A body, and what will be left of it.
pub fn unread(body: Incoming) -> (Unread, Rest) {
    let (back, rest) = oneshot::channel();
    (Unread { inner: Some(body), back: Some(back) }, Rest(rest))
}

impl Body for Unread {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.inner {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if let (Some(body), Some(back)) = (self.inner.take(), self.back.take()) {
            let _ = back.send(body);
        }
    }
}

impl Rest {
    /// Reads it and throws it away, if it was announced to be no more than an upload may be.
    pub async fn read_away(self) {
        let Ok(mut body) = self.0.await else { return };
        let announced = body.size_hint().exact().unwrap_or(u64::MAX);
        if announced > limits().submission.body_bytes_max {
            return;
        }
        let most = Duration::from_secs(limits().api.body_seconds_max.into());
        let all = async { while let Some(Ok(_)) = body.frame().await {} };
        // Who is slower than that has lost the connection.
        let _ = tokio::time::timeout(most, all).await;
    }
}

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
pub async fn read(body: Unread, bytes_max: usize) -> Result<Bytes, BodyError> {
    let most = Duration::from_secs(limits().api.body_seconds_max.into());
    tokio::time::timeout(most, collect(body, bytes_max)).await.unwrap_or(Err(BodyError::Slow))
}

async fn collect(mut body: Unread, bytes_max: usize) -> Result<Bytes, BodyError> {
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
