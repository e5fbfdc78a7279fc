//! One run of a page in a browser: what it asks for is answered or refused, what it says becomes findings.
//!
//! Called by [`super`] once for each run.

use std::path::Path;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use policy::headers::Header;
use serde_json::{Value, json};

use super::around::{self, Around, Asked};
use super::backend::{Answer, Backend};
use super::browser::{self, Browser, PATIENCE};
use super::work::Work;
use super::{NotRun, Played, not_run};
use crate::finding::{Finding, Rule};
use crate::rules::play::{BLANK, ERROR, REFUSED};
use crate::source::shorten;

const FIRST_SCREEN: Duration = Duration::from_secs(2);
const WHOLE: Duration = Duration::from_secs(5);
/// How the answer of a call is called among what the browser says.
const ANSWERED: &str = "intake.answered";
/// Measures in a world of its own, which the page does not see.
const WATCH: &str = "globalThis.longest = 0; globalThis.note = (tasks) => { for (const task of tasks) \
                     longest = Math.max(longest, task.duration); return Math.round(longest); }; \
                     globalThis.watcher = new PerformanceObserver((list) => { note(list.getEntries()); }); \
                     watcher.observe({ type: 'longtask', buffered: true })";

/// Plays a work in a browser, its function answered by `backend`.
pub(super) fn play(
    work: &Work,
    config: &policy::Config,
    browser: Browser,
    backend: Backend,
) -> Result<Played, NotRun> {
    let address = format!("{}/play/work/", config.content);
    let (width, height) = work.size();
    let within = work.manifest.as_ref().filter(|_| work.function.is_some());
    let mut findings = Vec::new();
    if let (Some(_), Some(function)) = (within, work.function()) {
        // Whether anything can answer at all, asked in the way in which the page will ask.
        if let Answer::Problem { more, .. } = backend.call("{}").map_err(not_run)? {
            findings.extend(unloadable(function, &more));
        }
    }
    let around = within
        .map(|manifest| Around::new(config.site.to_string(), &address, (width, height), manifest, backend));
    let start_at = around.as_ref().map_or_else(|| address.clone(), Around::address);
    let visit = Visit {
        work,
        address,
        of_page: policy::headers::work(config, "/play/work/"),
        of_site: policy::headers::site(config),
        around,
        browser,
        calls: 0,
        world: None,
        is_loaded: false,
        findings,
    };
    visit.run(&start_at, (width, height))
}

/// A page in its browser.
struct Visit<'w> {
    work: &'w Work,
    address: String,
    of_page: Vec<Header>,
    of_site: Vec<Header>,
    around: Option<Around>,
    browser: Browser,
    /// Calls that are not answered yet.
    calls: u32,
    world: Option<u64>,
    is_loaded: bool,
    findings: Vec<Finding>,
}

impl Visit<'_> {
    fn run(mut self, start_at: &str, (width, height): (u16, u16)) -> Result<Played, NotRun> {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        for (method, parameters) in [
            ("Page.enable", json!({})),
            ("Runtime.enable", json!({})),
            ("Log.enable", json!({})),
            ("Emulation.setDeviceMetricsOverride", size),
            ("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH, "worldName": "intake" })),
            ("Fetch.enable", json!({ "patterns": [{ "urlPattern": "*" }] })),
        ] {
            self.browser.ask(method, parameters)?;
        }
        self.browser.send("Page.navigate", json!({ "url": start_at }))?;
        self.load()?;
        let start = Instant::now();
        self.watch(start + FIRST_SCREEN)?;
        let Some(first) = self.screenshot()? else { return Ok(self.hung()) };
        for kind in ["mousePressed", "mouseReleased"] {
            let click =
                json!({ "type": kind, "x": width / 2, "y": height / 2, "button": "left", "clickCount": 1 });
            self.browser.send("Input.dispatchMouseEvent", click)?;
        }
        self.watch(start + WHOLE)?;
        let Some(longest_task_ms) = self.longest_task()? else { return Ok(self.hung()) };
        let Some(screenshot) = self.screenshot()? else { return Ok(self.hung()) };
        if is_blank(&first) {
            let what = format!("the screen is of one colour after {} seconds", FIRST_SCREEN.as_secs());
            self.findings.push(Finding::whole(&BLANK, &self.work.name, what));
        }
        Ok(Played { findings: self.findings, screenshot: Some(screenshot), longest_task_ms })
    }

    /// Waits until the page has loaded, but not for long: a page may keep its own load from ending.
    fn load(&mut self) -> Result<(), NotRun> {
        let end = Instant::now() + PATIENCE;
        while !self.is_loaded {
            let Some(message) = self.browser.next_before(end)? else { return Ok(()) };
            self.event(&message)?;
        }
        Ok(())
    }

    /// Handles what the browser says until `end`, and then until no call of the function is under way.
    fn watch(&mut self, end: Instant) -> Result<(), NotRun> {
        loop {
            let end = if self.calls > 0 { end + PATIENCE } else { end };
            // A page that never stops talking must not keep the end from coming.
            if Instant::now() >= end {
                return Ok(());
            }
            let Some(message) = self.browser.next_before(end)? else { return Ok(()) };
            self.event(&message)?;
        }
    }

    /// Asks the browser about its page; `None` if the page does not let it answer.
    fn ask(&mut self, method: &str, parameters: Value) -> Result<Option<Value>, NotRun> {
        let id = self.browser.send(method, parameters)?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let Some(message) = self.browser.next_before(end)? else { return Ok(None) };
            self.event(&message)?;
            if let Some(answer) = browser::answer(method, id, message)? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    fn screenshot(&mut self) -> Result<Option<Vec<u8>>, NotRun> {
        let Some(answer) = self.ask("Page.captureScreenshot", json!({ "format": "png" }))? else {
            return Ok(None);
        };
        let data = answer["data"].as_str().and_then(|d| BASE64.decode(d.as_bytes()).ok());
        data.map(Some).ok_or_else(|| not_run("the browser made no picture"))
    }

    fn longest_task(&mut self) -> Result<Option<u64>, NotRun> {
        let expression = json!({ "expression": "note(watcher.takeRecords())", "contextId": self.world });
        let answer = self.ask("Runtime.evaluate", expression)?;
        Ok(answer.map(|answer| answer["result"]["value"].as_u64().unwrap_or(0)))
    }

    /// What a page that does not answer any more comes to.
    fn hung(self) -> Played {
        let mut findings = self.findings;
        let what = format!("the page does not answer for {} seconds: a loop without end", PATIENCE.as_secs());
        findings.push(Finding::whole(&ERROR, &self.work.name, what));
        Played { findings, screenshot: None, longest_task_ms: PATIENCE.as_secs() * 1_000 }
    }

    fn event(&mut self, message: &Value) -> Result<(), NotRun> {
        let parameters = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Page.loadEventFired" => self.is_loaded = true,
            "Fetch.requestPaused" => return self.request(parameters),
            ANSWERED => {
                self.calls = self.calls.saturating_sub(1);
                if let Some(why) = parameters["not_run"].as_str() {
                    return Err(not_run(why));
                }
                self.browser.send("Fetch.fulfillRequest", parameters.clone())?;
            }
            "Page.javascriptDialogOpening" => {
                self.browser.send("Page.handleJavaScriptDialog", json!({ "accept": false }))?;
            }
            "Runtime.executionContextCreated" if parameters["context"]["name"] == "intake" => {
                self.world = parameters["context"]["id"].as_u64();
            }
            "Page.frameRequestedNavigation" if parameters["url"].as_str() != Some(&self.address) => {
                let url = shorten(parameters["url"].as_str().unwrap_or_default());
                self.note(Finding::whole(
                    &REFUSED,
                    &self.work.name,
                    format!("the page wants to leave for {url}"),
                ));
            }
            "Runtime.exceptionThrown" => {
                let details = &parameters["exceptionDetails"];
                let words = details["exception"]["description"].as_str().or_else(|| details["text"].as_str());
                let first = words.unwrap_or("an error").lines().next().unwrap_or_default();
                self.note(self.found(&ERROR, details, format!("uncaught: {}", shorten(first))));
            }
            "Log.entryAdded" if parameters["entry"]["level"] == "error" => {
                let entry = &parameters["entry"];
                // That a function is closed is no fault of the work.
                if self.around.as_ref().is_some_and(|a| a.has(entry["url"].as_str().unwrap_or_default())) {
                    return Ok(());
                }
                let what = shorten(entry["text"].as_str().unwrap_or("something was refused"));
                self.note(self.found(&REFUSED, entry, what));
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a finding, unless there are enough of its rule.
    fn note(&mut self, finding: Finding) {
        let count = self.findings.iter().filter(|f| f.rule.id == finding.rule.id).count();
        if count < policy::limits().check.findings_per_rule_max {
            self.findings.push(finding);
        }
    }

    /// Hands the page over; refuses everything else.
    fn request(&mut self, parameters: &Value) -> Result<(), NotRun> {
        let id = &parameters["requestId"];
        let url = parameters["request"]["url"].as_str().unwrap_or_default();
        if url == self.address {
            let body = ("text/html; charset=utf-8", self.work.html.as_str());
            self.browser.send("Fetch.fulfillRequest", answer(id, 200, &self.of_page, body))?;
            return Ok(());
        }
        let calls_max = policy::limits().bridge.python_calls_waiting_max;
        match self.around.as_ref().and_then(|around| around.asked(url)) {
            Some(Asked::File(kind, text)) => {
                let answer = answer(id, 200, &self.of_site, (kind, &text));
                self.browser.send("Fetch.fulfillRequest", answer)?;
                return Ok(());
            }
            Some(Asked::Call) if self.calls < calls_max => {
                self.call(parameters);
                return Ok(());
            }
            Some(Asked::Call) | None => {}
        }
        if !url.ends_with("/favicon.ico") {
            let what = format!("a request for {}", shorten(url));
            self.note(Finding::whole(&REFUSED, &self.work.name, what));
        }
        let refusal = json!({ "requestId": id, "errorReason": "BlockedByClient" });
        self.browser.send("Fetch.failRequest", refusal)?;
        Ok(())
    }

    /// Calls the function beside everything else; the answer comes in with what the browser says.
    fn call(&mut self, parameters: &Value) {
        let Some(around) = &self.around else { return };
        let (backend, beside) = (around.backend.clone(), self.browser.beside.clone());
        let headers = self.of_site.clone();
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
            let _ = beside.send(json!({ "method": ANSWERED, "params": parameters }));
        });
    }

    /// A finding at the place that the browser tells, which counts from 0.
    fn found(&self, rule: &'static Rule, at: &Value, what: String) -> Finding {
        let number = |key: &str| at[key].as_u64().and_then(|n| usize::try_from(n).ok());
        match number("lineNumber").filter(|_| at["url"].as_str().is_none_or(|u| u == self.address)) {
            Some(line) => {
                let place = (line.saturating_add(1), number("columnNumber").unwrap_or(0).saturating_add(1));
                Finding::at(rule, &self.work.name, place, String::new(), what)
            }
            None => Finding::whole(rule, &self.work.name, what),
        }
    }
}

/// What is wrong with a function that Python reads and does not compile, such as a `break` outside a loop.
fn unloadable(function: &Path, problem: &Value) -> Option<Finding> {
    let message = problem["message"].as_str().filter(|_| problem["error_type"] == "SyntaxError")?;
    let line = problem["line"].as_u64().and_then(|line| usize::try_from(line).ok()).unwrap_or(0);
    let name = function.file_name().unwrap_or_default().to_string_lossy();
    let what = format!("Python does not load this function: {}", shorten(message));
    Some(Finding::at(&ERROR, &name, (line, 1), String::new(), what))
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

/// Whether a picture has one colour only.
fn is_blank(png: &[u8]) -> bool {
    let Ok(picture) = image::load_from_memory(png) else { return false };
    let pixels = picture.to_rgb8();
    let mut pixels = pixels.pixels();
    let first = pixels.next();
    pixels.all(|p| Some(p) == first)
}
