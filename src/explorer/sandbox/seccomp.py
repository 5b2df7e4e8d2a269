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

# From the kernel's tables: the numbers of the calls that a filter looks at.
SHARED = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "openat2": 437,
    "pidfd_send_signal": 424, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447,
    "process_mrelease": 448, "fchmodat2": 452, "statmount": 457, "listmount": 458, "setxattrat": 463,
    "removexattrat": 466, "open_tree_attr": 467, "file_setattr": 469,
}  # fmt: skip
"""Numbers that are the same on every architecture."""
X86_64 = {
    "open": 2, "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "socketpair": 53, "clone": 56,
    "kill": 62, "semget": 64, "semop": 65, "semctl": 66, "shmdt": 67, "msgget": 68, "msgsnd": 69, "msgrcv": 70,
    "msgctl": 71, "fcntl": 72, "creat": 85, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94,
    "ptrace": 101, "syslog": 103, "rt_sigqueueinfo": 129, "utime": 132, "mknod": 133, "personality": 135,
    "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "vhangup": 153, "modify_ldt": 154,
    "pivot_root": 155, "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166,
    "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176,
    "quotactl": 179, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
    "fremovexattr": 199, "tkill": 200, "sched_setaffinity": 203, "lookup_dcookie": 212, "semtimedop": 220,
    "clock_settime": 227, "tgkill": 234, "utimes": 235, "mq_open": 240, "mq_unlink": 241, "mq_timedsend": 242,
    "mq_timedreceive": 243, "mq_notify": 244, "mq_getsetattr": 245, "kexec_load": 246, "add_key": 248,
    "request_key": 249, "keyctl": 250, "ioprio_set": 251, "inotify_init": 253, "inotify_add_watch": 254,
    "migrate_pages": 256, "openat": 257, "mknodat": 259, "fchownat": 260, "futimesat": 261, "fchmodat": 268,
    "unshare": 272, "move_pages": 279, "utimensat": 280, "inotify_init1": 294, "rt_tgsigqueueinfo": 297,
    "perf_event_open": 298, "fanotify_init": 300, "prlimit64": 302, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "finit_module": 313, "sched_setattr": 314, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
AARCH64 = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
    "lookup_dcookie": 18, "fcntl": 25, "inotify_init1": 26, "inotify_add_watch": 27, "ioctl": 29, "ioprio_set": 30,
    "mknodat": 33, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "fchmod": 52, "fchmodat": 53,
    "fchownat": 54, "fchown": 55, "openat": 56, "vhangup": 58, "quotactl": 60, "utimensat": 88, "acct": 89,
    "personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
    "clock_settime": 112, "syslog": 116, "ptrace": 117, "sched_setparam": 118, "sched_setscheduler": 119,
    "sched_setaffinity": 122, "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "setpriority": 140,
    "reboot": 142, "settimeofday": 170, "adjtimex": 171, "mq_open": 180, "mq_unlink": 181, "mq_timedsend": 182,
    "mq_timedreceive": 183, "mq_notify": 184, "mq_getsetattr": 185, "msgget": 186, "msgctl": 187, "msgrcv": 188,
    "msgsnd": 189, "semget": 190, "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194, "shmctl": 195,
    "shmat": 196, "shmdt": 197, "socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219,
    "clone": 220, "swapon": 224, "swapoff": 225, "migrate_pages": 238, "move_pages": 239, "rt_tgsigqueueinfo": 240,
    "perf_event_open": 241, "prlimit64": 261, "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265,
    "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
    "finit_module": 273, "sched_setattr": 274, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
MACHINES: Mapping[str, Mapping[str, int]] = {"x86_64": X86_64 | SHARED, "aarch64": AARCH64 | SHARED}
"""The numbers of the calls, by machine."""

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
