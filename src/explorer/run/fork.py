"""Fork a run: a new run that shares another's past up to one record, with the files as they stood then.

The files are rebuilt from the journal, for every write's arguments are in it; each is checked against the sha256
that the journal noted after the write. A file that some other tool wrote is copied if it still is what it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from explorer.journal.codec import JournalRecord, encode_all, encode_marked, examine, is_own
from explorer.journal.journal import SEE_DISK, Journal, Protection
from explorer.journal.listing import new_run_id, read_records
from explorer.journal.run_state import RunState
from explorer.sandbox.jobs import OUTPUTS
from explorer.schema.errors import ConfigError, StorageError
from explorer.schema.events import RunForked, ToolFinished, TurnTaken
from explorer.schema.messages import JsonObject
from explorer.workspace.access import DRAFT, REPORT, journal_path
from explorer.workspace.safe_open import make_private_folder, write_private
from explorer.workspace.source_store import SOURCES
from explorer.workspace.user_key import NO_KEY, UserKey
from explorer.workspace.workspace import Workspace, sha256

INPUTS = "inputs"


@dataclass(frozen=True)
class Forked:
    """A new run, not yet gone on with."""

    folder: Path
    at: int
    """The last record shared."""
    lost: tuple[str, ...]
    """Files that could not be restored as they stood then."""


async def fork(
    folder: Path, at: int | None, now: datetime, key: UserKey = NO_KEY, workspace: Path | None = None
) -> Forked:
    """Make a new run in a workspace (None: beside `folder`) out of the first `at` records (None: all) of a run.

    It is the user's own if the other one is, by the user's key.

    Raises:
        ConfigError: There is no such record.
        StorageError: The disk refused, or the journal is damaged.
    """
    records = _good_records(folder, at)
    at = len(records) if at is None else at
    if not 1 <= at <= len(records):
        raise ConfigError(
            f"run {folder.name} has records 1 to {len(records)}, not {at}",
            hint=f"their numbers: explorer show {folder.name} --timeline",
        )
    kept = records[:at]
    run_state = RunState.of_records(kept)
    run_id = new_run_id(run_state.question, now)
    target = (workspace or folder.parent) / run_id
    try:
        make_private_folder(target / ".explorer")
        lines = encode_marked(kept, key) if is_own(folder, key) else encode_all(kept)
        write_private(journal_path(target), lines)
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror}", hint=SEE_DISK) from error
    lost = _bring_files(folder, target, kept, run_state)
    if at == len(records):
        _bring_report(Workspace(folder), Workspace(target))
    journal = Journal.open(target / ".explorer", lambda: now, protection=Protection(key=key))
    try:
        await journal.append(RunForked(run_id=run_id, of=folder.name, shared=at))
    finally:
        journal.close()
    return Forked(target, at, lost)


def _good_records(folder: Path, at: int | None) -> tuple[JournalRecord, ...]:
    """Return all records, or of a damaged journal those before the damage, when no later one is asked for."""
    if at is None:
        return read_records(folder)
    try:
        found = examine(journal_path(folder).read_bytes())
    except OSError as error:
        raise StorageError(f"cannot read the journal of {folder.name}: {error.strerror}") from error
    if found.damage is not None and at > len(found.records):
        last = len(found.records)
        found.damage.hint = f"the records before are good: explorer fork {folder.name} --at {last}" if last else ""
        raise found.damage
    return found.records


def _bring_report(old: Workspace, new: Workspace) -> None:
    """Copy the report and the writer's draft of it, for a fork of a whole run."""
    for path in (REPORT, DRAFT):
        if old.exists(path):
            new.write_own(path, old.read_text(path))


def _bring_files(folder: Path, target: Path, kept: Sequence[JournalRecord], run_state: RunState) -> tuple[str, ...]:
    """Write everything the kept records know of into the new folder; returns what could not be had."""
    old, new = Workspace(folder), Workspace(target)
    texts = rebuilt_files(kept)
    lost: list[str] = []
    for path, written in run_state.files.items():
        text = texts.get(path, "")
        if sha256(text.encode("utf-8", "replace")) == written.sha256:
            new.write_own(path, text)
        elif old.digest(path) == written.sha256:
            _copy(old, target, path)
        else:
            lost.append(path)
    calls = {record.event.call for record in kept if isinstance(record.event, ToolFinished)}
    wanted = [f"{OUTPUTS}/{call}.txt" for call in calls] + [f"{SOURCES}/{source}.md" for source in run_state.sources]
    if (folder / INPUTS).is_dir():
        _copy_inputs(old, target)
    for path in ("question.txt", *wanted):
        if old.exists(path):
            new.write_own(path, old.read_text(path))
    return tuple(lost)


def _copy_inputs(old: Workspace, target: Path) -> None:
    """Copy the user's files byte by byte: not all of them are texts."""
    for info in old.files(INPUTS):
        _copy(old, target, info.path)


def _copy(old: Workspace, target: Path, name: str) -> None:
    """Copy a file byte by byte."""
    path = target / name
    make_private_folder(path.parent)
    write_private(path, old.read_bytes(name))


def rebuilt_files(records: Sequence[JournalRecord]) -> dict[str, str]:
    """Return the text of every file that `write_file` and `edit_file` made, after the given records."""
    arguments: dict[str, JsonObject] = {}
    turns: dict[str, int] = {}
    texts: dict[str, str] = {}
    for event in (record.event for record in records):
        if isinstance(event, TurnTaken):
            turn = turns[event.agent] = turns.get(event.agent, 0) + 1
            for index, call in enumerate(event.turn.calls, 1):
                arguments[f"{event.agent}.t{turn}.{index}"] = call.arguments or {}
        elif isinstance(event, ToolFinished) and event.success and event.files:
            path = event.files[0].path
            texts[path] = _after(event.name, arguments.get(event.call, {}), texts.get(path, ""))
    return texts


def _after(tool: str, arguments: JsonObject, before: str) -> str:
    if tool == "edit_file":
        return before.replace(str(arguments.get("old_string", "")), str(arguments.get("new_string", "")), 1)
    content = str(arguments.get("content", ""))
    return before + content if arguments.get("mode") == "append" else content
