//! A server in this process: a data folder, a socket, a thread with a runtime.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use api::app::Prepared;
use api::{route, server};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::client::Client;

/// Serves until it is dropped.
pub(crate) struct Server {
    folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    hurry: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::start(tempfile::tempdir().unwrap())
    }

    /// From now on its clock stands still, and jumps to the next deadline whenever nothing else happens: a client that
    /// has sent all it will send has waited for an hour at once.
    pub(crate) fn let_time_pass(&mut self) {
        self.hurry.take().unwrap().send(()).unwrap();
    }

    /// Stops, and starts again on the same data.
    pub(crate) fn restarted(mut self) -> Self {
        self.finish();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        drop(self);
        Self::start(folder)
    }

    fn start(folder: TempDir) -> Self {
        let prepared = Prepared::open(folder.path(), "http://localhost", 2).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(folder.path().join("api.sock")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (app, writer) = prepared.start().unwrap();
        let app = Arc::new(app);
        let (stop, stopped) = oneshot::channel();
        let (hurry, hurried) = oneshot::channel();
        let serving = std::thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::UnixListener::from_std(listener).unwrap();
                tokio::spawn(async {
                    if hurried.await.is_ok() {
                        tokio::time::pause();
                    }
                });
                let service = move |request| route::answer(Arc::clone(&app), request);
                server::run(listener, service, async { _ = stopped.await }).await;
            });
            drop(runtime);
            writer.join().unwrap();
        });
        Self { folder, stop: Some(stop), hurry: Some(hurry), serving: Some(serving) }
    }

    /// A path in its data folder.
    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.data("api.sock"))
    }

    fn finish(&mut self) {
        drop(self.stop.take());
        if let Some(serving) = self.serving.take() {
            serving.join().unwrap();
        }
        let _ = std::fs::remove_file(self.data("api.sock"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.finish();
    }
}
