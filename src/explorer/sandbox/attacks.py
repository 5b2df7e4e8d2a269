"""Ten attempts to break out of a sandbox, run inside it by `attest`. A program of its own, standard library only.

Each prints one line: its name, and `refused` or `DONE`. What they try to reach is harmless and was put there for them.
WORDS is JSON: `secret`, `outside`, `own`, `port`, `abstract`, `socket`, `victim`, `canary`, `marker`.
"""

import ctypes
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


class Aims(TypedDict):
    """What to try to reach."""

    secret: str
    outside: str
    own: str
    port: int
    abstract: str
    socket: str
    victim: int
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
    """Become root of a namespace of ones own."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.unshare(UNSHARE_USER_AND_MOUNT) == 0


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
