"""Attempts to break out of a sandbox, run inside it by `attest`. A program of its own, standard library only.

Each prints one line: its name, and `refused` or `DONE`. What they try to reach is harmless and was put there for them.
WORDS is JSON, see `Aims`.
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

SEIZE = 0x4206
UNSHARE_USER_AND_MOUNT = 0x10020000
KERNEL_SETTINGS = ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness")
SET_SIGNAL, SET_ASYNC = 10, 0o20000
CREATE_QUEUE = 0o1600


class Aims(TypedDict):
    """What to try to reach."""

    secret: str
    outside: str
    own: str
    port: int
    abstract: str
    socket: str
    victim: int
    other_victim: int
    """A second process to stop, in another way."""
    datagrams: str
    """A socket file that takes datagrams."""
    queue: int
    """The key of a queue that is to be left behind."""
    canary: str
    marker: str


def read_secret(aims: Aims) -> bool:
    """Read a file outside the run's folder."""
    return aims["canary"] in Path(aims["secret"]).read_text(encoding="utf-8")


def write_outside(aims: Aims) -> bool:
    """Write a new file next to the run's folder."""
    Path(aims["outside"]).write_text("here", encoding="utf-8")
    return True


def write_journal(aims: Aims) -> bool:
    """Write into the engine's folder of the run."""
    Path(aims["own"]).write_text("here", encoding="utf-8")
    return True


def read_environments(aims: Aims) -> bool:
    """Read the environment of every process that can be seen."""
    seen = b""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            seen += (entry / "environ").read_bytes()
        except OSError:
            continue
    return aims["canary"].encode() in seen


def connect(aims: Aims) -> bool:
    """Connect to a server on this machine, by TCP and by UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"here", ("127.0.0.1", aims["port"]))
    with socket.create_connection(("127.0.0.1", aims["port"]), timeout=2) as client:
        return _leave_marker(client, aims)


def connect_abstract(aims: Aims) -> bool:
    """Connect to a server on an abstract socket, which has no file."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + aims["abstract"])
        return _leave_marker(client, aims)


def connect_path(aims: Aims) -> bool:
    """Connect to a server on a socket file, as container engines have one."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(aims["socket"])
        return _leave_marker(client, aims)


def _leave_marker(client: socket.socket, aims: Aims) -> bool:
    """Say who came: a port may also be called by a program that took it for another one's."""
    client.sendall(aims["marker"].encode())
    return True


def send_signal(aims: Aims) -> bool:
    """Stop a process outside."""
    os.kill(aims["victim"], signal.SIGSTOP)
    return True


def look_into_memory(aims: Aims) -> bool:
    """Attach to a process outside as a debugger."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.ptrace(SEIZE, aims["victim"], 0, 0) == 0


def new_namespaces(_aims: Aims) -> bool:
    """Become root of an own namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.unshare(UNSHARE_USER_AND_MOUNT) == 0


def write_kernel_settings(_aims: Aims) -> bool:
    """Open a setting of the kernel for writing; as it is, nothing is written."""
    for path in KERNEL_SETTINGS:
        try:
            os.close(os.open(path, os.O_WRONLY))
        except OSError:
            continue
        return True
    return False


def change_metadata(aims: Aims) -> bool:
    """Change mode, times, owner and marks of a file outside."""
    path = aims["secret"]
    changes: tuple[Callable[[], None], ...] = (
        lambda: os.chmod(path, 0o640),  # noqa: PTH101 - the call itself is tried
        lambda: os.utime(path, (1, 1)),
        lambda: os.chown(path, os.getuid(), os.getgid()),
        lambda: os.setxattr(path, "user.here", b"here"),
    )
    is_done = False
    for change in changes:
        try:
            change()
        except OSError:
            continue
        is_done = True
    return is_done


def set_user_id(_aims: Aims) -> bool:
    """Make a program that runs with its owner's rights, whoever starts it."""
    path = Path("scratch") if Path("scratch").is_dir() else Path()
    made = path / "program"
    made.touch()
    made.chmod(0o4755)
    return bool(made.stat().st_mode & 0o4000)


def leave_queue(aims: Aims) -> bool:
    """Leave memory and a message queue behind; whether they are there is seen from outside."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmget(aims["queue"], 4096, CREATE_QUEUE)
    libc.msgget(aims["queue"], CREATE_QUEUE)
    libc.semget(aims["queue"], 1, CREATE_QUEUE)
    return False


def send_signal_for_file(aims: Aims) -> bool:
    """Stop a process outside by making it the owner of a file that is written to."""
    here, there = socket.socketpair()
    fcntl.fcntl(here, SET_SIGNAL, signal.SIGSTOP)
    fcntl.fcntl(here, fcntl.F_SETOWN, aims["other_victim"])
    fcntl.fcntl(here, fcntl.F_SETFL, SET_ASYNC)
    there.send(b"here")
    return True


def send_datagram(aims: Aims) -> bool:
    """Send to a socket file through a pair of sockets, which needs no new socket."""
    here, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    here.sendto(aims["marker"].encode(), aims["datagrams"])
    return True


def watch_folder(aims: Aims) -> bool:
    """Ask the kernel what happens in a folder outside."""
    libc = ctypes.CDLL(None, use_errno=True)
    watching = libc.inotify_init1(0)
    return libc.inotify_add_watch(watching, os.fsencode(Path(aims["secret"]).parent), 0xFFF) >= 0


def stay_behind(aims: Aims) -> bool:
    """Leave a process behind; whether it lives on is seen from outside."""
    words = ["/bin/bash", "-c", "trap '' TERM HUP INT; while true; do sleep 60; done", aims["marker"]]
    with Path(os.devnull).open("wb") as nowhere:
        subprocess.Popen(words, stdout=nowhere, stderr=nowhere, start_new_session=True)  # noqa: S603 - an attack
    return False


ATTACKS: tuple[Callable[[Aims], bool], ...] = (
    read_secret,
    write_outside,
    write_journal,
    read_environments,
    connect,
    connect_abstract,
    connect_path,
    send_signal,
    look_into_memory,
    new_namespaces,
    write_kernel_settings,
    change_metadata,
    set_user_id,
    leave_queue,
    send_signal_for_file,
    send_datagram,
    watch_folder,
    stay_behind,
)


def main(words: str) -> int:
    """Run all attacks."""
    aims: Aims = json.loads(words)
    for attack in ATTACKS:
        try:
            is_done = attack(aims)
        except OSError:
            is_done = False
        sys.stdout.write(f"{attack.__name__} {'DONE' if is_done else 'refused'}\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
