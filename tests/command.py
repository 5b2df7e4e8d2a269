"""The command line as a user has it: an empty environment, a folder and a process of its own, or this process."""

import atexit
import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

from explorer.cli.app import run_tokens
from explorer.cli.help_text import quick_answer
from prepared import Forked, Source

IMPORTED = (
    "explorer.cli.app",
    "explorer.cli.commands.ask",
    "explorer.cli.commands.runs",
    "explorer.cli.launch",
    "explorer.cli.session",
    "explorer.run.run",
    "explorer.llm.openai.chat",
    "explorer.llm.openai.responses",
    "explorer.llm.anthropic.messages",
    "explorer.llm.model_list",
    "explorer.offline.client",
    "explorer.sources.hackernews.services",
    "explorer.sources.reddit.reddit",
    "explorer.tools.comments",
    "explorer.tools.corpus",
    "explorer.tools.hackernews",
    "explorer.tools.reddit",
    "explorer.tools.web",
    "aiohttp",
    "anyio._backends._asyncio",
    "charset_normalizer",
    "concurrent.futures.thread",
    "coverage",
    "markdown_it",
)
"""What a run imports anyway, before it does anything."""
FLEET_IMPORTED = (*IMPORTED, "dbos", "psycopg", "sqlalchemy", "explorer.fleet.worker", "explorer.cli.commands.worker")
"""The same of the fleet's commands."""


def environment(home: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """An environment with only what is given, and no shell for agents; coverage of child processes goes on."""
    kept = {
        name: os.environ[name] for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG") if name in os.environ
    }
    plain = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PYTHONWARNINGS": "error"}
    plain["EXPLORER_SHELL"] = "off"  # Trying the sandbox takes a third of a second in each new workspace.
    return plain | kept | dict(settings)


@cache
def prepared(*before: str, imported: Sequence[str] = IMPORTED) -> Source:
    """A process that has imported what a run imports, of which commands are forked; one for all tests of a process."""
    variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONWARNINGS": "error"}
    source = Source(imported, variables | {"PYTHONPATH": str(Path(__file__).parent)}, before)
    atexit.register(source.close)
    return source


def forked(
    *words: str,
    cwd: Path,
    variables: Mapping[str, str],
    source: Source | None = None,
    stdin: int = subprocess.DEVNULL,
    stderr: int = subprocess.PIPE,
) -> "subprocess.Popen[str]":
    """Start a module or the installed command, forked of a process that has imported it, and return at once."""
    files = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": stderr}
    return Forked(source or prepared(), words, cwd=cwd, env=variables, **files)


def forked_for_fleet(
    *words: str, cwd: Path, variables: Mapping[str, str], stderr: int = subprocess.PIPE
) -> "subprocess.Popen[str]":
    """The same where the fleet's packages are imported, too."""
    source = prepared(imported=FLEET_IMPORTED)
    return forked(*words, cwd=cwd, variables=variables, source=source, stderr=stderr)


def done_by(process: "subprocess.Popen[str]", stdin: str | None, seconds: float) -> "subprocess.CompletedProcess[str]":
    """What a process has done when it has ended."""
    with process:
        try:
            shown, error = process.communicate(stdin, timeout=seconds)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, shown, error)


def explorer(
    *words: str,
    cwd: Path,
    settings: Mapping[str, str] | None = None,
    stdin: str | None = None,
    seconds: float = 200,
    is_fresh: bool = False,
) -> "subprocess.CompletedProcess[str]":
    """Run `explorer` with words and settings, and wait for its end."""
    given = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    process = begin(*words, cwd=cwd, settings=settings, stdin=given, is_fresh=is_fresh)
    return done_by(process, stdin, seconds)


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


def begin(
    *words: str,
    cwd: Path,
    settings: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    is_fresh: bool = False,
) -> "subprocess.Popen[str]":
    """Start `explorer` and return at once.

    Args:
        words: The command line.
        cwd: The folder in which it works.
        settings: Variables of its environment.
        stdin: Where it reads.
        is_fresh: Start an interpreter for it: for what depends on how modules are found, or on what the system says of
            a process that was started. So it is where the settings say where modules are.
    """
    variables = environment(cwd, settings or {})
    if not is_fresh and "PYTHONPATH" not in variables:
        return forked("explorer", *words, cwd=cwd, variables=variables, stdin=stdin)
    return subprocess.Popen(
        [sys.executable, "-m", "explorer", *words],
        cwd=cwd,
        env=variables,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
