"""Effort in proportion: a narrow question starts fewer helpers than a broad one, measured on the offline models."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from explorer.journal.listing import read_records
from explorer.run.run import RunResult, start
from explorer.schema.events import AgentStarted, Status
from explorer.schema.settings import Services, Settings

OVERVIEW = "What were the 20 most notable stories on Hacker News today, and what do people argue about?"
NARROW = (
    "What do people say about Tern TLS?",
    "What does Hacker News say about the cluster move?",
    "What is new about soil?",
)
NOWHERE = "http://127.0.0.1:9"


def _helpers(result: RunResult) -> Counter[str]:
    """How many helpers of each role a run started."""
    events = [record.event for record in read_records(result.folder)]
    return Counter(e.role for e in events if isinstance(e, AgentStarted) and e.role != "orchestrator")


async def _ask(question: str, folder: Path, settings: Settings | None = None) -> RunResult:
    asked = (settings or Settings(is_sample=True)).model_copy(
        update={"workspace": folder, "model": "offline", "shell": "off"}
    )
    return await start(question, asked)


MOST_NARROW_STEPS = 15
"""Turns of all agents: the orchestrator's five, the writer's three, and those of one or two searchers."""


@pytest.fixture(scope="module")
def broad(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """The overview, made once."""
    return asyncio.run(_ask(OVERVIEW, tmp_path_factory.mktemp("broad")))


@pytest.mark.slow
def test_an_overview_is_a_fan_out(broad: RunResult) -> None:
    """A question about a whole day is worth several helpers; the measure of the narrow ones has something to bite."""
    assert broad.status is Status.COMPLETE, broad.reason
    assert _helpers(broad)["searcher"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize("question", NARROW)
async def test_a_question_about_one_story_starts_fewer_helpers(question: str, broad: RunResult, tmp_path: Path) -> None:
    """A question about one topic of the day takes at most half of the overview's searchers and turns."""
    narrow = await _ask(question, tmp_path)
    assert narrow.status is Status.COMPLETE, narrow.reason
    assert _helpers(narrow)["searcher"] <= _helpers(broad)["searcher"] / 2
    assert _helpers(narrow).total() < _helpers(broad).total()
    assert narrow.steps <= min(MOST_NARROW_STEPS, broad.steps / 2)


async def test_a_question_about_one_file_starts_at_most_two_helpers(tmp_path: Path) -> None:
    """What stands in the user's own file needs nobody to look for it."""
    notes = tmp_path / "notes.md"
    notes.write_text("Solar output rose by 12 % in May, says the log.\nThe battery was replaced on 3 June.\n")
    result = await _ask("When was the battery replaced?", tmp_path / "w", Settings(files=(notes,)))
    helpers = _helpers(result)
    assert helpers.total() <= 2
    assert helpers["searcher"] == 0
    assert "3 June" in result.report_text


@pytest.mark.slow
async def test_a_factual_question_starts_no_fan_out(tmp_path: Path) -> None:
    """A plain question of fact is one searcher's work, also when nothing outside answers."""
    services = Services.model_validate(
        {"hn_api_url": NOWHERE, "hn_search_url": NOWHERE, "tavily_url": NOWHERE, "allow_hosts": ("127.0.0.1",)}
    )
    result = await _ask("When was the bridge of Millau opened?", tmp_path, Settings(services=services))
    helpers = _helpers(result)
    assert helpers["searcher"] <= 1
    assert helpers.total() <= 2


@pytest.mark.slow
async def test_a_fact_of_the_sample_day_is_no_overview(tmp_path: Path) -> None:
    """A question that wants one thing is looked up as one thing, without a word like `about` to say so."""
    result = await _ask("Why is the maintainer of Tern TLS stepping down?", tmp_path)
    assert result.status is Status.COMPLETE, result.reason
    assert _helpers(result)["searcher"] <= 2
    assert _helpers(result).total() <= 3
    assert "nine years" in result.report_text
