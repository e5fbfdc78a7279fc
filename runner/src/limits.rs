//! What one call may use: the policy's values, or lower ones.
//!
//! Made by `serve` from a request, carried by a `Call` to whoever holds the limit: `supervisor` the clock and what is
//! read, `confine::cgroup` memory, processes and CPU, the child its /tmp. Nothing here raises anything.

use std::time::Duration;

use serde::Deserialize;

use crate::confine::cgroup;

/// Sizes of /tmp are whole pages.
const PAGE: u64 = 4_096;

/// The limits of one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The time it may take, compiling included.
    pub wall: Duration,
    /// Memory, CPU and processes.
    pub cgroup: cgroup::Limits,
    /// The size of /tmp, in whole pages.
    pub tmp_bytes: u64,
    /// What it may print, errors included.
    pub print_bytes: usize,
    /// The longest answer.
    pub output_bytes: usize,
}

/// What a caller asks for; nothing is the policy's value.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is one of `Limits`, in its unit")]
pub struct Lower {
    pub wall_ms: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub cpus: Option<f64>,
    pub processes: Option<u32>,
    pub tmp_bytes: Option<u64>,
    pub print_bytes: Option<u64>,
    pub output_bytes: Option<u64>,
}

/// A value that is not between the least that a call can start with and the policy's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{field} is {value}; it may be lowered from {most}, the policy's value, down to {least}, and never raised"
)]
pub struct OutOfRange {
    field: &'static str,
    value: String,
    least: String,
    most: String,
}

impl Limits {
    /// The policy's.
    pub fn policy() -> Limits {
        let python = &policy::limits().python;
        Limits {
            wall: Duration::from_secs(python.wall_seconds_max.into()),
            cgroup: cgroup::Limits {
                memory_bytes: python.memory_bytes_max,
                processes: python.processes_max,
                cpus: python.cpus_max,
            },
            tmp_bytes: python.tmp_bytes_max,
            print_bytes: usize::try_from(python.print_bytes_max).unwrap_or(usize::MAX),
            output_bytes: usize::try_from(python.output_bytes_max).unwrap_or(usize::MAX),
        }
    }

    /// The policy's, lowered to what is asked for.
    pub fn lowered(asked: Lower) -> Result<Limits, OutOfRange> {
        let (python, most) = (&policy::limits().python, Limits::policy());
        let wall_ms = u64::from(python.wall_seconds_max) * 1_000;
        let bytes = |field, asked, most| -> Result<usize, OutOfRange> {
            Ok(usize::try_from(within(field, asked, 1, most)?).unwrap_or(usize::MAX))
        };
        let tmp_bytes = within("tmp_bytes", asked.tmp_bytes, PAGE, most.tmp_bytes)?;
        Ok(Limits {
            wall: Duration::from_millis(within("wall_ms", asked.wall_ms, 1, wall_ms)?),
            cgroup: cgroup::Limits {
                memory_bytes: within(
                    "memory_bytes",
                    asked.memory_bytes,
                    python.memory_bytes_min,
                    python.memory_bytes_max,
                )?,
                processes: within("processes", asked.processes, 1, python.processes_max)?,
                cpus: within("cpus", asked.cpus, python.cpus_min, python.cpus_max)?,
            },
            tmp_bytes: tmp_bytes - tmp_bytes % PAGE,
            print_bytes: bytes("print_bytes", asked.print_bytes, python.print_bytes_max)?,
            output_bytes: bytes("output_bytes", asked.output_bytes, python.output_bytes_max)?,
        })
    }
}

/// The value asked for, or the highest.
fn within<T>(field: &'static str, asked: Option<T>, least: T, most: T) -> Result<T, OutOfRange>
where
    T: Copy + PartialOrd + ToString,
{
    let value = asked.unwrap_or(most);
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let (value, least, most) = (value.to_string(), least.to_string(), most.to_string());
    Err(OutOfRange { field, value, least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_may_be_lowered_and_none_raised() {
        let lower = |text: &str| Limits::lowered(serde_json::from_str(text).unwrap());
        assert_eq!(lower("{}"), Ok(Limits::policy()));
        let python = serde_json::to_value(&policy::limits().python).unwrap();
        for (field, row, least) in [
            ("memory_bytes", "memory_bytes_max", python["memory_bytes_min"].clone()),
            ("cpus", "cpus_max", python["cpus_min"].clone()),
            ("processes", "processes_max", 1.into()),
            ("tmp_bytes", "tmp_bytes_max", PAGE.into()),
            ("print_bytes", "print_bytes_max", 1.into()),
            ("output_bytes", "output_bytes_max", 1.into()),
        ] {
            let most = &python[row];
            assert_eq!(lower(&format!("{{\"{field}\": {most}}}")), Ok(Limits::policy()), "{field}");
            assert_ne!(lower(&format!("{{\"{field}\": {least}}}")).unwrap(), Limits::policy(), "{field}");
            for value in [most.as_f64().unwrap() * 2.0, 0.0] {
                let text = if field == "cpus" { format!("{value:?}") } else { format!("{value}") };
                let refused = lower(&format!("{{\"{field}\": {text}}}")).unwrap_err().to_string();
                assert!(
                    refused.starts_with(&format!("{field} is {value};"))
                        && refused.contains(&most.to_string()),
                    "{refused}"
                );
            }
        }
        assert_eq!(lower("{\"tmp_bytes\": 8191}").unwrap().tmp_bytes, PAGE);
        assert!(lower("{\"wall_ms\": 3001}").is_err() && lower("{\"wall_ms\": 0}").is_err());
    }
}
