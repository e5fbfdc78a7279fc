//! A policy as a program for the kernel (classic BPF).
//!
//! Called through `Policy::compile`. A program first checks the architecture and the x32 bit, then finds the number's
//! verdict by halving the table of ranges: the kernel walks the program once for each number when a filter is loaded,
//! so a short path is what makes loading cheap. Argument conditions look at the low 32 bits, which is all that the
//! kernel uses of the arguments named in the policies (flags, options, commands, protections).

use super::{KillBy, Policy, Rule, Verdict};
use crate::sys::seccomp::Instruction;

const X32_BIT: u32 = 0x4000_0000;
const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGS: u32 = 16;
const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JEQ: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JGE: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const JA: u16 = 0x05; // BPF_JMP | BPF_JA
const RET: u16 = 0x06; // BPF_RET | BPF_K

impl Policy {
    /// The BPF program of this policy.
    pub fn compile(&self, kill: KillBy) -> Vec<Instruction> {
        let mut program = Vec::with_capacity(512);
        let dead = match kill {
            KillBy::Kernel => libc::SECCOMP_RET_KILL_PROCESS,
            KillBy::Listener => libc::SECCOMP_RET_USER_NOTIF,
        };
        let otherwise = value(self.default, dead);
        // A foreign architecture or the x32 table is never a name to report: the kernel ends it in every mode.
        program.push(load(OFFSET_ARCH));
        program.push(jump(JEQ, self.table.audit(), 1, 0));
        program.push(give(libc::SECCOMP_RET_KILL_PROCESS));
        program.push(load(OFFSET_NUMBER));
        program.push(jump(JGE, X32_BIT, 0, 1));
        program.push(give(libc::SECCOMP_RET_KILL_PROCESS));
        let ranges = self.ranges();
        halve(&ranges, (dead, otherwise), &mut program);
        program
    }

    /// The table of numbers as runs of equal treatment, from zero up.
    fn ranges(&self) -> Vec<(u32, Vec<Rule>)> {
        let mut ranges: Vec<(u32, Vec<Rule>)> = vec![(0, Vec::new())];
        let last = self.rules.keys().next_back().copied().unwrap_or(0);
        for number in 0..=last + 1 {
            let rules = self.rules.get(&number).cloned().unwrap_or_default();
            match ranges.last() {
                Some((_, same)) if *same == rules => {}
                _ => ranges.push((number, rules)),
            }
        }
        ranges
    }
}

fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD, jt: 0, jf: 0, k: offset }
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

fn give(value: u32) -> Instruction {
    Instruction { code: RET, jt: 0, jf: 0, k: value }
}

/// What a verdict is to the kernel, with `dead` for `Kill`.
fn value(verdict: Verdict, dead: u32) -> u32 {
    match verdict {
        Verdict::Allow => libc::SECCOMP_RET_ALLOW,
        Verdict::Errno(e) => libc::SECCOMP_RET_ERRNO | u32::from(e),
        Verdict::Kill => dead,
    }
}

/// `dead` is what `Kill` means and what happens where no rule holds.
fn halve(ranges: &[(u32, Vec<Rule>)], dead: (u32, u32), program: &mut Vec<Instruction>) {
    match ranges {
        [] => program.push(give(dead.1)),
        [(_, rules)] => decide(rules, dead, program),
        _ => {
            let (low, high) = ranges.split_at(ranges.len() / 2);
            let mut below = Vec::new();
            halve(low, dead, &mut below);
            program.push(jump(JGE, high[0].0, 0, 1));
            program.push(jump(JA, u32::try_from(below.len()).unwrap_or(0), 0, 0));
            program.append(&mut below);
            halve(high, dead, program);
        }
    }
}

fn decide(rules: &[Rule], dead: (u32, u32), program: &mut Vec<Instruction>) {
    for rule in rules {
        let count = rule.when.len();
        for (i, c) in rule.when.iter().enumerate() {
            program.push(load(OFFSET_ARGS + 8 * u32::from(c.arg)));
            program.push(Instruction { code: AND, jt: 0, jf: 0, k: c.mask });
            // On failure skip the conditions after this one (three instructions each) and the verdict.
            let skip = u8::try_from((count - i - 1) * 3 + 1).unwrap_or(u8::MAX);
            program.push(jump(JEQ, c.equals(), 0, skip));
        }
        program.push(give(value(rule.verdict, dead.0)));
        if count == 0 {
            return;
        }
    }
    program.push(give(dead.1));
}

#[cfg(test)]
mod tests {
    use super::super::table::Table;
    use super::super::{Role, number};
    use super::*;

    /// Runs a program the way the kernel does.
    fn run(program: &[Instruction], arch: u32, number: u32, args: [u32; 6]) -> u32 {
        let (mut at, mut a) = (0usize, 0u32);
        loop {
            let i = program[at];
            at += 1;
            match i.code {
                LOAD if i.k == OFFSET_NUMBER => a = number,
                LOAD if i.k == OFFSET_ARCH => a = arch,
                LOAD => a = args[((i.k - OFFSET_ARGS) / 8) as usize],
                AND => a &= i.k,
                JEQ => at += usize::from(if a == i.k { i.jt } else { i.jf }),
                JGE => at += usize::from(if a >= i.k { i.jt } else { i.jf }),
                JA => at += i.k as usize,
                RET => return i.k,
                code => panic!("{code:#x}"),
            }
        }
    }

    fn expected(verdict: Verdict) -> u32 {
        match verdict {
            Verdict::Allow => libc::SECCOMP_RET_ALLOW,
            Verdict::Errno(e) => libc::SECCOMP_RET_ERRNO | u32::from(e),
            Verdict::Kill => libc::SECCOMP_RET_KILL_PROCESS,
        }
    }

    #[test]
    fn the_program_does_what_the_policy_says() {
        for role in [Role::Python, Role::Zygote, Role::Worker, Role::Supervisor, Role::Call] {
            let policy = Policy::of(role).unwrap();
            let program = policy.compile(KillBy::Kernel);
            assert!(program.len() < 700, "{role:?}: {}", program.len());
            let tried = [0, 1, 2, 3, 4, 5, 7, 21, 1030, 21505, 21523, 21584, 21585, 4_001_536, 17, u32::MAX];
            for number in 0..700 {
                for value in tried {
                    let args = [value; 6];
                    let got = run(&program, Table::X86_64.audit(), number, args);
                    assert_eq!(got, expected(policy.verdict(number, args)), "{role:?} {number} {value}");
                }
            }
        }
    }

    #[test]
    fn other_tables_of_calls_are_killed_in_every_mode() {
        for (role, kill) in
            [(Role::Python, KillBy::Kernel), (Role::Python, KillBy::Listener), (Role::Worker, KillBy::Kernel)]
        {
            let program = Policy::of(role).unwrap().compile(kill);
            let i386 = 0x4000_0003;
            assert_eq!(run(&program, i386, 0, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
            for number in [X32_BIT, X32_BIT + 1, X32_BIT + 520, u32::MAX] {
                assert_eq!(
                    run(&program, Table::X86_64.audit(), number, [0; 6]),
                    libc::SECCOMP_RET_KILL_PROCESS
                );
            }
        }
    }

    #[test]
    fn the_worker_has_a_policy_for_aarch64() {
        let policy = Policy::read(Role::Worker, true, Table::Aarch64).unwrap();
        let program = policy.compile(KillBy::Kernel);
        let verdict = |call: &str, args| {
            run(&program, Table::Aarch64.audit(), Table::Aarch64.number(call).unwrap(), args)
        };
        let refused = expected(Verdict::Errno(1));
        for call in [
            "read",
            "write",
            "close",
            "ppoll",
            "futex",
            "munmap",
            "openat",
            "newfstatat",
            "exit_group",
            "brk",
        ] {
            assert_eq!(verdict(call, [0; 6]), libc::SECCOMP_RET_ALLOW, "{call}");
        }
        for call in [
            "execve",
            "clone",
            "clone3",
            "socket",
            "ptrace",
            "mount",
            "bpf",
            "memfd_create",
            "prctl",
            "unlinkat",
        ] {
            assert_eq!(verdict(call, [0; 6]), refused, "{call}");
        }
        assert_eq!(verdict("mmap", [0, 0, 4, 0, 0, 0]), refused);
        assert_eq!(run(&program, Table::X86_64.audit(), 0, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
    }

    #[test]
    fn a_listener_hears_what_the_kernel_would_kill() {
        let program = Policy::of(Role::Python).unwrap().compile(KillBy::Listener);
        assert_eq!(
            run(&program, Table::X86_64.audit(), number("socket").unwrap(), [0; 6]),
            libc::SECCOMP_RET_USER_NOTIF
        );
        assert_eq!(run(&program, Table::X86_64.audit(), 599, [0; 6]), libc::SECCOMP_RET_USER_NOTIF);
    }
}
