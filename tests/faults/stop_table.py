"""How long a run takes to end when it is stopped, while models or commands take their time: real processes and signals.

`make stops` prints the table; 1 if anything took too long or left no report.
"""

import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from command import begin, explorer
from model_servers import Asked, OpenAIServer, Reply
from team_script import only_run, role_of

ONCE_S, TWICE_S = 35.0, 3.0
PATIENCE_S = 100.0
WROTE_UP = (1, 3)
"""Exit codes: failed where nothing was found, which a run that did nothing but wait is; else partial."""
HEAD = "| At work | Stopped by | Seconds | Allowed | Exit | Report | Resumed |\n|---|---|---|---|---|---|---|"
Act = Callable[["subprocess.Popen[str]", Path], None]


@dataclass(frozen=True)
class Work:
    """What a run waits for when it is stopped."""

    name: str
    reply_s: float = 0.0
    """How long each reply takes, from the analyzer's first on."""
    command: str = ""


@dataclass(frozen=True)
class Stop:
    """One way to stop a run."""

    name: str
    act: Act
    allowed_s: float
    codes: Sequence[int]


def _signal(number: signal.Signals) -> Act:
    return lambda process, _cwd: process.send_signal(number)


def _twice(process: "subprocess.Popen[str]", _cwd: Path) -> None:
    """Press Ctrl-C again when the run says that it stops."""
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    next(line for line in process.stderr if "press Ctrl-C again" in line)
    process.send_signal(signal.SIGINT)


def _order(*words: str) -> Act:
    def act(_process: "subprocess.Popen[str]", cwd: Path) -> None:
        explorer("stop", "latest", *words, "--wait", "0", cwd=cwd)

    return act


WORKS = (
    Work("20-s replies", reply_s=20),
    Work("300-s replies", reply_s=300),
    Work("a 300-s command", command="touch begun; sleep 300"),
)
STOPS = (
    Stop("Ctrl-C", _signal(signal.SIGINT), ONCE_S, WROTE_UP),
    Stop("Ctrl-C twice", _twice, TWICE_S, (130,)),
    Stop("SIGTERM", _signal(signal.SIGTERM), TWICE_S, (143,)),
    Stop("SIGHUP", _signal(signal.SIGHUP), TWICE_S, (129,)),
    Stop("`stop`", _order(), ONCE_S, WROTE_UP),
    Stop("`stop --now`", _order("--now"), TWICE_S, (143,)),
)


class Slow:
    """A model whose analyzer is at work when the run is stopped, and which takes its time until it is let go."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.is_at_work = threading.Event()
        self.let_go = threading.Event()

    def __call__(self, asked: Asked) -> Reply:
        """Answer by role."""
        taken = sum(message["role"] == "assistant" for message in asked.body["messages"])
        if role_of(asked) == "analyzer":
            return self._analyze(taken)
        if self.is_at_work.is_set():
            self.let_go.wait(self._work.reply_s)
        text = "# May\n\nOutput was good.\n"
        wrote = ("write_file", {"filepath": "report.md", "content": text, "mode": "overwrite"})
        ask = ("call_agent", {"agent_type": "analyzer", "task_description": "Compute it."})
        return Reply(calls=[[ask, wrote, ("finish_exploration", {"summary": "Good."})][min(taken, 2)]])

    def _analyze(self, taken: int) -> Reply:
        self.is_at_work.set()
        if self._work.command and taken == 0:
            return Reply(calls=[("execute_shell", {"command": self._work.command, "timeout": 400})])
        self.let_go.wait(self._work.reply_s)
        return Reply(text="I am done.")


@dataclass(frozen=True)
class Seen:
    """How one run ended."""

    work: Work
    stop: Stop
    seconds: float
    code: int
    has_report: bool
    resumed: int

    @property
    def is_well(self) -> bool:
        """Whether it is all that is promised."""
        in_time = self.seconds <= self.stop.allowed_s
        return in_time and self.has_report and self.code in self.stop.codes and self.resumed in {0, 3}

    @property
    def row(self) -> str:
        """Its line of the table."""
        report = "yes" if self.has_report else "NO"
        cells = [self.work.name, self.stop.name, f"{self.seconds:.1f}", f"{self.stop.allowed_s:g}", str(self.code)]
        return f"| {' | '.join([*cells, report, f'exit {self.resumed}'])} |"


def _seconds_to_end(process: "subprocess.Popen[str]") -> float:
    """How long a process still takes, without the time in which a busy machine has no processor for it."""
    began, queued_s = time.monotonic(), [_queued_s(process)]
    while process.poll() is None and time.monotonic() - began < PATIENCE_S:
        queued_s.append(_queued_s(process) or queued_s[-1])
        time.sleep(0.01)
    return time.monotonic() - began - (queued_s[-1] - queued_s[0])


def _queued_s(process: "subprocess.Popen[str]") -> float:
    """How long the kernel has kept it waiting for a processor; 0 where that is not known, and after its end."""
    with suppress(OSError):
        return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[1]) / 1e9
    return 0.0


def outcome_of(work: Work, stop: Stop, cwd: Path) -> Seen:
    """Start a run, stop it at work, measure its end, and resume it."""
    model = Slow(work)
    with OpenAIServer(model) as server:
        settings = {"OPENAI_BASE_URL": server.url, "EXPLORER_SHELL": "auto"}
        process = begin("How was May?", cwd=cwd, settings=settings)
        assert model.is_at_work.wait(PATIENCE_S)
        while work.command and not (only_run(cwd / "workspace") / "begun").exists():
            assert process.poll() is None
            time.sleep(0.02)
        stop.act(process, cwd)
        # From the last signal on: how long before it the first came is the user's matter.
        seconds = _seconds_to_end(process)
        process.kill()
        process.communicate()
        report = only_run(cwd / "workspace") / "report.md"
        has_report = report.is_file() and "status:" in report.read_text()
        model.let_go.set()
        resumed = explorer("resume", "latest", cwd=cwd, settings=settings).returncode
    return Seen(work, stop, seconds, process.returncode, has_report, resumed)


def main() -> int:
    """Print the table, or the rows whose names have one of the words."""
    wanted = sys.argv[1:]
    sys.stdout.write(f"{HEAD}\n")
    is_well = True
    for work in WORKS:
        for stop in STOPS:
            if wanted and not any(word in f"{work.name} / {stop.name}" for word in wanted):
                continue
            with tempfile.TemporaryDirectory() as folder:
                seen = outcome_of(work, stop, Path(folder))
            is_well = is_well and seen.is_well
            sys.stdout.write(f"{seen.row}\n")
            sys.stdout.flush()
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
