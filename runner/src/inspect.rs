//! A child as the host sees it: /proc/PID/{status,ns,fd,cgroup}.
//!
//! Used by `supervisor` while a child waits for its request: on every call of the suite, and on a sample of others.
//! It believes nothing that the child said.

use std::fs;

use crate::sys::process;

const NAMESPACES: [&str; 6] = ["cgroup", "ipc", "mnt", "net", "pid", "uts"];

/// Is the process confined? The error names the first thing that is not as it must be.
pub fn look(pid: i32, listener: bool) -> Result<(), String> {
    let limits = &policy::limits().python;
    let root = process::effective_ids().0 == 0;
    let status = read(&format!("/proc/{pid}/status"))?;
    let row = |key: &str| {
        let found = status.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
        found.map(str::trim).ok_or_else(|| format!("no {key} in /proc/{pid}/status"))
    };
    let want = |key: &str, expected: &str| {
        let found = row(key)?;
        if found == expected { Ok(()) } else { Err(format!("{key} is {found}, {expected} expected")) }
    };
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        want(set, "0000000000000000")?;
    }
    want("NoNewPrivs", "1")?;
    want("Seccomp", "2")?;
    want("Threads", "1")?;
    let filters: u32 = row("Seccomp_filters")?.parse().unwrap_or(0);
    if filters < 2 && !listener {
        return Err(format!("{filters} seccomp filters, 2 expected"));
    }
    if root {
        let four = |id: u32| vec![id.to_string(); 4].join("\t");
        want("Uid", &four(limits.uid))?;
        want("Gid", &four(limits.gid))?;
        want("Groups", "")?;
    }
    for namespace in NAMESPACES {
        let of = |who: &str| {
            fs::read_link(format!("/proc/{who}/ns/{namespace}")).map_err(|e| format!("{who}: {e}"))
        };
        if of(&pid.to_string())? == of("self")? {
            return Err(format!("it shares the host's {namespace} namespace"));
        }
    }
    let open = fs::read_dir(format!("/proc/{pid}/fd")).map_err(|e| format!("/proc/{pid}/fd: {e}"))?.count();
    let expected = if listener { 4 } else { 3 };
    if open != expected {
        return Err(format!("{open} descriptors are open, {expected} expected"));
    }
    let environment = read(&format!("/proc/{pid}/environ"))?;
    if !environment.is_empty() {
        return Err("its environment is not empty".to_owned());
    }
    let cgroups = read(&format!("/proc/{pid}/cgroup"))?;
    if !cgroups.contains("/tinyfiles-") {
        return Err("it is in no cgroup slot".to_owned());
    }
    Ok(())
}

fn read(path: &str) -> Result<String, String> {
    fs::read(path).map(|b| String::from_utf8_lossy(&b).into_owned()).map_err(|e| format!("{path}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_process_does_not_pass() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(look(own, false).is_err());
        assert!(look(0, false).is_err());
    }
}
