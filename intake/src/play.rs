//! The smoke run: a page played for five seconds in a headless Chromium, under the headers that works are served with.
//!
//! The browser runs as an unprivileged user with its own sandbox on, in a network namespace that holds nothing, not even
//! a loopback: the page is handed to it through its debugging pipe, and whatever else it asks for is refused and written
//! down. Where one of these cannot be had, the run is *not run*; it is never taken for passed. A page without a function
//! is played alone, so `TF` answers "alone", as it does when a save cannot be reached. A page with one is played twice
//! within a page around it: while its function answers, and while Python is closed.
//!
//! | file | what it is |
//! |---|---|
//! | `launch` | the browser, kept apart |
//! | `around` | the page around a work, with the site's own bridge |
//! | `backend` | who answers the function |

mod around;
mod backend;
mod launch;

use std::fs::File;
use std::io::Write;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use catalog::Manifest;
use data_encoding::BASE64;
use policy::headers::Header;
use serde_json::{Value, json};

use self::around::{Around, Asked};
pub use self::backend::Backend;
use self::launch::{ended, launch, open_to_all};
use crate::finding::Finding;
use crate::rules::play::{BLANK, ERROR, REFUSED};
use crate::source::shorten;

const FIRST_SCREEN: Duration = Duration::from_secs(2);
const WHOLE: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(20);
/// How the answer of a call is called among what the browser says.
const ANSWERED: &str = "intake.answered";
/// Measures in a world of its own, which the page does not see.
const WATCH: &str = "globalThis.longest = 0; globalThis.note = (tasks) => { for (const task of tasks) \
                     longest = Math.max(longest, task.duration); return Math.round(longest); }; \
                     globalThis.watcher = new PerformanceObserver((list) => { note(list.getEntries()); }); \
                     watcher.observe({ type: 'longtask', buffered: true })";

/// What was seen.
#[derive(Debug)]
pub struct Played {
    /// Errors, refusals and a blank screen.
    pub findings: Vec<Finding>,
    /// The screen after the whole run, as PNG.
    pub screenshot: Vec<u8>,
    /// The longest task, in milliseconds; the browser counts from 50.
    pub longest_task_ms: u64,
}

/// Why there was no run.
#[derive(Debug, thiserror::Error)]
#[error("not run: {0}")]
pub struct NotRun(String);

fn not_run(why: impl Into<String>) -> NotRun {
    NotRun(why.into())
}

/// Plays the page `html` alone on a screen of that size. `program` is Chromium.
pub fn play(name: &str, html: &str, size: (u16, u16), program: &str) -> Result<Played, NotRun> {
    run(name, html, size, program, None)
}

/// Plays a page within the page around it, for a work with a function that `backend` answers.
pub fn play_within(
    name: &str,
    html: &str,
    size: (u16, u16),
    program: &str,
    (manifest, backend): (&Manifest, Backend),
) -> Result<Played, NotRun> {
    // Whether anything can answer at all, asked in the way in which the page will ask.
    backend.call("{}").map_err(not_run)?;
    run(name, html, size, program, Some((manifest, backend)))
}

fn run(
    name: &str,
    html: &str,
    (width, height): (u16, u16),
    program: &str,
    within: Option<(&Manifest, Backend)>,
) -> Result<Played, NotRun> {
    let config = config().map_err(not_run)?;
    let address = format!("{}/play/{}/", config.content, "work");
    let of_page = policy::headers::work(&config, "/play/work/");
    let of_site = policy::headers::site(&config);
    let around = within.map(|(manifest, backend)| {
        Around::new(config.site.to_string(), &address, (width, height), manifest, backend)
    });
    let start_at = around.as_ref().map_or_else(|| address.clone(), Around::address);
    let page = Page { name, address: &address, of_page, of_site, body: html, around };
    let mut browser = Browser::start(program)?;
    let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }))?;
    let attach = json!({ "targetId": target["targetId"], "flatten": true });
    browser.session = browser.ask("Target.attachToTarget", attach)?["sessionId"].as_str().map(str::to_owned);
    let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
    for (method, parameters) in [
        ("Page.enable", json!({})),
        ("Runtime.enable", json!({})),
        ("Log.enable", json!({})),
        ("Emulation.setDeviceMetricsOverride", size),
        ("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH, "worldName": "intake" })),
        ("Fetch.enable", json!({ "patterns": [{ "urlPattern": "*" }] })),
    ] {
        browser.ask(method, parameters)?;
    }
    browser.send("Page.navigate", json!({ "url": start_at }))?;
    browser.load(&page)?;
    let start = Instant::now();
    browser.watch(&page, start + FIRST_SCREEN)?;
    let Ok(first) = browser.screenshot(&page) else { return browser.hung(name) };
    for kind in ["mousePressed", "mouseReleased"] {
        let click =
            json!({ "type": kind, "x": width / 2, "y": height / 2, "button": "left", "clickCount": 1 });
        browser.send("Input.dispatchMouseEvent", click)?;
    }
    browser.watch(&page, start + WHOLE)?;
    let Ok(longest_task_ms) = browser.longest_task(&page) else { return browser.hung(name) };
    let Ok(screenshot) = browser.screenshot(&page) else { return browser.hung(name) };
    let mut findings = std::mem::take(&mut browser.findings);
    if is_blank(&first) {
        let what = format!("the screen is of one colour after {} seconds", FIRST_SCREEN.as_secs());
        findings.push(Finding::whole(&BLANK, name, what));
    }
    Ok(Played { findings, screenshot, longest_task_ms })
}

/// The configuration of a developer's machine: its origins stand in the headers, and nothing is sent to them.
fn config() -> Result<policy::Config, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("tinyfiles.toml");
    std::fs::write(&path, include_str!("../../tinyfiles.toml")).map_err(|e| e.to_string())?;
    policy::Config::open(&path).map_err(|e| e.to_string())
}

/// Whether a picture has one colour only.
fn is_blank(png: &[u8]) -> bool {
    let Ok(picture) = image::load_from_memory(png) else { return false };
    let pixels = picture.to_rgb8();
    let mut pixels = pixels.pixels();
    let first = pixels.next();
    pixels.all(|p| Some(p) == first)
}

/// The page as the browser gets it.
struct Page<'p> {
    name: &'p str,
    address: &'p str,
    of_page: Vec<Header>,
    of_site: Vec<Header>,
    body: &'p str,
    around: Option<Around>,
}

/// A running browser and what it said.
struct Browser {
    child: Child,
    input: File,
    messages: Receiver<Value>,
    /// Where the answers of calls come in, among what the browser says.
    answers: Sender<Value>,
    /// Calls that are not answered yet.
    calls: usize,
    next: u64,
    session: Option<String>,
    world: Option<u64>,
    is_loaded: bool,
    findings: Vec<Finding>,
    _folder: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.send("Browser.close", json!({}));
        let end = Instant::now() + Duration::from_secs(3);
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Starts Chromium apart from the network and from the user's files.
    fn start(program: &str) -> Result<Self, NotRun> {
        let folder = tempfile::tempdir().map_err(|e| not_run(e.to_string()))?;
        let (to, from) = (folder.path().join("to"), folder.path().join("from"));
        open_to_all(folder.path())?;
        for pipe in [&to, &from] {
            let made = Command::new("mkfifo").args(["-m", "666"]).arg(pipe).status();
            made.ok()
                .filter(std::process::ExitStatus::success)
                .ok_or_else(|| not_run("no pipe can be made (mkfifo)"))?;
        }
        let mut child = launch(program, folder.path(), &to, &from)?;
        let (send, opened) = channel();
        // Opening a pipe waits for the other side, which may never come.
        std::thread::spawn(move || {
            let input = File::options().write(true).open(to);
            let output = File::open(from);
            send.send(input.and_then(|i| Ok((i, output?))))
        });
        let end = Instant::now() + PATIENCE;
        let (input, output) = loop {
            match (opened.recv_timeout(Duration::from_millis(50)), child.try_wait()) {
                (Ok(Ok(pipes)), _) => break pipes,
                (_, Ok(Some(status))) => return Err(not_run(ended(status.code(), program))),
                (Ok(Err(error)), _) => return Err(not_run(error.to_string())),
                _ if Instant::now() > end => {
                    let _ = child.kill();
                    return Err(not_run("the browser did not start in time"));
                }
                _ => {}
            }
        };
        let (answers, messages) = channel();
        launch::read(output, answers.clone());
        let findings = Vec::new();
        Ok(Self {
            child,
            input,
            messages,
            answers,
            calls: 0,
            next: 0,
            session: None,
            world: None,
            is_loaded: false,
            findings,
            _folder: folder,
        })
    }

    fn send(&mut self, method: &str, parameters: Value) -> Result<u64, NotRun> {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let text = format!("{message}\0");
        self.input.write_all(text.as_bytes()).map_err(|e| not_run(format!("the browser ended: {e}")))?;
        Ok(self.next)
    }

    /// Sends a command and waits for its answer; only before a page is there.
    fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, NotRun> {
        self.ask_while(None, method, parameters)
    }

    fn ask_while(
        &mut self,
        page: Option<&Page<'_>>,
        method: &str,
        parameters: Value,
    ) -> Result<Value, NotRun> {
        let id = self.send(method, parameters)?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let Ok(mut message) = self.messages.recv_timeout(Duration::from_millis(100)) else { continue };
            if message["id"].as_u64() == Some(id) {
                return match message["error"]["message"].as_str() {
                    Some(error) => Err(not_run(format!("{method}: {error}"))),
                    None => Ok(message["result"].take()),
                };
            }
            if let Some(page) = page {
                self.event(page, &message)?;
            }
        }
        Err(not_run(format!("the browser does not answer {method}")))
    }

    /// Waits until the page has loaded, but not for long: a page may keep its own load from ending.
    fn load(&mut self, page: &Page<'_>) -> Result<(), NotRun> {
        let end = Instant::now() + PATIENCE;
        while !self.is_loaded && Instant::now() < end {
            if let Ok(message) = self.messages.recv_timeout(Duration::from_millis(100)) {
                self.event(page, &message)?;
            }
        }
        Ok(())
    }

    /// What a page that does not answer any more comes to, if the browser itself is still there.
    fn hung(&mut self, name: &str) -> Result<Played, NotRun> {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return Err(not_run("the browser ended"));
        }
        let mut findings = std::mem::take(&mut self.findings);
        let what = format!("the page does not answer for {} seconds: a loop without end", PATIENCE.as_secs());
        findings.push(Finding::whole(&ERROR, name, what));
        Ok(Played { findings, screenshot: Vec::new(), longest_task_ms: PATIENCE.as_secs() * 1_000 })
    }

    /// Handles what the browser says until `end`, and then until no call of the function is under way.
    fn watch(&mut self, page: &Page<'_>, end: Instant) -> Result<(), NotRun> {
        loop {
            let end = if self.calls > 0 { end + PATIENCE } else { end };
            let Some(left) = end.checked_duration_since(Instant::now()) else { return Ok(()) };
            if let Ok(message) = self.messages.recv_timeout(left) {
                self.event(page, &message)?;
            }
        }
    }

    fn event(&mut self, page: &Page<'_>, message: &Value) -> Result<(), NotRun> {
        let parameters = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Page.loadEventFired" => self.is_loaded = true,
            "Fetch.requestPaused" => return self.request(page, parameters),
            ANSWERED => {
                self.calls -= 1;
                if let Some(why) = parameters["not_run"].as_str() {
                    return Err(not_run(why));
                }
                self.send("Fetch.fulfillRequest", parameters.clone())?;
            }
            "Page.javascriptDialogOpening" => {
                self.send("Page.handleJavaScriptDialog", json!({ "accept": false }))?;
            }
            "Runtime.executionContextCreated" if parameters["context"]["name"] == "intake" => {
                self.world = parameters["context"]["id"].as_u64();
            }
            "Page.frameRequestedNavigation" if parameters["url"].as_str() != Some(page.address) => {
                let what = format!(
                    "the page wants to leave for {}",
                    shorten(parameters["url"].as_str().unwrap_or_default())
                );
                self.findings.push(Finding::whole(&REFUSED, page.name, what));
            }
            "Runtime.exceptionThrown" => {
                let details = &parameters["exceptionDetails"];
                let words = details["exception"]["description"].as_str().or_else(|| details["text"].as_str());
                let first = words.unwrap_or("an error").lines().next().unwrap_or_default();
                self.findings.push(found(&ERROR, page, details, format!("uncaught: {}", shorten(first))));
            }
            "Log.entryAdded" if parameters["entry"]["level"] == "error" => {
                let entry = &parameters["entry"];
                // That a function is closed is no fault of the work.
                if page.around.as_ref().is_some_and(|a| a.has(entry["url"].as_str().unwrap_or_default())) {
                    return Ok(());
                }
                let what = shorten(entry["text"].as_str().unwrap_or("something was refused"));
                self.findings.push(found(&REFUSED, page, entry, what));
            }
            _ => {}
        }
        Ok(())
    }

    /// Hands the page over; refuses everything else.
    fn request(&mut self, page: &Page<'_>, parameters: &Value) -> Result<(), NotRun> {
        let id = &parameters["requestId"];
        let url = parameters["request"]["url"].as_str().unwrap_or_default();
        if url == page.address {
            let body = ("text/html; charset=utf-8", page.body);
            self.send("Fetch.fulfillRequest", answer(id, 200, &page.of_page, body))?;
            return Ok(());
        }
        match page.around.as_ref().and_then(|around| around.asked(url)) {
            Some(Asked::File(kind, text)) => {
                self.send("Fetch.fulfillRequest", answer(id, 200, &page.of_site, (kind, &text)))?;
                return Ok(());
            }
            Some(Asked::Call) => {
                self.call(page, parameters);
                return Ok(());
            }
            None => {}
        }
        if !url.ends_with("/favicon.ico") {
            let what = format!("a request for {}", shorten(url));
            self.findings.push(Finding::whole(&REFUSED, page.name, what));
        }
        self.send("Fetch.failRequest", json!({ "requestId": id, "errorReason": "BlockedByClient" }))?;
        Ok(())
    }

    /// Calls the function beside everything else; the answer comes in with what the browser says.
    fn call(&mut self, page: &Page<'_>, parameters: &Value) {
        let Some(around) = &page.around else { return };
        let (backend, answers, headers) =
            (around.backend.clone(), self.answers.clone(), page.of_site.clone());
        let inputs = parameters["request"]["postData"].as_str().unwrap_or_default().to_owned();
        let id = parameters["requestId"].clone();
        self.calls += 1;
        std::thread::spawn(move || {
            let parameters = match backend.call(&inputs) {
                Ok(said) => {
                    let (status, kind, body) = around::response(&said);
                    answer(&id, status, &headers, (kind, &body))
                }
                Err(why) => json!({ "not_run": why }),
            };
            // Nobody listens where the run is over.
            let _ = answers.send(json!({ "method": ANSWERED, "params": parameters }));
        });
    }

    fn screenshot(&mut self, page: &Page<'_>) -> Result<Vec<u8>, NotRun> {
        let answer = self.ask_while(Some(page), "Page.captureScreenshot", json!({ "format": "png" }))?;
        let data = answer["data"].as_str().and_then(|d| BASE64.decode(d.as_bytes()).ok());
        data.ok_or_else(|| not_run("the browser made no picture"))
    }

    fn longest_task(&mut self, page: &Page<'_>) -> Result<u64, NotRun> {
        let expression = json!({ "expression": "note(watcher.takeRecords())", "contextId": self.world });
        let answer = self.ask_while(Some(page), "Runtime.evaluate", expression)?;
        Ok(answer["result"]["value"].as_u64().unwrap_or(0))
    }
}

/// An answer to a request that waits, as the browser is told it.
fn answer(id: &Value, status: u16, headers: &[Header], (kind, body): (&str, &str)) -> Value {
    let headers: Vec<Value> = headers
        .iter()
        .map(|h| json!({ "name": h.name, "value": h.value }))
        .chain([json!({ "name": "Content-Type", "value": kind })])
        .collect();
    json!({ "requestId": id, "responseCode": status, "responseHeaders": headers, "body": BASE64.encode(body.as_bytes()) })
}

/// A finding at the place that the browser tells, which counts from 0.
fn found(rule: &'static crate::finding::Rule, page: &Page<'_>, at: &Value, what: String) -> Finding {
    let number = |key: &str| at[key].as_u64().and_then(|n| usize::try_from(n).ok());
    match number("lineNumber").filter(|_| at["url"].as_str().is_none_or(|u| u == page.address)) {
        Some(line) => {
            let place = (line + 1, number("columnNumber").unwrap_or(0) + 1);
            Finding::at(rule, page.name, place, String::new(), what)
        }
        None => Finding::whole(rule, page.name, what),
    }
}
