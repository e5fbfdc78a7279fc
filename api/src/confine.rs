//! The process confines itself: Landlock over files and networks, then the system calls of `seccomp/api.json`.
//!
//! Called by `main` between opening and serving, while there is one thread; every thread after it inherits both. What
//! a client could make of a flaw in a parser, in SQLite or in this crate then ends at the databases and sockets that
//! were open already. Landlock's rules over files are required; what a newer kernel adds is taken where it is there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use serde::Deserialize;

use crate::app;
use crate::desk::{SCREENSHOTS, STAGING};

const POLICY: &str = include_str!("../../seccomp/api.json");
const NUMBERS: &str = include_str!("../../seccomp/x86_64.tsv");

/// Why the process is not confined, and so does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// Landlock.
    #[error(
        "cannot confine itself by Landlock: {0}; it needs Linux 6.1 or newer, with `landlock` among its security modules"
    )]
    Landlock(#[from] landlock::RulesetError),
    /// A path of a rule.
    #[error("cannot confine itself to {path}: {source}")]
    Path {
        /// The file or folder.
        path: PathBuf,
        /// What was wrong with it.
        source: landlock::PathFdError,
    },
    /// The filter could not be loaded.
    #[error("cannot filter its system calls: {0}")]
    Filter(#[from] seccompiler::Error),
    /// The policy file; compiled in, so a test finds it.
    #[error("seccomp/api.json: {0}")]
    Policy(String),
}

/// Confines this thread, and all that it starts, to the data folder's databases and objects, and to what is uploaded.
pub fn confine(data: &Path) -> Result<(), ConfineError> {
    let programs = programs()?;
    restrict_files(data)?;
    for program in &programs {
        seccompiler::apply_filter(program)?;
    }
    Ok(())
}

fn restrict_files(data: &Path) -> Result<(), ConfineError> {
    let file = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let folder = file | AccessFs::ReadDir | AccessFs::MakeReg | AccessFs::RemoveFile;
    let saves = app::saves_path(data);
    let mut rules = vec![
        (saves.parent().unwrap_or(data).to_owned(), folder),
        (data.join("objects"), AccessFs::ReadFile | AccessFs::ReadDir),
        (data.join(STAGING), folder | AccessFs::MakeDir | AccessFs::RemoveDir),
        (data.join(SCREENSHOTS), AccessFs::ReadFile.into()),
    ];
    rules.extend(["catalog.db", "catalog.db-wal", "catalog.db-shm"].map(|name| (data.join(name), file)));
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V6))?
        .handle_access(AccessNet::from_all(ABI::V6))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    for (path, access) in rules {
        let fd = PathFd::new(&path).map_err(|source| ConfineError::Path { path, source })?;
        ruleset = ruleset.add_rule(PathBeneath::new(fd, access))?;
    }
    ruleset.restrict_self()?;
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    role: String,
    #[serde(rename = "what")]
    _what: String,
    default: String,
    rules: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    calls: Vec<String>,
    action: String,
    #[serde(default)]
    errno: Option<String>,
    #[serde(default)]
    when: Vec<When>,
    #[serde(rename = "why")]
    _why: String,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
struct When {
    arg: u8,
    #[serde(default = "all_bits")]
    mask: u32,
    equals: u32,
}

fn all_bits() -> u32 {
    u32::MAX
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The policy as two programs. The first makes calls fail as if the kernel did not know them; the second kills the
/// process for whatever is not in the file. The kernel takes the harsher verdict, so the second lets through what the
/// first makes fail.
fn programs() -> Result<[BpfProgram; 2], ConfineError> {
    let bad = |what: String| ConfineError::Policy(what);
    let file: File = serde_json::from_str(POLICY).map_err(|e| bad(e.to_string()))?;
    if file.role != "api" || file.default != "kill" {
        return Err(bad(format!("unexpected role or default {}", file.default)));
    }
    let (mut failing, mut allowed) = (Rules::new(), Rules::new());
    for row in &file.rules {
        for call in &row.calls {
            let number = number(call).ok_or_else(|| bad(format!("unknown call {call}")))?;
            match (row.action.as_str(), row.errno.as_deref()) {
                ("allow", None) => allowed.entry(number).or_default().extend(rule(&row.when)?),
                ("errno", Some("ENOSYS")) if row.when.is_empty() => {
                    failing.insert(number, Vec::new());
                    allowed.insert(number, Vec::new());
                }
                _ => return Err(bad(format!("unknown action {} of {call}", row.action))),
            }
        }
    }
    let program = |rules, otherwise, matching| -> Result<BpfProgram, ConfineError> {
        let filter = SeccompFilter::new(rules, otherwise, matching, TargetArch::x86_64);
        let compiled = filter.and_then(BpfProgram::try_from);
        Ok(compiled.map_err(seccompiler::Error::from)?)
    };
    Ok([
        program(failing, SeccompAction::Allow, SeccompAction::Errno(ENOSYS))?,
        program(allowed, SeccompAction::KillProcess, SeccompAction::Allow)?,
    ])
}

const ENOSYS: u32 = 38;

/// The conditions of a row, all of which must hold; none for a call that is let through whatever its arguments.
fn rule(when: &[When]) -> Result<Option<SeccompRule>, ConfineError> {
    let condition = |c: &When| {
        let op = SeccompCmpOp::MaskedEq(c.mask.into());
        SeccompCondition::new(c.arg, SeccompCmpArgLen::Dword, op, c.equals.into())
    };
    if when.is_empty() {
        return Ok(None);
    }
    let conditions: Result<Vec<_>, _> = when.iter().map(condition).collect();
    let rule = conditions.and_then(SeccompRule::new);
    Ok(Some(rule.map_err(seccompiler::Error::from)?))
}

fn number(call: &str) -> Option<i64> {
    let rows = NUMBERS.lines().filter_map(|line| line.split_once('\t'));
    rows.filter(|(_, name)| *name == call).find_map(|(number, _)| number.parse().ok())
}
