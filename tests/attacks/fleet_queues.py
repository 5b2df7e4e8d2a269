"""Planted queues: a database of runs that came with a folder, or in which somebody else writes, too.

The user starts a worker. In the control it is the same worker without the guard.
"""

import base64
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from attacks.attack import Attack

if TYPE_CHECKING:
    from sqlalchemy import Connection

WORKER = """
import sys
sys.argv = ["explorer", "worker", "--model", "offline", "--no-shell", "--until-empty", "--lease", "2s"]
{guard}
from explorer.__main__ import main
sys.exit(main())
"""
WITH_PICKLE = "import explorer.fleet.runs as runs; runs.refuse_pickle = lambda: None"
ANY_RUN_ID = (
    "import explorer.fleet.worker as worker; worker.checked_run_id = lambda run_id: run_id\n"
    "import explorer.run.hooks as hooks; hooks.is_name = lambda text: True"
)
ANY_QUEUE = "import explorer.cli.commands.fleet as fleet; fleet.own_queue = lambda file, key: file"
SECONDS = 25.0
DEFAULT_PLACE = Path("workspace", ".fleet", "queue.sqlite")
QUESTION = "What do strangers want to know?"
ELSEWHERE = "http://127.0.0.1:9"
"""Nothing answers there."""


class Payload:
    """Creates a file when it is read from a pickle."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        """Say how it is made again: by a call of any function."""
        return Path.touch, (self._mark,)


def planted(file: Path, *, run_id: str = "", mark: Path | None = None) -> str:
    """Make a queue with one run in it, as a stranger can; return the run's id."""
    import sqlalchemy as sa  # noqa: PLC0415 - an extra

    from explorer.fleet.database import RUNS, FleetDatabase  # noqa: PLC0415 - the same
    from explorer.fleet.runs import FleetQueue, NewRun  # noqa: PLC0415 - the same

    queue = FleetQueue(FleetDatabase(f"sqlite:///{file}"))
    try:
        known, _ = queue.submit(NewRun(QUESTION, {"model": "offline"}))
        with queue.database.transaction() as connection:
            if mark:
                inputs = pickle.dumps({"args": (Payload(mark),), "kwargs": {}})
                _put(connection, base64.b64encode(inputs).decode(), "py_pickle")
            if run_id:
                _put(connection, json.dumps({"positionalArgs": [run_id], "namedArgs": {}}), "portable_json")
                connection.execute(sa.update(RUNS).values(run_id=run_id))
    finally:
        queue.close()
    return run_id or known


def _put(connection: "Connection", inputs: str, form: str) -> None:
    """Replace what the queue hands to a worker, and the form in which it is written."""
    import sqlalchemy as sa  # noqa: PLC0415 - an extra

    connection.execute(
        sa.text("UPDATE workflow_status SET inputs = :inputs, serialization = :form"), {"inputs": inputs, "form": form}
    )
    connection.execute(sa.text("UPDATE workflow_input SET inputs = :inputs"), {"inputs": inputs})


def works(folder: Path, guard: str, is_done: Callable[[], bool], settings: Mapping[str, str] | None = None) -> bool:
    """Start a worker in the clone until something happens, it ends, or time is over; return whether that happened."""
    clone = folder / "clone"
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "LANG": "C.UTF-8"}
    environment |= dict.fromkeys(("EXPLORER_HN_API_URL", "EXPLORER_HN_SEARCH_URL", "EXPLORER_TAVILY_URL"), ELSEWHERE)
    command = [sys.executable, "-c", WORKER.format(guard=guard)]
    with subprocess.Popen(
        command,
        cwd=clone,
        env=environment | dict(settings or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        until = time.monotonic() + SECONDS
        while not is_done() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        with suppress(ProcessLookupError):
            process.kill()
    return is_done()


def pickled(folder: Path, guard: str, *, is_named: bool) -> bool:
    """Plant code in the queue's own table, in a form that the queue's library would run."""
    mark = folder / "mark"
    file = folder / ("shared.sqlite" if is_named else "clone" / DEFAULT_PLACE)
    (folder / "clone").mkdir()
    planted(file, mark=mark)
    named = {"EXPLORER_FLEET_DATABASE": f"sqlite:///{file}"} if is_named else {}
    return works(folder, guard, mark.exists, named)


def outside(folder: Path, guard: str, run_id: str) -> bool:
    """Plant a run whose id is the path of a folder; a worker removes what a run left that did not begin."""
    precious = folder / "precious"
    precious.mkdir()
    (precious / "photo.jpg").touch()
    (folder / "clone" / "workspace").mkdir(parents=True)
    file = folder / "shared.sqlite"
    planted(file, run_id=run_id.format(precious=precious))
    named = {"EXPLORER_FLEET_DATABASE": f"sqlite:///{file}"}
    return works(folder, guard, lambda: not (precious / "photo.jpg").exists(), named)


def question_of_a_stranger(folder: Path, guard: str, settings: str = "") -> bool:
    """Plant a queue where the worker looks for one, or where a file of the folder says; its question costs the user."""
    clone = folder / "clone"
    run_id = planted(clone / ("queue.sqlite" if settings else DEFAULT_PLACE))
    (clone / ".env").write_text(settings)
    return works(folder, guard, (clone / "workspace" / run_id / "question.txt").exists)


def _needs_fleet() -> str:
    return "" if find_spec("dbos") else "the extra fleet is not installed"


def _attack(name: str, tried: str, gained: Callable[[Path, str], bool], guard: str) -> Attack:
    return Attack(
        name, tried, lambda folder: gained(folder, ""), lambda folder: gained(folder, guard), missing=_needs_fleet
    )


ATTACKS = [
    _attack(
        "pickle-in-the-folder",
        "A folder ships a queue with code in it, where workers look for one.",
        partial(pickled, is_named=False),
        f"{WITH_PICKLE}\n{ANY_QUEUE}",
    ),
    _attack(
        "pickle-in-a-shared-queue",
        "Somebody who may write to the queue's database puts code into it.",
        partial(pickled, is_named=True),
        WITH_PICKLE,
    ),
    _attack(
        "run-id-is-a-path",
        "The id of a run in a shared queue is the path of a folder of the user's.",
        partial(outside, run_id="{precious}"),
        ANY_RUN_ID,
    ),
    _attack(
        "run-id-leads-out",
        "The same with a path that leads out of the workspace.",
        partial(outside, run_id="../../precious"),
        ANY_RUN_ID,
    ),
    _attack(
        "queue-in-dotenv",
        "The folder's `.env` names a queue in it.",
        partial(question_of_a_stranger, settings="EXPLORER_FLEET_DATABASE=sqlite:///queue.sqlite\n"),
        'sys.argv.append("--trust-folder")',
    ),
    _attack(
        "question-in-the-folder",
        "A folder ships a queue with a question, which the user's worker would explore at the user's cost.",
        question_of_a_stranger,
        ANY_QUEUE,
    ),
]
