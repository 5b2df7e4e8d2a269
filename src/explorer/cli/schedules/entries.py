"""Entries of the user's own systemd and crontab that start a topic's runs, and how often.

An entry has the name of the topic and nothing else of it: the question, its flags and all keys stay out, so nothing has
to be quoted but paths of this machine.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from explorer.schema.errors import ConfigError, StorageError

HOURS = re.compile(r"(\d{1,2})h")
TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
STEPS = frozenset({1, 2, 3, 4, 6, 8, 12})
"""Hours that divide a day: others would come at another time each day."""
DAYS = {
    "day": ("* * *", "*-*-*"),
    "weekdays": ("* * 1-5", "Mon..Fri *-*-*"),
    "week": ("* * 1", "Mon *-*-*"),
    "month": ("1 * *", "*-*-01"),
}
"""The days of each word: as cron's last three fields, and as systemd's date."""
WORDS = {"hour": "1h", "1d": "day", "24h": "day", "daily": "day", "weekly": "week", "7d": "week", "monthly": "month"}
DEFAULT_TIME = "07:00"


@dataclass(frozen=True)
class Rhythm:
    """Times of this machine's clock."""

    cron: str
    """The five fields."""
    calendar: str
    """The value of `OnCalendar`."""


def rhythm(every: str, at: str = DEFAULT_TIME) -> Rhythm:
    """Return when a topic is explored.

    Args:
        every: `hour`, `6h`, `day`, `weekdays`, `week` (on Mondays) or `month` (on its first day).
        at: The time of day; with hours, one of the times.

    Raises:
        ConfigError: One of them is not understood.
    """
    time = TIME.fullmatch(at)
    if time is None:
        raise ConfigError(f"flag --at: {at[:40]!r} is not allowed", hint="allowed is a time of day, like 07:00")
    hour, minute = int(time[1]), int(time[2])
    word = WORDS.get(every.lower(), every.lower())
    if word in DAYS:
        days, date = DAYS[word]
        return Rhythm(f"{minute} {hour} {days}", f"{date} {hour:02}:{minute:02}:00")
    steps = HOURS.fullmatch(word)
    if steps is None or int(steps[1]) not in STEPS:
        hint = "allowed are hour, 2h, 3h, 4h, 6h, 8h, 12h, day, weekdays, week, month"
        raise ConfigError(f"flag --every: {every[:40]!r} is not allowed", hint=hint)
    step = int(steps[1])
    hours = "*" if step == 1 else ",".join(str(one) for one in range(hour % step, 24, step))
    return Rhythm(f"{minute} {hours} * * *", f"*-*-* {hours}:{minute:02}:00")


PLACES = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
"""Variables that say where the user's folders are: an entry carries those that are set."""
WAIT_S = 30
OURS = "# Written by explorer watch-topic; explorer watch-topic remove {name} removes it."
MARK = "# explorer watch-topic {name}"


class Scheduler(Protocol):
    """What starts commands at set times."""

    name: str

    def entry(self, topic: str, times: Rhythm) -> dict[str, str]:
        """Return what would be written, by place."""
        ...

    def add(self, topic: str, times: Rhythm) -> None:
        """Write it."""
        ...

    def remove(self, topic: str) -> None:
        """Remove it, if it is there; nothing else is touched."""
        ...

    def has(self, topic: str) -> bool:
        """Return whether it is there."""
        ...


def run_command(topic: str) -> list[str]:
    """Return the command that explores a topic once, with absolute paths.

    Raises:
        ConfigError: A path has characters that no entry can hold.
    """
    places = [f"{name}={os.environ[name]}" for name in PLACES if os.environ.get(name)]
    command = [*(["/usr/bin/env", *places] if places else []), sys.executable, "-P", "-m", "explorer"]
    if any(not word.isprintable() for word in command):
        raise ConfigError("the path of Python or of your folders has control characters", hint="move them")
    return [*command, "watch-topic", "run", topic]


class Systemd:
    """Timers of the user's own systemd."""

    name = "systemd"

    def __init__(self, environment: Mapping[str, str]) -> None:
        base = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME") or "~").expanduser() / ".config")
        self._place = Path(base) / "systemd" / "user"

    @classmethod
    def is_there(cls) -> bool:
        """Return whether this user has a systemd that answers."""
        return (
            shutil.which("systemctl") is not None and _run(["systemctl", "--user", "show-environment"]).returncode == 0
        )

    def entry(self, topic: str, times: Rhythm) -> dict[str, str]:
        """Return both units."""
        head = OURS.format(name=topic)
        command = " ".join(_in_unit(word) for word in run_command(topic))
        service = (
            f"{head}\n[Unit]\nDescription=explorer topic {topic}\n\n[Service]\nType=oneshot\nExecStart={command}\n"
        )
        timer = (
            f"{head}\n[Unit]\nDescription=explorer topic {topic}\n\n[Timer]\nOnCalendar={times.calendar}\n"
            "Persistent=true\n\n[Install]\nWantedBy=timers.target\n"
        )
        return {str(path): text for path, text in zip(self._paths(topic), (service, timer), strict=True)}

    def add(self, topic: str, times: Rhythm) -> None:
        """Write the units and start the timer.

        Raises:
            StorageError: A file of somebody else is in the way, the disk refused, or systemd did.
        """
        for path in self._paths(topic):
            if os.path.lexists(path) and not self._is_ours(path, topic):
                raise StorageError(
                    f"{path} is there already, and explorer did not write it", hint="give another --name"
                )
        try:
            self._place.mkdir(parents=True, exist_ok=True)
            for path, text in self.entry(topic, times).items():
                Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise StorageError(f"cannot write to {self._place}: {error.strerror}") from error
        self._systemctl("daemon-reload")
        self._systemctl("enable", "--now", self._paths(topic)[1].name)

    def remove(self, topic: str) -> None:
        """Stop the timer and delete both units, if explorer wrote them.

        Raises:
            StorageError: The disk or systemd refused.
        """
        found = [path for path in self._paths(topic) if self._is_ours(path, topic)]
        if not found:
            return
        self._systemctl("disable", "--now", self._paths(topic)[1].name)
        for path in found:
            path.unlink(missing_ok=True)
        self._systemctl("daemon-reload")

    def has(self, topic: str) -> bool:
        """Return whether both units are there."""
        return all(self._is_ours(path, topic) for path in self._paths(topic))

    def _paths(self, topic: str) -> tuple[Path, Path]:
        name = f"explorer-topic-{topic}"
        return self._place / f"{name}.service", self._place / f"{name}.timer"

    @staticmethod
    def _is_ours(path: Path, topic: str) -> bool:
        try:
            return path.is_file() and path.read_text("utf-8", "replace").startswith(OURS.format(name=topic))
        except OSError:
            return False

    @staticmethod
    def _systemctl(*words: str) -> None:
        done = _run(["systemctl", "--user", *words])
        if done.returncode:
            raise StorageError(f"systemctl --user {words[0]} failed: {done.stderr.strip()[:300]}")


class Cron:
    """Lines of the user's own crontab; all others stay as they are, to the byte."""

    name = "cron"

    @classmethod
    def is_there(cls) -> bool:
        """Return whether this machine has crontabs."""
        return shutil.which("crontab") is not None

    def entry(self, topic: str, times: Rhythm) -> dict[str, str]:
        """Return the line."""
        return {"crontab": cron_line(topic, times) + "\n"}

    def add(self, topic: str, times: Rhythm) -> None:
        """Add the line.

        Raises:
            StorageError: crontab refused.
        """
        lines = [line for line in _crontab() if not self._is_ours(line, topic)]
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        _write_crontab([*lines, cron_line(topic, times) + "\n"])

    def remove(self, topic: str) -> None:
        """Remove the line.

        Raises:
            StorageError: crontab refused.
        """
        lines = _crontab()
        kept = [line for line in lines if not self._is_ours(line, topic)]
        if kept != lines:
            _write_crontab(kept)

    def has(self, topic: str) -> bool:
        """Return whether the line is there."""
        return any(self._is_ours(line, topic) for line in _crontab())

    @staticmethod
    def _is_ours(line: str, topic: str) -> bool:
        return line.rstrip("\n").endswith(MARK.format(name=topic)) and not line.startswith("#")


class Printed:
    """No scheduler: the line is shown, and the user puts it where it belongs."""

    name = "none"

    def entry(self, topic: str, times: Rhythm) -> dict[str, str]:
        """Return the line."""
        return {"as a crontab would have it": cron_line(topic, times) + "\n"}

    def add(self, topic: str, times: Rhythm) -> None:
        """Write nothing."""

    def remove(self, topic: str) -> None:
        """Remove nothing."""

    def has(self, topic: str) -> bool:  # noqa: ARG002 - as the others
        """Return that nothing is missing."""
        return True


def cron_line(topic: str, times: Rhythm) -> str:
    """Return a topic's line of a crontab, where `%` would end the command."""
    command = shlex.join(run_command(topic)).replace("%", r"\%")
    return f"{times.cron} {command} {MARK.format(name=topic)}"


def scheduler_named(name: str, environment: Mapping[str, str]) -> Scheduler:
    """Return a scheduler: the one of this name, or with `auto` the first that is there.

    Raises:
        ConfigError: It is not there.
    """
    if name == "systemd" or (name == "auto" and Systemd.is_there()):
        if not Systemd.is_there():
            raise ConfigError("systemd does not answer this user", hint="give --by cron, or --by none")
        return Systemd(environment)
    if name == "cron" or (name == "auto" and Cron.is_there()):
        if not Cron.is_there():
            raise ConfigError("there is no command crontab", hint="install cron, or give --by none")
        return Cron()
    return Printed()


def _in_unit(word: str) -> str:
    """Return a word as `ExecStart` takes it: specifiers and variables doubled, in quotes."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"'


def _crontab() -> list[str]:
    """Return the lines of the user's crontab, with their ends; none where there is no crontab.

    Raises:
        StorageError: It cannot be read.
    """
    done = _run(["crontab", "-l"])
    if done.returncode and "no crontab" not in done.stderr.lower():
        raise StorageError(f"crontab -l failed: {done.stderr.strip()[:300]}")
    return [] if done.returncode else done.stdout.splitlines(keepends=True)


def _write_crontab(lines: Sequence[str]) -> None:
    done = _run(["crontab", "-"], "".join(lines))
    if done.returncode:
        raise StorageError(f"crontab refused the new table, and the old one stays: {done.stderr.strip()[:300]}")


def _run(command: Sequence[str], stdin: str = "") -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(  # noqa: S603 - fixed words and a topic's name
            command,
            input=stdin,
            capture_output=True,
            timeout=WAIT_S,
            check=False,
            encoding="utf-8",
            errors="surrogateescape",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))
