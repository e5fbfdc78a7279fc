//! What a child sees of its own confinement, without /proc.
//!
//! Asked between Landlock and seccomp, while the calls that answer are still permitted. A child that finds a layer
//! missing refuses to read its request.

use std::io;

use crate::confine::{Step, mounts::Tmp};
use crate::sys::caps::{self, CapSets};
use crate::sys::{fd, mount};

/// What must be found.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// The identity of the child.
    pub uid: u32,
    /// The same for groups.
    pub gid: u32,
    /// False behind a user namespace, where groups cannot be left (they are unmapped there).
    pub no_groups: bool,
    /// The size of /tmp.
    pub tmp_bytes: u64,
    /// Its inodes.
    pub tmp_inodes: u64,
}

/// Looks at every layer, whatever was asked for; the error names the first that does not hold.
pub fn look(expected: &Expected) -> Result<(), (Step, io::Error)> {
    for step in Step::ALL {
        let holds = holds(expected, step).map_err(|e| (step, e))?;
        if !holds {
            return Err((step, io::Error::other("the layer is not in force")));
        }
    }
    Ok(())
}

fn holds(expected: &Expected, step: Step) -> io::Result<bool> {
    Ok(match step {
        Step::Namespaces => std::process::id() == 1,
        Step::Tmp => {
            let found = mount::capacity(Tmp::PATH)?;
            let sealed = libc::ST_NOEXEC | libc::ST_NOSUID | libc::ST_NODEV;
            found.bytes == expected.tmp_bytes
                && found.inodes == expected.tmp_inodes
                && found.flags & sealed == sealed
        }
        Step::Descriptors => fd::probe_fd_closed(3) && fd::probe_fd_closed(4),
        Step::Rlimits => caps::rlimit(libc::RLIMIT_CORE)? == (0, 0),
        Step::Bounding => (0..=63).all(|cap| !caps::bounding_has(cap).unwrap_or(false)),
        Step::Groups => !expected.no_groups || caps::group_count()? == 0,
        Step::Gid => caps::ids()?.1 == [expected.gid; 3],
        Step::Uid => caps::ids()?.0 == [expected.uid; 3],
        Step::LinuxCaps => caps::get_caps()? == CapSets { effective: 0, permitted: 0, inheritable: 0 },
        Step::NoNewPrivs => caps::no_new_privs()?,
        // The root directory is readable to everybody, so EACCES can only be Landlock's.
        Step::Landlock => denied(fd::probe_open(c"/", libc::O_RDONLY | libc::O_DIRECTORY)),
        // Seen from outside (the supervisor reads the slot), by looking here, and by the step after this one.
        Step::Cgroup | Step::SelfCheck | Step::Seccomp => true,
    })
}

fn denied(opened: io::Result<()>) -> bool {
    opened.is_err_and(|e| e.raw_os_error() == Some(libc::EACCES))
}
