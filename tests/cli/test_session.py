"""One run driven from the terminal."""

import asyncio
import json
import os
import signal
import threading
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from explorer.cli.launch import drive
from explorer.cli.screens.output import emit
from explorer.cli.screens.run_summary import SummaryPrinter
from explorer.cli.screens.screen import Quiet
from explorer.cli.session import Session, SessionEnd
from explorer.cli.settings.options import OutputFormat, RunOptions
from explorer.observe.command_result import CommandResult, exit_code
from explorer.run.hooks import RunHooks
from explorer.run.run import RunResult
from explorer.schema.errors import ModelError, ModelFault, RunLockedError, StorageError
from explorer.schema.events import JournalRecord, Status
from explorer.schema.messages import Usage
from explorer.schema.reasons import EndCause

RUN = "20260810-120000-x-1234"


def result(status: Status = Status.COMPLETE, reason: str = "") -> RunResult:
    """A run's end."""
    folder = Path("workspace") / RUN
    return RunResult(
        run_id=RUN,
        folder=folder,
        status=status,
        reason=reason,
        report=folder / "report.md",
        report_text="---\nstatus: x\n---\n# Report\n",
        usage=Usage(input_tokens=10, output_tokens=5),
        cost_usd=0.5,
        steps=3,
        agents=2,
        sources=4,
        citations=5,
        verdicts={"supported": 4, "not_found": 0, "elsewhere": 0, "source_missing": 0, "unchecked": 1},
        uncited=2,
        seconds=1.5,
    )


class Noting(Quiet):
    """A screen that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.heard = asyncio.Event()

    def say(self, text: str) -> None:
        """Keep it."""
        self.said.append(text)
        self.heard.set()


async def test_records_reach_the_view_and_the_tap(small_run: list[JournalRecord]) -> None:
    """The view is the state at the end; a tap sees each record once, in order."""
    taken: list[JournalRecord] = []

    async def work(hooks: RunHooks) -> RunResult:
        assert hooks.observe is not None
        for record in small_run:
            hooks.observe(record)
        return result()

    ending = await Session(Quiet(), taken.append).drive(work)
    assert ending.result == result()
    assert (ending.view.run_id, taken) == (RUN, small_run)


async def test_an_error_of_the_run_is_an_ending() -> None:
    """It comes out as it was raised, not wrapped in a group."""

    async def work(_: RunHooks) -> RunResult:
        raise ModelError(ModelFault.TRANSPORT, "no route")

    ending = await Session(Quiet()).drive(work)
    assert ending.error is not None
    assert ending.error.exit_code == 6


async def test_the_first_interrupt_winds_down_and_the_second_stops() -> None:
    """The run is asked to write up; when it is asked again it is cancelled, and the exit code is 130."""
    screen = Noting()

    async def work(_: RunHooks) -> RunResult:
        os.kill(os.getpid(), signal.SIGINT)
        await screen.heard.wait()
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
        return result()

    ending = await Session(screen).drive(work)
    assert ending.interrupted == 130
    (stated,) = screen.said
    assert stated.startswith("stopping: helpers are cut off, the report comes within 30 s; press Ctrl-C again")


async def test_a_run_that_winds_down_after_an_interrupt_ends_by_itself() -> None:
    """One Ctrl-C leaves a report."""
    screen = Noting()

    async def work(_: RunHooks) -> RunResult:
        os.kill(os.getpid(), signal.SIGINT)
        await screen.heard.wait()
        return result(Status.PARTIAL, "interrupted by the user")

    ending = await Session(screen).drive(work)
    assert ending.result is not None
    assert ending.interrupted is None


def test_an_interrupt_after_the_end_does_not_lose_the_result() -> None:
    """While the event loop is closed, which waits for threads: one may be asking a name server."""

    def interrupt_at_the_end() -> None:
        while not any("_do_shutdown" in thread.name for thread in threading.enumerate()):
            threading.Event().wait(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    async def work(_: RunHooks) -> RunResult:
        asyncio.get_running_loop().run_in_executor(None, interrupt_at_the_end)
        return result()

    assert drive(work, Session(Quiet()), RunOptions()).result == result()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("number", "code", "reason"),
    [(signal.SIGTERM, 143, "ended by SIGTERM"), (signal.SIGHUP, 129, "its terminal was closed (SIGHUP)")],
)
async def test_a_termination_stops_at_once(number: signal.Signals, code: int, reason: str) -> None:
    """SIGTERM and SIGHUP count as two interrupts, with exit codes and reasons of their own."""
    session = Session(Quiet())
    hanging: list[int] = []
    session.last_resort = hanging.append

    async def work(_: RunHooks) -> RunResult:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()
        return result()

    assert (await session.drive(work)).interrupted == code
    assert session.stop.cut == reason
    assert hanging == [code]


@pytest.mark.parametrize(
    ("status", "cause", "code"),
    [
        ("complete", EndCause.OTHER, 0),
        ("complete", EndCause.TIME_LIMIT, 0),
        ("partial", EndCause.COST_LIMIT, 3),
        ("partial", EndCause.TIME_LIMIT, 124),
        ("failed", EndCause.OTHER, 1),
        ("failed", EndCause.TIME_LIMIT, 124),
    ],
)
def test_a_status_has_its_exit_code(status: str, cause: EndCause, code: int) -> None:
    """Complete 0, stopped early 3, out of time 124, failed 1."""
    assert exit_code(status, cause) == code


def endings() -> list[tuple[SessionEnd, str, int]]:
    """Every way a run can end, with its status and exit code."""
    view = Session(Quiet()).view
    view.run_id = RUN
    return [
        (SessionEnd(view, result=result()), "complete", 0),
        (SessionEnd(view, result=result(Status.PARTIAL, "money limit")), "partial", 3),
        (SessionEnd(view, result=result(Status.FAILED, "no report")), "failed", 1),
        (SessionEnd(view, error=ModelError(ModelFault.TRANSPORT, "no route", hint="wait")), "error", 6),
        (SessionEnd(view, interrupted=130), "interrupted", 130),
    ]


@pytest.mark.parametrize("case", range(5))
@pytest.mark.parametrize("output_format", ["json", "stream-json"])
def test_every_ending_has_the_same_json_shape(
    case: int, output_format: OutputFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same fields whatever happened; the exit code is told and returned."""
    ending, status, code = endings()[case]
    returned = SummaryPrinter(RunOptions(output_format=output_format), Path("workspace")).print_end(ending)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["status"], shown["exit_code"], returned) == (status, code, code)
    assert shown["run_id"] == RUN
    expected = {field.name for field in fields(CommandResult)} | (
        {"type"} if output_format == "stream-json" else set[str]()
    )
    assert set(shown) == expected
    assert set(shown["tokens"]) == set(asdict(CommandResult("x", 0))["tokens"])


def test_a_run_that_broke_off_tells_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Error, hint, and the resume command with the workspace that was given."""
    ending = endings()[3][0]
    SummaryPrinter(RunOptions(workspace="my runs"), Path("my runs")).print_end(ending)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "explorer: no route\n  → wait\n" in shown.err
    assert f"explorer resume {RUN} --workspace 'my runs'" in shown.err


def test_a_run_that_is_busy_or_complete_is_not_said_to_be_resumable(capsys: pytest.CaptureFixture[str]) -> None:
    """The same command would be refused again; the error's own hint stands alone."""
    view = endings()[3][0].view
    SummaryPrinter(RunOptions(), Path("workspace")).print_end(
        SessionEnd(view, error=RunLockedError("busy", hint="wait"))
    )
    assert capsys.readouterr().err == "explorer: busy\n  → wait\n"


def test_a_stopped_run_tells_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is lost, and the command says so."""
    SummaryPrinter(RunOptions(), Path("workspace")).print_end(endings()[4][0])
    assert f"continue: explorer resume {RUN}" in capsys.readouterr().err


def test_the_account_stands_on_stderr_and_the_report_on_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe gets the markdown as it is; people get figures and the way on; `-o` gets a copy."""
    copy = tmp_path / "copy.md"
    SummaryPrinter(RunOptions(output=str(copy)), Path("workspace")).print_end(endings()[0][0])
    shown = capsys.readouterr()
    assert shown.out == "---\nstatus: x\n---\n# Report\n"
    assert copy.read_text() == shown.out
    assert [path.name for path in tmp_path.iterdir()] == ["copy.md"]
    for words in (
        "complete: workspace",
        "$0.5000",
        "15 tokens",
        "4 sources, 5 cited sentences (4 supported, 1 unchecked), 2 uncited",
        f"explorer resume {RUN} ",
    ):
        assert words in shown.err


def test_quiet_says_nothing_of_success(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the result is left."""
    SummaryPrinter(RunOptions(quiet=True), Path("workspace")).print_end(endings()[0][0])
    assert capsys.readouterr().err == ""


def test_a_copy_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """It is told, not dropped."""
    target = tmp_path / "gone" / "copy.md"
    with pytest.raises(StorageError, match="could not be written"):
        SummaryPrinter(RunOptions(output=str(target)), Path("workspace")).print_end(endings()[0][0])


def test_text_with_lone_surrogates_can_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON stays JSON."""
    ending = SessionEnd(Session(Quiet()).view, error=StorageError("\ud800"))
    SummaryPrinter(RunOptions(output_format="json"), Path("workspace")).print_end(ending)
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "StorageError"
    emit("")
