//! Runs `python-test-suite.py`: every attack in both modes, its positive control, the observers, and the sweep.
//!
//! Used by `runner suite` and by the gate. The file is read as text, function by function; what an attack returns is
//! believed only when it says that it succeeded. All pass or all fail.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::canary::Canary;
use crate::confine::seccomp::{self as filters, Policy, Role, Verdict};
use crate::control::{self, Shown};
use crate::engine::Mode;
use crate::outcome::{Crash, Outcome};
use crate::soak::observe;
use crate::supervisor::{Call, Options, RunError, Supervisor};

/// The published file.
pub const SOURCE: &str = include_str!("python-test-suite.py");

/// How far past its deadline a call may end on a machine as busy as the suite makes it; `bench` has the true figure.
pub const LATE_MAX: Duration = Duration::from_millis(500);
const HEALTH: &[u8] = b"def run(inputs):\n    return inputs\n";

/// One attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attack {
    /// Its function's name.
    pub name: String,
    /// Its category.
    pub category: String,
    /// The one outcome that counts as blocked in bare mode, if only one does.
    pub ends: Option<String>,
    /// Who reported it.
    pub reported: String,
    /// A whole function file: helpers, the attack, and `run`.
    pub source: String,
}

/// What happened to one attack in one mode.
#[derive(Debug, Clone)]
pub struct Verdicts {
    /// The outcome's name, with the denied call.
    pub how: String,
    /// Why it counts as a success of the attack, if it does.
    pub broken: Option<String>,
}

/// What a run is about.
#[derive(Debug, Clone)]
pub struct Plan {
    /// This program.
    pub program: PathBuf,
    /// A cgroup to make slots in, other than the caller's own.
    pub cgroup: Option<String>,
    /// Only the attack with this name.
    pub only: Option<String>,
    /// Somebody's own attacks instead of the published ones.
    pub attacks: Option<String>,
    /// How far past its deadline a call may end: [`LATE_MAX`], but on an emulated machine.
    pub late_max: Duration,
}

/// A run that came to its end.
#[derive(Debug)]
pub struct Finished {
    /// Everything, as published.
    pub report: Value,
    /// How many attacks were run.
    pub attacks: usize,
    /// What failed, by name.
    pub failures: Vec<String>,
}

/// Reads attacks from the text of a suite. Text before the first attack is their common beginning unless it is the
/// published one's.
pub fn parse(text: &str, helpers: &str) -> Result<Vec<Attack>, String> {
    let mut attacks = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let Some(mark) = line.strip_prefix("@attack(") else { continue };
        let bad = |what: &str| format!("line {}: {what}", number + 1);
        let mut quoted = mark.split('"').skip(1).step_by(2).map(str::to_owned);
        let category = quoted.next().ok_or_else(|| bad("an attack without a category"))?;
        let mut body = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, l)| !body_ends(l) || body.is_empty()) {
            body.push(line);
        }
        let head = body.first().and_then(|l| l.strip_prefix("def ")).and_then(|l| l.split_once("(host)"));
        let (name, _) = head.ok_or_else(|| bad("an attack is a function of `host`"))?;
        let docs = body.join("\n");
        let docs = docs.split("\"\"\"").nth(1).ok_or_else(|| bad("an attack without a docstring"))?;
        let row = |key: &str| {
            let found = docs
                .lines()
                .find_map(|l| l.trim().strip_prefix(key))
                .map(str::trim)
                .filter(|v| !v.is_empty());
            found.map(str::to_owned).ok_or_else(|| bad(&format!("the docstring has no line `{key}`")))
        };
        row("Tries:")?;
        row("Blocked:")?;
        let code = format!(
            "{helpers}\n\n{}\n\n\ndef run(host):\n    found = {name}(host)\n    \
             return (found if type(found) is str else str(found)[:200]) if found else None\n",
            body.join("\n").trim_end()
        );
        if code.len() > usize::try_from(policy::limits().work.python_bytes_max).unwrap_or(usize::MAX) {
            return Err(bad("helpers and attack are larger than a function's file may be"));
        }
        let reported = row("Reported:")?;
        attacks.push(Attack { name: name.to_owned(), category, ends: quoted.next(), reported, source: code });
    }
    if attacks.is_empty() { Err("no attack found".to_owned()) } else { Ok(attacks) }
}

fn body_ends(line: &str) -> bool {
    !line.is_empty() && !line.starts_with([' ', '\t'])
}

/// The helpers of the published suite.
pub fn helpers() -> &'static str {
    let after = SOURCE.split_once("# --- helpers ").map_or("", |(_, rest)| rest);
    let inside = after.split_once('\n').map_or("", |(_, rest)| rest);
    inside.split_once("# --- attacks ").map_or("", |(helpers, _)| helpers).trim()
}

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The attacks cannot be read.
    #[error("attacks: {0}")]
    Parse(String),
    /// No supervisor, or no child.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The canaries or the controls.
    #[error("the suite's own environment: {0}")]
    Io(#[from] io::Error),
}

/// Runs the plan. `progress` hears of each attack that is done.
pub fn run(plan: &Plan, progress: &(dyn Fn(&str) + Sync)) -> Result<Finished, SuiteError> {
    let text = plan.attacks.as_deref().unwrap_or(SOURCE);
    let mut attacks = parse(text, helpers()).map_err(SuiteError::Parse)?;
    if let Some(only) = &plan.only {
        attacks.retain(|a| a.name == *only);
        if attacks.is_empty() {
            return Err(SuiteError::Parse(format!("no attack is called `{only}`")));
        }
    }
    // The controls have canaries of their own: what they do must not look like a success.
    let (canary, outside) = (Canary::new(&place())?, Canary::new(&place())?);
    let start = |mode, listening| {
        let options = Options {
            program: plan.program.clone(),
            mode,
            calls_max: 1,
            cgroup: plan.cgroup.clone(),
            lenient: false,
            listening,
            bandit: None,
        };
        Supervisor::start(options)
    };
    let (guarded, bare) = (start(Mode::Guarded, false)?, start(Mode::Bare, false)?);
    let namer = start(Mode::Bare, true)?;
    let before = observe(&[&guarded, &bare]);
    let (in_guarded, in_bare, controls) = std::thread::scope(|scope| {
        let one = scope.spawn(|| in_mode(&guarded, &namer, &attacks, &canary, plan.late_max, progress));
        let shown = scope.spawn(|| controls(plan, &attacks, &outside));
        let two = in_mode(&bare, &namer, &attacks, &canary, plan.late_max, progress);
        (one.join().unwrap_or_default(), two, shown.join().unwrap_or_else(|_| Ok(BTreeMap::new())))
    });
    let controls = controls?;
    let sweep = if plan.only.is_none() && plan.attacks.is_none() { sweep(&bare)? } else { Vec::new() };
    let after = observe(&[&guarded, &bare]);
    let mut failures: Vec<String> = Vec::new();
    let rows: Vec<Value> =
        attacks.iter().map(|a| row(a, &in_guarded, &in_bare, &controls, &mut failures)).collect();
    failures.extend(sweep.iter().map(|f| format!("sweep: {f}")));
    if before != after {
        failures.push(format!("observers: before {before:?}, after {after:?}"));
    }
    if !canary.untouched() {
        failures.push("observers: the canary files were changed".to_owned());
    }
    let passed = failures.is_empty();
    Ok(Finished {
        report: json!({
            "passed": passed, "modes": 2, "attacks": rows, "failures": failures,
            "observers": {"before": before, "after": after, "canary_untouched": canary.untouched()},
            "sweep": {"numbers": if plan.only.is_none() { SWEEP_END } else { 0 }, "failures": sweep},
            "root": crate::sys::process::effective_ids().0 == 0,
        }),
        attacks: attacks.len(),
        failures,
    })
}

/// Where canaries live: not below /tmp, which the controls cover with one of their own.
fn place() -> PathBuf {
    let var = Path::new("/var/tmp");
    if var.is_dir() { var.to_owned() } else { std::env::temp_dir() }
}

type ByName = BTreeMap<String, Verdicts>;

fn row(
    attack: &Attack,
    guarded: &ByName,
    bare: &ByName,
    controls: &BTreeMap<String, Shown>,
    failures: &mut Vec<String>,
) -> Value {
    let mut side = |mode: &str, verdicts: &ByName| {
        let Some(v) = verdicts.get(&attack.name) else {
            failures.push(format!("{} ({mode}): it was not run", attack.name));
            return json!({"blocked": false});
        };
        if let Some(why) = &v.broken {
            failures.push(format!("{} ({mode}): {why}", attack.name));
        }
        json!({"blocked": v.broken.is_none(), "how": v.how, "why": v.broken})
    };
    let (guarded, bare) = (side("guarded", guarded), side("bare", bare));
    let shown = match controls.get(&attack.name) {
        Some(Shown::Succeeds) => "succeeds",
        Some(Shown::Absent) => "absent from this kernel",
        Some(Shown::NeedsRoot) => "needs root",
        Some(Shown::Fails(why)) => {
            failures.push(format!("{} (control): it fails outside as well: {why}", attack.name));
            "fails"
        }
        None => "not run",
    };
    json!({
        "name": attack.name, "category": attack.category, "reported": attack.reported,
        "guarded": guarded, "bare": bare, "control": shown,
    })
}

/// Runs every control; one that fails is tried up to five times more, since a busy machine can spoil a measurement.
fn controls(plan: &Plan, attacks: &[Attack], canary: &Canary) -> io::Result<BTreeMap<String, Shown>> {
    let show =
        |a: &Attack| control::show(&plan.program, &a.source, &canary.describe("control"), a.ends.as_deref());
    let mut shown = BTreeMap::new();
    for attack in attacks {
        shown.insert(attack.name.clone(), show(attack)?);
    }
    for attack in attacks {
        for _ in 0..5 {
            if matches!(shown.get(&attack.name), Some(Shown::Fails(_)) | None) {
                shown.insert(attack.name.clone(), show(attack)?);
            }
        }
    }
    Ok(shown)
}

/// Every attack in one mode.
fn in_mode(
    supervisor: &Supervisor,
    namer: &Supervisor,
    attacks: &[Attack],
    canary: &Canary,
    late_max: Duration,
    progress: &(dyn Fn(&str) + Sync),
) -> ByName {
    let mut verdicts = ByName::new();
    for attack in attacks {
        verdicts.insert(attack.name.clone(), meet(supervisor, namer, attack, canary, late_max));
        progress(&attack.name);
    }
    verdicts
}

/// One attack, twice: the second call looks for what the first left.
fn meet(
    supervisor: &Supervisor,
    namer: &Supervisor,
    attack: &Attack,
    canary: &Canary,
    late_max: Duration,
) -> Verdicts {
    let mut how = String::new();
    for nonce in ["one", "two"] {
        let visits = canary.visits();
        let inputs = canary.describe(nonce).to_string();
        let call = Call { inspect: true, ..Call::new(attack.source.as_bytes(), inputs.as_bytes()) };
        let report = match supervisor.call(&call) {
            Ok(report) => report,
            Err(e) => return Verdicts { how: "not run".to_owned(), broken: Some(e.to_string()) },
        };
        how = name_of(&report.outcome, namer, attack, &inputs);
        let broken = succeeded(&report.outcome)
            .or_else(|| said(canary.token(), &report.printed).then(|| "it printed the token".to_owned()))
            .or_else(|| (canary.visits() > visits).then(|| "a canary listener had a visitor".to_owned()))
            .or_else(|| {
                (report.wall > call.limits.wall + late_max)
                    .then(|| format!("it ended {:?} after its start", report.wall))
            })
            .or_else(|| unexpected(attack, supervisor, &report.outcome))
            .or_else(|| unhealthy(supervisor));
        if broken.is_some() {
            return Verdicts { how, broken };
        }
        if report.outcome == Outcome::Timeout {
            break;
        }
    }
    Verdicts { how, broken: None }
}

/// The outcome in words. A denied call is named by running the attack again under a listener.
fn name_of(outcome: &Outcome, namer: &Supervisor, attack: &Attack, inputs: &str) -> String {
    match outcome {
        Outcome::Denied { .. } => {
            let again = namer.call(&Call::new(attack.source.as_bytes(), inputs.as_bytes()));
            match again.map(|r| r.outcome) {
                Ok(Outcome::Denied { call: Some(call) }) => format!("denied {call}"),
                _ => "denied".to_owned(),
            }
        }
        Outcome::Error(raised) => format!("error {}", raised.kind),
        Outcome::Ok(_) => "nothing found".to_owned(),
        other => other.name().to_owned(),
    }
}

fn succeeded(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Ok(result) if result != "null" => Some(format!("it succeeded: {result}")),
        _ => None,
    }
}

fn said(token: &str, printed: &[u8]) -> bool {
    printed.windows(token.len()).any(|w| w == token.as_bytes())
}

fn unexpected(attack: &Attack, supervisor: &Supervisor, outcome: &Outcome) -> Option<String> {
    let ends = attack.ends.as_deref()?;
    let wrong = supervisor.mode() == Mode::Bare && outcome.name() != ends;
    wrong.then(|| format!("it ended as {}, not as {ends}", outcome.name()))
}

fn unhealthy(supervisor: &Supervisor) -> Option<String> {
    let next = supervisor.call(&Call::new(HEALTH, b"[1]"));
    match next {
        Ok(report) if report.outcome == Outcome::Ok("[1]".to_owned()) => None,
        Ok(report) => Some(format!("the next call ended as {}", report.outcome.name())),
        Err(e) => Some(format!("the next call failed: {e}")),
    }
}

/// One past the last number of the sweep.
const SWEEP_END: u32 = 601;
/// The kernel itself uses these two from its trampolines and passes them by every filter (since Linux 6.14 and 6.18).
/// From anywhere else they end the process or return an error: reaching them is harmless and nobody's to prevent.
const NEVER_FILTERED: [u32; 2] = [335, 336];
/// A few numbers of the x32 table: the same calls with a bit set, and its own.
const X32: [u32; 8] = [0, 1, 39, 41, 56, 59, 512, 547];

/// How long a call that blocks is waited for.
const ALLOWED_WALL: Duration = Duration::from_secs(1);

/// From a bare child, every number: each must behave as its class says.
fn sweep(bare: &Supervisor) -> Result<Vec<String>, RunError> {
    let policy = Policy::of(Role::Python).map_err(|e| RunError::Zygote(e.to_string()))?;
    let source = b"import ctypes\ndef run(n):\n    c = ctypes.CDLL(None, use_errno=True)\n    \
        r = c.syscall(ctypes.c_long(n), *[ctypes.c_long(-1)] * 6)\n    return ctypes.get_errno() if r == -1 else 0\n";
    let mut failures = Vec::new();
    let numbers = (0..SWEEP_END).chain(X32.map(|n| n | 0x4000_0000));
    for number in numbers {
        let expected = policy.verdict(number, [u32::MAX; 6]);
        let inputs = number.to_string();
        let call = Call::new(source, inputs.as_bytes());
        // Only what is allowed can block; the rest answers at once, however late it gets a core.
        let call = if matches!(expected, Verdict::Allow) { call.within(ALLOWED_WALL) } else { call };
        let outcome = bare.call(&call)?.outcome;
        let as_its_class = match (expected, &outcome) {
            (Verdict::Kill, Outcome::Denied { .. }) => true,
            (Verdict::Kill, Outcome::Crash(_) | Outcome::Ok(_)) => NEVER_FILTERED.contains(&number),
            (Verdict::Errno(e), Outcome::Ok(found)) => *found == e.to_string(),
            (Verdict::Allow, Outcome::Denied { .. }) => false,
            (
                Verdict::Allow,
                Outcome::Ok(_) | Outcome::Crash(Crash::Exit(_) | Crash::Signal(_)) | Outcome::Timeout,
            ) => true,
            _ => false,
        };
        if !as_its_class {
            let name = filters::name(number).unwrap_or("no name");
            failures
                .push(format!("{number:#x} ({name}): {expected:?} expected, ended as {}", outcome.name()));
        }
    }
    Ok(failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_suite_is_complete() {
        let attacks = parse(SOURCE, helpers()).unwrap();
        assert!(attacks.len() >= 80, "{}", attacks.len());
        let mut names: Vec<&str> = attacks.iter().map(|a| a.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), attacks.len(), "two attacks share a name");
        let count = |category: &str| attacks.iter().filter(|a| a.category == category).count();
        let categories = [
            "filesystem",
            "network",
            "process",
            "environment",
            "introspection",
            "docker surface",
            "kernel surface",
            "resource exhaustion",
        ];
        assert!(categories.iter().all(|c| count(c) >= 8), "{:?}", categories.map(count));
        assert_eq!(categories.iter().map(|c| count(c)).sum::<usize>(), attacks.len());
    }

    #[test]
    fn an_attack_that_is_not_one_is_refused_with_its_line() {
        let whole = "@attack(\"x\")\ndef a(host):\n    \"\"\"Tries: t\n    Blocked: b\n    Reported: r\"\"\"\n    return 1\n";
        assert_eq!(parse(whole, "").unwrap()[0].name, "a");
        for (text, problem) in [
            ("", "no attack found"),
            ("@attack()\ndef a(host):\n    pass\n", "line 1: an attack without a category"),
            ("@attack(\"x\")\ndef a():\n    pass\n", "line 1: an attack is a function of `host`"),
            ("@attack(\"x\")\ndef a(host):\n    pass\n", "line 1: an attack without a docstring"),
            (
                "@attack(\"x\")\ndef a(host):\n    \"\"\"Tries: t\n    Blocked: b\"\"\"\n",
                "line 1: the docstring has no line `Reported:`",
            ),
        ] {
            assert_eq!(parse(text, "").unwrap_err(), problem);
        }
    }
}
