"""What a hostile command tries, one function for each attempt. A program of its own, standard library only.

    python command_attempts.py AIMS

AIMS is JSON (`Aims`). Every attempt prints its name and `DONE` or `refused`; what it left outside is seen from there.
Nothing here harms the machine that it runs on without a sandbox: files and processes are victims made for it, and
calls that stop a machine get arguments that cannot take effect.
"""

import ctypes
import errno
import fcntl
import json
import os
import platform
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypedDict, cast

LIBC = ctypes.CDLL(None, use_errno=True)
REFUSED = frozenset({errno.EPERM, errno.ENOSYS, errno.EACCES, errno.EAFNOSUPPORT, errno.ENOENT, errno.EROFS})
ON_X86 = platform.machine() == "x86_64"
MARKER = b"here"
SHARED = b"shared outside"
"""What the memory outside begins with."""
RACE_S = 0.3


class Aims(TypedDict):
    """What to try to reach."""

    victims: str
    """A folder outside with a file for each attempt."""
    processes: dict[str, int]
    """A process outside for each attempt that needs one."""
    port: int
    abstract: str
    path: str
    """A socket file."""
    datagrams: str
    queue: int
    memory: int
    """The number of a shared memory outside that others may read."""
    mark: str
    """The last word of a process that is left behind."""


Attempt = Callable[[Aims], bool]


def victim(aims: Aims, name: str) -> Path:
    """The file outside that an attempt aims at."""
    return Path(aims["victims"], name)


def call(x86: int, arm: int, *arguments: object) -> bool:
    """Make a system call; return whether it was let through, whatever it answered."""
    ctypes.set_errno(0)
    result = LIBC.syscall(x86 if ON_X86 else arm, *arguments)
    return result >= 0 or ctypes.get_errno() not in REFUSED


def can_open(path: str, flags: int = os.O_WRONLY) -> bool:
    """Return whether a file can be opened; nothing is written."""
    os.close(os.open(path, flags))
    return True


def read_file(aims: Aims) -> bool:
    return bool(victim(aims, "read-file").read_bytes())


def list_folder(aims: Aims) -> bool:
    return any(Path(aims["victims"]).iterdir())


def stat_file(aims: Aims) -> bool:
    return bool(victim(aims, "stat-file").stat())


def write_file(aims: Aims) -> bool:
    victim(aims, "write-file").write_bytes(MARKER)
    return True


def append_file(aims: Aims) -> bool:
    with victim(aims, "append-file").open("ab") as file:
        return bool(file.write(MARKER))


def new_file(aims: Aims) -> bool:
    victim(aims, "new-file.new").write_bytes(MARKER)
    return True


def new_folder(aims: Aims) -> bool:
    victim(aims, "new-folder.new").mkdir()
    return True


def truncate_path(aims: Aims) -> bool:
    os.truncate(victim(aims, "truncate-path"), 1)
    return True


def unlink_file(aims: Aims) -> bool:
    victim(aims, "unlink-file").unlink()
    return True


def move_out(aims: Aims) -> bool:
    Path("moved").write_bytes(MARKER)
    Path("moved").rename(victim(aims, "move-out"))
    return True


def move_in(aims: Aims) -> bool:
    victim(aims, "move-in").rename("taken")
    return True


def link_in(aims: Aims) -> bool:
    os.link(victim(aims, "link-in"), "linked")
    return True


def write_through_link(aims: Aims) -> bool:
    Path("link").symlink_to(victim(aims, "write-through-link"))
    Path("link").write_bytes(MARKER)
    return True


def change_mode(aims: Aims) -> bool:
    victim(aims, "change-mode").chmod(0o666)
    return True


def change_mode_through_link(aims: Aims) -> bool:
    Path("mode").symlink_to(victim(aims, "change-mode-through-link"))
    Path("mode").chmod(0o666)
    return True


def change_mode_in_folder(aims: Aims) -> bool:
    folder = os.open(aims["victims"], os.O_PATH)
    os.chmod("change-mode-in-folder", 0o666, dir_fd=folder)  # noqa: S103
    return True


def change_mode_by_path_descriptor(aims: Aims) -> bool:
    opened = os.open(victim(aims, "change-mode-by-path-descriptor"), os.O_PATH)
    Path(f"/proc/self/fd/{opened}").chmod(0o666)
    return True


def change_mode_in_a_race(aims: Aims) -> bool:
    """A link that points into the own folder and outside by turns, while its mode is changed."""
    target = victim(aims, "change-mode-in-a-race")
    Path("own").write_bytes(MARKER)
    child = os.fork()
    if child == 0:
        with suppress(OSError):
            for turn in range(1_000_000):
                Path("turn").symlink_to(target if turn % 2 else "own")
                Path("turn").rename("race")
        os._exit(0)
    until = time.monotonic() + RACE_S
    while time.monotonic() < until:
        with suppress(OSError):
            os.chmod("race", 0o666)  # noqa: PTH101, S103 - the call itself is tried
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return target.stat().st_mode & 0o777 == 0o666


def change_mode_by_own_listener(aims: Aims) -> bool:
    """A filter of one's own that lets the call continue, whatever an earlier filter says."""
    target = os.fsencode(victim(aims, "change-mode-by-own-listener"))
    number = 90 if ON_X86 else 53
    lines = struct.pack("HBBIHBBIHBBIHBBI", 0x20, 0, 0, 0, 0x15, 0, 1, number, 6, 0, 0, 0x7FC00000, 6, 0, 0, 0x7FFF0000)
    program = ctypes.create_string_buffer(lines, len(lines))
    head = struct.pack("HP", 4, ctypes.addressof(program))
    LIBC.prctl(38, 1, 0, 0, 0)
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        listener = LIBC.syscall(317 if ON_X86 else 277, 1, 8, head)
        os.write(there, struct.pack("i", listener))
        if listener >= 0:
            LIBC.chmod(target, 0o666)
        os._exit(0)
    (listener,) = struct.unpack("i", os.read(here, 4))
    if listener >= 0:
        own = LIBC.syscall(438, os.pidfd_open(child), listener, 0)
        request = bytearray(80)
        fcntl.ioctl(own, 0xC0502100, request)
        fcntl.ioctl(own, 0xC0182101, struct.pack("QqiI", struct.unpack_from("Q", request)[0], 0, 0, 1))
    os.waitpid(child, 0)
    return listener >= 0


def change_owner(aims: Aims) -> bool:
    os.chown(victim(aims, "change-owner"), os.getuid(), os.getgid())
    return True


def change_times(aims: Aims) -> bool:
    os.utime(victim(aims, "change-times"), (1, 1))
    return True


def change_times_the_old_way(aims: Aims) -> bool:
    path = os.fsencode(victim(aims, "change-times-the-old-way"))
    return LIBC.utimes(path, struct.pack("4q", 1, 0, 1, 0)) == 0


def set_mark(aims: Aims) -> bool:
    os.setxattr(victim(aims, "set-mark"), "user.here", MARKER)
    return True


def remove_mark(aims: Aims) -> bool:
    os.removexattr(victim(aims, "remove-mark"), "user.there")
    return True


def engine_mode(_aims: Aims) -> bool:
    """A file that the command may read, by its open descriptor."""
    opened = os.open("../.explorer/engine-mode", os.O_RDONLY)
    os.fchmod(opened, 0o666)
    return True


def engine_times(_aims: Aims) -> bool:
    opened = os.open("../.explorer/engine-times", os.O_RDONLY)
    os.utime(opened, (1, 1))
    return True


def engine_flags(_aims: Aims) -> bool:
    opened = os.open("../.explorer/engine-flags", os.O_RDONLY)
    flags = struct.unpack("l", fcntl.ioctl(opened, 0x80086601, bytes(8)))[0]
    fcntl.ioctl(opened, 0x40086602, struct.pack("l", flags | 0x40))  # FS_NODUMP_FL
    return True


def engine_write(_aims: Aims) -> bool:
    Path("../.explorer/engine-write").write_bytes(MARKER)
    return True


def engine_rename(_aims: Aims) -> bool:
    Path("../.explorer/engine-rename").rename("../.explorer/engine-renamed")
    return True


def engine_link(_aims: Aims) -> bool:
    os.link("../.explorer/engine-link", "engine-linked")
    return True


def set_user_id(_aims: Aims) -> bool:
    Path("program").touch()
    Path("program").chmod(0o4755)
    return bool(Path("program").stat().st_mode & 0o4000)


def set_user_id_by_open(_aims: Aims) -> bool:
    os.close(os.open("program-2", os.O_CREAT | os.O_WRONLY, 0o4755))
    return bool(Path("program-2").stat().st_mode & 0o4000)


def set_group_id_by_descriptor(_aims: Aims) -> bool:
    opened = os.open("program-3", os.O_CREAT | os.O_WRONLY, 0o755)
    os.fchmod(opened, 0o2755)
    return bool(os.fstat(opened).st_mode & 0o2000)


def make_device(_aims: Aims) -> bool:
    os.mknod("device", 0o020600, os.makedev(1, 3))
    return True


def open_other_folder_of_process(aims: Aims) -> bool:
    return any(Path(f"/proc/{aims['processes']['root']}/root/").iterdir())


def read_environment(aims: Aims) -> bool:
    return b"KEY=" in Path(f"/proc/{aims['processes']['environment']}/environ").read_bytes()


def open_memory(aims: Aims) -> bool:
    return can_open(f"/proc/{aims['processes']['memory']}/mem", os.O_RDWR)


def read_memory(aims: Aims) -> bool:
    pid = aims["processes"]["memory"]
    return call(310, 270, pid, None, 0, None, 0, 0) and not _is_gone(pid)


def _is_gone(pid: int) -> bool:
    """A process of another namespace is not there, whatever a call for its number answers."""
    return not Path(f"/proc/{pid}").exists()


def enter_namespace(aims: Aims) -> bool:
    opened = os.open(f"/proc/{aims['processes']['root']}/ns/uts", os.O_RDONLY)
    return call(308, 268, opened, 0)


def quotas_of_disks(_aims: Aims) -> bool:
    return call(179, 60, 0x80000100, None, 0, None)


def watch_folder(aims: Aims) -> bool:
    return LIBC.inotify_add_watch(LIBC.inotify_init1(0), os.fsencode(aims["victims"]), 0xFFF) >= 0


def core_pattern(_aims: Aims) -> bool:
    return can_open("/proc/sys/kernel/core_pattern")


def swappiness(_aims: Aims) -> bool:
    return can_open("/proc/sys/vm/swappiness", os.O_RDWR)


def drop_caches(_aims: Aims) -> bool:
    return can_open("/proc/sys/vm/drop_caches")


def pid_max(_aims: Aims) -> bool:
    return can_open("/proc/sys/kernel/threads-max")


def ptrace_scope(_aims: Aims) -> bool:
    return can_open("/proc/sys/kernel/dmesg_restrict")


def interrupts(_aims: Aims) -> bool:
    return can_open("/proc/irq/default_smp_affinity")


def kernel_keys(_aims: Aims) -> bool:
    return bool(Path("/proc/keys").read_bytes())


def kernel_symbols(_aims: Aims) -> bool:
    return bool(Path("/proc/kallsyms").read_bytes()[:100])


def control_groups(_aims: Aims) -> bool:
    return any(can_open(str(path)) for path in Path("/sys/fs/cgroup").glob("*/cgroup.procs"))


def kernel_log(_aims: Aims) -> bool:
    return can_open("/dev/kmsg", os.O_WRONLY)


def kernel_log_by_call(_aims: Aims) -> bool:
    return call(103, 116, 10, None, 0)


def system_folder(_aims: Aims) -> bool:
    return can_open("/sys/kernel/mm/transparent_hugepage/enabled")


def leave_memory(aims: Aims) -> bool:
    LIBC.shmget(aims["queue"], 4096, 0o1600)
    return False


def leave_semaphore(aims: Aims) -> bool:
    LIBC.semget(aims["queue"], 1, 0o1600)
    return False


def leave_messages(aims: Aims) -> bool:
    LIBC.msgget(aims["queue"], 0o1600)
    return False


def leave_posix_queue(aims: Aims) -> bool:
    LIBC.syscall(240 if ON_X86 else 180, f"here-{aims['queue']}".encode(), 0o102, 0o600, None)
    return False


def attach_memory(aims: Aims) -> bool:
    """Read it, too: a namespace of its own counts from 0, and may have a memory with the same number."""
    LIBC.shmat.restype = ctypes.c_void_p
    address = LIBC.shmat(aims["memory"], None, 0o10000)
    if address in {None, ctypes.c_void_p(-1).value}:
        return False
    return ctypes.string_at(address, len(SHARED)) == SHARED


def connect(aims: Aims) -> bool:
    with socket.create_connection(("127.0.0.1", aims["port"]), timeout=2):
        return True


def send_udp(aims: Aims) -> bool:
    """Whether it arrives is seen outside."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(MARKER, ("127.0.0.1", aims["port"]))
    return False


def raw_packets(_aims: Aims) -> bool:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    return True


def virtual_machine_socket(_aims: Aims) -> bool:
    socket.socket(40, socket.SOCK_STREAM).close()
    return True


def connect_abstract(aims: Aims) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"\0{aims['abstract']}")
        return True


def connect_path(aims: Aims) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(aims["path"])
        return True


def send_datagram(aims: Aims) -> bool:
    here, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    here.sendto(MARKER, aims["datagrams"])
    return True


def stop(aims: Aims) -> bool:
    os.kill(aims["processes"]["stop"], signal.SIGSTOP)
    return True


def stop_by_thread(aims: Aims) -> bool:
    pid = aims["processes"]["stop-by-thread"]
    return LIBC.syscall(234 if ON_X86 else 131, pid, pid, signal.SIGSTOP) == 0


def stop_by_queue(aims: Aims) -> bool:
    info = struct.pack("3i", signal.SIGSTOP, 0, -1) + bytes(116)
    return LIBC.syscall(129 if ON_X86 else 138, aims["processes"]["stop-by-queue"], signal.SIGSTOP, info) == 0


def stop_by_descriptor(aims: Aims) -> bool:
    signal.pidfd_send_signal(os.pidfd_open(aims["processes"]["stop-by-descriptor"]), signal.SIGSTOP)
    return True


def stop_for_a_file(aims: Aims) -> bool:
    here, there = socket.socketpair()
    fcntl.fcntl(here, 10, signal.SIGSTOP)
    fcntl.fcntl(here, fcntl.F_SETOWN, aims["processes"]["stop-for-a-file"])
    fcntl.fcntl(here, fcntl.F_SETFL, 0o20000)
    there.send(MARKER)
    return True


def stop_for_a_file_by_order(aims: Aims) -> bool:
    here, there = socket.socketpair()
    fcntl.fcntl(here, 10, signal.SIGSTOP)
    fcntl.ioctl(here, 0x8901, struct.pack("i", aims["processes"]["stop-for-a-file-by-order"]))
    fcntl.fcntl(here, fcntl.F_SETFL, 0o20000)
    there.send(MARKER)
    return True


def debug(aims: Aims) -> bool:
    return LIBC.ptrace(0x4206, aims["processes"]["debug"], 0, 0) == 0


def slow_down(aims: Aims) -> bool:
    os.setpriority(os.PRIO_PROCESS, aims["processes"]["slow-down"], 19)
    return True


def limit(aims: Aims) -> bool:
    resource.prlimit(aims["processes"]["limit"], resource.RLIMIT_CORE, (0, 0))
    return True


def pin(aims: Aims) -> bool:
    os.sched_setaffinity(aims["processes"]["pin"], {0})
    return True


def take_descriptor(aims: Aims) -> bool:
    return LIBC.syscall(438, os.pidfd_open(aims["processes"]["take-descriptor"]), 0, 0) >= 0


def stay_behind(aims: Aims) -> bool:
    """Whether it lives on is seen outside."""
    if os.fork() == 0:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.execv(  # noqa: S606 - an attack
            "/bin/bash", ["bash", "-c", "trap '' TERM HUP INT; while true; do sleep 60; done", aims["mark"]]
        )
    return False


def io_uring(_aims: Aims) -> bool:
    return call(425, 425, 1, bytes(120))


def add_key(_aims: Aims) -> bool:
    return call(248, 217, b"user\0", b"here\0", b"x", 1, -3)


def list_keys(_aims: Aims) -> bool:
    return call(250, 219, 0, -3, 0)


def new_user_namespace(_aims: Aims) -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if LIBC.unshare(0x10000000) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def clone_user_namespace(_aims: Aims) -> bool:
    child = LIBC.syscall(56 if ON_X86 else 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    return child > 0


def mount(_aims: Aims) -> bool:
    """Without a source, nothing is mounted; without the right to, the answer is another one."""
    return call(165, 40, None, b"/", None, 0x1000, None)


def open_mount_tree(_aims: Aims) -> bool:
    return call(428, 428, -100, b"/", 1)


def new_file_system(_aims: Aims) -> bool:
    return call(430, 430, b"tmpfs\0", 0)


def change_root(_aims: Aims) -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if LIBC.chroot(b"/") == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def load_bpf(_aims: Aims) -> bool:
    return call(321, 280, 5, None, 0)


def open_events(_aims: Aims) -> bool:
    return call(298, 241, struct.pack("II", 1, 112) + bytes(104), 0, -1, -1, 0)


def fault_handler(_aims: Aims) -> bool:
    return call(323, 282, 1)


def clock(_aims: Aims) -> bool:
    return call(227, 112, 0, None)


def clock_adjust(_aims: Aims) -> bool:
    return call(305, 266, 0, struct.pack("I", 0) + bytes(252))


def reboot(_aims: Aims) -> bool:
    return call(169, 142, 0, 0, 0, None)


def swap(_aims: Aims) -> bool:
    return call(167, 224, None, 0)


def accounting(_aims: Aims) -> bool:
    return call(163, 89, ctypes.c_void_p(1))


def file_handle(_aims: Aims) -> bool:
    return call(304, 265, -1, struct.pack("II", 8, 1) + bytes(8), 0)


def watch_everything(_aims: Aims) -> bool:
    return call(300, 262, 0x200, 0)


def host_name(_aims: Aims) -> bool:
    """The same name again; in a namespace of one's own it would be allowed, and harmless."""
    name = socket.gethostname().encode()
    return LIBC.sethostname(name, len(name)) == 0


def personality(_aims: Aims) -> bool:
    return call(135, 92, 0xFFFFFFFF)


def calls_of_another_kind(_aims: Aims) -> bool:
    """The x32 numbers of an x86_64 kernel; without that kind, the call is simply not there."""
    ctypes.set_errno(0)
    return LIBC.syscall(0x40000000 + 39) >= 0 or ctypes.get_errno() == errno.ENOSYS


def hidden_memory(_aims: Aims) -> bool:
    return call(447, 447, 0)


def mounts_of_the_machine(_aims: Aims) -> bool:
    return call(458, 458, None, None, 0, 0) and ctypes.get_errno() != errno.ENOSYS


def executable_memory_file(_aims: Aims) -> bool:
    """A program without a file that has rights of its owner; without them it gains nothing."""
    made = os.memfd_create("here")
    os.fchmod(made, 0o4755)
    return bool(os.fstat(made).st_mode & 0o4000)


ATTEMPTS: dict[str, Attempt] = {
    name.replace("_", "-"): cast("Attempt", found)
    for name, found in list(globals().items())
    if callable(found)
    and getattr(found, "__module__", "") == __name__
    and name not in {"call", "can_open", "victim", "Aims", "main"}
    and not name.startswith("_")
}


def main(words: str) -> int:
    """Try everything."""
    aims: Aims = json.loads(words)
    os.chdir("scratch")
    for name, attempt in ATTEMPTS.items():
        try:
            is_done = attempt(aims)
        except (OSError, ValueError):
            is_done = False
        sys.stdout.write(f"{name} {'DONE' if is_done else 'refused'}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
