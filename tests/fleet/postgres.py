"""A Postgres server of a test's own, in a folder of its own, that only this machine can reach."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sources.loopback import kept_port

PROGRAMS = Path("/usr/lib/postgresql")
SERVER_USER = "postgres"
PASSWORD = "a-password-of-this-test"


@dataclass(frozen=True)
class Postgres:
    """A server that can be stopped and started again."""

    programs: Path
    folder: Path
    port: int

    @property
    def url(self) -> str:
        """The address of its database, with the password."""
        return f"postgresql://explorer:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-o", options, "-l", f"{self.folder}/log", "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; with `immediate` as a crash would."""
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-m", mode, "-w", "stop")

    def run(self, program: str, *words: str) -> None:
        """Run one of its programs, as a user that it allows: not as root."""
        command = [str(self.programs / program), *words]
        if os.geteuid() == 0:
            command = ["runuser", "-u", SERVER_USER, "--", *command]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=120)


@contextmanager
def server() -> Generator[Postgres]:
    """Start a server, or skip the test where there is none."""
    programs = sorted(PROGRAMS.glob("*/bin/initdb"))
    if not programs:
        pytest.skip("Postgres is not installed")
    # Short, because the server's socket has a path too; and open to the user that the server runs as.
    folder = Path(tempfile.mkdtemp(prefix="explorer-pg-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            user = pwd.getpwnam(SERVER_USER)
            os.chown(folder, user.pw_uid, user.pw_gid)
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        with kept_port() as port:
            one = Postgres(programs[-1].parent, folder, port)
            one.run(
                "initdb", "-D", f"{folder}/data", "-U", "explorer", "-A", "scram-sha-256", f"--pwfile={secret}",
                "--no-sync", "-E", "UTF8", "--locale=C.UTF-8",
            )  # fmt: skip
            one.start()
            try:
                yield one
            finally:
                one.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
