"""System calls a confined command may not make, as the filter program the kernel runs.

The filter is classic BPF over `struct seccomp_data` (number, architecture, instruction pointer, six arguments), as
`seccomp(2)` describes it. What is refused answers EPERM; what C libraries try first and can do without, ENOSYS.
"""

import platform
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from errno import EAFNOSUPPORT, ENOSYS, EPERM

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K
ALLOW = 0x7FFF0000
KILL = 0x80000000
REFUSE = 0x00050000
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
X32_BIT = 0x40000000
NEW_NAMESPACES = 0x7E020080  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET} and CLONE_NEWTIME
TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: typing into somebody's terminal."""
FAMILIES = (1, 2, 10, 16)
"""Unix, IPv4, IPv6 and netlink sockets: harmless in a network namespace of one's own."""

SHARED = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "pidfd_send_signal": 424,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "memfd_secret": 447,
}
"""Numbers that are the same on every architecture."""
X86_64 = {
    "ioctl": 16,
    "socket": 41,
    "clone": 56,
    "kill": 62,
    "ptrace": 101,
    "syslog": 103,
    "rt_sigqueueinfo": 129,
    "personality": 135,
    "setpriority": 141,
    "sched_setparam": 142,
    "sched_setscheduler": 144,
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "adjtimex": 159,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "tkill": 200,
    "sched_setaffinity": 203,
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "tgkill": 234,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "ioprio_set": 251,
    "migrate_pages": 256,
    "unshare": 272,
    "move_pages": 279,
    "rt_tgsigqueueinfo": 297,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "prlimit64": 302,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "sched_setattr": 314,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
AARCH64 = {
    "lookup_dcookie": 18,
    "ioctl": 29,
    "ioprio_set": 30,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "chroot": 51,
    "vhangup": 58,
    "quotactl": 60,
    "acct": 89,
    "personality": 92,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "sched_setparam": 118,
    "sched_setscheduler": 119,
    "sched_setaffinity": 122,
    "kill": 129,
    "tkill": 130,
    "tgkill": 131,
    "rt_sigqueueinfo": 138,
    "setpriority": 140,
    "reboot": 142,
    "settimeofday": 170,
    "adjtimex": 171,
    "socket": 198,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "clone": 220,
    "swapon": 224,
    "swapoff": 225,
    "migrate_pages": 238,
    "move_pages": 239,
    "rt_tgsigqueueinfo": 240,
    "perf_event_open": 241,
    "prlimit64": 261,
    "fanotify_init": 262,
    "name_to_handle_at": 264,
    "open_by_handle_at": 265,
    "clock_adjtime": 266,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "sched_setattr": 274,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}
MACHINES: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "x86_64": (0xC000003E, X86_64 | SHARED),
    "aarch64": (0xC00000B7, AARCH64 | SHARED),
}
"""AUDIT_ARCH and the numbers of the calls, by machine."""
CONDITIONAL = frozenset({"clone", "clone3", "ioctl", "socket", "prlimit64"})
"""Looked at more closely than by their number."""
SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
ON_OTHERS = ("setpriority", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr", "ioprio_set")
"""Calls that change a process of the same user: harmless among processes of one's own namespace."""


@dataclass(frozen=True)
class Strictness:
    """Further calls that a filter refuses where there are no namespaces."""

    sockets: bool = False
    """Every socket but pairs: without a network namespace a socket reaches the network."""
    others: bool = False
    """Changing the priority or the limits of other processes of the same user."""
    signals: bool = False
    """Every signal, where Landlock cannot confine them to the command's own processes."""


def supported() -> bool:
    """Return whether the numbers of this machine's calls are known."""
    return platform.machine() in MACHINES


def program(strictness: Strictness = Strictness(), machine: str = "") -> bytes:
    """Return the filter, as `struct sock_filter` after `struct sock_filter`.

    Raises:
        KeyError: The machine's numbers are not known; ask `supported` first.
    """
    architecture, numbers = MACHINES[machine or platform.machine()]
    refused = set(numbers) - CONDITIONAL - set(SIGNALS) - set(ON_OTHERS)
    refused |= set(SIGNALS) if strictness.signals else set()
    refused |= set(ON_OTHERS) if strictness.others else set()
    lines = [
        _line(LOAD, ARCHITECTURE),
        _line(JUMP_EQUAL, architecture, 1, 0),
        _line(RETURN, KILL),
        _line(LOAD, NUMBER),
        # The x32 calls of an x86_64 kernel have numbers of their own, and would slip past.
        _line(JUMP_AT_LEAST, X32_BIT, 0, 1),
        _line(RETURN, REFUSE | EPERM),
    ]
    for name in sorted(refused):
        lines += _if_call(numbers[name], [_line(RETURN, REFUSE | EPERM)])
    lines += _if_call(numbers["clone3"], [_line(RETURN, REFUSE | ENOSYS)])
    lines += _if_call(numbers["clone"], _when_any_bit(0, NEW_NAMESPACES))
    lines += _if_call(numbers["ioctl"], _when_one_of(1, TERMINAL_INPUT))
    if strictness.sockets:
        lines += _if_call(numbers["socket"], [_line(RETURN, REFUSE | EPERM)])
    else:
        lines += _if_call(numbers["socket"], _unless_one_of(0, FAMILIES))
    if strictness.others:
        lines += _if_call(numbers["prlimit64"], _unless_one_of(0, (0,), EPERM))
    return b"".join([*lines, _line(RETURN, ALLOW)])


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _if_call(number: int, then: list[bytes]) -> list[bytes]:
    """Run some lines for one call only. They leave another value loaded, so they have to end with a verdict."""
    return [_line(JUMP_EQUAL, number, 0, len(then)), *then]


def _argument(index: int) -> bytes:
    """Load the lower half of an argument: flags, families, commands and process ids are 32 bits wide."""
    return _line(LOAD, ARGUMENTS + 8 * index)


def _when_any_bit(index: int, bits: int) -> list[bytes]:
    verdicts = [_line(RETURN, REFUSE | EPERM), _line(RETURN, ALLOW)]
    return [_argument(index), _line(JUMP_ANY_BIT, bits, 0, 1), *verdicts]


def _when_one_of(index: int, values: Iterable[int]) -> list[bytes]:
    lines = [_argument(index)]
    for value in values:
        lines += [_line(JUMP_EQUAL, value, 0, 1), _line(RETURN, REFUSE | EPERM)]
    return [*lines, _line(RETURN, ALLOW)]


def _unless_one_of(index: int, values: Iterable[int], error: int = EAFNOSUPPORT) -> list[bytes]:
    lines = [_argument(index)]
    for value in values:
        lines += [_line(JUMP_EQUAL, value, 0, 1), _line(RETURN, ALLOW)]
    return [*lines, _line(RETURN, REFUSE | error)]
