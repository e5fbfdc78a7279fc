//! A browser at the other end of its debugging pipe: commands, their answers, and what it says unasked.
//!
//! Called by `visit`, which knows what the messages mean. Whatever comes over the pipe may be a hostile page's doing: it is
//! parsed as JSON, bounded, and believed to be a claim.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::launch::Launched;
use super::{NotRun, not_run};

/// How long an answer may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// How long a browser may take to end by itself.
const FAREWELL: Duration = Duration::from_secs(3);

/// A running browser with one page.
pub(super) struct Browser {
    launched: Launched,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// For what is to come in among what the browser says.
    pub(super) beside: Sender<Value>,
    next: u64,
    is_heard: bool,
    session: Option<String>,
}

impl Browser {
    /// Listens to a browser that was started, and opens an empty page in it.
    pub(super) fn of(mut launched: Launched) -> Result<Self, NotRun> {
        let (input, output) = (launched.child.stdin.take(), launched.child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { return Err(not_run("there is no pipe")) };
        let (beside, messages) = channel();
        read(output, beside.clone());
        let mut browser = Self { launched, input, messages, beside, next: 0, is_heard: false, session: None };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.ask("Target.attachToTarget", attach)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        Ok(browser)
    }

    /// Sends a command and returns its number.
    pub(super) fn send(&mut self, method: &str, parameters: Value) -> Result<u64, NotRun> {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let text = format!("{message}\0");
        match self.input.write_all(text.as_bytes()) {
            Ok(()) => Ok(self.next),
            Err(_) => Err(self.why_ended()),
        }
    }

    /// Sends a command and waits for its answer; only before a page is there.
    pub(super) fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, NotRun> {
        let id = self.send(method, parameters)?;
        let end = Instant::now() + PATIENCE;
        while let Some(message) = self.next_before(end)? {
            if let Some(answer) = answer(method, id, message)? {
                return Ok(answer);
            }
        }
        Err(not_run(format!("the browser does not answer {method}")))
    }

    /// The next message, if one comes in time.
    pub(super) fn next_before(&mut self, end: Instant) -> Result<Option<Value>, NotRun> {
        let left = end.saturating_duration_since(Instant::now());
        match self.messages.recv_timeout(left) {
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) | Ok(Value::Null) => Err(self.why_ended()),
            Ok(message) => {
                self.is_heard = true;
                Ok(Some(message))
            }
        }
    }

    fn why_ended(&mut self) -> NotRun {
        if self.is_heard { not_run("the browser ended while it played") } else { self.launched.why_not() }
    }
}

/// The answer to the command of that number, if the message is one.
pub(super) fn answer(method: &str, id: u64, mut message: Value) -> Result<Option<Value>, NotRun> {
    if message["id"].as_u64() != Some(id) {
        return Ok(None);
    }
    match message["error"]["message"].as_str() {
        Some(error) => Err(not_run(format!("{method}: {error}"))),
        None => Ok(Some(message["result"].take())),
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.send("Browser.close", json!({}));
        // Its pipe closes when it ends.
        let end = Instant::now() + FAREWELL;
        while matches!(self.next_before(end), Ok(Some(_))) {}
    }
}

/// Hands over the messages of the pipe, each ended by a NUL, and `null` after the last.
fn read(output: ChildStdout, send: Sender<Value>) {
    // A picture of the screen, in base64 and with what frames it, is the longest there is.
    let bytes_max = policy::limits().job.screenshot_bytes_max * 2;
    std::thread::spawn(move || {
        let mut reader = BufReader::new(output);
        let mut bytes = Vec::new();
        while reader.by_ref().take(bytes_max).read_until(0, &mut bytes).is_ok() && bytes.pop() == Some(0) {
            if let Ok(message @ Value::Object(_)) = serde_json::from_slice(&bytes)
                && send.send(message).is_err()
            {
                return;
            }
            bytes.clear();
        }
        let _ = send.send(Value::Null);
    });
}
