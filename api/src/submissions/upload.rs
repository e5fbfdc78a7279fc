//! Streams an upload into the staging folder of a job that does not exist yet.
//!
//! Nothing of it is looked into here: names are the field's own or checked, sizes are counted, bytes go to the disk as they
//! arrive. Whoever stops half way leaves a folder that is removed at once, or after a crash by an idle worker.

use std::collections::HashSet;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use catalog::slug::{PictureName, PythonName, SIDECAR};
use hyper::body::{Body, Bytes};
use policy::limits;

use super::multipart::{Multipart, MultipartError, Part};

/// Why an upload was not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum UploadError {
    /// It is not what is asked for.
    Bad(String),
    /// A file, or all of it, is too large.
    TooLarge(String),
    /// It did not arrive in time.
    Slow,
    /// The client went away.
    Broken,
    /// The disk of the server is full.
    Full,
    /// A fault that stands in the log.
    Failed,
}

impl From<MultipartError> for UploadError {
    fn from(error: MultipartError) -> Self {
        match error {
            MultipartError::Malformed(why) => Self::Bad(format!("The body cannot be read: {why}.")),
            MultipartError::TooLarge => Self::TooLarge(format!(
                "At most {} bytes are taken together.",
                limits().submission.body_bytes_max
            )),
            MultipartError::Broken => Self::Broken,
        }
    }
}

impl From<std::io::Error> for UploadError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full,
            _ => {
                tracing::error!("staging: {error}");
                Self::Failed
            }
        }
    }
}

/// Staged files, removed again unless they are kept.
pub struct Staged {
    folder: PathBuf,
    is_kept: bool,
}

impl Staged {
    /// Leaves the files where they are.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Receives the parts of an upload into `folder`, and puts them on disk.
pub async fn receive<B>(folder: &Path, body: B, boundary: &str) -> Result<Staged, UploadError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let staged = Staged { folder: folder.to_owned(), is_kept: false };
    let files = folder.join("in");
    std::fs::create_dir_all(&files)?;
    let submission = &limits().submission;
    let mut parts =
        Multipart::new(body, boundary, submission.body_bytes_max, submission.part_headers_bytes_max);
    let most = Duration::from_secs(submission.upload_seconds_max);
    let received = tokio::time::timeout(most, async {
        let received = all(&mut parts, &files).await;
        // After the last part as well: where a body ends is not where its last delimiter does.
        parts.drain().await;
        received
    });
    received.await.unwrap_or(Err(UploadError::Slow))?;
    for path in [&files, folder] {
        std::fs::File::open(path)?.sync_all()?;
    }
    Ok(staged)
}

async fn all<B: Body<Data = Bytes> + Unpin>(
    parts: &mut Multipart<B>,
    folder: &Path,
) -> Result<(), UploadError> {
    let mut names = HashSet::new();
    while let Some(part) = parts.next().await? {
        let (name, bytes_max) = place(&part)?;
        let field = if part.name == "payload" { "payload".to_owned() } else { name.clone() };
        if names.len() == limits().submission.files_max || !names.insert(field) {
            return Err(UploadError::Bad(format!("`{}` was sent too often.", part.name)));
        }
        let mut file = std::fs::File::create_new(folder.join(&name))?;
        let mut left = bytes_max;
        while let Some(chunk) = parts.chunk().await? {
            left = left.checked_sub(chunk.len() as u64).ok_or_else(|| {
                UploadError::TooLarge(format!("`{}` is larger than {bytes_max} bytes.", part.name))
            })?;
            // A local disk takes a piece of a body at memory speed; a thread for each would cost more.
            file.write_all(&chunk)?;
        }
        let synced = tokio::task::spawn_blocking(move || file.sync_all()).await;
        synced.unwrap_or_else(|_| Err(ErrorKind::Other.into()))?;
    }
    if names.contains("payload") {
        Ok(())
    } else {
        Err(UploadError::Bad("There is no `payload`.".to_owned()))
    }
}

/// The name of a part's file, and how large it may be. A payload keeps its ending only, so it is never mistaken.
fn place(part: &Part) -> Result<(String, u64), UploadError> {
    let sent = part.file_name.as_deref().unwrap_or_default();
    let work = &limits().work;
    let bad = UploadError::Bad;
    match part.name.as_str() {
        "payload" if sent.to_ascii_lowercase().ends_with(".zip") => {
            Ok(("payload.zip".to_owned(), limits().zip.archive_bytes_max))
        }
        "payload" => Ok(("payload.html".to_owned(), work.html_bytes_max)),
        "sidecar" => Ok((SIDECAR.to_owned(), work.sidecar_bytes_max)),
        "cover" => {
            let name: PictureName = sent.parse().map_err(bad)?;
            Ok((name.to_string(), work.cover_bytes_max))
        }
        "python" => {
            let name: PythonName = sent.parse().map_err(bad)?;
            Ok((name.to_string(), work.python_bytes_max))
        }
        other => Err(bad(format!("There is no field {other:?}: send payload, sidecar, cover, python."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use hyper::body::Frame;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    fn upload(parts: &[(&str, &str, &str)]) -> (tempfile::TempDir, Result<(), UploadError>) {
        let mut text = String::new();
        for (field, name, body) in parts {
            text.push_str(&format!(
                "--b\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\r\n{body}\r\n"
            ));
        }
        text.push_str("--b--\r\n");
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let body = Full::new(Bytes::from(text));
        let done = runtime.block_on(receive(&dir.path().join("job"), body, "b"));
        (dir, done.map(Staged::keep))
    }

    #[test]
    fn parts_become_files_under_names_of_ours() {
        let parts =
            [("payload", "My Game.HTML", "<p>"), ("sidecar", "../../x", "{}"), ("cover", "c.png", "png")];
        let (dir, done) = upload(&parts);
        done.unwrap();
        let read = |name: &str| std::fs::read_to_string(dir.path().join("job/in").join(name)).unwrap();
        assert_eq!(
            (read("payload.html"), read("work.json"), read("c.png")),
            ("<p>".into(), "{}".into(), "png".into())
        );
    }

    /// A body in these pieces, after which it ends, or says nothing more.
    struct Pieces {
        left: Vec<&'static str>,
        ends: bool,
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.left.pop() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(Bytes::from(piece))))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    const PART: &str =
        "--b\r\nContent-Disposition: form-data; name=\"payload\"; filename=\"a.html\"\r\n\r\n<p>";

    #[test]
    fn a_body_is_read_to_its_end_though_its_parts_ended_before() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut body = Pieces { left: vec!["\r\n", "\r\n--b--", PART], ends: true };
        let done = runtime.block_on(receive(&dir.path().join("job"), &mut body, "b"));
        done.unwrap().keep();
        assert!(body.left.is_empty());
    }

    #[test]
    fn a_slow_body_is_given_up_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        // Its clock jumps to the next deadline whenever nothing else happens.
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        for left in [vec![], vec![PART], vec!["\r\n--b\r\n", PART], vec!["\r\n--b--", PART]] {
            let body = Pieces { left, ends: false };
            let done = runtime.block_on(receive(&dir.path().join("job"), body, "b"));
            assert_eq!(done.err(), Some(UploadError::Slow));
            assert!(!dir.path().join("job").exists());
        }
    }

    #[test]
    fn what_is_not_asked_for_leaves_nothing() {
        let big = "x".repeat(65_537);
        let many: Vec<_> = (0..10_000).map(|_| ("cover", "c.png", "")).collect();
        for (parts, expected) in [
            (&[("sidecar", "work.json", "{}")][..], "no `payload`"),
            (&[("payload", "a.html", ""), ("payload", "a.zip", "")], "sent too often"),
            (&[("payload", "a.html", ""), ("cover", "../c.png", "")], "cannot be a file name"),
            (&[("payload", "a.html", ""), ("cover", "c.svg", "")], "cannot be the name of a picture"),
            (&[("payload", "a.html", ""), ("python", "work.json", "")], "cannot be a file name"),
            (&[("payload", "a.html", ""), ("virus", "c.svg", "")], "no field \"virus\""),
            (&[("sidecar", "work.json", &big)], "larger than 65536 bytes"),
            (&many, "sent too often"),
        ] {
            let (dir, done) = upload(parts);
            match done.unwrap_err() {
                UploadError::Bad(why) | UploadError::TooLarge(why) => {
                    assert!(why.contains(expected), "{why}")
                }
                other => assert_eq!(format!("{other:?}"), expected),
            }
            assert!(!dir.path().join("job").exists(), "{expected}");
        }
    }
}
