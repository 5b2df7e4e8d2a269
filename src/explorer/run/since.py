"""A run that is to say what is new since an earlier one: what it is given of that one, and the changes at its end."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import LiteralString

from loguru import logger

from explorer.journal.run_state import RunState
from explorer.reports.compare import (
    SINCE_REPORT,
    RunSnapshot,
    compare_runs,
    comparison_page,
    snapshot_of,
    snapshot_on_disk,
)
from explorer.reports.render import without_network
from explorer.reports.stories import compared_stories, count_words, listed_stories, story_lines
from explorer.schema.errors import NotFoundError, StorageError, ToolError
from explorer.schema.events import Source
from explorer.schema.tool import SourceDraft, Store
from explorer.text.rendering import ModelText, code, own
from explorer.workspace.access import journal_path
from explorer.workspace.workspace import Workspace

SINCE_SOURCES = "inputs/since-sources.md"
SINCE_FILES = (SINCE_REPORT, SINCE_SOURCES)
"""The engine's own among the inputs: not the user's files."""
CHANGES = "changes.md"
OWN_CHANGES = ".explorer/changes.md"
"""When an agent wrote a file of that name."""
VIA = "run"
TASK: LiteralString = "Report what is new, gone or changed since that run; what stayed the same needs a line at most."


def earlier_folder(folder: Path, since: str) -> Path:
    """Return the folder of the earlier run, which is next to this one.

    Raises:
        NotFoundError: It is not there.
    """
    # A carried journal can name whatever it likes; only a run beside this one is meant.
    is_name = since == Path(since).name and not since.startswith(".")
    if not is_name or not journal_path(folder.parent / since).is_file():
        raise NotFoundError(f"there is no run {since[:80]!r} next to {folder.name}", hint="explorer runs")
    return folder.parent / since


async def words_on_earlier(folder: Path, since: str, workspace: Workspace, store: Store) -> list[ModelText]:
    """Return what the orchestrator is told of the earlier run; its report and its sources become files of this one.

    Raises:
        NotFoundError: The earlier run is not there.
        StorageError: Its journal cannot be read, or is damaged.
    """
    earlier = snapshot_on_disk(earlier_folder(folder, since))
    head = earlier.summary
    started = own("{time:%Y-%m-%d %H:%M} UTC", time=head.started) if head.started is not None else own("?")
    # It may have been somebody else's, who asked it.
    words = "Earlier run: {id}, started {started}, asked: {question}"
    lines = [own(words, id=code(head.run_id), started=started, question=head.question)]
    if earlier.report:
        workspace.write_own(SINCE_REPORT, earlier.report)
        draft = SourceDraft(
            url=f"file:{SINCE_REPORT}",
            title=f"Report of run {head.run_id}",
            kind="file",
            via=VIA,
            published=head.started.date().isoformat() if head.started is not None else "",
            text=earlier.report,
        )
        (source,) = await store([draft])
        lines.append(
            own(
                "Its report: {path} [{id}] ({count} lines)",
                path=SINCE_REPORT,
                id=code(source.id),
                count=len(earlier.report.splitlines()),
            )
        )
    listed = _listed(earlier)
    workspace.write_own(SINCE_SOURCES, "\n".join([f"# Sources of run {head.run_id}", "", *listed]) + "\n")
    lines.append(own("Its sources: {path} ({count} addresses)", path=SINCE_SOURCES, count=len(listed)))
    return [*lines, own(TASK)]


def earlier_addresses(folder: Path, since: str) -> list[str]:
    """Return the addresses of the earlier run's sources; none, when no run was named or it is not there any more."""
    if not since:
        return []
    try:
        return [source.url for source in snapshot_on_disk(earlier_folder(folder, since)).sources.values()]
    except (NotFoundError, StorageError, ToolError):
        return []


def _listed(earlier: RunSnapshot) -> Sequence[str]:
    """Return each address once, with what it was called."""
    by_address: dict[str, Source] = {}
    for source in earlier.sources.values():
        by_address.setdefault(source.url, source)
    return [f"- {source.url} ({' '.join(source.title.split())})" for source in by_address.values()]


def write_changes(folder: Path, since: str, run_state: RunState, started: datetime | None, status: str) -> str:
    """Compare the earlier run with this one, whose report is written; returns where that stands, empty if nowhere.

    An earlier run that is gone or damaged by now is no reason to fail.

    Raises:
        StorageError: The disk refused.
    """
    try:
        earlier = snapshot_on_disk(earlier_folder(folder, since))
    except (NotFoundError, StorageError, ToolError) as error:
        logger.warning("run {} cannot be compared with: {}", since, error)
        return ""
    page = comparison_page(compare_runs(earlier, snapshot_of(folder, run_state, started, status)))
    path = _changes_at(run_state)
    Workspace(folder).write_own(path, page)
    return path


MAX_STORIES = 10
"""The number of stories of each kind that the report names; `changes.md` has more."""


def story_section(folder: Path, since: str, run_state: RunState) -> str:
    """Return the section of the report on what changed in the listed stories; empty when none were listed."""
    try:
        earlier = snapshot_on_disk(earlier_folder(folder, since)) if since else None
    except (NotFoundError, StorageError, ToolError):
        return ""
    stories = listed_stories(run_state.lookups.values(), run_state.sources)
    if earlier is None or not stories or not earlier.stories:
        return ""
    found = compared_stories(earlier.stories, stories)
    at = f"{earlier.summary.started:%Y-%m-%d %H:%M} UTC" if earlier.summary.started is not None else since
    heading = ["", f"### Since the run of {at}", "", f"{count_words(found).capitalize()}: `{_changes_at(run_state)}`"]
    return without_network("\n".join([*heading, *story_lines(found, MAX_STORIES), ""]))


def changes_path(folder: Path, run_state: RunState) -> Path | None:
    """Return where the changes are; None when there are none to be had."""
    path = folder / _changes_at(run_state)
    return path if path.is_file() else None


def _changes_at(run_state: RunState) -> str:
    return OWN_CHANGES if CHANGES in run_state.files else CHANGES
