//! The connections of one socket: accepted while there is room, bounded in time, finished before the end.
//!
//! Called by `main` and by tests with a listener, a service and a shutdown. It knows nothing of what is served. It
//! never asks who is at the other end, and a Unix socket would not know.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use policy::limits;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::answer::Answer;

/// Serves `listener` until `shutdown`; then takes no more connections and finishes what it has.
pub async fn run<S, F>(listener: UnixListener, service: S, shutdown: impl Future<Output = ()>)
where
    S: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limits().api.connections_max));
    let (stop, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = &mut shutdown => break,
        };
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // No descriptor left, most likely: the connections there are have to end first.
                    tracing::warn!("accept: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = &mut shutdown => break,
        };
        while connections.try_join_next().is_some() {}
        let (service, stopped) = (service.clone(), stopped.clone());
        connections.spawn(async move {
            connection(stream, service, stopped).await;
            drop(place);
        });
    }
    drop((listener, stop));
    let most = Duration::from_secs(limits().api.stop_seconds_max.into());
    if tokio::time::timeout(most, async { while connections.join_next().await.is_some() {} }).await.is_err() {
        tracing::warn!("{} connections were cut off", connections.len());
    }
}

async fn connection<S, F>(stream: UnixStream, service: S, mut stopped: watch::Receiver<()>)
where
    S: Fn(Request<Incoming>) -> F,
    F: Future<Output = Answer>,
{
    let service = service_fn(move |request| {
        let answer = service(request);
        async { Ok::<_, Infallible>(answer.await) }
    });
    let api = &limits().api;
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(api.headers_seconds_max.into()))
        .max_buf_size(api.headers_bytes_max)
        // A client that has said all it wants to say still gets its answer.
        .half_close(true);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // How a connection ends is the client's affair.
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
