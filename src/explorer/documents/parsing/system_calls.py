"""The system calls that the process that parses may make, as the filter program the kernel runs.

Parsing takes memory, time and three pipes, so the filter allows what those need and refuses the rest with EPERM: no
file or socket can be opened, no process started or signalled, no memory made executable. It is classic BPF over
`struct seccomp_data` (number, architecture, instruction pointer, six arguments), as `seccomp(2)` describes it.
"""

import struct
from collections.abc import Mapping
from errno import EPERM

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K
ALLOW = 0x7FFF0000
REFUSE = 0x00050000 | EPERM
KILL = 0x80000000
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
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
MACHINES: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "x86_64": (0xC000003E, X86_64),
    "aarch64": (0xC00000B7, AARCH64),
}
"""AUDIT_ARCH and the numbers of the allowed calls, by machine."""
CONDITIONAL = frozenset({"mmap", "mprotect", "prlimit64", "tgkill"})
"""Calls that are allowed with some arguments only."""


def program(machine: str, process: int) -> bytes:
    """Return the filter for a process, as `struct sock_filter` after `struct sock_filter`.

    Raises:
        KeyError: The numbers of this machine's calls are not known.
    """
    architecture, numbers = MACHINES[machine]
    lines = [
        _line(LOAD, ARCHITECTURE),
        _line(JUMP_EQUAL, architecture, 1, 0),
        _line(RETURN, KILL),
        _line(LOAD, NUMBER),
    ]
    for name in sorted(set(numbers) - CONDITIONAL):
        lines += [_line(JUMP_EQUAL, numbers[name], 0, 1), _line(RETURN, ALLOW)]
    for name in ("mmap", "mprotect"):
        lines += _if_call(numbers[name], [*_argument(PROTECTION), _line(JUMP_ANY_BIT, EXECUTABLE, 1, 0)])
    # The limit of CPU time is set anew for each document. It is this process's own; another one it may not touch.
    lines += _if_call(
        numbers["prlimit64"], [*_unless(0, THIS_PROCESS), *_argument(1), _line(JUMP_EQUAL, CPU_TIME, 0, 1)]
    )
    # `abort` in a library sends a signal to its own process.
    lines += _if_call(numbers["tgkill"], [*_argument(0), _line(JUMP_EQUAL, process, 0, 1)])
    return b"".join([*lines, _line(RETURN, REFUSE)])


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _argument(index: int) -> list[bytes]:
    """Load the lower half of an argument: process ids, limits and flags are 32 bits wide."""
    return [_line(LOAD, ARGUMENTS + 8 * index)]


def _unless(index: int, value: int) -> list[bytes]:
    """Refuse a call unless an argument has this value."""
    return [*_argument(index), _line(JUMP_EQUAL, value, 1, 0), _line(RETURN, REFUSE)]


def _if_call(number: int, test: list[bytes]) -> list[bytes]:
    """Run a test for one call only; its last line goes to the next one to allow the call, else skips it."""
    then = [*test, _line(RETURN, ALLOW), _line(RETURN, REFUSE)]
    return [_line(JUMP_EQUAL, number, 0, len(then)), *then]
