//! The files of `systemd/`: what systemd and logrotate themselves say of them. No systemd runs here: that the units start
//! and work is seen by `./dev test-production`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tests::{Ran, program, repository};

const UNITS: [&str; 7] = [
    "tinyfiles-api.service",
    "tinyfiles-work.service",
    "tinyfiles-runner.service",
    "tinyfiles-backup.service",
    "tinyfiles-backup.timer",
    "nginx.service",
    "logrotate.service",
];
/// What is added to units of Debian's.
const DROP_INS: [&str; 2] = ["nginx.service.d/tinyfiles.conf", "logrotate.service.d/tinyfiles.conf"];
/// Where the units expect the programs.
const PROGRAMS: &str = "/opt/tinyfiles/current/target/release/";

fn file(name: &str) -> PathBuf {
    repository().join("systemd").join(name)
}

fn run(command: &mut Command) -> Result<Ran> {
    let name = command.get_program().to_string_lossy().into_owned();
    Ok(Ran::of(&command.output().with_context(|| format!("no {name}; `./dev test` installs it"))?))
}

/// The units in a folder, starting the programs of this build, with Debian's own under their drop-ins.
fn units(folder: &Path) -> Result<()> {
    let version = run(Command::new("systemd-analyze").arg("--version"))?.stdout;
    let version: u32 = version.split_whitespace().nth(1).context("no version")?.parse()?;
    for name in UNITS {
        let text = match name {
            "nginx.service" | "logrotate.service" => {
                fs::read_to_string(Path::new("/lib/systemd/system").join(name))?
            }
            _ => fs::read_to_string(file(name))?,
        };
        let built = program("").to_string_lossy().into_owned();
        let mut text = text.replace(PROGRAMS, &built);
        if version < 254 {
            // The one key that is newer than Debian 12; the units are for Debian 13.
            text = text.replace("DelegateSubgroup=supervisor\n", "");
        }
        fs::write(folder.join(name), text)?;
    }
    for drop_in in DROP_INS {
        let place = folder.join(drop_in);
        fs::create_dir_all(place.parent().context("no folder")?)?;
        fs::copy(file(drop_in), place)?;
    }
    Ok(())
}

fn verify(folder: &Path) -> Result<()> {
    let units = UNITS.map(|name| folder.join(name));
    let verify = run(Command::new("systemd-analyze").arg("verify").args(units))?;
    ensure!(verify.code == 0 && verify.stderr.is_empty(), "{verify:?}");
    Ok(())
}

#[test]
fn systemd_understands_every_line_of_the_units() -> Result<()> {
    let folder = tempfile::tempdir()?;
    units(folder.path())?;
    verify(folder.path())?;
    // It does find something where there is something.
    for name in [UNITS[2], DROP_INS[0], DROP_INS[1]] {
        let path = folder.path().join(name);
        let text = fs::read_to_string(&path)?;
        fs::write(&path, text.replace("[Service]", "[Service]\nProtectHut=yes"))?;
        let found = format!("{:?}", verify(folder.path()));
        ensure!(found.contains("ProtectHut"), "{name}: {found}");
        fs::write(&path, text)?;
    }
    Ok(())
}

#[test]
fn the_units_start_what_the_programs_know() -> Result<()> {
    for (name, program_name, word) in
        [(UNITS[0], "api", "serve"), (UNITS[1], "api", "work"), (UNITS[2], "runner", "serve")]
    {
        let text = fs::read_to_string(file(name))?.replace("\\\n", " ");
        let start = text.lines().find_map(|l| l.strip_prefix("ExecStart=")).context("no ExecStart")?;
        let mut words = start.split_whitespace();
        ensure!(words.next() == Some(&format!("{PROGRAMS}{program_name}")), "{name}: {start}");
        ensure!(words.any(|w| w == word), "{name}: {start}");
        let help = run(Command::new(program(program_name)).args([word, "--help"]))?;
        let help = help.stdout + &help.stderr;
        for option in start.split_whitespace().filter(|w| w.starts_with("--")) {
            ensure!(help.contains(option), "{name}: {program_name} {word} has no {option}");
        }
    }
    Ok(())
}

/// Needs root, like `./dev test` as a whole: owners are given away.
#[test]
fn users_and_folders_keep_saves_and_catalogue_from_everybody_else() -> Result<()> {
    let root = tempfile::tempdir()?;
    let etc = root.path().join("etc");
    fs::create_dir(&etc)?;
    // What Debian brings.
    fs::write(etc.join("passwd"), "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n")?;
    fs::write(etc.join("group"), "www-data:x:33:\n")?;
    let at_root = format!("--root={}", root.path().display());
    let users =
        run(Command::new("systemd-sysusers").arg(&at_root).arg(fs::canonicalize(file("sysusers.conf"))?))?;
    ensure!(users.code == 0, "{users:?}");
    let folders = || {
        run(Command::new("systemd-tmpfiles")
            .args(["--create", &at_root])
            .arg(fs::canonicalize(file("tmpfiles.conf"))?))
    };
    let made = folders()?;
    ensure!(made.code == 0 && made.stderr.is_empty(), "{made:?}");
    let data = root.path().join("var/lib/tinyfiles");
    let catalog = data.join("catalog.db");
    fs::write(&catalog, "kept")?;
    let again = folders()?;
    ensure!(again.code == 0 && fs::read(&catalog)? == b"kept", "{again:?}");
    let owner = fs::metadata(&data)?.uid();
    ensure!(owner != 0 && fs::metadata(&data)?.gid() == 33, "nginx must pass through {}", data.display());
    for name in ["", "saves", "staging", "screenshots", "catalog.db"] {
        let found = fs::metadata(data.join(name))?;
        ensure!(found.uid() == owner && found.mode() & 0o007 == 0, "{name}: {:o}", found.mode());
        ensure!(name.is_empty() || found.mode() & 0o070 == 0, "{name}: {:o}", found.mode());
    }
    let runner = fs::metadata(root.path().join("var/lib/tinyfiles-runner"))?;
    ensure!(runner.uid() != owner && runner.uid() != 0, "the runner has a user of its own");
    ensure!(fs::read_link(data.join("runner.sock"))? == Path::new("/run/tinyfiles-runner/runner.sock"));
    Ok(())
}

#[test]
fn logrotate_understands_its_file_and_rotates() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let text = fs::read_to_string(file("logrotate.conf"))?;
    // Debian's service of that name may write below /etc only where it is told.
    let may_write = fs::read_to_string(file(DROP_INS[1]))?;
    ensure!(may_write.lines().any(|l| l == "ReadWritePaths=/etc/tinyfiles/nginx"), "{may_write}");
    ensure!(text.contains("/etc/tinyfiles/nginx/*.log {"), "{text}");
    let place = folder.path().to_string_lossy();
    let (conf, log) = (folder.path().join("conf"), folder.path().join("access.log"));
    // logrotate refuses folders that others may write; this one is the test's own.
    fs::write(&conf, text.replace("/etc/tinyfiles/nginx", &place))?;
    fs::write(&log, "a line\n")?;
    let state = folder.path().join("state");
    let ran = run(Command::new("/usr/sbin/logrotate").arg("-f").arg("-s").arg(&state).arg(&conf))?;
    ensure!(ran.code == 0 && ran.stderr.is_empty(), "{ran:?}");
    ensure!(fs::read_to_string(folder.path().join("access.log.1"))? == "a line\n", "not rotated");
    Ok(())
}
