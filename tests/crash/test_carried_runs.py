"""Runs that were carried here, killed while they are imported, first resumed, or given the user's marks."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from attacks.carried_runs import BY_FLAG, RUN, Stranger, Watcher, marker, schema, touching
from command import explorer_here
from explorer.journal.codec import is_own
from explorer.journal.crash_points import crash_at
from explorer.journal.journal import CHECKPOINTS
from explorer.journal.listing import is_run, read_records
from explorer.run.archive import pack
from explorer.run.hooks import RunHooks
from explorer.run.run import resume
from explorer.schema.errors import ConfigError
from explorer.workspace.user_key import open_key
from thoroughness import some

MOST = 40
"""More than the number of times that any point is reached."""
FILE_EVENTS = frozenset({"open", "os.mkdir", "os.rename", "os.remove", "os.chmod", "os.link", "os.symlink", "os.rmdir"})
KILLED = -signal.SIGKILL
PENDING = Stranger(pending=("post_message", {"text": "x"}), tools=(schema("post_message"), schema("execute_shell")))
"""A run in whose journal a call with an effect outside is pending."""


def in_child(do: Callable[[], object]) -> int:
    """Do something in a process that is forked from this one, and return how that ended."""
    child = os.fork()
    if child == 0:
        code = 9
        try:
            do()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def kill_at(count: int) -> None:
    """End this process at the so-many-th change or opening of a file, counted from the first one in the workspace."""
    left, has_begun = count, False

    def see(event: str, arguments: "tuple[object, ...]") -> None:
        nonlocal left, has_begun
        has_begun = has_begun or (event in FILE_EVENTS and "workspace" in str(arguments))
        if has_begun and event in FILE_EVENTS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(see)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_import_leaves_a_whole_run_or_none(tmp_path: Path) -> None:
    """Wherever an import is killed, the run is there whole or not at all, carried, and can be imported again."""
    packed = tmp_path / "run.tar.gz"
    pack(PENDING.put(tmp_path / "there", None), packed)
    records = read_records(tmp_path / "there" / "workspace" / RUN)
    deaths = 0
    for count in range(1, MOST // 2):
        here = tmp_path / f"here-{count}"
        run = here / "workspace" / RUN
        run.parent.mkdir(parents=True)

        def take(here: Path = here, count: int = count) -> None:
            kill_at(count)
            explorer_here("runs", "import", str(packed), cwd=here)

        deaths += in_child(take) == KILLED
        if is_run(run):
            assert read_records(run) == records
        done = explorer_here("runs", "import", str(packed), cwd=here)
        assert done.returncode == 0 or "already" in done.stderr or is_run(run), done.stderr
        assert [one.name for one in run.parent.iterdir() if is_run(one)] == [RUN]
        assert read_records(run) == records
        assert not is_own(run, open_key(here / ".local" / "state" / "explorer"))
    assert deaths > MOST // 8


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("point", CHECKPOINTS)
@pytest.mark.parametrize("of_user", [False, True])
def test_a_resumed_run_keeps_whose_it_is(point: str, tmp_path: Path, *, of_user: bool) -> None:
    """Killed at any point of its first session here, a run loses nothing, makes no foreign call, and stays as it is."""
    deaths = 0
    for count in some(range(1, MOST)):
        folder = tmp_path / str(count)
        key = open_key(folder / "state")
        run = PENDING.put(folder, key if of_user else None)
        before = read_records(run)
        was_killed = life(folder, run, f"{point}:{count}:KILL") == KILLED
        deaths += was_killed
        kept = read_records(run)
        assert kept[: len(before)] == before
        acknowledged = (folder / "acknowledged").read_text().split()
        assert acknowledged == [str(one.seq) for one in kept[len(before) :]][: len(acknowledged)]
        assert life(folder, run) == 0
        assert read_records(run)[: len(kept)] == kept
        assert is_own(run, key) is of_user
        assert of_user or not marker(folder).exists()
        if not was_killed:
            break
    assert deaths


def life(folder: Path, run: Path, crash: str = "") -> int:
    """Resume a run in a process of its own, which ends where it is told; each durable record is noted."""

    def work() -> None:
        def note(number: int) -> None:
            descriptor = os.open(folder / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(descriptor, f"{number}\n".encode())
            os.close(descriptor)

        hooks = RunHooks(
            client=Watcher(),
            tools=[touching(folder)],
            on_checkpoint=crash_at(crash) if crash else None,
            observe=lambda record: note(record.seq),
        )
        with suppress(ConfigError):
            asyncio.run(resume(run, BY_FLAG.settings(folder), "Go on.", hooks))

    (folder / "acknowledged").touch()
    return in_child(work)
