"""`show` tells what a run used up."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from cli.conftest import NOON, turn
from cli.stage import Process
from explorer.cli.screens.run_costs import costs_page, head, head_rows, role_table
from explorer.observe.costs import Spending, spending_facts, spending_of
from explorer.observe.formatting import cached, percent, short_time
from explorer.schema.events import AgentStarted, AnyEvent, JournalRecord, RunForked, RunStarted, TurnTaken
from explorer.schema.messages import Usage

Show = Callable[..., Process]


def used(**tokens: int) -> TurnTaken:
    """A turn of a model whose price is known."""
    event = turn("orchestrator")
    return event.model_copy(
        update={
            "turn": event.turn.model_copy(
                update={"provider": "anthropic", "model": "claude-sonnet-5-5", "usage": Usage(**tokens)}
            )
        }
    )


def spent(*turns: AnyEvent) -> Spending:
    """What a run of these used up, ten seconds apart."""
    events: Sequence[AnyEvent] = [
        RunStarted(run_id="20260810-120000-x-1234", question="What is new?", engine="0", settings={}),
        AgentStarted(agent="orchestrator", role="orchestrator", task="", max_steps=9),
        *turns,
    ]
    return spending_of(
        [JournalRecord(v=1, seq=n, at=NOON + timedelta(seconds=n), event=event) for n, event in enumerate(events, 1)]
    )


CACHED = used(input_tokens=1_200_000, output_tokens=45_000, cache_read_tokens=1_000_000)


def rows(spending: Spending) -> dict[str, str]:
    """The head's rows by name."""
    return dict(head_rows(spending))


def test_the_cache_is_told_with_what_it_saved() -> None:
    """Its share of the input and the money; where it only cost so far, that; where no price is known, that."""
    shown = rows(spent(CACHED))
    assert shown["tokens"] == "1.2M in (83 % from the cache), 45.0k out"
    assert re.fullmatch(r"\$\d+\.\d\d by caching", shown["saved"])
    filled = rows(spent(used(input_tokens=100_000, cache_write_tokens=100_000)))
    assert filled["tokens"] == "100.0k in, 0 out"
    assert filled["saved"].startswith("nothing yet: filling the cache cost $0.0")
    unknown = spent(CACHED.model_copy(update={"turn": CACHED.turn.model_copy(update={"model": "nobody-knows-it"})}))
    assert rows(unknown)["saved"].startswith("not known: ")
    assert spending_facts(unknown)["saved_usd"] is None
    assert "saved" not in rows(spent(turn("orchestrator")))


def test_a_fork_tells_what_the_other_run_paid() -> None:
    """So that nobody adds it up twice."""
    shown = spent(turn("orchestrator"), RunForked(run_id="y", of="20260810-120000-x-1234", shared=3))
    assert rows(shown)["paid"] == "$0.0100, 1.0k tokens of it by 20260810-120000-x-1234"


@pytest.mark.parametrize("columns", [24, 40, 60, 80])
def test_pages_fit_narrow_terminals(columns: int) -> None:
    """Columns are left out by their importance, lines of words are wrapped; name and tokens stay."""
    spending = spent(*[CACHED] * 9)
    table = role_table(spending, columns)
    assert max(map(len, table.splitlines())) <= columns
    assert "orchestrator" in table
    assert "in" in table.splitlines()[0].split()
    wide = max(columns, 30)
    assert max(map(len, head(head_rows(spending), columns).splitlines())) <= wide
    assert max(map(len, costs_page(spending, columns).splitlines())) <= max(columns, 45)


def test_show_tells_it_to_people(kept_run: Path, here: Show) -> None:
    """The head has the figures, a table the roles; `--costs` every agent, the path and the lives."""
    page = here("show", kept_run.name).stdout
    for name in ("tokens", "slowest", "path"):
        assert re.search(rf"^{name:<9}\S", page, re.MULTILINE)
    assert re.search(r"^  searcher +\d+ +\d+ ", page, re.MULTILINE)
    costs = here("show", kept_run.name, "--costs").stdout
    assert max(map(len, costs.splitlines())) <= 80
    for words in ("1 session", "searcher-1", "waiting", "What the run waited for"):
        assert words in costs


def test_show_tells_it_to_programs(kept_run: Path, here: Show) -> None:
    """Everything under `spending`; the parts add up to what the whole run used."""
    facts = json.loads(here("show", kept_run.name, "--output-format", "json").stdout)
    spending = facts["spending"]
    assert (spending["tokens"], spending["cost_usd"]) == (facts["tokens"], facts["cost_usd"])
    assert spending["turns"] == facts["steps"] == sum(role["turns"] for role in spending["by_role"])
    assert {agent["id"]: agent["seconds"] for agent in spending["by_agent"]} == {
        agent["id"]: agent["seconds"] for agent in facts["agents"]
    }
    assert spending["slowest_agent"]["id"] == facts["slowest_agent"]
    assert sum(link["seconds"] for link in spending["critical_path"]) == pytest.approx(spending["seconds"], abs=0.05)
    assert len(spending["lives"]) == 1
    assert set(spending) == {
        "turns", "tokens", "cache_share", "cost_usd", "saved_usd", "seconds", "parallelism", "by_role", "by_agent",
        "slowest_agent", "critical_path", "lives", "inherited",
    }  # fmt: skip


def test_figures_of_parts_and_short_times() -> None:
    """A share of nothing is none; tenths only where they tell something."""
    assert [percent(None), percent(0.834), percent(0)] == ["-", "83 %", "0 %"]
    assert [cached(0, 10), cached(0, 0), cached(5, 10)] == ["", "", " (50 % from the cache)"]
    assert [short_time(0.44), short_time(9.96), short_time(125), short_time(-1)] == ["0.4s", "10s", "2m05s", "0.0s"]
