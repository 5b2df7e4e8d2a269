"""Calls that try to make a run unreadable, unresumable or impossible to finish: each a real run, killed and resumed.

`python -m attacks.hostile_calls` (with PYTHONPATH=tests; `make hostile-calls`) prints the table of all of them.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command import environment, forked, prepared
from explorer.journal.listing import read_records
from explorer.schema.errors import StorageError
from model_servers import Asked, OpenAIServer, Reply
from team_script import role_of

BOUND_TO_MODES = (
    "import ctypes, os, sys\n"
    "for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH\n"
    "    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP\n"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
)
"""Runs Python so that `chmod` binds it, also where root runs the tests."""
REPORT = "# May\n\nOutput was good.\n"
SECONDS = 60
QUESTION = "How was May?"


def write(path: str, content: str = "x") -> tuple[str, dict[str, str]]:
    """A call of `write_file`."""
    return ("write_file", {"filepath": path, "content": content})


def shell(command: str) -> tuple[str, dict[str, str]]:
    """A call of `execute_shell`."""
    return ("execute_shell", {"command": command})


def nested(depth: int) -> str:
    """Arguments so many objects deep."""
    return '{"filepath": ' + '{"a": ' * depth + "1" + "}" * depth + "}"


@dataclass(frozen=True)
class Hostile:
    """One thing a model may do."""

    name: str
    calls: Sequence[tuple[str, Any]]


def _folders(depth: int) -> str:
    # Not by bash, whose `cd` takes longer the deeper it is.
    steps = f"import os\nfor _ in range({depth}): os.mkdir('d'); os.chdir('d')\nopen('.x.1-00000000.tmp', 'w')"
    return f'python3 -c "{steps}"'


HOSTILE = (
    Hostile("write_file report.md/intro.md", [write("report.md/intro.md")]),
    Hostile("write_file REPORT.md/x", [write("REPORT.md/x")]),
    Hostile(
        "mkdir report.md, and chmod 000 .",
        [shell("mkdir report.md; echo x > report.md/intro.md; chmod 000 .")],
    ),
    Hostile("mkdir report.md, without access", [shell("mkdir -m 000 report.md")]),
    Hostile("report.md is a link out", [shell("ln -s /etc/passwd report.md")]),
    Hostile("report.md is a link to itself", [shell("ln -s report.md report.md")]),
    Hostile("report.md is a second name", [shell("echo x > a; ln a report.md")]),
    Hostile("report.md is a FIFO", [shell("mkfifo report.md")]),
    Hostile("report.md is binary", [shell("head -c 5000 /dev/urandom > report.md")]),
    Hostile("report.md has 50 MB", [shell("head -c 50000000 /dev/zero | tr '\\0' a > report.md")]),
    Hostile("report.md without access", [write("report.md"), shell("chmod 000 report.md")]),
    Hostile("names like report.md.moved-1", [shell("mkdir report.md report.md.moved-1; touch report.md.moved-2")]),
    Hostile("chmod 000 .", [shell("chmod 000 .")]),
    Hostile("chmod 500 .", [shell("chmod 500 .")]),
    Hostile("chmod 000 . in the background", [shell("chmod 000 . &")]),
    Hostile("chmod 000 of a folder in use", [write("notes/a.md"), shell("chmod 000 notes"), write("notes/b.md")]),
    Hostile("chmod 500 of a folder in use", [write("notes/a.md"), shell("chmod 500 notes"), write("notes/b.md")]),
    Hostile("chmod 000 .explorer", [shell("chmod 000 .explorer; mv .explorer gone; rm -rf .explorer; ls -la")]),
    Hostile("chmod -R 000", [write("notes/a.md"), shell("chmod -R 000 . 2>/dev/null; chmod 000 .")]),
    Hostile(
        "names that are not UTF-8", [shell("touch $'\\xff\\xfe.md' $'a\\nb.md' && mkdir $'\\xff' && touch $'\\xff/x'")]
    ),
    Hostile(
        "names that are not UTF-8, removed again",
        [shell("echo x > $'\\xff.md'"), shell("rm $'\\xff.md'; echo y > z.md")],
    ),
    Hostile("3,000 nested folders", [shell(_folders(3_000))]),
    Hostile("3,000 files", [shell("seq -f 'f%.0f' 3000 | xargs touch")]),
    Hostile("a million files", [shell("mkdir m; cd m; seq -f 'f%.0f' 1000000 | xargs touch")]),
    Hostile(
        "question.txt and inputs/ replaced", [shell("rm -rf question.txt inputs; mkdir question.txt; mkfifo inputs")]
    ),
    Hostile("arguments 900 deep", [("write_file", nested(900))]),
    Hostile("arguments 100,000 deep", [("write_file", nested(100_000))]),
    Hostile("a path of lone surrogates", [("write_file", '{"filepath": "\\ud800.md", "content": "\\udfff"}')]),
)


class Model:
    """A model whose analyzer makes the calls one by one, and which then hangs until its run was killed."""

    def __init__(self, calls: Sequence[tuple[str, Any]]) -> None:
        self._calls = calls
        self.is_done = threading.Event()
        self.is_resumed = False
        self.is_offered = False
        """Whether it has the tools that it calls."""

    def __call__(self, asked: Asked) -> Reply:
        """Answer by role."""
        taken = sum(message["role"] == "assistant" for message in asked.body["messages"])
        if role_of(asked) == "analyzer":
            self.is_offered = {name for name, _ in self._calls} <= {*asked.tools}
        return self._analyze(taken) if role_of(asked) == "analyzer" else self._lead(taken)

    def _analyze(self, taken: int) -> Reply:
        if taken < len(self._calls):
            return Reply(calls=[self._calls[taken]])
        if not self.is_resumed:
            self.is_done.set()
            return Reply(stalls="silent")
        return Reply(text="I am done.")

    def _lead(self, taken: int) -> Reply:
        ask = ("call_agent", {"agent_type": "analyzer", "task_description": "Compute it."})
        wrote = ("write_file", {"filepath": "report.md", "content": REPORT, "mode": "overwrite"})
        steps = [ask, wrote, ("finish_exploration", {"summary": "Good."})]
        return Reply(calls=[steps[min(taken, 2)]])


@dataclass
class Seen:
    """What was found wrong after a hostile call; nothing, if all is well."""

    name: str
    is_readable: bool = True
    is_resumable: bool = True
    has_report: bool = True
    faults: list[str] = field(default_factory=list[str])

    @property
    def row(self) -> str:
        """Its line of the table."""
        words = ["yes" if one else "NO" for one in (self.is_readable, self.is_resumable, self.has_report)]
        return f"| {self.name} | {' | '.join(words)} |"


HEAD = "| Call | Readable | Resumable | Report at each end |\n|---|---|---|---|"


def explorer(cwd: Path, *words: str, **settings: str) -> "subprocess.Popen[str]":
    """Start the command line, with file modes that bind it."""
    return forked(
        "explorer",
        *words,
        cwd=cwd,
        variables=environment(cwd, settings),
        source=prepared(sys.executable, "-c", BOUND_TO_MODES),
    )


def _ended(process: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    try:
        shown_text, error = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        shown_text, error = process.communicate()
        error += "\n(it took too long)"
    return subprocess.CompletedProcess(process.args, process.returncode, shown_text, error)


def _only_folder(workspace: Path) -> Path:
    (folder,) = [path for path in workspace.iterdir() if not path.name.startswith(".")]
    return folder


def _look(cwd: Path, seen: Seen, when: str) -> None:
    """Check that a run can be shown and has a report."""
    shown, listed = _ended(explorer(cwd, "show", "latest")), _ended(explorer(cwd, "runs"))
    if shown.returncode or listed.returncode or "Traceback" in shown.stderr + listed.stderr:
        seen.is_readable = False
        seen.faults.append(f"{when}: {shown.stderr[-600:]} {listed.stderr[-600:]}")
    printed = _ended(explorer(cwd, "report", "latest"))
    is_file = (_only_folder(cwd / "workspace") / "report.md").is_file()
    if printed.returncode or not printed.stdout.strip() or not is_file:
        seen.has_report = False
        seen.faults.append(f"{when}: no report: {printed.stderr[-600:]}")
    try:
        read_records(_only_folder(cwd / "workspace"))
    except StorageError as error:
        seen.is_readable = False
        seen.faults.append(f"{when}: {error.message}")


def _resume(cwd: Path, seen: Seen, settings: Mapping[str, str], *words: str) -> None:
    done = _ended(explorer(cwd, "resume", "latest", *words, "--output-format", "json", **settings))
    try:
        shown_text = json.loads(done.stdout)
    except ValueError:
        shown_text = {"status": "nothing was told"}
    if shown_text["status"] not in {"complete", "partial"} or "Traceback" in done.stderr:
        seen.is_resumable = False
        seen.faults.append(f"resume {words}: {shown_text['status']}: {shown_text.get('reason')} {done.stderr[-900:]}")


def outcome_of(hostile: Hostile, cwd: Path, *words: str) -> Seen:
    """Run it, kill it after the calls, look at it, resume it to its end, ask further, and look again."""
    seen = Seen(hostile.name)
    model = Model(hostile.calls)
    with OpenAIServer(model) as server:
        settings = {"OPENAI_BASE_URL": server.url, "EXPLORER_SHELL": "auto"}
        running = explorer(cwd, QUESTION, *words, **settings)
        is_done = model.is_done.wait(SECONDS)
        if is_done:
            running.send_signal(signal.SIGKILL)
        ended = _ended(running)
        if not (is_done and model.is_offered):
            raise RuntimeError(f"{hostile.name}: the calls were not made: {ended.stderr[-900:]}")
        _look(cwd, seen, "killed")
        model.is_resumed = True
        _resume(cwd, seen, settings)
        _look(cwd, seen, "resumed")
        _resume(cwd, seen, settings, "And in June?")
        _look(cwd, seen, "asked further")
    return seen


def say(text: str) -> None:
    """Write a line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Print the table of all of them, or of those named; 1 if anything is wrong."""
    wanted = sys.argv[1:]
    say(HEAD)
    faults: list[str] = []
    for hostile in HOSTILE:
        if wanted and not any(word in hostile.name for word in wanted):
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            seen = outcome_of(hostile, Path(folder))
            subprocess.run(["rm", "-rf", folder], check=False, env={"PATH": os.environ["PATH"]})
            Path(folder).mkdir(exist_ok=True)
        say(seen.row)
        faults += [f"{hostile.name}: {fault}" for fault in seen.faults]
    say("\n".join(["", *faults]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
