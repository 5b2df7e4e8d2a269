"""The confinement of the process that parses: no files, no network, no processes, for the rest of its life.

Parsing takes memory, time and three pipes, so the filter allows what those need and refuses the rest with EPERM: no
file or socket can be opened, no process started or signalled, no memory made executable.

`confine` is called after the parsers are loaded and before the first byte of a document is read. It gives up root's
rights, and then puts up all walls that the system has: Landlock without any right, limits of descriptors and processes
at none, and a filter of system calls. Then everything a captured parser would try is tried. Standard library only.
"""

import ctypes
import mmap
import os
import platform
import resource
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from errno import EPERM

from explorer.documents.parsing.document import ConfinementReport
from explorer.kernel.bpf import (
    ALLOW,
    JUMP_ANY_BIT,
    JUMP_EQUAL,
    REFUSE,
    RETURN,
    argument,
    beginning,
    if_call,
    line,
)

REFUSED = REFUSE | EPERM
EXECUTABLE = 4  # PROT_EXEC
PROTECTION = 2
"""The argument of `mmap` and `mprotect` that says what memory is for."""
CPU_TIME = 0  # RLIMIT_CPU
THIS_PROCESS = 0

X86_64 = {
    "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11,
    "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "readv": 19, "writev": 20,
    "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35, "setitimer": 38, "getpid": 39, "exit": 60,
    "gettimeofday": 96, "getrusage": 98, "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202,
    "restart_syscall": 219, "clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231, "tgkill": 234,
    "prlimit64": 302, "getrandom": 318,
}  # fmt: skip
AARCH64 = {
    "close": 57, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66, "ppoll": 73, "fstat": 80, "exit": 93,
    "exit_group": 94, "futex": 98, "nanosleep": 101, "setitimer": 103, "clock_gettime": 113, "clock_nanosleep": 115,
    "sched_yield": 124, "restart_syscall": 128, "tgkill": 131, "sigaltstack": 132, "rt_sigaction": 134,
    "rt_sigprocmask": 135, "rt_sigreturn": 139, "getrusage": 165, "gettimeofday": 169, "getpid": 172, "gettid": 178,
    "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226, "madvise": 233, "prlimit64": 261,
    "getrandom": 278,
}  # fmt: skip
MACHINES: Mapping[str, Mapping[str, int]] = {"x86_64": X86_64, "aarch64": AARCH64}
"""The numbers of the allowed calls, by machine."""
CONDITIONAL = frozenset({"mmap", "mprotect", "prlimit64", "tgkill"})
"""Calls that are allowed with some arguments only."""


def program(machine: str, process: int) -> bytes:
    """Return the filter for a process, as `struct sock_filter` after `struct sock_filter`.

    Raises:
        KeyError: The numbers of this machine's calls are not known.
    """
    numbers = MACHINES[machine]
    lines = beginning(machine)
    for name in sorted(set(numbers) - CONDITIONAL):
        lines += [line(JUMP_EQUAL, numbers[name], 0, 1), line(RETURN, ALLOW)]
    for name in ("mmap", "mprotect"):
        lines += _allowed_if(numbers[name], [argument(PROTECTION), line(JUMP_ANY_BIT, EXECUTABLE, 1, 0)])
    # The limit of CPU time is set anew for each document. It is this process's own; another one it may not touch.
    lines += _allowed_if(
        numbers["prlimit64"], [*_unless(0, THIS_PROCESS), argument(1), line(JUMP_EQUAL, CPU_TIME, 0, 1)]
    )
    # `abort` in a library sends a signal to its own process.
    lines += _allowed_if(numbers["tgkill"], [argument(0), line(JUMP_EQUAL, process, 0, 1)])
    return b"".join([*lines, line(RETURN, REFUSED)])


def _unless(index: int, value: int) -> list[bytes]:
    """Refuse a call unless an argument has this value."""
    return [argument(index), line(JUMP_EQUAL, value, 1, 0), line(RETURN, REFUSED)]


def _allowed_if(number: int, test: list[bytes]) -> list[bytes]:
    """Run a test for one call only; its last line goes to the next one to allow the call, else leaves it out."""
    return if_call(number, [*test, line(RETURN, ALLOW), line(RETURN, REFUSED)])


SET_NO_NEW_PRIVILEGES, DROP_FROM_BOUND, AMBIENT, AMBIENT_CLEAR = 38, 24, 47, 4
CAPABILITIES = 64
CAPABILITY_VERSION = 0x20080522
NOBODY = 65_534
"""The user without rights that root becomes; the kernel's own number for nobody."""
CREATE_RULESET, RESTRICT_SELF = 444, 446
ASK_VERSION = 1
FILE_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}
FILE_RIGHTS_SINCE_5 = 0xFFFF
TCP, TCP_SINCE = 0b11, 4
SCOPES, SCOPES_SINCE = 0b11, 6
FILTER, ALL_THREADS = 1, 1
SECCOMP = {"x86_64": 317, "aarch64": 277}
EXECVE = {"x86_64": 59, "aarch64": 221}


def confine() -> ConfinementReport:
    """Confine this process for good, and report what holds; what the system lacks is left out."""
    landlock, why = 0, "seccomp and Landlock are Linux's"
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        landlock = _lock_files(libc)
        _give_up_rights(libc)
        _limit_to_nothing()
        why = _filter(libc)
    else:
        _limit_to_nothing()
    return ConfinementReport(
        not why, landlock, why, tuple(name for name, attempt in ATTEMPTS.items() if _succeeds(attempt))
    )


def _lock_files(libc: ctypes.CDLL) -> int:
    """Take away every right on files, TCP ports, and other processes; return Landlock's version, 0 without it."""
    version: int = libc.syscall(CREATE_RULESET, None, 0, ASK_VERSION)
    if version <= 0:
        return 0
    attributes = struct.pack("QQQ", FILE_RIGHTS.get(version, FILE_RIGHTS_SINCE_5), TCP, SCOPES)
    size = 24 if version >= SCOPES_SINCE else 16 if version >= TCP_SINCE else 8
    ruleset: int = libc.syscall(CREATE_RULESET, attributes, size, 0)
    if ruleset < 0:
        return 0
    is_locked = libc.syscall(RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return version if is_locked else 0


def _give_up_rights(libc: ctypes.CDLL) -> None:
    """Become nobody where this is root, and drop all capabilities; in a container without `nobody`, only the latter."""
    for capability in range(CAPABILITIES):
        libc.prctl(DROP_FROM_BOUND, capability, 0, 0, 0)
    libc.prctl(AMBIENT, AMBIENT_CLEAR, 0, 0, 0)
    if os.geteuid() == 0:
        with suppress(OSError):
            os.setgroups([])
        with suppress(OSError):
            os.setresgid(NOBODY, NOBODY, NOBODY)
        with suppress(OSError):
            os.setresuid(NOBODY, NOBODY, NOBODY)
    libc.capset(struct.pack("Ii", CAPABILITY_VERSION, 0), bytes(24))


def _limit_to_nothing() -> None:
    """Allow no further descriptor and no further process: the pipes are open, and nothing else is needed."""
    for limit in (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE):
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (0, 0))


def _filter(libc: ctypes.CDLL) -> str:
    """Filter the system calls of all threads; return why that is not possible, empty when it is done."""
    machine = platform.machine()
    if machine not in MACHINES:
        return f"the system calls of {machine} are not known here"
    code = program(machine, os.getpid())
    lines = ctypes.create_string_buffer(code, len(code))
    head = struct.pack("HP", len(code) // 8, ctypes.addressof(lines))
    result: int = libc.syscall(SECCOMP[machine], FILTER, ALL_THREADS, head)
    return f"this system refuses seccomp ({os.strerror(ctypes.get_errno())})" if result else ""


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, AttributeError):  # refused, or a call that this system does not have
        return False
    return True


def _open_file() -> None:
    os.close(os.open("/", os.O_RDONLY))


def _write_proc() -> None:
    os.close(os.open("/proc/self/comm", os.O_WRONLY))


def _connect() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.connect(("127.0.0.1", 9))


def _start_process() -> None:
    if (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _run_program() -> None:
    """Ask for a program without a name: what is not refused at once would fail for the name."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        result: int = libc.syscall(EXECVE.get(platform.machine(), -1), None, None, None)
        if result and ctypes.get_errno() in REFUSALS:
            raise PermissionError


def _make_code() -> None:
    mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_EXEC).close()


REFUSALS = (1, 13)
"""EPERM and EACCES."""
ATTEMPTS: dict[str, Callable[[], object]] = {
    "open a file": _open_file,
    "look at a file": lambda: os.stat("/"),  # noqa: PTH116 - the call itself is tried
    "write to /proc": _write_proc,
    "connect": _connect,
    "start a process": _start_process,
    "run a program": _run_program,
    "signal the engine": lambda: os.kill(os.getppid(), 0),
    "become root": lambda: os.setresuid(0, 0, 0),
    "make memory executable": _make_code,
}
"""What a captured parser would try first."""
