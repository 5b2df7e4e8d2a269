"""What the tests of the command line work with: the installed command, a bare environment, a service that stalls."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from command import forked

Process = subprocess.CompletedProcess[str]
Explorer = Callable[..., Process]
SCRIPT = Path(sys.executable).with_name("explorer")


def clean_environment(home: Path) -> dict[str, str]:
    """No keys, no shell for agents, which takes time to try, a home of its own; coverage's own variables stay."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("COV")}
    return {**kept, "PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "100", "EXPLORER_SHELL": "off"}


class Holding(BaseHTTPRequestHandler):
    """Never answers, until it is told to let go; then it hangs up."""

    asked: threading.Event
    let_go: threading.Event

    def do_GET(self) -> None:
        """Hold the request."""
        self.asked.set()
        self.let_go.wait()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's names
        """Stay silent."""


@dataclass(frozen=True)
class Hold:
    """A service that takes requests and answers none of them."""

    url: str
    asked: threading.Event
    """Set by the first request."""
    let_go: threading.Event
    """Set by the test: from then on every request is hung up on."""


def begin_explorer(*words: str, cwd: Path, **variables: str) -> "subprocess.Popen[str]":
    """Start the installed command, and return at once."""
    return forked(str(SCRIPT), *words, cwd=cwd, variables=clean_environment(cwd) | variables)


def begin_with_input(*words: str, cwd: Path, **variables: str) -> "subprocess.Popen[str]":
    """The same, with a pipe that it reads."""
    environment = clean_environment(cwd) | variables
    return forked(str(SCRIPT), *words, cwd=cwd, variables=environment, stdin=subprocess.PIPE)


def end_of(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """The exit code of a process, and what it said that was not read yet.

    Not by `communicate`: that passes over what reading single lines has left in the buffers.
    """
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        shown, error = process.stdout.read(), process.stderr.read()
    return process.returncode, shown, error
