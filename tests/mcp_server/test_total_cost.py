"""One limit of money over all runs of a server: reserved before a run starts, and refused in clear words."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from explorer.journal.listing import read_records
from explorer.run.hooks import RunHooks
from explorer.run.served import ServedRuns, ServerPlan, Wishes
from explorer.run.spending import SpendingBook, TotalCost
from explorer.schema.errors import ToolError
from explorer.schema.events import RunStarted, SessionConfigured
from explorer.schema.limits import Limits
from explorer.schema.messages import LLMClient, Request, Turn, Usage
from explorer.schema.settings import Settings
from explorer.testing import ScriptedClient, says


class Waiting:
    """A model that answers no request."""

    async def generate(self, request: Request) -> Turn:
        """Wait for the end of the run."""
        await asyncio.get_running_loop().create_future()
        raise AssertionError(request)


def bill(usd: float, tool: str, **arguments: str) -> Turn:
    """A reply that costs so much; fewer tokens than were sent would not be believed."""
    usage = Usage(input_tokens=50_000, output_tokens=100)
    return says("", (tool, dict(arguments)), cost_usd=usd).model_copy(update={"usage": usage})


LOOKED = bill(0.2, "list_files")
FINISHED = bill(0.0, "finish_exploration", summary="Done.")
"""Called twice: a report without sources is sent back once."""


def writing(usd: float) -> list[Turn]:
    return [
        bill(usd, "write_file", filepath="report.md", content="# Ropes\n\nNothing was looked up.\n"),
        FINISHED,
        FINISHED,
    ]


def model(*replies: Turn) -> ScriptedClient:
    return ScriptedClient({"orchestrator": replies})


@asynccontextmanager
async def serving(folder: Path, total: float, *clients: LLMClient) -> AsyncGenerator[ServedRuns]:
    """Runs with at most 60 cents each, and these models one after another."""
    chosen = Settings(workspace=folder, model="offline", shell="off", limits=Limits(max_cost_usd=0.6))
    models: Iterator[LLMClient] = iter(clients)
    plan = ServerPlan(chosen, lambda: RunHooks(client=next(models)), lambda _: chosen, max_runs=3, max_total_usd=total)
    runs = ServedRuns(plan)
    try:
        yield runs
    finally:
        await runs.close()


def limit_of(folder: Path) -> float:
    """The limit of money that the latest session of a run was given."""
    events = [record.event for record in read_records(folder)]
    (*_, session) = (event for event in events if isinstance(event, SessionConfigured))
    value = session.limits["max_cost_usd"].value
    assert value is not None
    return value


async def test_runs_at_work_reserve_what_they_may_spend(tmp_path: Path) -> None:
    """The second run gets what the first one leaves, the third is refused with the ids of both."""
    async with serving(tmp_path, 1.0, Waiting(), Waiting()) as runs:
        first, second = [await runs.start(question) for question in ("One?", "Two?")]
        started = [read_records(folder)[0].event for folder in (first, second)]
        limits = [one.settings["limits"]["max_cost_usd"] for one in started if isinstance(one, RunStarted)]
        assert limits == pytest.approx([0.6, 0.4])
        with pytest.raises(ToolError, match=rf"\$1\.00 is the limit of all runs.*{first.name}.*{second.name}"):
            await runs.start("Three?")


async def test_what_runs_did_not_spend_is_left_for_others(tmp_path: Path) -> None:
    """Counted is what sessions cost; when all is spent, the refusal names the flag."""
    async with serving(tmp_path, 1.0, *(model(*writing(usd)) for usd in (0.5, 0.3, 0.2))) as runs:
        found: list[float] = []
        for question in ("One?", "Two?", "Three?"):
            folder = await runs.start(question)
            await runs.ended()
            found.append(limit_of(folder))
        assert found == pytest.approx([0.6, 0.5, 0.2])
        with pytest.raises(ToolError, match=r"\$1\.00 is spent\. .* --max-total-cost"):
            await runs.start("Four?")


async def test_a_resumed_run_has_what_it_spent_and_what_is_left(tmp_path: Path) -> None:
    """What earlier sessions of a run cost counts for its own limit, and not for that of this server."""
    async with serving(tmp_path, 5.0, model(LOOKED)) as runs:
        folder = await runs.start("One?")
        await runs.ended()
    resumed = [LOOKED, *writing(0.1)]
    answered = [*resumed, bill(0.1, "finish_exploration", summary="No more."), FINISHED]
    async with serving(tmp_path, 0.3, model(*resumed), model(*answered)) as runs:
        await runs.resume(folder, "")
        await runs.ended()
        assert limit_of(folder) == pytest.approx(0.5)
        await runs.resume(folder, "And further?", Wishes(max_cost_usd=0.5))
        await runs.ended()
        assert limit_of(folder) == pytest.approx(0.2)


class Machine:
    """A day, a workspace with what its runs have cost, and the servers of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.day = "2026-11-24"
        self.costs: dict[str, float | None] = {}

    def server(self, limit_usd: float | None = 1.0) -> TotalCost:
        """The limit of a process that has just started."""
        book = SpendingBook(self.folder / "state", self.folder / "runs", self.costs.get, lambda: self.day)
        return TotalCost(limit_usd, book)


def test_a_session_whose_cost_is_not_known_counts_in_full(tmp_path: Path) -> None:
    """A journal that cannot be read gives no money back; nor does one that says less than nothing."""
    machine = Machine(tmp_path)
    total = machine.server()
    assert (total.reserve("a", 0.3), total.reserve("b", None, 9.0)) == (0.3, 0.7)
    total.settle("a", None)
    total.settle("b", 5.0)
    assert total.spent_usd == pytest.approx(0.3)
    assert machine.server(None).reserve("a", 3.0) is None


def test_servers_of_a_workspace_share_a_day_s_limit(tmp_path: Path) -> None:
    """What a server spends and reserves, another one cannot; a restart frees nothing; the next day begins anew."""
    machine = Machine(tmp_path)
    first, second = machine.server(), machine.server()
    assert (first.reserve("a", 0.6), second.reserve("b", 0.6)) == (0.6, pytest.approx(0.4))
    with pytest.raises(ToolError, match=r"in a day, and \$0\.00 is spent; the rest, \$1\.00, is for the runs .*a.*b"):
        second.reserve("c", 0.1)
    first.settle("a", 0.6)
    first.close()
    assert machine.server().spent_usd == pytest.approx(0.6)
    with pytest.raises(ToolError, match=r"\$0\.60 is spent; the rest, \$0\.40"):
        machine.server().reserve("c", 0.1)
    machine.day = "2026-11-25"
    assert machine.server().reserve("c", 5.0) == pytest.approx(0.6), "b is at work, and may still spend its 40 cents"


def test_a_clock_that_goes_back_gives_no_money_back(tmp_path: Path) -> None:
    """Servers in two time zones may be at two days for hours, and each would begin the other's day anew."""
    machine = Machine(tmp_path)
    east, west = machine.server(), machine.server()
    for number in range(4):
        machine.day = ("2026-11-25", "2026-11-24")[number % 2]
        server = (east, west)[number % 2]
        with suppress(ToolError):
            server.settle(f"{number}", server.reserve(f"{number}", 0.6))
    assert east.spent_usd == pytest.approx(1.0)
    machine.day = "2026-11-26"
    assert west.reserve("next", 5.0) == pytest.approx(1.0)


def test_a_clock_that_was_far_ahead_ends_no_day_for_years(tmp_path: Path) -> None:
    """What was spent while it was wrong counts for the day at which it is right again, and for no later one."""
    machine = Machine(tmp_path)
    server = machine.server()
    for day, left in (("2126-01-01", 1.0), ("2026-11-25", 0.4), ("2026-11-26", 1.0)):
        machine.day = day
        assert server.reserve(day, 5.0) == pytest.approx(left)
        server.settle(day, 0.6 if left > 0.5 else left)


def test_what_a_killed_server_s_runs_had_spent_is_read_from_their_journals(tmp_path: Path) -> None:
    """Neither lost nor held for ever: the run of 2 dollars had cost 1.90 before, so 10 cents count."""
    machine = Machine(tmp_path)
    killed = machine.server()
    killed.reserve("a", 0.9, before_usd=1.9)
    killed.close()  # as the system does with what a killed process held
    machine.costs["a"] = 2.0
    assert machine.server().spent_usd == pytest.approx(0.1)
    machine.costs["a"] = 3.0
    assert machine.server().spent_usd == pytest.approx(0.1), "counted once"


def test_marks_of_servers_that_are_gone_are_removed(tmp_path: Path) -> None:
    """A killed server leaves its mark, which nothing holds; that of a server at work stays."""
    machine = Machine(tmp_path)
    at_work = machine.server()
    at_work.reserve("a", 0.1)
    (mark,) = (tmp_path / "state" / "spending").glob("*.holder")
    killed = mark.with_name(f"{mark.name.partition('.')[0]}.0123456789abcdef.holder")
    killed.touch()
    third = machine.server()
    third.reserve("b", 0.1)
    assert (mark.exists(), killed.exists()) == (True, False)
    third.close()
    assert list(mark.parent.glob("*.holder")) == [mark]


def test_a_book_that_cannot_be_read_or_written_starts_nothing(tmp_path: Path) -> None:
    """A limit that is not known to hold is none."""
    machine = Machine(tmp_path)
    machine.server().reserve("a", 0.5)
    (book,) = (tmp_path / "state" / "spending").glob("*.json")
    book.write_text("{")
    with pytest.raises(ToolError, match="is damaged"):
        machine.server().reserve("b", 0.1)
    machine.folder = tmp_path / "file"
    machine.folder.write_text("no folder")
    with pytest.raises(ToolError, match="cannot be kept"):
        machine.server().reserve("b", 0.1)
