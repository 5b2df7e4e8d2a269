"""One limit of money over all runs of a server: reserved before a run starts, and refused in clear words."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from explorer.journal.listing import read_records
from explorer.run.run import RunHooks
from explorer.run.served import ServedRuns, ServerPlan, Wishes
from explorer.run.total_cost import TotalCost
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


def test_a_session_whose_cost_is_not_known_counts_in_full() -> None:
    """A journal that cannot be read gives no money back; nor does one that says less than nothing."""
    total = TotalCost(1.0)
    assert (total.reserve("a", 0.3), total.reserve("b", None)) == (0.3, 0.7)
    total.settle("a", None)
    total.settle("b", -5.0)
    assert total.spent_usd == pytest.approx(0.3)
    assert TotalCost(None).reserve("a", 3.0) is None
