"""The system calls that the process that parses may make, as the filter program the kernel runs.

Parsing takes memory, time and three pipes, so the filter allows what those need and refuses the rest with EPERM: no
file or socket can be opened, no process started or signalled, no memory made executable.
"""

from collections.abc import Mapping
from errno import EPERM

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
    "read": 0,
    "write": 1,
    "close": 3,
    "fstat": 5,
    "poll": 7,
    "lseek": 8,
    "mmap": 9,
    "mprotect": 10,
    "munmap": 11,
    "brk": 12,
    "rt_sigaction": 13,
    "rt_sigprocmask": 14,
    "rt_sigreturn": 15,
    "readv": 19,
    "writev": 20,
    "sched_yield": 24,
    "mremap": 25,
    "madvise": 28,
    "nanosleep": 35,
    "setitimer": 38,
    "getpid": 39,
    "exit": 60,
    "gettimeofday": 96,
    "getrusage": 98,
    "sigaltstack": 131,
    "gettid": 186,
    "time": 201,
    "futex": 202,
    "restart_syscall": 219,
    "clock_gettime": 228,
    "clock_nanosleep": 230,
    "exit_group": 231,
    "tgkill": 234,
    "prlimit64": 302,
    "getrandom": 318,
}
AARCH64 = {
    "close": 57,
    "lseek": 62,
    "read": 63,
    "write": 64,
    "readv": 65,
    "writev": 66,
    "ppoll": 73,
    "fstat": 80,
    "exit": 93,
    "exit_group": 94,
    "futex": 98,
    "nanosleep": 101,
    "setitimer": 103,
    "clock_gettime": 113,
    "clock_nanosleep": 115,
    "sched_yield": 124,
    "restart_syscall": 128,
    "tgkill": 131,
    "sigaltstack": 132,
    "rt_sigaction": 134,
    "rt_sigprocmask": 135,
    "rt_sigreturn": 139,
    "getrusage": 165,
    "gettimeofday": 169,
    "getpid": 172,
    "gettid": 178,
    "brk": 214,
    "munmap": 215,
    "mremap": 216,
    "mmap": 222,
    "mprotect": 226,
    "madvise": 233,
    "prlimit64": 261,
    "getrandom": 278,
}
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
