"""The command line as a user has it: an empty environment, a folder and a process of its own, or this process."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from explorer.cli.app import run_tokens
from explorer.cli.help_text import quick_answer


def environment(home: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """An environment with only what is given, and no shell for agents; coverage of child processes goes on."""
    kept = {
        name: os.environ[name] for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG") if name in os.environ
    }
    plain = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PYTHONWARNINGS": "error"}
    plain["EXPLORER_SHELL"] = "off"  # Trying the sandbox takes a third of a second in each new workspace.
    return plain | kept | dict(settings)


def explorer(
    *words: str, cwd: Path, settings: Mapping[str, str] | None = None, stdin: str | None = None, seconds: float = 200
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


def explorer_here(
    *words: str, cwd: Path, settings: Mapping[str, str] | None = None, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """The same in this process, for where a process adds nothing but the second that its imports take."""

    def run() -> int:
        answer = quick_answer(words)
        if answer is None:
            return run_tokens(list(words))
        sys.stdout.write(answer)
        return 0

    return done_here(run, cwd, settings or {}, stdin)


def done_here(
    run: Callable[[], int], cwd: Path, settings: Mapping[str, str], stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """What a program does in this process, told as if it had been one of its own."""
    shown, error, given = (io.BytesIO(text) for text in (b"", b"", stdin.encode()))
    out, err = (io.TextIOWrapper(file, "utf-8", write_through=True) for file in (shown, error))
    variables, before = environment(cwd, settings), dict(os.environ)
    hook, usual_stdin = sys.excepthook, sys.stdin
    os.environ.clear()
    os.environ.update(variables)
    sys.stdin = io.TextIOWrapper(given, "utf-8")
    try:
        with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
            code = run()
    finally:
        os.environ.clear()
        os.environ.update(before)
        sys.excepthook, sys.stdin = hook, usual_stdin
    return subprocess.CompletedProcess([], code, shown.getvalue().decode(), error.getvalue().decode())


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
