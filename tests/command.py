"""The command line as a user has it: a process of its own, an empty environment, a folder of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def environment(home: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """An environment with nothing in it but what is given; coverage of child processes goes on."""
    kept = {
        name: os.environ[name] for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG") if name in os.environ
    }
    plain = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PYTHONWARNINGS": "error"}
    return plain | kept | dict(settings)


def explorer(
    *words: str, cwd: Path, settings: Mapping[str, str] | None = None, stdin: str | None = None, seconds: float = 50
) -> "subprocess.CompletedProcess[str]":
    """Run `explorer` with words and settings, and wait for its end."""
    return subprocess.run(
        [sys.executable, "-m", "explorer", *words],
        cwd=cwd,
        env=environment(cwd, settings or {}),
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def begin(*words: str, cwd: Path, settings: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    """Start `explorer` and return at once."""
    return subprocess.Popen(
        [sys.executable, "-m", "explorer", *words],
        cwd=cwd,
        env=environment(cwd, settings or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
