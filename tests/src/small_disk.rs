//! A disk that is really full: a small one for the data of an installation, with all programs of a test on it.
//!
//! Who mounts must not disturb the machine, so the whole test runs once more in a mount namespace of its own.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::Ran;

/// Says to a test that it runs in mounts of its own.
const MARK: &str = "TINYFILES_TEST_IN_OWN_MOUNTS";
/// What a disk has when there is room.
const ROOM_KIB: u64 = 256 << 10;

/// Whether the test of that name runs in mounts of its own; if not, it is run there, to its end, and must pass.
pub fn in_own_mounts(test: &str) -> Result<bool> {
    if std::env::var_os(MARK).is_some() {
        return Ok(true);
    }
    let root = std::fs::metadata("/proc/self")?.uid() == 0;
    let mut unshare = Command::new("unshare");
    unshare.args([if root { "-m" } else { "-rm" }, "--propagation", "private"]);
    unshare.arg(std::env::current_exe()?).args(["--exact", test, "--nocapture"]).env(MARK, "1");
    let ran = Ran::of(&unshare.output().context("cannot run unshare")?);
    ensure!(ran.code == 0 && ran.stdout.contains("1 passed"), "{}\n{}", ran.stdout, ran.stderr);
    Ok(false)
}

/// A mounted disk, taken away with the value.
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts one with room, in mounts of the test's own.
    pub fn mount(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={ROOM_KIB}k"), "small"])
            .arg(folder))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Leaves so much free, and no more.
    pub fn leave(&self, kib: u64) -> Result<()> {
        let output = Command::new("stat").args(["-f", "-c", "%b %f %S"]).arg(&self.folder).output()?;
        let text = Ran::of(&output).stdout;
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let [blocks, free, size] = numbers[..] else { anyhow::bail!("stat: {text}") };
        // None at all would be no limit.
        self.resize(((blocks - free) * size / 1024 + kib).max(4))
    }

    /// Makes room.
    pub fn make_room(&self) -> Result<()> {
        self.resize(ROOM_KIB)
    }

    fn resize(&self, kib: u64) -> Result<()> {
        run(Command::new("mount").args(["-o", &format!("remount,size={kib}k")]).arg(&self.folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whoever still has a file there keeps it.
        let _ = Command::new("umount").arg("-l").arg(&self.folder).status();
    }
}

fn run(command: &mut Command) -> Result<()> {
    let ran = Ran::of(&command.output()?);
    ensure!(ran.code == 0, "{command:?}: {ran:?}");
    Ok(())
}
