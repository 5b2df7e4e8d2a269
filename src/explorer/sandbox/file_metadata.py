"""Changes modes and times of files for a command in the Landlock tier, where they are in its own folder.

The filter hands these calls to the supervisor (seccomp_unotify(2)). It opens the file first and looks where it is
afterwards, so what the command changes meanwhile in its memory or its folder leads nowhere else. Loaded by the launcher
inside a Python that has to start fast: see there.
"""

import os
from errno import EPERM
from fcntl import ioctl
from struct import pack, unpack, unpack_from
from time import time_ns

REQUEST_BYTES = 80
RECEIVE, SEND, IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
"""Orders of `ioctl`: SECCOMP_IOCTL_NOTIF_RECV, _SEND, _ID_VALID."""
CURRENT_FOLDER = -100 & 0xFFFFFFFF
NO_FOLLOW = 0x100
PATH_BYTES = 4_096
TIMES_BYTES = 32
OWN_FILES = b"/proc/self/"
ALL_BITS, PERMISSIONS = 0o7777, 0o1777
"""Set-user-ID and set-group-ID are refused."""
NOW, UNCHANGED = 0x3FFFFFFF, 0x3FFFFFFE
SECOND_NS = 1_000_000_000
CALLS = {
    "x86_64": {90: "chmod", 91: "fchmod", 268: "fchmodat", 452: "fchmodat2", 280: "utimensat"},
    "aarch64": {52: "fchmod", 53: "fchmodat", 452: "fchmodat2", 88: "utimensat"},
}
"""Calls that the filter hands over, by their numbers."""


class Call:
    """One call of the command, which waits for the answer."""

    def __init__(self, listener: int) -> None:
        request = bytearray(REQUEST_BYTES)
        self._listener = listener
        self._number = 0
        try:
            ioctl(listener, RECEIVE, request)
        except OSError:  # whoever asked is gone
            return
        self._number, self._pid, _, number = unpack_from("QIIi", request)
        given: tuple[int, ...] = unpack_from("6Q", request, 32)
        self._name = CALLS[os.uname().machine].get(number, "")
        folder, at, value, flags = given[:4]
        if self._name == "chmod":
            folder, at, value, flags = CURRENT_FOLDER, folder, at, 0
        elif self._name == "fchmod":
            at, value, flags = 0, at, 0
        elif self._name == "fchmodat":
            flags = 0
        self._folder, self._at, self._value = folder & 0xFFFFFFFF, at, value
        self._flags = os.O_NOFOLLOW if flags & NO_FOLLOW else 0

    def answer(self, writable: "tuple[str, ...]") -> None:
        """Make the call if it concerns a file in one of these folders; refuse it otherwise."""
        if not self._number:
            return
        try:
            error = self._make(writable) if self._name else EPERM
        except OSError as problem:
            error = problem.errno or EPERM
        try:
            ioctl(self._listener, SEND, pack("QqiI", self._number, 0, -error, 0))
        except OSError:  # whoever asked is gone
            return

    def _make(self, writable: "tuple[str, ...]") -> int:
        """Return the error's number, or 0.

        Raises:
            OSError: The file is not there.
        """
        with open(f"/proc/{self._pid}/mem", "rb", 0) as memory:  # noqa: PTH123 - `pathlib` takes 15 ms
            path = os.pread(memory.fileno(), PATH_BYTES, self._at).partition(b"\0")[0] if self._at else b""
            is_timed = self._name == "utimensat" and self._value
            times = os.pread(memory.fileno(), TIMES_BYTES, self._value) if is_timed else b""
        descriptor = self._opened(path)
        try:
            # The number of the process may have been given to another one before its memory was read.
            ioctl(self._listener, IS_VALID, pack("Q", self._number))
            link = f"/proc/self/fd/{descriptor}"
            place = os.readlink(link)  # noqa: PTH115 - as above
            if not any(place == own or place.startswith(f"{own}/") for own in writable):
                return EPERM
            if self._name == "utimensat":
                os.utime(link, ns=_times(times, link))
                return 0
            if self._value & ALL_BITS & ~PERMISSIONS:
                return EPERM
            os.chmod(link, self._value & PERMISSIONS)  # noqa: PTH101 - as above
            return 0
        finally:
            os.close(descriptor)

    def _opened(self, path: bytes) -> int:
        """Open what the process means by a path, without touching it."""
        own = f"/proc/{self._pid}"
        if path.startswith(OWN_FILES):
            path = f"{own}/".encode() + path.removeprefix(OWN_FILES)
        base = f"{own}/cwd" if self._folder == CURRENT_FOLDER else f"{own}/fd/{self._folder}"
        start = os.open(base, os.O_PATH | os.O_CLOEXEC)
        if not path:
            return start
        try:
            return os.open(path, os.O_PATH | os.O_CLOEXEC | self._flags, dir_fd=start)
        finally:
            os.close(start)


def _times(wanted: bytes, path: str) -> "tuple[int, int]":
    """Return the time of access and of change in nanoseconds; without wanted ones, now."""
    now = time_ns()
    if len(wanted) < TIMES_BYTES:
        return now, now
    status = os.stat(path)  # noqa: PTH116 - `pathlib` takes 15 ms
    access_s, access_ns, change_s, change_ns = unpack("4q", wanted)
    given = ((access_s, access_ns, status.st_atime_ns), (change_s, change_ns, status.st_mtime_ns))
    found = [now if ns == NOW else known if ns == UNCHANGED else s * SECOND_NS + ns for s, ns, known in given]
    return found[0], found[1]
