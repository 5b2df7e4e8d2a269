"""The user's topics, each with its runs: files in the user's state folder, which nobody else reads."""

import hashlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, cast

from filelock import FileLock, Timeout
from pydantic import ValidationError

from explorer.cli.screens.output import say
from explorer.cli.settings.user_folders import state_folder
from explorer.observe.formatting import one_line
from explorer.schema.errors import ConfigError, NotFoundError, RunLockedError, StorageError
from explorer.schema.messages import Frozen
from explorer.workspace.access import journal_path
from explorer.workspace.safe_open import open_private, replace_private

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
MOST_WORDS = 5


class Topic(Frozen):
    """A question that is explored again and again."""

    name: str
    question: str
    every: str
    at: str
    folder: str
    """Where it was added: its runs, `.env` and `explorer.toml` are there."""
    options: tuple[str, ...] = ()
    """The flags of each run."""
    scheduler: str = "none"
    """What starts it: `systemd`, `cron` or `none`."""
    added: datetime


class TopicRun(Frozen):
    """How the last run of a topic ended."""

    began: datetime
    ended: datetime | None = None
    """None: it is running, or was killed."""
    status: str = ""
    exit_code: int | None = None
    reason: str = ""
    run_id: str = ""
    folder: str = ""
    since: str = ""
    """The folder of the latest run with a report, which the next one is given."""


class Topics:
    """All topics of the user.

    Raises:
        ConfigError: The user has no home folder.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        state = state_folder(environment)
        if state is None:
            raise ConfigError("there is no folder to keep topics in", hint="set HOME, or XDG_STATE_HOME")
        self.place = state / "topics"

    def all(self) -> list[Topic]:
        """Return all topics by name; a damaged file is none."""
        names = sorted(path.stem for path in self.place.glob("*.json") if NAME.fullmatch(path.stem))
        return [topic for name in names if (topic := self._read(name)) is not None]

    def named(self, name: str) -> Topic:
        """Return one topic.

        Raises:
            NotFoundError: There is none of this name.
        """
        topic = self._read(name) if NAME.fullmatch(name) else None
        if topic is None:
            raise NotFoundError(f"there is no topic {name[:80]!r}", hint="explorer watch-topic list")
        return topic

    def free_name(self, question: str, wanted: str) -> str:
        """Return the name of a new topic: the one that is wanted, or one made of the question.

        Raises:
            ConfigError: It is not allowed, or taken.
        """
        if wanted:
            if not NAME.fullmatch(wanted):
                raise ConfigError(f"{wanted[:80]!r} cannot be a topic's name", hint="allowed are a-z, 0-9 and -")
            if self._file(wanted).exists():
                hint = f"explorer watch-topic remove {wanted}; or another --name"
                raise ConfigError(f"there is a topic {wanted} already", hint=hint)
            return wanted
        words = re.findall(r"[a-z0-9]+", question.lower())[:MOST_WORDS]
        plain = "-".join(words)[:30].strip("-") or "topic"
        taken = self._file(plain).exists() or plain == "topic"
        return f"{plain}-{hashlib.sha256(question.encode()).hexdigest()[:6]}" if taken else plain

    def add(self, topic: Topic) -> None:
        """Keep a topic.

        Raises:
            StorageError: The disk refused.
        """
        self._write(self._file(topic.name), topic)

    def remove(self, name: str) -> None:
        """Forget a topic and what is known of its runs; the runs stay."""
        for path in (self._file(name), self._last(name), self.log(name), self._lock(name)):
            with suppress(FileNotFoundError):
                path.unlink()

    def last(self, name: str) -> TopicRun | None:
        """Return the last run of a topic; None: there was none."""
        with suppress(OSError, ValidationError):
            return TopicRun.model_validate_json(self._last(name).read_bytes())
        return None

    def set_last(self, name: str, run: TopicRun) -> None:
        """Keep how a topic's run stands.

        Raises:
            StorageError: The disk refused.
        """
        self._write(self._last(name), run)

    def log(self, name: str) -> Path:
        """Return the file with what the last run wrote to stderr."""
        return self.place / f"{name}.log"

    def is_running(self, name: str) -> bool:
        """Return whether a process explores a topic just now."""
        try:
            with self.locked(name):
                return False
        except RunLockedError:
            return True

    @contextmanager
    def locked(self, name: str) -> Generator[None]:
        """Hold a topic, so that no second run of it begins.

        Raises:
            RunLockedError: A process holds it already.
            StorageError: The disk refused.
        """
        lock = FileLock(self._lock(name), timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise RunLockedError(
                f"topic {name} is being explored just now", hint="wait for it, or follow it: explorer watch latest"
            ) from error
        except OSError as error:
            raise StorageError(f"cannot lock topic {name} in {self.place}: {error.strerror}") from error
        try:
            yield
        finally:
            lock.release()

    def _read(self, name: str) -> Topic | None:
        with suppress(OSError, ValidationError):
            return Topic.model_validate_json(self._file(name).read_bytes())
        return None

    def _write(self, path: Path, record: Topic | TopicRun) -> None:
        try:
            replace_private(path, record.model_dump_json(indent=1).encode())
        except OSError as error:
            raise StorageError(f"cannot keep the topic in {self.place}: {error.strerror}") from error

    def _file(self, name: str) -> Path:
        return self.place / f"{name}.json"

    def _last(self, name: str) -> Path:
        return self.place / f"{name}.last"

    def _lock(self, name: str) -> Path:
        return self.place / f"{name}.lock"


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
