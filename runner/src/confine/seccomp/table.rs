//! Which number a system call has, by machine: `seccomp/x86_64.tsv` and `seccomp/aarch64.tsv`.
//!
//! Policies name calls; only here are they numbers. Used by the files beside this one, and for the names in reports.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// As the policy digest has it.
pub(super) const NUMBERS: &str = include_str!("../../../../seccomp/x86_64.tsv");
const NUMBERS_AARCH64: &str = include_str!("../../../../seccomp/aarch64.tsv");

/// A machine's table of system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    X86_64,
    /// For workers only: written from the kernel's headers, not run.
    Aarch64,
}

impl Table {
    /// This machine's.
    pub(super) const NATIVE: Table =
        if cfg!(target_arch = "aarch64") { Table::Aarch64 } else { Table::X86_64 };

    /// What the kernel calls the machine.
    pub(super) fn audit(self) -> u32 {
        match self {
            Table::X86_64 => 0xc000_003e,
            Table::Aarch64 => 0xc000_00b7,
        }
    }

    /// Every system call by number.
    pub(super) fn names(self) -> &'static BTreeMap<u32, &'static str> {
        fn read(numbers: &'static str) -> BTreeMap<u32, &'static str> {
            let rows = numbers.lines().filter_map(|l| l.split_once('\t'));
            rows.filter_map(|(n, name)| Some((n.parse().ok()?, name))).collect()
        }
        static NAMES_X86_64: LazyLock<BTreeMap<u32, &str>> = LazyLock::new(|| read(NUMBERS));
        static NAMES_AARCH64: LazyLock<BTreeMap<u32, &str>> = LazyLock::new(|| read(NUMBERS_AARCH64));
        match self {
            Table::X86_64 => &NAMES_X86_64,
            Table::Aarch64 => &NAMES_AARCH64,
        }
    }

    /// The number of `name`, if the machine has such a call.
    pub(super) fn number(self, name: &str) -> Option<u32> {
        self.names().iter().find(|(_, n)| **n == name).map(|(number, _)| *number)
    }
}

/// The name of system call `number`, as far as this build knows it.
pub fn name(number: u32) -> Option<&'static str> {
    Table::NATIVE.names().get(&number).copied()
}

/// The number of system call `name`.
pub fn number(name: &str) -> Option<u32> {
    Table::NATIVE.number(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!((name(41), number("socket")), (Some("socket"), Some(41)));
        assert_eq!(number("clone3"), u32::try_from(libc::SYS_clone3).ok());
        assert_eq!(number("landlock_restrict_self"), u32::try_from(libc::SYS_landlock_restrict_self).ok());
        assert_eq!(name(599), None);
    }
}
