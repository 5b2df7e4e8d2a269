"""The report of a run that is cut off, and what stands in its way."""

import asyncio
import os
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.run.finish import restore_draft
from explorer.run.hooks import RunHooks
from explorer.run.last_report import REPORT_GONE, ReportGuard, leave_report, reason_of, report_of_unfinished
from explorer.run.run import start
from explorer.schema.errors import StorageError, ToolError
from explorer.schema.events import PathMoved, RunFinished, RunStarted, Status
from explorer.schema.settings import Settings
from explorer.testing import ScriptedClient, says
from explorer.workspace.access import restore_access
from explorer.workspace.workspace import Workspace

FINISH = ("finish_exploration", {"summary": "May was good."})
STARTED = RunStarted(run_id="20260810-120000-q-0001", question="How tall?", engine="1", settings={})


def made(folder: Path) -> Workspace:
    """A run's folder with nothing in it."""
    (folder / ".explorer").mkdir()
    return Workspace(folder)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("x"), "internal error: KeyError: 'x'"),
        (ExceptionGroup("two", [ExceptionGroup("one", [ValueError("a\nb")])]), "internal error: ValueError: a b"),
        (StorageError("the disk is full"), "the disk is full"),
        (asyncio.CancelledError(), "ended by SIGTERM"),
    ],
)
async def test_whatever_ends_a_run_leaves_a_report_that_says_so(
    tmp_path: Path, error: BaseException, words: str
) -> None:
    """One line of why, and the command to continue; the error goes on."""
    workspace = made(tmp_path)
    with pytest.raises(type(error)):
        async with ReportGuard(lambda: RunState.of([STARTED]), workspace, "", lambda: "ended by SIGTERM"):
            raise error
    report = (tmp_path / "report.md").read_text()
    assert words[1:] in report
    assert f"explorer resume {tmp_path.name}" in report


@pytest.mark.parametrize("point", ["before_append", "after_append"])
async def test_a_run_of_which_nothing_is_on_record_leaves_no_folder(tmp_path: Path, point: str) -> None:
    """The disk was full before the first record, say; with one record, the run can be resumed."""

    def refuse(reached: str) -> None:
        if reached == point:
            raise StorageError("the disk is full")

    hooks = RunHooks(client=ScriptedClient({}), run_id="r", files={"a.md": b"Words."}, on_checkpoint=refuse)
    with pytest.raises(StorageError):
        await start("How tall?", Settings(workspace=tmp_path / "runs"), hooks)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ([] if point == "before_append" else ["r"])


def test_a_cancellation_of_unknown_cause_is_called_one() -> None:
    """As in a program that embeds the engine."""
    assert reason_of(asyncio.CancelledError()) == "the run was cancelled"


async def test_a_finished_run_keeps_its_report(tmp_path: Path) -> None:
    """An error before anything was asked further does not touch it."""
    workspace = made(tmp_path)
    workspace.write_own("report.md", "Done.")
    await leave_report(
        RunState.of([STARTED, RunFinished(status=Status.COMPLETE, reason="")]), workspace, "internal error: x"
    )
    assert (tmp_path / "report.md").read_text() == "Done."


async def test_a_run_cancelled_while_its_end_is_written_keeps_its_report(tmp_path: Path) -> None:
    """The record reaches the disk all the same, so the report is the one that it speaks of."""
    report = "# May\n\nSolar output rose by 12 % in May, says the log of the plant [S1].\n"
    replies = [says("", ("write_file", {"filepath": "report.md", "content": report})), says("", FINISH)]
    loop, written = asyncio.get_running_loop(), tmp_path / "run/report.md"

    cancelled = threading.Event()

    def cancel() -> None:
        task.cancel()
        cancelled.set()

    def cancel_when_over(point: str) -> None:
        if point == "before_write" and written.is_file() and "status: complete\n" in written.read_text():
            loop.call_soon_threadsafe(cancel)
            assert cancelled.wait(30)

    hooks = RunHooks(
        client=ScriptedClient({"orchestrator": replies}),
        files={"may.md": b"Solar output rose by 12 % in May, says the log of the plant.\n"},
        on_checkpoint=cancel_when_over,
        run_id="run",
    )
    task = asyncio.ensure_future(
        start("How was May?", Settings(workspace=tmp_path, is_sample=True, shell="off"), hooks)
    )
    with pytest.raises(asyncio.CancelledError):
        await task
    assert RunState.of_records(read_records(tmp_path / "run")).finished is not None
    assert "status: complete\n" in written.read_text()


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "intro.md").write_text("x")


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _second_name(path: Path) -> None:
    (path.parent / "a").write_text("x")
    os.link(path.parent / "a", path)


def _binary(path: Path) -> None:
    path.write_bytes(b"\x00\x01\xff" * 100)


@pytest.mark.parametrize("make", [_folder, _link, _second_name, _binary, os.mkfifo])
async def test_what_stands_in_the_reports_way_is_moved_and_named(tmp_path: Path, make: object) -> None:
    """Nothing of it is lost; the report says where it is, and an earlier one moved keeps its place."""
    workspace = made(tmp_path)
    (tmp_path / "report.md.moved-1").write_text("an agent's own")
    assert callable(make)
    make(tmp_path / "report.md")
    before = (tmp_path / "report.md").lstat()
    await leave_report(RunState.of([STARTED]), workspace, "time limit")
    assert workspace.set_aside == ["report.md.moved-2"]
    assert os.path.samestat(before, (tmp_path / "report.md.moved-2").lstat())
    assert (
        "> **Moved:** The earlier content of report.md was not a report, and is now at `report.md.moved-2`."
        in (tmp_path / "report.md").read_text()
    )


def _big(path: Path) -> None:
    path.write_text("a" * 50_000_000)


@pytest.mark.parametrize("make", [_second_name, _big])
async def test_a_report_that_cannot_be_read_is_written_anew(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A file that has the report's name, but that no reader is given, counts as none when the run is looked at."""
    wrote = ("write_file", {"filepath": "report.md", "content": "# Tall\n\nIt is tall.\n", "mode": "overwrite"})
    client = ScriptedClient({"orchestrator": [says("", wrote), says("", FINISH), says("", FINISH)]})
    result = await start("How tall?", Settings(workspace=tmp_path), RunHooks(client=client, run_id="r"))
    report = result.folder / "report.md"
    await asyncio.to_thread(report_of_unfinished, result.folder)
    assert "It is tall." in report.read_text()
    report.unlink()
    make(report)
    await asyncio.to_thread(report_of_unfinished, result.folder)
    assert REPORT_GONE in report.read_text()


async def test_what_was_moved_is_known_from_the_journal(tmp_path: Path) -> None:
    """A later report names it as well."""
    workspace = made(tmp_path)
    await leave_report(
        RunState.of([STARTED, PathMoved(path="report.md", to="report.md.moved-1")]), workspace, "time limit"
    )
    assert "report.md.moved-1" in (tmp_path / "report.md").read_text()


def test_a_run_with_a_folder_in_its_reports_place_is_resumed(tmp_path: Path) -> None:
    """To the agents there is no report yet; they may write one."""
    workspace = made(tmp_path)
    _folder(tmp_path / "report.md")
    restore_draft(RunState.of([STARTED]), workspace)
    workspace.write_text("report.md", "Mine.")
    assert (tmp_path / "report.md").read_text() == "Mine."


@pytest.mark.parametrize("path", ["report.md/intro.md", "REPORT.md/x", "./report.md/a/b"])
def test_nothing_is_written_below_the_report(tmp_path: Path, path: str) -> None:
    """The refusal says what would work."""
    with pytest.raises(ToolError, match=r"report\.md is a file, the run's report; write to another folder"):
        made(tmp_path).write_text(path, "x")


def test_access_is_given_back_to_real_folders_only(tmp_path: Path) -> None:
    """The run's folder and the engine's own; what a link leads to keeps its mode."""
    run, outside = tmp_path / "run", tmp_path / "outside"
    for folder in (run, run / ".explorer", run / ".explorer" / "sources", outside):
        folder.mkdir()
    (run / ".explorer" / "link").symlink_to(outside)
    for folder in (outside, run / ".explorer" / "sources", run / ".explorer", run):
        folder.chmod(0o500)
    assert restore_access(run)
    assert not restore_access(run)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (run, run / ".explorer/sources", outside)]
    assert modes == [0o700, 0o700, 0o500]


def test_a_report_without_access_is_made_readable_and_a_link_is_not_followed(tmp_path: Path) -> None:
    """The same file: its content is an agent's report."""
    report, other = tmp_path / "report.md", tmp_path / "other.md"
    for path in (report, other):
        path.write_text("Mine.")
        path.chmod(0)
    assert restore_access(tmp_path)
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    report.unlink()
    report.symlink_to(other)
    assert not restore_access(tmp_path)
    assert stat.S_IMODE(other.stat().st_mode) == 0


@pytest.mark.slow
def test_a_very_deep_folder_is_swept(tmp_path: Path) -> None:
    """What a write left is removed down to where paths reach, and nothing runs out of stack."""
    workspace = made(tmp_path)
    inner = tmp_path / "a"
    inner.mkdir()
    (inner / ".x.1-00000000.tmp").write_text("")
    descriptor = os.open(inner, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=descriptor)
        deeper = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = deeper
    os.close(descriptor)
    workspace.sweep()
    assert not (inner / ".x.1-00000000.tmp").exists()
    # Python's own way to remove a tree goes as deep as the tree.
    subprocess.run(["/bin/rm", "-rf", str(inner)], check=True)
