"""Tier 2's process: confines a command with Landlock and seccomp, and sees that nothing of it is left behind.

It is started as a program of its own (`python -I -S jailer.py WORDS`), with the standard library only: confining is
for ever, so it cannot be done in the engine, and what is confined must not hold the engine's memory. WORDS is JSON:
`command`, `folder`, `readable`, `writable`, `filter` (hex), `limits` (by the names of `resource`, hard and soft alike).
"""

import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

SET_DEATH_SIGNAL, SET_SECCOMP, DROP_FROM_BOUND, SET_SECURE_BITS = 1, 22, 24, 28
SET_SUBREAPER, SET_NO_NEW_PRIVILEGES, AMBIENT, AMBIENT_CLEAR = 36, 38, 47, 4
FILTER_MODE = 2
SECURE_BITS = 0b101111
"""Root's number gives no capabilities, and nothing of it can be changed back."""
CAPABILITIES = 64
CAPABILITY_VERSION = 0x20080522
SET_CAPABILITIES = {"x86_64": 126, "aarch64": 91}
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1
BENEATH = 1
READING = 0b1101  # execute, read files, list folders
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
READ_AND_WRITE = 0b0110
SPECIAL_FILES = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 15
"""Devices, sockets and pipes made in the folder, and orders to devices."""
RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}
RIGHTS_SINCE_5 = 0xFFFF
TCP = 0b11
TCP_SINCE = 4
SCOPES = 0b11
SCOPES_SINCE = 6
"""Landlock's version that confines signals and abstract sockets to the command's own processes."""
FAILED = 126
SIGNALLED = 128
LIBC = ctypes.CDLL(None, use_errno=True)


class LaunchSpec(TypedDict):
    """The command to run, and its limits."""

    command: str
    folder: str
    readable: list[str]
    writable: list[str]
    filter: str
    limits: dict[str, int]


class Stopped(Exception):  # noqa: N818 - no error
    """A signal asked this process to end."""


def landlock_version() -> int:
    """Return the version of Landlock that the kernel offers; 0 for none."""
    return max(0, LIBC.syscall(CREATE_RULESET, None, 0, ASK_VERSION))


def main(words: str) -> int:
    """Run the command and return its exit code, once nothing of it is left."""
    order: LaunchSpec = json.loads(words)
    engine = os.getppid()
    _ask(SET_SUBREAPER, 1)
    _ask(SET_DEATH_SIGNAL, signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    if os.getppid() != engine:
        return FAILED
    child = os.fork()
    if child == 0:
        _become(order)
    try:
        return _wait_for(child)
    except Stopped:
        return SIGNALLED + signal.SIGTERM
    finally:
        _end_all()


def _stop(_number: int, _frame: object) -> None:
    raise Stopped


def _wait_for(child: int) -> int:
    """Take in whatever ends, until the command itself does."""
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return SIGNALLED - code if code < 0 else code


def _end_all() -> None:
    """Stop every process below us, so that none can start another, then end them and take them in."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    stopped: set[int] = set()
    while found := _below(os.getpid()) - stopped:
        _send(found, signal.SIGSTOP)
        stopped |= found
    _send(stopped, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()
            _send(_below(os.getpid()), signal.SIGKILL)


def _send(pids: set[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _below(top: int) -> set[int]:
    """Return all living descendants of a process."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                children.setdefault(int(parent), []).append(int(entry.name))
    found: set[int] = set()
    waiting = [top]
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), []) if pid not in found]
        found.update(new)
        waiting += new
    return found


def _become(order: LaunchSpec) -> None:
    """Give all rights up and become the command. Runs in the child, and never returns."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        _ask(SET_DEATH_SIGNAL, signal.SIGKILL)
        os.chdir(order["folder"])
        _limit(order["limits"])
        _ask(SET_NO_NEW_PRIVILEGES, 1)
        _lock_files(order["readable"], order["writable"])
        _drop_capabilities()
        _filter(bytes.fromhex(order["filter"]))
        os.execv("/bin/bash", ["bash", "-c", order["command"]])  # noqa: S606 - bash is the shell
    except OSError as error:
        os.write(2, f"the sandbox could not be made: {error}\n".encode())
    finally:
        os._exit(FAILED)


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        wanted = value
        if name == "RLIMIT_NPROC":
            # The kernel counts all tasks of the user, wherever they are.
            wanted += _tasks_of(os.getuid())
        number = getattr(resource, name)
        _, most = resource.getrlimit(number)
        wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(number, (wanted, wanted))


def _tasks_of(user: int) -> int:
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if entry.stat().st_uid == user:
                count += sum(1 for _ in (entry / "task").iterdir())
    return count


def _lock_files(readable: list[str], writable: list[str]) -> None:
    version = landlock_version()
    rights = RIGHTS.get(version, RIGHTS_SINCE_5)
    attributes = struct.pack("QQQ", rights, TCP, SCOPES)
    size = 24 if version >= SCOPES_SINCE else 16 if version >= TCP_SINCE else 8
    ruleset = _checked(LIBC.syscall(CREATE_RULESET, attributes, size, 0), "Landlock")
    for path in readable:
        _allow(ruleset, path, rights & READING)
    for path in DEVICES:
        _allow(ruleset, path, rights & READ_AND_WRITE)
    for path in writable:
        _allow(ruleset, path, rights & ~SPECIAL_FILES, os.O_NOFOLLOW)
    _checked(LIBC.syscall(RESTRICT_SELF, ruleset, 0), "Landlock")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int, flags: int = 0) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | flags)
    except FileNotFoundError:
        return
    rule = struct.pack("=Qi", rights if Path(path).is_dir() else rights & 0b111, descriptor)
    _checked(LIBC.syscall(ADD_RULE, ruleset, BENEATH, rule, 0), f"Landlock, {path}")
    os.close(descriptor)


def _drop_capabilities() -> None:
    """Give up what root may do; an ordinary user has nothing to give up, and the first calls fail for it."""
    for capability in range(CAPABILITIES):
        LIBC.prctl(DROP_FROM_BOUND, capability, 0, 0, 0)
    LIBC.prctl(SET_SECURE_BITS, SECURE_BITS, 0, 0, 0)
    LIBC.prctl(AMBIENT, AMBIENT_CLEAR, 0, 0, 0)
    header = struct.pack("Ii", CAPABILITY_VERSION, 0)
    _checked(LIBC.syscall(SET_CAPABILITIES[platform.machine()], header, bytes(24)), "capabilities")


def _filter(program: bytes) -> None:
    lines = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HP", len(program) // 8, ctypes.addressof(lines))
    _checked(LIBC.prctl(SET_SECCOMP, FILTER_MODE, head, 0, 0), "seccomp")


def _ask(option: int, value: int) -> None:
    _checked(LIBC.prctl(option, value, 0, 0, 0), "prctl")


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
