"""python-test-suite.py: every known attack on the process that runs a work's Python function.

Read it, run it, extend it. Each attack is one small function. It gets `host`, a dictionary that names things outside
which it may try to reach (see HOST below), and returns something true if it SUCCEEDED: if it reached what it must not
reach. Returning nothing, raising, or being killed by the kernel means that it was blocked. Its docstring has three
lines: what it tries, what "blocked" means, and who reported it first.

`runner suite` runs every function twice in each of two modes:

  guarded   as a work meets it: the import guard is on, and only the safe modules are loaded
  bare      no guard, and the whole standard library (ctypes and mmap too) is loaded beforehand

and once more *outside*, in a throw-away environment, where it has to succeed: an attack that cannot succeed anywhere
proves nothing. While they run, the host watches: canary listeners on TCP, on a path and on an abstract Unix socket, a
canary file, its processes, cgroups and mounts, the clock, and the health of the next call. One success, one watcher
that saw something, or one attack that fails outside as well, and Python is closed.

Found another one? Write the function, try it with `runner suite --attack FILE`, and send it.

List them: python3 python-test-suite.py. Run one here, without any sandbox: python3 python-test-suite.py NAME HOST-AS-JSON
"""

# HOST: tcp (port of a listener on 127.0.0.1), abstract (name of an abstract socket), unix (path of a socket),
# file (a file that holds the token), module (a Python file that defines TOKEN), folder (a folder that anyone may
# write to), token (what these give away), nonce (differs from call to call).

# --- helpers ---------------------------------------------------------------------------------------------------------


def module(name):
    """A module by import or, where a guard refuses, by walking through the modules that are loaded anyway."""
    try:
        __import__(name)
    except ImportError:
        pass
    import collections

    return collections._sys.modules[name]


def libc():
    """The C library, with errno."""
    return module("ctypes").CDLL(None, use_errno=True)


ERRNOS = []  # what reached() was told, so that a control can say that this kernel lacks a call


def reached(number, *arguments):
    """Did the system call get past every filter? An error about its arguments means yes."""
    ctypes = module("ctypes")
    code = libc().syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    ERRNOS.append(0 if code != -1 else ctypes.get_errno())
    return ERRNOS[-1] not in (1, 38)


def read(path):
    """The start of a file."""
    with open(path, "rb") as file:
        return file.read(200)


def seconds():
    """A clock."""
    return module("time").monotonic()


# --- attacks ---------------------------------------------------------------------------------------------------------

ATTACKS = {}


def attack(category, ends=None):
    """Marks an attack. With `ends`, only this outcome counts as blocked in bare mode."""

    def keep(function):
        ATTACKS[function.__name__] = (category, ends, function)
        return function

    return keep


@attack("filesystem")
def read_etc_passwd(host):
    """Tries: reading /etc/passwd.
    Blocked: no such file exists inside.
    Reported: the Python page, first edition"""
    return b"root" in read("/etc/passwd")


@attack("filesystem")
def read_canary_file(host):
    """Tries: reading a file whose path on the host is known.
    Blocked: no such file exists inside.
    Reported: the Python page, first edition"""
    return host["token"].encode() in read(host["file"])


@attack("filesystem")
def traverse_upwards(host):
    """Tries: leaving through ../ from /tmp.
    Blocked: the root of the process is its world.
    Reported: the Python page, first edition"""
    return host["token"].encode() in read("/tmp/" + "../" * 20 + host["file"])


@attack("filesystem")
def list_the_root(host):
    """Tries: listing /.
    Blocked: Landlock refuses to list anything but /tmp.
    Reported: the Python page, first edition"""
    names = module("os").listdir("/")
    return names and names != ["tmp"]


@attack("filesystem")
def stat_host_paths(host):
    """Tries: asking whether well-known paths exist.
    Blocked: none of them does.
    Reported: openedx/codejail, test_find_other_sandboxes"""
    os = module("os")
    paths = ("/etc/passwd", "/usr/bin", "/home", "/root", "/var/log", "/proc/self", "/sys/kernel")
    return [p for p in paths if os.path.exists(p)]


@attack("filesystem")
def write_outside_tmp(host):
    """Tries: creating files in folders that anyone may write to.
    Blocked: the root is read-only and holds no other folder.
    Reported: the Python page, first edition"""
    for folder in (host["folder"], "/var/tmp", "/dev/shm", "/"):
        try:
            with open(folder + "/attack", "w") as file:
                file.write("x")
            return folder
        except OSError:
            continue


@attack("filesystem")
def overwrite_canary_file(host):
    """Tries: changing the canary file.
    Blocked: no such file exists inside.
    Reported: judge0/judge0, CVE-2024-28185"""
    with open(host["file"], "r+b") as file:
        file.seek(0, 2)
        return file.write(b" ") == 1


@attack("filesystem")
def fill_tmp(host):
    """Tries: storing two megabytes in /tmp.
    Blocked: /tmp ends at one megabyte.
    Reported: the Python page, first edition"""
    written = 0
    for n in range(32):
        with open(f"/tmp/fill{n}", "wb") as file:
            written += file.write(bytes(65536))
    return written >= 2 << 20


@attack("filesystem")
def fill_tmp_through_mmap(host):
    """Tries: growing a file in /tmp through a mapping.
    Blocked: pages beyond the size are refused (SIGBUS or an error).
    Reported: moby/moby#39004"""
    mmap, os = module("mmap"), module("os")
    handle = os.open("/tmp/map", os.O_RDWR | os.O_CREAT)
    os.ftruncate(handle, 900_000)
    os.ftruncate(handle, 4 << 20)
    space = mmap.mmap(handle, 4 << 20)
    for place in range(0, 4 << 20, 4096):
        space[place] = 1
    return True


@attack("filesystem")
def exhaust_inodes(host):
    """Tries: making two thousand empty files in /tmp.
    Blocked: the inode count of /tmp is bounded.
    Reported: python-discord/snekbox#187"""
    for n in range(2000):
        open(f"/tmp/inode{n}", "w").close()
    return True


@attack("filesystem")
def exhaust_inodes_with_symlinks(host):
    """Tries: making two thousand short symlinks, which a size limit does not count.
    Blocked: no symlink can be made.
    Reported: systemd/systemd#15424"""
    os = module("os")
    for n in range(2000):
        os.symlink("x", f"/tmp/link{n}")
    return True


@attack("filesystem")
def find_an_earlier_calls_file(host):
    """Tries: leaving a file in /tmp for the next call to find.
    Blocked: each call has a /tmp of its own.
    Reported: python-discord/snekbox, test_tmp_not_mounted"""
    try:
        return read("/tmp/left")
    except OSError:
        with open("/tmp/left", "w") as file:
            file.write("x")


@attack("filesystem")
def execute_from_tmp(host):
    """Tries: running a program that was written to /tmp.
    Blocked: no process can be started, and /tmp is noexec.
    Reported: landlock-lsm/linux#37"""
    os = module("os")
    with open("/tmp/program", "w") as file:
        file.write("#!/bin/sh\nexit 7\n")
    os.chmod("/tmp/program", 0o755)
    pid = os.posix_spawn("/tmp/program", ["program"], {})
    return os.waitpid(pid, 0)[1] == 7 << 8


@attack("filesystem")
def map_tmp_as_code(host):
    """Tries: mapping a file of /tmp as executable code.
    Blocked: executable mappings are refused.
    Reported: landlock-lsm/linux#49"""
    mmap, os = module("mmap"), module("os")
    handle = os.open("/tmp/code", os.O_RDWR | os.O_CREAT)
    os.write(handle, bytes(4096))
    return mmap.mmap(handle, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC) is not None


@attack("filesystem")
def follow_a_symlink(host):
    """Tries: a symlink in /tmp that points outside.
    Blocked: no symlink can be made, and there is nothing to point to.
    Reported: compiler-explorer/compiler-explorer#6026"""
    module("os").symlink(host["file"], "/tmp/link")
    return host["token"].encode() in read("/tmp/link")


@attack("filesystem")
def make_a_hard_link(host):
    """Tries: a second name for a file.
    Blocked: the kernel ends the process.
    Reported: judge0/judge0, CVE-2024-28189"""
    os = module("os")
    open("/tmp/one", "w").close()
    os.link("/tmp/one", "/tmp/two")
    return True


@attack("filesystem")
def make_a_device(host):
    """Tries: a device node for the machine's memory.
    Blocked: the kernel ends the process.
    Reported: this project"""
    os = module("os")
    os.mknod("/tmp/null", 0o20666, os.makedev(1, 3))
    return True


@attack("filesystem")
def make_a_fifo(host):
    """Tries: a named pipe for another process to meet.
    Blocked: the kernel ends the process or Landlock refuses.
    Reported: this project"""
    module("os").mkfifo("/tmp/fifo")
    return True


@attack("filesystem")
def make_setuid(host):
    """Tries: a setuid file.
    Blocked: modes cannot be changed.
    Reported: this project"""
    os = module("os")
    open("/tmp/suid", "w").close()
    os.chmod("/tmp/suid", 0o4755)
    return os.stat("/tmp/suid").st_mode & 0o4000


@attack("filesystem")
def change_root(host):
    """Tries: chroot.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    os = module("os")
    os.mkdir("/tmp/jail")
    os.chroot("/tmp/jail")
    return True


@attack("filesystem")
def mount_a_file_system(host):
    """Tries: mount(2).
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return reached(165, 0, 0, 0, 0, 0)


@attack("filesystem")
def unmount_tmp(host):
    """Tries: umount2(2).
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(166, 0, 0)


@attack("filesystem")
def mount_through_the_new_calls(host):
    """Tries: fsopen, open_tree, move_mount, fsconfig, fsmount, fspick.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (428, 429, 430, 431, 432, 433) if reached(n, -1, 0, 0, 0, 0)]


@attack("filesystem")
def list_mounts_without_proc(host):
    """Tries: statmount and listmount (Linux 6.8).
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(457, 0, 0, 0, 0) or reached(458, 0, 0, 0, 0)


@attack("filesystem")
def change_mount_attributes(host):
    """Tries: mount_setattr(2).
    Blocked: the kernel ends the process.
    Reported: multikernel/sandlock, test_seccomp_enforce"""
    return reached(442, -1, 0, 0, 0, 0)


@attack("filesystem")
def pivot_the_root(host):
    """Tries: pivot_root(2).
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return reached(155, 0, 0)


@attack("filesystem")
def open_by_handle(host):
    """Tries: open_by_handle_at (the Shocker exploit).
    Blocked: the kernel ends the process.
    Reported: Sebastian Krahmer, 2014"""
    return reached(304, -1, 0, 0)


@attack("filesystem")
def make_a_handle(host):
    """Tries: name_to_handle_at.
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return reached(303, -1, 0, 0, 0, 0)


@attack("filesystem")
def watch_files(host):
    """Tries: inotify and fanotify.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (294, 300) if reached(n, 0, 0)]


@attack("filesystem")
def read_the_standard_library(host):
    """Tries: reading the interpreter's own files.
    Blocked: no such file exists inside.
    Reported: this project"""
    os = module("os")
    folder = "/usr/lib/python3.%d" % module("sys").version_info[1]
    return os.listdir(folder)


@attack("filesystem")
def open_devices(host):
    """Tries: opening /dev/null, /dev/zero, /dev/mem, /dev/kmsg, /dev/ptmx.
    Blocked: no such file exists inside.
    Reported: this project"""
    for name in ("null", "zero", "mem", "kmsg", "ptmx"):
        try:
            return open(f"/dev/{name}", "rb")
        except OSError:
            continue


@attack("filesystem")
def use_shared_memory(host):
    """Tries: a POSIX shared memory object, seen by other calls.
    Blocked: /dev/shm does not exist.
    Reported: ioi/isolate, NEWS 2.6"""
    shm = module("_posixshmem")
    os = module("os")
    return shm.shm_open("/tinyfiles-attack", os.O_CREAT | os.O_RDWR, mode=0o600) >= 0


@attack("filesystem")
def change_owner(host):
    """Tries: giving a file to root.
    Blocked: owners cannot be changed.
    Reported: judge0/judge0, CVE-2024-29021"""
    os = module("os")
    open("/tmp/owned", "w").close()
    os.chown("/tmp/owned", 0, 0)
    return os.stat("/tmp/owned").st_uid == 0


@attack("network")
def connect_by_tcp(host):
    """Tries: socket.connect to a listener of the host.
    Blocked: no socket can be made.
    Reported: the Python page, first edition"""
    socket = module("socket")
    with socket.create_connection(("127.0.0.1", host["tcp"]), 2) as talk:
        return talk.recv(100)


@attack("network")
def send_by_udp(host):
    """Tries: a datagram to the host.
    Blocked: no socket can be made.
    Reported: the Python page, first edition"""
    socket = module("socket")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talk:
        return talk.sendto(b"x", ("127.0.0.1", host["tcp"]))


@attack("network")
def connect_by_ipv6(host):
    """Tries: an IPv6 socket.
    Blocked: no socket can be made.
    Reported: this project"""
    return reached(41, 10, 1, 0)


@attack("network")
def connect_to_an_abstract_socket(host):
    """Tries: an abstract Unix socket, which no file rule covers.
    Blocked: no socket can be made.
    Reported: Zouuup/landrun#43"""
    socket = module("socket")
    with socket.socket(socket.AF_UNIX) as talk:
        talk.connect("\0" + host["abstract"])
        return talk.recv(100)


@attack("network")
def connect_to_a_unix_path(host):
    """Tries: a Unix socket at a path of the host.
    Blocked: no socket can be made, and the path does not exist.
    Reported: Zouuup/landrun#43"""
    socket = module("socket")
    with socket.socket(socket.AF_UNIX) as talk:
        talk.connect(host["unix"])
        return talk.recv(100)


@attack("network")
def resolve_a_name(host):
    """Tries: DNS resolution.
    Blocked: nothing to ask and nothing to ask with.
    Reported: the Python page, first edition"""
    return module("socket").getaddrinfo("localhost", 80)


@attack("network")
def urllib_urlopen(host):
    """Tries: urllib.request.urlopen.
    Blocked: no socket can be made.
    Reported: the Python page, first edition"""
    request = module("urllib.request")
    return request.urlopen("http://127.0.0.1:%d/" % host["tcp"], timeout=2).read()


@attack("network")
def requests_get(host):
    """Tries: requests.get or, where it is not installed, the http.client beneath it.
    Blocked: no socket can be made.
    Reported: the Python page, first edition"""
    try:
        return module("requests").get("http://127.0.0.1:%d/" % host["tcp"], timeout=2).text
    except KeyError:
        talk = module("http.client").HTTPConnection("127.0.0.1", host["tcp"], timeout=2)
        talk.request("GET", "/")
        return talk.getresponse().read()


@attack("network")
def ftp_and_mail(host):
    """Tries: ftplib and smtplib.
    Blocked: no socket can be made.
    Reported: the Python page, first edition"""
    return module("ftplib").FTP().connect("127.0.0.1", host["tcp"], 2)


@attack("network")
def asyncio_connection(host):
    """Tries: asyncio.open_connection, which makes a socket pair and an epoll first.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    asyncio = module("asyncio")

    async def talk():
        reader, _ = await asyncio.open_connection("127.0.0.1", host["tcp"])
        return await reader.read(100)

    return asyncio.run(talk())


@attack("network")
def listen_for_others(host):
    """Tries: binding and listening.
    Blocked: no socket can be made.
    Reported: engineer-man/piston, network.py"""
    socket = module("socket")
    with socket.socket() as ear:
        ear.bind(("127.0.0.1", 0))
        ear.listen()
        return ear.getsockname()


@attack("network")
def make_a_socket_pair(host):
    """Tries: socketpair(2).
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(53, 1, 1, 0, 0)


@attack("network")
def send_raw_packets(host):
    """Tries: AF_PACKET.
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return reached(41, 17, 3, 0)


@attack("network")
def talk_to_the_kernel(host):
    """Tries: AF_NETLINK.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(41, 16, 3, 0)


@attack("network")
def talk_to_the_hypervisor(host):
    """Tries: AF_VSOCK.
    Blocked: the kernel ends the process.
    Reported: ioi/isolate, NEWS 2.6"""
    return reached(41, 40, 1, 0)


@attack("network")
def use_kernel_crypto(host):
    """Tries: AF_ALG, the kernel's cryptography.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(41, 38, 5, 0)


@attack("network")
def socket_through_io_uring(host):
    """Tries: io_uring, which opens sockets past a filter.
    Blocked: the kernel ends the process.
    Reported: ioi/isolate, NEWS 2.6"""
    return [n for n in (425, 426, 427) if reached(n, -1, 0, 0, 0, 0, 0)]


@attack("network")
def use_an_inherited_descriptor(host):
    """Tries: sending on each descriptor that is open.
    Blocked: sendto is not permitted; there is no listener behind any.
    Reported: sysprog21/kvm-host PR#53"""
    socket = module("socket")
    for number in range(64):
        try:
            talk = socket.socket(fileno=number)
        except OSError:
            continue
        return talk.send(b"x")
    return reached(44, -1, 0, 0, 0, 0, 0)


@attack("process")
def subprocess_run(host):
    """Tries: subprocess.run.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    return module("subprocess").run(["/bin/sh", "-c", "exit 7"]).returncode == 7


@attack("process")
def os_system(host):
    """Tries: os.system.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    return module("os").system("exit 7") == 7 << 8


@attack("process")
def os_popen(host):
    """Tries: os.popen.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    return module("os").popen("echo 7").read()


@attack("process")
def os_fork(host):
    """Tries: os.fork.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    os = module("os")
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)


@attack("process")
def posix_spawn(host):
    """Tries: os.posix_spawn, a vfork.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    os = module("os")
    return os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


@attack("process")
def multiprocessing_process(host):
    """Tries: multiprocessing.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    process = module("multiprocessing").get_context("fork").Process(target=len, args=("x",))
    process.start()
    process.join()
    return process.exitcode == 0


@attack("process")
def replace_the_process(host):
    """Tries: os.execv.
    Blocked: the kernel ends the process.
    Reported: this project"""
    module("os").execv("/bin/echo", ["echo", "true"])


@attack("process")
def execute_a_descriptor(host):
    """Tries: execveat(2).
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(322, -1, 0, 0, 0, 0)


@attack("process")
def fork_through_threads_module(host):
    """Tries: _posixsubprocess.fork_exec, beneath subprocess.
    Blocked: the kernel ends the process.
    Reported: huggingface/smolagents, CVE-2025-5120"""
    work = module("_posixsubprocess")
    os = module("os")
    a, b = os.pipe()
    pid = work.fork_exec([b"true"], [b"/bin/true"], True, (b,), None, None, -1, -1, -1, -1, -1, -1, a, b, False, False, 0, None, None, None, -1, None, False)
    return pid


@attack("process")
def open_a_terminal(host):
    """Tries: a pseudo-terminal.
    Blocked: no device exists.
    Reported: containers/bubblewrap, CVE-2017-5226"""
    return module("os").openpty()


@attack("process")
def new_user_namespace(host):
    """Tries: unshare(CLONE_NEWUSER), the door to most kernel bugs.
    Blocked: the kernel ends the process.
    Reported: multikernel/sandlock#240"""
    return reached(272, 0x10000000)


@attack("process")
def new_namespaces(host):
    """Tries: unshare of mount, network, pid, ipc, uts, cgroup and time.
    Blocked: the kernel ends the process.
    Reported: multikernel/sandlock#240"""
    return [f for f in (0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80) if reached(272, f)]


@attack("process")
def new_namespace_through_clone3(host):
    """Tries: clone3, whose flags lie in memory.
    Blocked: it does not exist (ENOSYS), so threads fall back to clone.
    Reported: moby/moby#42680"""
    return reached(435, 0, 0)


@attack("process")
def join_a_namespace(host):
    """Tries: setns(2).
    Blocked: the kernel ends the process.
    Reported: multikernel/sandlock#240"""
    return reached(308, -1, 0)


@attack("process")
def signal_everybody(host):
    """Tries: kill(-1, 0).
    Blocked: the kernel ends the process.
    Reported: this project"""
    module("os").kill(-1, 0)
    return True


@attack("process")
def signal_a_neighbour(host):
    """Tries: tgkill to another process.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(234, 2, 2, 0)


@attack("process")
def queue_a_signal(host):
    """Tries: rt_sigqueueinfo and pidfd_send_signal.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (129, 297, 424) if reached(n, -1, 0, 0, 0)]


@attack("process")
def leave_the_session(host):
    """Tries: setsid and setpgid, to outlive the timeout.
    Blocked: the kernel ends the process.
    Reported: marcusquinn/aidevops#26951"""
    return reached(112) or reached(109, 0, 0)


@attack("process")
def trace_a_process(host):
    """Tries: ptrace.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    return reached(101, 16, -1, 0, 0)


@attack("process")
def read_another_process(host):
    """Tries: process_vm_readv and process_vm_writev.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (310, 311) if reached(n, 1, 0, 0, 0, 0, 0)]


@attack("process")
def steal_a_descriptor(host):
    """Tries: pidfd_open and pidfd_getfd, which took one from bubblewrap's init.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (434, 438) if reached(n, 1, 0, 0)]


@attack("process")
def compare_processes(host):
    """Tries: kcmp(2).
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return reached(312, 1, 1, 0, 0, 0)


@attack("process")
def advise_another_process(host):
    """Tries: process_madvise and process_mrelease.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (440, 448) if reached(n, -1, 0, 0, 0, 0)]


@attack("process")
def change_the_scheduler(host):
    """Tries: sched_setscheduler, sched_setaffinity, setpriority, ioprio_set.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (144, 203, 141, 251) if reached(n, 0, 0, 0)]


@attack("process")
def set_timers(host):
    """Tries: setitimer, alarm and timer_create.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (38, 37, 222) if reached(n, 0, 0, 0)]


@attack("process")
def become_root(host):
    """Tries: setuid(0), setgid(0), setgroups.
    Blocked: the kernel ends the process.
    Reported: this project"""
    os = module("os")
    os.setuid(0)
    return os.getuid() == 0


@attack("process")
def gain_capabilities(host):
    """Tries: capset(2).
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(126, 0, 0)


@attack("process")
def raise_limits(host):
    """Tries: setrlimit beyond the hard limit.
    Blocked: the limits stay.
    Reported: this project"""
    resource = module("resource")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    return True


@attack("environment")
def read_environ(host):
    """Tries: os.environ.
    Blocked: it is empty.
    Reported: the Python page, first edition"""
    return dict(module("os").environ)


@attack("environment")
def read_environ_from_memory(host):
    """Tries: the C library's environ.
    Blocked: it is empty.
    Reported: judge0/judge0#564"""
    ctypes = module("ctypes")
    variables = ctypes.POINTER(ctypes.c_char_p).in_dll(libc(), "environ")
    return variables and variables[0]


@attack("environment")
def read_the_working_directory(host):
    """Tries: os.getcwd.
    Blocked: it is /.
    Reported: the Python page, first edition"""
    return module("os").getcwd() != "/"


@attack("environment")
def read_uname(host):
    """Tries: os.uname.
    Blocked: the kernel ends the process: a namespace does not hide the kernel's release.
    Reported: the Python page, first edition"""
    return module("os").uname().release


@attack("environment")
def detect_the_platform(host):
    """Tries: platform.platform.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    return module("platform").release()


@attack("environment")
def read_the_host_name(host):
    """Tries: socket.gethostname.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    return module("socket").gethostname()


@attack("environment")
def change_the_host_name(host):
    """Tries: sethostname and setdomainname.
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return reached(170, 0, -1) or reached(171, 0, -1)


@attack("environment")
def read_user_names(host):
    """Tries: the user database.
    Blocked: no such file exists inside.
    Reported: openedx/codejail, test_read_etc_passwd"""
    return len(module("pwd").getpwall()) > 2


@attack("environment")
def measure_the_machine(host):
    """Tries: sysinfo: memory, load and uptime.
    Blocked: the call does not exist (ENOSYS).
    Reported: this project"""
    return reached(99, 0)


@attack("environment")
def read_cpu_and_memory_files(host):
    """Tries: /proc/cpuinfo, /proc/meminfo, /proc/version.
    Blocked: no such file exists inside.
    Reported: multikernel/sandlock, test_procfs"""
    for name in ("cpuinfo", "meminfo", "version"):
        try:
            return read(f"/proc/{name}")
        except OSError:
            continue


@attack("environment")
def find_the_program(host):
    """Tries: sys.executable, sys.prefix, sys.argv, sys.path.
    Blocked: they are empty.
    Reported: microsoft/thinkingbox-data PR#22"""
    sys = module("sys")
    return [p for p in (sys.executable, sys.prefix, sys.argv[0], *sys.path) if p]


@attack("environment")
def find_the_program_in_memory(host):
    """Tries: the path of the program in the auxiliary vector.
    Blocked: it was wiped before the first call.
    Reported: this project"""
    ctypes = module("ctypes")
    find = libc().getauxval
    find.restype, find.argtypes = ctypes.c_char_p, [ctypes.c_ulong]
    return find(31)


@attack("environment")
def find_module_files(host):
    """Tries: the paths of loaded modules.
    Blocked: they were forgotten before the first call.
    Reported: this project"""
    sys = module("sys")
    return [m.__file__ for m in list(sys.modules.values()) if (getattr(m, "__file__", None) or "").startswith("/")]


@attack("environment")
def read_resource_usage(host):
    """Tries: getrusage and times of the machine's accounting.
    Blocked: the calls do not exist (ENOSYS).
    Reported: this project"""
    return reached(98, 0, 0) or reached(100, 0)


@attack("environment")
def ask_the_file_system(host):
    """Tries: statfs of the root.
    Blocked: the call does not exist (ENOSYS).
    Reported: this project"""
    return reached(137, 0, 0)


@attack("introspection")
def walk_from_random(host):
    """Tries: random._os, one attribute away.
    Blocked: the kernel refuses what os is asked for.
    Reported: huggingface/smolagents#2094"""
    import random

    return host["token"].encode() in random._os.read(random._os.open(host["file"], 0), 100)


@attack("introspection")
def walk_from_collections(host):
    """Tries: collections._sys.modules.
    Blocked: the kernel refuses what posix is asked for.
    Reported: huggingface/smolagents, CVE-2025-9959"""
    import collections

    posix = collections._sys.modules["posix"]
    return host["token"].encode() in posix.read(posix.open(host["file"], 0), 100)


@attack("introspection")
def walk_from_subclasses(host):
    """Tries: every class from object downwards, to a global named open or system.
    Blocked: the kernel refuses what it is asked for.
    Reported: public knowledge"""
    for kind in object.__subclasses__():
        names = getattr(getattr(kind, "__init__", None), "__globals__", {})
        if "system" in names and "popen" in names:
            return names["system"]("exit 7") == 7 << 8


@attack("introspection")
def import_a_file_of_the_host(host):
    """Tries: importlib, from a path of the host.
    Blocked: no such file exists inside.
    Reported: the Python page, first edition"""
    util = module("importlib.util")
    spec = util.spec_from_file_location("canary", host["module"])
    found = util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found.TOKEN == host["token"]


@attack("introspection")
def import_after_restoring_builtins(host):
    """Tries: the genuine __import__ and sys.path.
    Blocked: no such file exists inside.
    Reported: the Python page, first edition"""
    import collections

    sys = collections._sys
    sys.path.append(host["module"].rpartition("/")[0])
    name = host["module"].rpartition("/")[2][:-3]
    return sys.modules["builtins"].__import__(name).TOKEN == host["token"]


@attack("introspection")
def evaluate_text(host):
    """Tries: eval and exec with the genuine builtins.
    Blocked: the kernel refuses what the text asks for.
    Reported: the Python page, first edition"""
    import collections

    genuine = collections._sys.modules["builtins"]
    return genuine.eval("__import__('os').system('exit 7')", {"__builtins__": genuine}) == 7 << 8


@attack("introspection")
def unpickle_a_command(host):
    """Tries: pickle with a command in it.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    return module("pickle").loads(b"cposix\nsystem\n(S'exit 7'\ntR.") == 7 << 8


@attack("introspection")
def inspect_outer_frames(host):
    """Tries: frames above, with what the harness holds.
    Blocked: nothing of the host is in this process.
    Reported: the Python page, first edition"""
    import collections

    frame = collections._sys._getframe(1)
    while frame:
        if "host_secret" in frame.f_locals:
            return True
        frame = frame.f_back


@attack("introspection")
def find_an_earlier_calls_inputs(host):
    """Tries: the inputs of an earlier call, among all objects.
    Blocked: each call is a process of its own.
    Reported: this project"""
    gc = module("gc")
    for thing in gc.get_objects():
        members = thing if type(thing) in (list, tuple) else thing.values() if type(thing) is dict else ()
        for member in list(members):
            if type(member) is dict and member.get("nonce", host["nonce"]) != host["nonce"]:
                return True


@attack("introspection")
def leave_a_mark_in_a_module(host):
    """Tries: an attribute of a module, for the next call.
    Blocked: each call is a process of its own.
    Reported: this project"""
    import math

    found = hasattr(math, "mark")
    math.mark = True
    return found


@attack("docker surface")
def connect_to_the_docker_socket(host):
    """Tries: /var/run/docker.sock and its relatives.
    Blocked: no socket can be made, and no path exists.
    Reported: the Python page, first edition"""
    socket = module("socket")
    for path in ("/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", host["unix"]):
        with socket.socket(socket.AF_UNIX) as talk:
            try:
                talk.connect(path)
            except OSError:
                continue
            return path


@attack("docker surface")
def find_container_marks(host):
    """Tries: /.dockerenv, service tokens, cloud credentials, any file of the host.
    Blocked: none exists.
    Reported: the Python page, first edition"""
    os = module("os")
    marks = ("/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io", "/root/.aws", host["file"])
    return [m for m in marks if os.path.exists(m)]


@attack("docker surface")
def read_mountinfo(host):
    """Tries: /proc/self/mountinfo.
    Blocked: no such file exists inside.
    Reported: the Python page, first edition"""
    return read("/proc/self/mountinfo")


@attack("docker surface")
def read_own_cgroup(host):
    """Tries: /proc/self/cgroup and /proc/1/cgroup.
    Blocked: no such file exists inside.
    Reported: the Python page, first edition"""
    return read("/proc/self/cgroup") or read("/proc/1/cgroup")


@attack("docker surface")
def list_cgroups(host):
    """Tries: /sys/fs/cgroup.
    Blocked: no such file exists inside.
    Reported: the Python page, first edition"""
    return module("os").listdir("/sys/fs/cgroup")


@attack("docker surface")
def escape_through_proc_root(host):
    """Tries: the root as /proc shows it.
    Blocked: no such file exists inside.
    Reported: this project"""
    return host["token"].encode() in read("/proc/self/root" + host["file"])


@attack("docker surface")
def escape_through_proc_fd(host):
    """Tries: descriptors of others in /proc.
    Blocked: no such file exists inside.
    Reported: opencontainers/runc, CVE-2024-21626"""
    return module("os").listdir("/proc/self/fd")


@attack("docker surface")
def overwrite_the_program(host):
    """Tries: /proc/self/exe, the way CVE-2019-5736 took runc.
    Blocked: no such file exists inside.
    Reported: opencontainers/runc, CVE-2019-5736"""
    return open("/proc/self/exe", "rb")


@attack("docker surface")
def read_sysctl_and_core_pattern(host):
    """Tries: /proc/sys.
    Blocked: no such file exists inside.
    Reported: this project"""
    return read("/proc/sys/kernel/core_pattern")


@attack("kernel surface")
def write_own_memory_file(host):
    """Tries: /proc/self/mem.
    Blocked: no such file exists inside.
    Reported: the Python page, first edition"""
    return open("/proc/self/mem", "r+b")


@attack("kernel surface")
def map_code(host):
    """Tries: an anonymous mapping that is writable and executable.
    Blocked: executable mappings are refused.
    Reported: the Python page, first edition"""
    mmap = module("mmap")
    return mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)


@attack("kernel surface")
def turn_memory_into_code(host):
    """Tries: mprotect with PROT_EXEC.
    Blocked: refused by the filter and by MDWE.
    Reported: the Python page, first edition"""
    ctypes, mmap = module("ctypes"), module("mmap")
    space = mmap.mmap(-1, 4096)
    place = ctypes.addressof(ctypes.c_char.from_buffer(space))
    return libc().mprotect(ctypes.c_void_p(place), 4096, 5) == 0


@attack("kernel surface")
def turn_memory_into_code_with_keys(host):
    """Tries: pkey_mprotect and pkey_alloc.
    Blocked: refused or the kernel ends the process.
    Reported: this project"""
    return reached(330, 0, 0)


@attack("kernel surface")
def load_a_kernel_module(host):
    """Tries: init_module, finit_module, delete_module.
    Blocked: the kernel ends the process.
    Reported: the Python page, first edition"""
    return [n for n in (175, 313, 176) if reached(n, -1, 0, 0)]


@attack("kernel surface")
def load_a_kernel(host):
    """Tries: kexec_load, kexec_file_load and reboot.
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return [n for n in (246, 320, 169) if reached(n, -1, 0, 0, 0, 0)]


@attack("kernel surface")
def load_a_bpf_program(host):
    """Tries: bpf(2).
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return reached(321, -1, 0, 0)


@attack("kernel surface")
def open_a_perf_event(host):
    """Tries: perf_event_open(2).
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return reached(298, 0, 0, 0, 0, 0)


@attack("kernel surface")
def handle_page_faults(host):
    """Tries: userfaultfd(2), the helper of races.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(323, -1)


@attack("kernel surface")
def use_the_keyring(host):
    """Tries: keyctl, add_key and request_key.
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return [n for n in (250, 248, 249) if reached(n, -1, 0, 0, 0, 0)]


@attack("kernel surface")
def use_asynchronous_io(host):
    """Tries: io_setup and io_submit.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (206, 209) if reached(n, 0, 0, 0)]


@attack("kernel surface")
def make_a_memory_file(host):
    """Tries: memfd_create and memfd_secret, files without a noexec mount.
    Blocked: the kernel ends the process.
    Reported: landlock-lsm/linux#37"""
    return [n for n in (319, 447) if reached(n, -1, -1)]


@attack("kernel surface")
def move_pages_between_pipes(host):
    """Tries: splice, tee and vmsplice (Dirty Pipe).
    Blocked: the kernel ends the process.
    Reported: Max Kellermann, CVE-2022-0847"""
    return [n for n in (275, 276, 278) if reached(n, -1, 0, -1, 0, 0, 0)]


@attack("kernel surface")
def use_system_v_ipc(host):
    """Tries: shmget, msgget and semget, shared by all calls of a namespace.
    Blocked: the kernel ends the process.
    Reported: ioi/isolate, NEWS 2.6"""
    return [n for n in (29, 68, 64) if reached(n, 0, 4096, 0o1600)]


@attack("kernel surface")
def use_message_queues(host):
    """Tries: mq_open.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(240, 0, 0, 0, 0)


@attack("kernel surface")
def change_the_clock(host):
    """Tries: settimeofday, clock_settime and adjtimex.
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return [n for n in (164, 227, 159) if reached(n, -1, -1)]


@attack("kernel surface")
def change_segments(host):
    """Tries: modify_ldt and arch_prctl.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(154, 0, 0, 0) or reached(158, -1, 0)


@attack("kernel surface")
def change_personality(host):
    """Tries: personality(2), which turns address randomisation off.
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return reached(135, -1)


@attack("kernel surface")
def reach_io_ports(host):
    """Tries: iopl and ioperm.
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return reached(172, -1) or reached(173, -1, 1, 0)


@attack("kernel surface")
def read_the_kernel_log(host):
    """Tries: syslog(2).
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return reached(103, 10, 0, 0)


@attack("kernel surface")
def switch_accounting_and_swap(host):
    """Tries: acct, swapon, swapoff and quotactl.
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return [n for n in (163, 167, 168, 179) if reached(n, -1, -1, -1, -1)]


@attack("kernel surface")
def push_characters_into_a_terminal(host):
    """Tries: ioctl TIOCSTI.
    Blocked: the kernel ends the process.
    Reported: containers/bubblewrap#142, CVE-2017-5226"""
    return reached(16, 2, 0x5412, 0)


@attack("kernel surface")
def push_characters_past_a_wide_compare(host):
    """Tries: the same number with a bit above the 32 that the kernel reads.
    Blocked: the kernel ends the process.
    Reported: containers/bubblewrap, CVE-2019-10063"""
    return reached(16, 2, 0x100005412, 0)


@attack("kernel surface")
def paste_into_a_console(host):
    """Tries: ioctl TIOCLINUX.
    Blocked: the kernel ends the process.
    Reported: containers/bubblewrap#555"""
    return reached(16, 2, 0x541C, 0)


@attack("kernel surface")
def list_interfaces_by_ioctl(host):
    """Tries: ioctl SIOCGIFCONF on any descriptor.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(16, 2, 0x8912, 0)


@attack("kernel surface")
def install_a_filter(host):
    """Tries: seccomp(2), whose listener could lie to later calls.
    Blocked: the kernel ends the process.
    Reported: sysprog21/kvm-host PR#53"""
    return reached(317, -1, 0, 0)


@attack("kernel surface")
def make_a_landlock_ruleset(host):
    """Tries: landlock_create_ruleset.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return reached(444, 0, 0, 1)


@attack("kernel surface")
def change_own_memory_map(host):
    """Tries: prctl PR_SET_MM, PR_SET_SECCOMP, PR_SET_DUMPABLE and PR_SET_PTRACER.
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return [n for n in (35, 22, 4, 0x59616D61) if reached(157, n, 0, 0, 0, 0)]


@attack("kernel surface")
def move_memory_between_nodes(host):
    """Tries: mbind, set_mempolicy, move_pages, migrate_pages.
    Blocked: the kernel ends the process.
    Reported: moby/moby, default seccomp profile"""
    return [n for n in (237, 238, 279, 256) if reached(n, 0, 0, 0, 0, 0, 0)]


@attack("kernel surface")
def lock_memory(host):
    """Tries: mlock and mlockall.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (149, 151, 325) if reached(n, 0, 0, 0)]


@attack("kernel surface")
def copy_between_files(host):
    """Tries: sendfile and copy_file_range.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (40, 326) if reached(n, -1, -1, 0, 0, 0, 0)]


@attack("kernel surface")
def use_event_descriptors(host):
    """Tries: eventfd, signalfd, timerfd, epoll and pipes.
    Blocked: the kernel ends the process.
    Reported: this project"""
    return [n for n in (290, 289, 283, 291, 293) if reached(n, -1, -1, 0, -1)]


@attack("kernel surface", ends="denied")
def enter_through_the_32_bit_gate(host):
    """Tries: int 0x80, found as two bytes in the code of whatever library has them.
    Blocked: the filter checks the architecture first.
    Reported: rust-vmm/seccompiler#74"""
    ctypes = module("ctypes")

    def number(kind, at):
        return kind.from_address(at).value

    # The handle of a library is its entry in the loader's list: where it begins, and 24 bytes on, the next one.
    library = ctypes.CDLL(None)._handle
    while library:
        base, library = number(ctypes.c_uint64, library), number(ctypes.c_uint64, library + 24)
        if not base or ctypes.string_at(base, 4) != b"\x7fELF":
            continue
        first, size, count = (
            number(ctypes.c_uint64, base + 32),
            number(ctypes.c_uint16, base + 54),
            number(ctypes.c_uint16, base + 56),
        )
        for header in range(base + first, base + first + size * count, size):
            kind, flags = number(ctypes.c_uint32, header), number(ctypes.c_uint32, header + 4)
            if (kind, flags & 1) != (1, 1):
                continue
            code = base + number(ctypes.c_uint64, header + 16)
            found = ctypes.string_at(code, number(ctypes.c_uint64, header + 32)).find(b"\xcd\x80")
            if found >= 0:
                ctypes.CFUNCTYPE(ctypes.c_int)(code + found)()
                return True


@attack("kernel surface")
def call_a_number_from_the_future(host):
    """Tries: system call 599.
    Blocked: the kernel ends the process.
    Reported: this project"""
    module("ctypes")
    libc().syscall(599)
    return True


@attack("resource exhaustion")
def loop_for_ever(host):
    """Tries: four seconds of work.
    Blocked: the call ends at three.
    Reported: the Python page, first edition"""
    end = seconds() + 4
    while seconds() < end:
        pass
    return True


@attack("resource exhaustion")
def sleep_for_ever(host):
    """Tries: four seconds of sleep.
    Blocked: the call ends at three.
    Reported: the Python page, first edition"""
    module("time").sleep(4)
    return True


@attack("resource exhaustion")
def loop_inside_c_code(host):
    """Tries: one long operation that no Python instruction interrupts.
    Blocked: the call ends at three.
    Reported: this project"""
    end = seconds() + 4
    while seconds() < end:
        sum(range(20_000_000))
    return True


@attack("resource exhaustion")
def swallow_the_timeout(host):
    """Tries: catching every exception around the loop.
    Blocked: the end is a SIGKILL from outside.
    Reported: pydantic/monty PR#419"""
    end = seconds() + 4
    while seconds() < end:
        try:
            while seconds() < end:
                pass
        except BaseException:
            continue
    return True


@attack("resource exhaustion")
def take_a_whole_cpu(host):
    """Tries: more than half a CPU for half a second.
    Blocked: the cgroup's quota holds it back.
    Reported: the Python page, first edition"""
    time = module("time")
    for _ in range(4):  # each has one more period of the quota than it is long: 0.3 s of CPU at most
        start, used = time.monotonic(), time.process_time()
        while time.monotonic() < start + 0.5:
            pass
        if time.process_time() - used > 0.34:
            return True


@attack("resource exhaustion")
def allocate_at_once(host):
    """Tries: two hundred megabytes in one piece.
    Blocked: the cgroup ends the process.
    Reported: the Python page, first edition"""
    space = bytearray(200 << 20)
    for place in range(0, len(space), 4096):
        space[place] = 1
    return True


@attack("resource exhaustion")
def allocate_in_pieces(host):
    """Tries: two hundred megabytes in many pieces.
    Blocked: the cgroup ends the process.
    Reported: the Python page, first edition"""
    return len([bytearray(50_000) for _ in range(4_200)])


@attack("resource exhaustion")
def allocate_in_threads(host):
    """Tries: two hundred megabytes from several threads.
    Blocked: the cgroup counts the whole tree.
    Reported: python-discord/snekbox#83"""
    threading = module("threading")
    kept = []

    def take():
        kept.append([bytearray(50_000) for _ in range(700)])

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(kept) == 6


@attack("resource exhaustion")
def fork_bomb(host):
    """Tries: forty processes.
    Blocked: the kernel ends the process at the first.
    Reported: the Python page, first edition"""
    os = module("os")
    pids = []
    for _ in range(40):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    return True


@attack("resource exhaustion")
def start_many_threads(host):
    """Tries: forty threads.
    Blocked: the cgroup allows 32 tasks.
    Reported: the Python page, first edition"""
    threading = module("threading")
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait, args=(9,), daemon=True) for _ in range(40)]
    try:
        for thread in threads:
            thread.start()
    finally:
        stop.set()
    return True


@attack("resource exhaustion")
def open_many_files(host):
    """Tries: a hundred descriptors.
    Blocked: the limit is 64.
    Reported: the Python page, first edition"""
    return len([open(f"/tmp/many{n % 8}", "w") for n in range(100)])


@attack("resource exhaustion")
def flood_print(host):
    """Tries: a megabyte of print.
    Blocked: the call ends at its limit.
    Reported: python-discord/snekbox PR#81"""
    for _ in range(64):
        print("x" * 16_384)
    return True


@attack("resource exhaustion")
def flood_errors(host):
    """Tries: a megabyte on the error stream.
    Blocked: the call ends at its limit.
    Reported: engineer-man/piston PR#53"""
    stream = module("sys").stderr
    for _ in range(64):
        stream.write("x" * 16_384)
    return True


@attack("resource exhaustion")
def return_too_much(host):
    """Tries: an answer of a megabyte.
    Blocked: it is refused.
    Reported: this project"""
    return "x" * (1 << 20)


# --- running one outside ---------------------------------------------------------------------------------------------
# `runner suite` reads this file as text, function by function. What follows is for people.


def main(arguments):
    """Lists the attacks, or runs one here and now, without any sandbox."""
    import json

    if len(arguments) != 2:
        for name, (category, _ends, function) in ATTACKS.items():
            print(f"{category:20} {name:36} {function.__doc__.splitlines()[0].removeprefix('Tries: ')}")
        return
    host = json.loads(arguments[1])
    print(json.dumps(bool(ATTACKS[arguments[0]][2](host))))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
