"""System calls a confined command may not make, as the filter program the kernel runs.

What is refused answers EPERM; what C libraries try first and can do without, ENOSYS.
"""

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from errno import EAFNOSUPPORT, ENOSYS, EOPNOTSUPP, EPERM
from functools import lru_cache

from explorer.kernel.bpf import (
    ALLOW,
    AND,
    ASK,
    JUMP_ANY_BIT,
    JUMP_AT_LEAST,
    JUMP_EQUAL,
    REFUSE,
    RETURN,
    argument,
    beginning,
    if_call,
    line,
)
from explorer.sandbox.system_calls import MACHINES

X32_BIT = 0x40000000
NEW_NAMESPACES = 0x7E020080  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET} and CLONE_NEWTIME
TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: typing into somebody's terminal."""
ORDERS_TO_OTHERS = (0x8901, 0x8902, 0x40086602, 0x401C5820, 0x40087602)
"""FIOSETOWN and SIOCSPGRP: signals to any process; FS_IOC_SETFLAGS, FSSETXATTR and SETVERSION: marks on any file."""
SIGNALS_BY_FILE = (8, 10, 15, 1024, 1026)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY of `fcntl`: the kernel sends signals for a file."""
CONNECTED_PAIRS = (1, 5)
"""SOCK_STREAM and SOCK_SEQPACKET: a pair of datagram sockets could be connected to any socket file afterwards."""
SOCKET_TYPE_MASK = 0xF
PRIVILEGED_MODES = 0o6000
"""Set-user-ID and set-group-ID: such a program would have its owner's rights for whoever starts it."""
CREATING = 0o100 | 0o20000000
"""O_CREAT and __O_TMPFILE: without them, the mode given to `open` has no meaning."""
MODE_ARGUMENTS = {
    "chmod": 1,
    "fchmod": 1,
    "fchmodat": 2,
    "fchmodat2": 2,
    "creat": 1,
    "mknod": 1,
    "mknodat": 2,
}
"""Where calls have a file's mode among their arguments."""
OPEN_ARGUMENTS = {"open": (1, 2), "openat": (2, 3)}
"""Where calls that may create a file have their flags and its mode."""
FAMILIES = (1, 2, 10, 16)
"""Unix, IPv4, IPv6 and netlink sockets: harmless in a network namespace of one's own."""

CONDITIONAL = frozenset(
    {
        "clone",
        "clone3",
        "openat2",
        "ioctl",
        "socket",
        "socketpair",
        "prlimit64",
        "fcntl",
        *MODE_ARGUMENTS,
        *OPEN_ARGUMENTS,
    }
)
"""Looked at more closely than by their number."""
SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
ON_OTHERS = ("setpriority", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr", "ioprio_set")
"""Calls that change a process of the same user: harmless among processes of one's own namespace."""
QUEUES = ("shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv")
"""System V's shared memory, semaphores and messages, which outlive whoever made them."""
MORE_QUEUES = ("msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr")
WATCHES = ("inotify_init", "inotify_init1", "inotify_add_watch")
"""Calls that say what happens in folders of the same user."""
SUPERVISED = ("chmod", "fchmod", "fchmodat", "fchmodat2", "utimensat")
"""Changes of modes and times, which the supervisor makes inside the command's folder only."""
OWNERS_AND_OLD_CALLS = ("chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat")
MARKS = ("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr")
MORE_MARKS = ("setxattrat", "removexattrat", "file_setattr")
"""Extended attributes: answered like a file system that has none, which programs expect."""
METADATA = (*SUPERVISED, *OWNERS_AND_OLD_CALLS, *MARKS, *MORE_MARKS)
"""Calls that change what is known about a file; Landlock does not look at them, in any version."""
WITHOUT_NAMESPACES = (*ON_OTHERS, *QUEUES, *MORE_QUEUES, *WATCHES, *METADATA)


@dataclass(frozen=True)
class Strictness:
    """Further calls that a filter refuses where there are no namespaces."""

    outside: bool = False
    """Every call that reaches beyond the command's own processes and files: sockets except pairs, queues that stay,
    watches on folders, metadata of files, priorities and limits of other processes, signals sent for a file."""
    signals: bool = False
    """Every signal, where Landlock cannot confine them to the command's own processes."""


def supported() -> bool:
    """Return whether the numbers of this machine's calls are known."""
    return platform.machine() in MACHINES


@lru_cache(maxsize=8)
def program(strictness: Strictness = Strictness(), machine: str = "") -> bytes:
    """Return the filter, as `struct sock_filter` after `struct sock_filter`; made once, and asked for by each command.

    Raises:
        KeyError: The machine's numbers are not known; ask `supported` first.
    """
    machine = machine or platform.machine()
    numbers = MACHINES[machine]
    refused = set(numbers) - CONDITIONAL - set(SIGNALS) - set(WITHOUT_NAMESPACES)
    refused |= set(SIGNALS) if strictness.signals else set()
    refused |= set(WITHOUT_NAMESPACES) & set(numbers) if strictness.outside else set()
    lines = [
        *beginning(machine),
        # The x32 calls of an x86_64 kernel have numbers of their own, and would slip past.
        line(JUMP_AT_LEAST, X32_BIT, 0, 1),
        line(RETURN, REFUSE | EPERM),
    ]
    for name in sorted(refused):
        lines += if_call(numbers[name], [line(RETURN, _verdict(name))])
    # Their arguments are in memory, where a filter cannot look: programs take the older calls instead.
    for name in ("clone3", "openat2"):
        lines += if_call(numbers[name], [line(RETURN, REFUSE | ENOSYS)])
    lines += if_call(numbers["clone"], _when_any_bit(0, NEW_NAMESPACES))
    for name in sorted(numbers.keys() & (MODE_ARGUMENTS.keys() - refused)):
        lines += if_call(numbers[name], _when_any_bit(MODE_ARGUMENTS[name], PRIVILEGED_MODES))
    for name in sorted(numbers.keys() & OPEN_ARGUMENTS.keys()):
        flags, mode = OPEN_ARGUMENTS[name]
        check = [argument(flags), line(JUMP_ANY_BIT, CREATING, 1, 0), line(RETURN, ALLOW)]
        lines += if_call(numbers[name], [*check, *_when_any_bit(mode, PRIVILEGED_MODES)])
    orders = (*TERMINAL_INPUT, *ORDERS_TO_OTHERS) if strictness.outside else TERMINAL_INPUT
    lines += if_call(numbers["ioctl"], _when_one_of(1, orders))
    lines += (
        _without_namespaces(numbers) if strictness.outside else if_call(numbers["socket"], _unless_one_of(0, FAMILIES))
    )
    return b"".join([*lines, line(RETURN, ALLOW)])


def _verdict(name: str) -> int:
    if name in SUPERVISED:
        return ASK
    return REFUSE | (EOPNOTSUPP if name in (*MARKS, *MORE_MARKS) else EPERM)


def _without_namespaces(numbers: Mapping[str, int]) -> list[bytes]:
    """Refuse what a namespace would keep inside, by the arguments of the calls."""
    lines = if_call(numbers["socket"], [line(RETURN, REFUSE | EPERM)])
    pairs = _unless_one_of(1, CONNECTED_PAIRS, EPERM)
    lines += if_call(numbers["socketpair"], [pairs[0], line(AND, SOCKET_TYPE_MASK), *pairs[1:]])
    lines += if_call(numbers["prlimit64"], _unless_one_of(0, (0,), EPERM))
    lines += if_call(numbers["fcntl"], _when_one_of(1, SIGNALS_BY_FILE))
    return lines


def _when_any_bit(index: int, bits: int) -> list[bytes]:
    verdicts = [line(RETURN, REFUSE | EPERM), line(RETURN, ALLOW)]
    return [argument(index), line(JUMP_ANY_BIT, bits, 0, 1), *verdicts]


def _when_one_of(index: int, values: Iterable[int]) -> list[bytes]:
    lines = [argument(index)]
    for value in values:
        lines += [line(JUMP_EQUAL, value, 0, 1), line(RETURN, REFUSE | EPERM)]
    return [*lines, line(RETURN, ALLOW)]


def _unless_one_of(index: int, values: Iterable[int], error: int = EAFNOSUPPORT) -> list[bytes]:
    lines = [argument(index)]
    for value in values:
        lines += [line(JUMP_EQUAL, value, 0, 1), line(RETURN, ALLOW)]
    return [*lines, line(RETURN, REFUSE | error)]
