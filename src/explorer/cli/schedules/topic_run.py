"""One run of a topic: locked against a second one, given what the last one found, and its end kept."""

import json
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, cast

from explorer.cli.schedules.topics import Topic, TopicRun, Topics
from explorer.cli.screens.output import say
from explorer.observe.formatting import one_line
from explorer.schema.errors import NotFoundError
from explorer.workspace.access import journal_path
from explorer.workspace.safe_open import open_private

REASON_CHARS = 300
USABLE = frozenset({"complete", "partial", "nothing_found"})
"""Ends of runs that the next one is given."""


def run_topic(topic: Topic, topics: Topics) -> tuple[TopicRun, dict[str, Any]]:
    """Explore a topic once, in a process of its own, and keep how it ended.

    Args:
        topic: The topic.
        topics: Where its runs are kept.

    Returns:
        How it ended, and the JSON that the run printed; empty where it printed none.

    Raises:
        RunLockedError: An earlier run of it is not over.
        NotFoundError: The topic's folder is gone.
        StorageError: The disk refused.
    """
    if not Path(topic.folder).is_dir():
        hint = f"explorer watch-topic remove {topic.name}"
        raise NotFoundError(f"the folder of topic {topic.name} is gone: {topic.folder}", hint=hint)
    with topics.locked(topic.name):
        before = topics.last(topic.name)
        since = before.since if before is not None else ""
        now = datetime.now(UTC)
        begun = TopicRun(began=now, since=since)
        topics.set_last(topic.name, begun)
        code, facts = _explore(_command(topic, since, now), topic, topics)
        ended = _ended(begun, code, facts)
        topics.set_last(topic.name, ended)
        return ended, facts


def _command(topic: Topic, since: str, now: datetime) -> list[str]:
    """Return the command of a run: the question is one argument of a process, read by no shell."""
    local = now.astimezone()
    stamps = {"{date}": f"{local:%Y-%m-%d}", "{time}": f"{local:%H%M}"}
    options = list(topic.options)
    if "--output" in options:
        place = options.index("--output") + 1
        for name, value in stamps.items():
            options[place] = options[place].replace(name, value)
    # What an earlier run found can only be given while that run is there.
    earlier = ["--since-run", Path(since).name] if since and journal_path(Path(since)).is_file() else []
    asked = ["ask", *options, *earlier, "--output-format", "json", "--", topic.question]
    return [sys.executable, "-P", "-m", "explorer", *asked]


def _explore(command: Sequence[str], topic: Topic, topics: Topics) -> tuple[int, dict[str, Any]]:
    """Return the exit code of a run, and the JSON it printed; what it says goes to stderr, and to the topic's log."""
    with open_private(topics.log(topic.name), "w") as log, TemporaryFile() as shown:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, cwd=topic.folder, stdin=subprocess.DEVNULL, stdout=shown, stderr=subprocess.PIPE
        )
        with process, _signals_to(process):
            assert process.stderr is not None
            for line in process.stderr:
                log.write(line)
                say(line.decode("utf-8", "replace").rstrip("\n"))
        shown.seek(0)
        try:
            facts: object = json.loads(shown.read())
        except ValueError:
            facts = {}
    return process.returncode, cast("dict[str, Any]", facts) if isinstance(facts, dict) else {}


@contextmanager
def _signals_to(process: "subprocess.Popen[bytes]") -> Generator[None]:
    """Let signals end the run in its own way, and this process after it: Ctrl-C reaches both by itself."""

    def forward(number: int, _frame: object) -> None:
        if number != signal.SIGINT:
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ended(begun: TopicRun, code: int, facts: dict[str, Any]) -> TopicRun:
    status, folder = str(facts.get("status", "error")), str(facts.get("folder", ""))
    reason = one_line(str(facts.get("reason") or ""), REASON_CHARS) if facts else f"it ended with exit code {code}"
    return begun.model_copy(
        update={
            "ended": datetime.now(UTC),
            "status": status,
            "exit_code": code,
            "reason": reason,
            "run_id": str(facts.get("run_id", "")),
            "folder": folder,
            "since": folder if status in USABLE and folder else begun.since,
        }
    )
