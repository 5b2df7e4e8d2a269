"""Mounts folders of root's so that an unprivileged user owns them there: a program of its own, started by root.

    python -I -S idmapped_mounts.py USER rw|ro=NAME=PATH ...

It enters a mount namespace of its own and mounts every PATH at /tmp/NAME. What root owns belongs to USER there, and
what USER makes there belongs to root on the disk: an ID-mapped mount, see mount_setattr(2), since Linux 5.12. It prints
`ready`, and the namespace lasts as long as somebody holds it open.
"""

import ctypes
import os
import struct
import sys
from contextlib import suppress
from pathlib import Path

TOP = Path("/tmp")  # noqa: S108 - in a namespace of its own
NEW_USERS, NEW_MOUNTS = 0x10000000, 0x00020000
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
"""Numbers of calls that the C library has no function for; they are the same on every architecture."""
CLONE = 1
CURRENT_FOLDER, EMPTY_PATH, FROM_EMPTY_PATH = -100, 0x1000, 4
PRIVATE = 0x44000  # MS_REC | MS_PRIVATE
READ_ONLY, NO_SETUID, NO_DEVICES, MAPPED = 1, 2, 4, 0x100000
SIZE = b"mode=755,size=1m"
LIBC = ctypes.CDLL(None, use_errno=True)


def main(user: int, wanted: list[str]) -> None:
    """Mount everything, say so, and wait until nobody needs this process any more.

    Raises:
        OSError: The kernel or the file system refuses.
    """
    users = namespace_of(user)
    _checked(LIBC.unshare(NEW_MOUNTS))
    _checked(LIBC.mount(None, b"/", None, PRIVATE, None))
    opened = [(one.split("=", 2)[:2], mapped(one.split("=", 2)[2], users, one[:2] == "ro")) for one in wanted]
    # Only now: a path may be in /tmp.
    _checked(LIBC.mount(b"tmpfs", bytes(TOP), b"tmpfs", NO_SETUID | NO_DEVICES, SIZE))
    for (_, name), tree in opened:
        target = TOP / name
        if Path(f"/proc/self/fd/{tree}").is_dir():
            target.mkdir()
        else:
            target.touch()
        path = bytes(target)
        _checked(LIBC.syscall(MOVE_MOUNT, tree, b"", CURRENT_FOLDER, path, FROM_EMPTY_PATH))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


def namespace_of(user: int) -> int:
    """Open a namespace of users in which root is a user outside."""
    waiting, done = os.pipe()
    made, making = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(done)
        is_made = LIBC.unshare(NEW_USERS) == 0
        os.write(making, b"y" if is_made else b"n")
        os.read(waiting, 1)
        os._exit(0)
    try:
        if os.read(made, 1) != b"y":
            raise OSError("no namespace of users")
        for kind in ("uid", "gid"):
            Path(f"/proc/{child}/{kind}_map").write_text(f"0 {user} 1\n", encoding="ascii")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(done)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)


def mapped(path: str, users: int, is_read_only: bool) -> int:  # noqa: FBT001 - one of two kinds of mounts
    """Open a folder or a file as a mount that is not placed yet; one that is only read needs no owner."""
    tree = _checked(LIBC.syscall(OPEN_TREE, CURRENT_FOLDER, os.fsencode(path), CLONE | os.O_CLOEXEC))
    wanted = NO_SETUID | NO_DEVICES | (READ_ONLY if is_read_only else 0)
    if LIBC.syscall(MOUNT_SETATTR, tree, b"", EMPTY_PATH, struct.pack("4Q", wanted | MAPPED, 0, 0, users), 32) < 0:
        if not is_read_only:
            _checked(-1)
        _checked(LIBC.syscall(MOUNT_SETATTR, tree, b"", EMPTY_PATH, struct.pack("4Q", wanted, 0, 0, 0), 32))
    return tree


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
