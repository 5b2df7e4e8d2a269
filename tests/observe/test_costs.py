"""What a run used up, read off records alone."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from explorer.journal.journal import read
from explorer.llm.prices import cost_usd
from explorer.observe.costs import Spending, spending_of
from explorer.observe.timeline import PathSegment, clock_of, longest
from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    CitationsJudged,
    JournalRecord,
    Repaired,
    RunFinished,
    RunForked,
    RunStarted,
    SandboxChosen,
    SessionConfigured,
    Status,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnTaken,
)
from explorer.schema.messages import StopKind, ToolCall, Turn, Usage
from explorer.schema.settings import Settings

NOON = datetime(2026, 8, 10, 12, 0, tzinfo=UTC)
LEAD = "orchestrator"
CLAUDE = "claude-sonnet-5-5"
Timed = tuple[float, AnyEvent]


def recorded(events: Sequence[Timed]) -> list[JournalRecord]:
    """Records of events at seconds after noon."""
    return [
        JournalRecord(v=1, seq=seq, at=NOON + timedelta(seconds=seconds), event=event)
        for seq, (seconds, event) in enumerate(events, 1)
    ]


def started(**services: str) -> RunStarted:
    """The first record."""
    settings = Settings().public() | {"services": services}
    return RunStarted(run_id="20260810-120000-x-1234", question="What is new?", engine="0", settings=settings)


def begins(agent: str, call: str = "") -> AgentStarted:
    """An agent's start; a helper's when there is a call that waits for it."""
    role, parent = agent.partition("-")[0], LEAD if call else ""
    return AgentStarted(agent=agent, role=role, parent=parent, parent_call=call, task="look", max_steps=9)


def turn(agent: str, seconds: float, calls: int = 0, usage: Usage | None = None, **fields: object) -> TurnTaken:
    """A reply that took so long and asks for so many tools."""
    asked = tuple(ToolCall(id=str(number), name="x", arguments={}) for number in range(calls))
    reply = Turn(
        provider="anthropic",
        model=CLAUDE,
        blocks=(),
        calls=asked,
        stop=StopKind.TOOL_USE if calls else StopKind.END,
        usage=usage or Usage(input_tokens=1000, output_tokens=100),
        cost_usd=0.01,
    )
    return TurnTaken(agent=agent, turn=reply.model_copy(update=fields), seconds=seconds)


def tool(agent: str, number: int, name: str = "search") -> ToolStarted:
    """A call of the agent's first turn begins."""
    return ToolStarted(
        agent=agent, call=f"{agent}.t1.{number}", name=name, effect="child" if name == "call_agent" else "pure"
    )


def command(agent: str, number: int) -> ToolStarted:
    """A call that may take long."""
    return tool(agent, number, "execute_shell").model_copy(update={"effect": "job"})


def done(agent: str, number: int, name: str = "search") -> ToolFinished:
    """And is answered."""
    return ToolFinished(agent=agent, call=f"{agent}.t1.{number}", name=name, success=True, content="found")


def ends(agent: str) -> AgentFinished:
    """An agent's end."""
    return AgentFinished(agent=agent, status=Status.COMPLETE, reason="answered", summary="Done.")


OVER = RunFinished(status=Status.COMPLETE, reason="")


def fan_out(slow_s: float = 40.0) -> list[Timed]:
    """Two searchers at once, of 20 s and `slow_s`; then a writer of 30 s."""
    slow = 10.0 + slow_s
    first, second, third = (f"{LEAD}.t1.{number}" for number in (1, 2, 3))
    return [
        (0, started()),
        (1, begins(LEAD)),
        (10, turn(LEAD, 9, 3)),
        (10, tool(LEAD, 1, "call_agent")),
        (10, tool(LEAD, 2, "call_agent")),
        (10, begins("searcher-1", first)),
        (10, begins("searcher-2", second)),
        (15, turn("searcher-1", 5, 1)),
        (15, tool("searcher-1", 1)),
        (20, turn("searcher-2", 10, 1)),
        (20, tool("searcher-2", 1)),
        (30, done("searcher-1", 1)),
        (30, ends("searcher-1")),
        (30, done(LEAD, 1, "call_agent")),
        (slow, done("searcher-2", 1)),
        (slow, ends("searcher-2")),
        (slow, done(LEAD, 2, "call_agent")),
        (slow, tool(LEAD, 3, "call_agent")),
        (slow, begins("writer-1", third)),
        (slow + 30, turn("writer-1", 30)),
        (slow + 30, ends("writer-1")),
        (slow + 30, done(LEAD, 3, "call_agent")),
        (slow + 33, turn(LEAD, 3)),
        (slow + 33, ends(LEAD)),
        (slow + 34, OVER),
    ]


def chain(spending: Spending) -> list[tuple[str, float]]:
    """The critical path in short."""
    return [(link.agent, round(link.seconds, 6)) for link in spending.path]


def test_the_path_goes_through_the_slowest_of_those_waited_for() -> None:
    """From start to end, with nothing left out and nothing twice: the links add up to the run."""
    spending = spending_of(recorded(fan_out()))
    links = [("engine", 1.0), (LEAD, 9.0), ("searcher-2", 40.0), ("writer-1", 30.0), (LEAD, 3.0), ("engine", 1.0)]
    assert chain(spending) == links
    assert [(link.model_s, link.tools_s, link.other_s) for link in spending.path[1:4]] == [
        (9.0, 0.0, 0.0),
        (10.0, 30.0, 0.0),
        (30.0, 0.0, 0.0),
    ]
    assert [link.agent for link in longest(spending.path, 2)] == ["searcher-2", "writer-1"]
    assert chain(spending_of(recorded(fan_out(slow_s=20.5))))[2] == ("searcher-2", 20.5)


def test_each_agents_time_is_told_apart() -> None:
    """Model, tools, helpers, waiting: together they are the time from its start to its end."""
    spending = spending_of(recorded(fan_out()))
    lead, _, slow, _ = spending.agents
    assert (lead.model_s, lead.tools_s, lead.helpers_s, lead.waited_s) == (12.0, 0.0, 70.0, 0.0)
    assert (slow.model_s, slow.tools_s, slow.helpers_s, slow.waited_s) == (10.0, 30.0, 0.0, 0.0)
    assert spending.slowest == slow
    # 12 of the orchestrator, 20 and 40 of the searchers, 30 of the writer, in 84 seconds.
    assert spending.parallelism == pytest.approx(102 / 84)


def test_tools_of_one_turn_count_once_where_they_overlap() -> None:
    """Two tools at once for 10 s take 10 s, and the one that was done last is what was waited for."""
    events = [
        (0, started()),
        (0, begins(LEAD)),
        (5, turn(LEAD, 5, 2)),
        (5, tool(LEAD, 1)),
        (7, tool(LEAD, 2)),
        (12, done(LEAD, 1)),
        (15, done(LEAD, 2)),
        (16, turn(LEAD, 1)),
        (16, ends(LEAD)),
    ]
    spending = spending_of(recorded(events))
    assert (spending.agents[0].tools_s, spending.agents[0].waited_s) == (10.0, 0.0)
    assert [(link.model_s, link.tools_s, link.other_s) for link in spending.path] == [(6.0, 8.0, 2.0)]


def test_who_waits_for_a_place_waited_for_the_one_that_had_it() -> None:
    """With room for one helper at a time the path is both, one after the other; waiting is not being slow."""
    events = [
        (0, started()),
        (0, begins(LEAD)),
        (2, turn(LEAD, 2, 2)),
        (2, tool(LEAD, 1, "call_agent")),
        (2, tool(LEAD, 2, "call_agent")),
        (2, begins("searcher-1", f"{LEAD}.t1.1")),
        (2, begins("searcher-2", f"{LEAD}.t1.2")),
        (12, turn("searcher-1", 10)),
        (12, ends("searcher-1")),
        (12, done(LEAD, 1, "call_agent")),
        (17, turn("searcher-2", 5)),
        (17, ends("searcher-2")),
        (17, done(LEAD, 2, "call_agent")),
        (18, turn(LEAD, 1)),
        (18, ends(LEAD)),
    ]
    spending = spending_of(recorded(events))
    assert chain(spending) == [(LEAD, 2.0), ("searcher-1", 10.0), ("searcher-2", 5.0), (LEAD, 1.0)]
    assert spending.slowest is not None
    assert spending.slowest.id == "searcher-1"
    assert spending.agents[2].waited_s == 10.0


def lone(*events: Timed) -> list[JournalRecord]:
    """A run of one agent that has asked once."""
    return recorded([(0, started()), (0, begins(LEAD)), (10, turn(LEAD, 10, 1)), *events])


SESSION = SessionConfigured(pid=1, host="here", models={}, search=(), search_why="", shell="", shell_why="", limits={})
ENDED = ((10.0, tool(LEAD, 1)), (12.0, done(LEAD, 1)), (20.0, turn(LEAD, 8)), (20.0, ends(LEAD)), (20.0, OVER))


@pytest.mark.parametrize(
    ("records", "alive_s"),
    [
        # Killed while it asked; asked again an hour later.
        (lone((0, SESSION), (10, tool(LEAD, 1)), (12, done(LEAD, 1)), (3612, SESSION), (3620, turn(LEAD, 8))), 20.0),
        # A follow-up to a finished run.
        (lone(*ENDED, (5000, AgentContinued(agent=LEAD, task="more", max_steps=3)), (5007, turn(LEAD, 7))), 27.0),
        # Words with a resume, a torn journal, another sandbox: written down at a life's beginning.
        (lone((10, tool(LEAD, 1)), (90, Steered(agent=LEAD, text="go on")), (95, done(LEAD, 1))), 15.0),
        (lone((10, tool(LEAD, 1)), (90, Repaired(cut_bytes=7)), (95, done(LEAD, 1))), 15.0),
        (
            recorded([
                (0, started()),
                (0, SandboxChosen(tier="landlock", why="")),
                (0, begins(LEAD)),
                (9, turn(LEAD, 9, 1)),
                (9, tool(LEAD, 1)),
                (90, SandboxChosen(tier="bubblewrap", why="")),
                (95, done(LEAD, 1)),
            ]),
            14.0,
        ),
        # Forked, and gone on with the day after.
        (
            lone(*ENDED, (50, RunForked(run_id="y", of="x", shared=8)), (89_995, SESSION), (90_000, turn(LEAD, 5))),
            25.0,
        ),
        # Killed in a tool.
        (lone((0, SESSION), (10, tool(LEAD, 1)), (3610, SESSION), (3610, done(LEAD, 1)), (3614, turn(LEAD, 4))), 14.0),
    ],
    ids=["killed", "follow-up", "words", "torn", "sandbox", "fork", "tool"],
)  # fmt: skip
def test_time_between_the_lives_of_a_run_is_nobodys_work(records: list[JournalRecord], alive_s: float) -> None:
    """However long a run lay still, only what a process worked on it counts, for the whole and along the path."""
    spending = spending_of(records)
    assert len(spending.sessions) == 2
    assert spending.seconds == pytest.approx(alive_s)
    assert sum(link.seconds for link in spending.path) == pytest.approx(alive_s)


@pytest.mark.parametrize(
    "records",
    [
        # A slow model, a slow tool, a slow beginning, a slow check of the report; an attempt that failed late.
        lone((10, tool(LEAD, 1)), (12, done(LEAD, 1)), (900, turn(LEAD, 888))),
        lone((10, tool(LEAD, 1)), (130, done(LEAD, 1)), (131, turn(LEAD, 1))),
        lone((10, command(LEAD, 1)), (600, done(LEAD, 1)), (601, turn(LEAD, 1))),
        recorded([(0, started()), (300, begins(LEAD)), (301, turn(LEAD, 1)), (301, ends(LEAD)), (900, OVER)]),
        lone(
            (10, tool(LEAD, 1)),
            (10, done(LEAD, 1)),
            (100, TurnFailed(agent=LEAD, fault="stalled", message="", attempt=1, waits_s=50.0)),
            (250, TurnFailed(agent=LEAD, fault="stalled", message="", attempt=2, waits_s=None)),
        ),
        # Words to a running run come from its inbox, under an id.
        lone((10, command(LEAD, 1)), (500, Steered(agent=LEAD, text="look north", order="1-a")), (501, done(LEAD, 1))),
    ],
    ids=["model", "tool", "command", "ends", "failed", "steered"],
)
def test_waiting_within_a_life_is_the_runs_own_time(records: list[JournalRecord]) -> None:
    """What takes long is not taken for a run that lay still."""
    clock = clock_of(records)
    assert len(clock.sessions) == 1
    assert clock.seconds == (records[-1].at - records[0].at).total_seconds()


def test_a_run_that_is_not_over_is_told_as_far_as_it_is() -> None:
    """Open calls last to the latest record; a path leads to the one that is waited for. No record: no figures."""
    spending = spending_of(recorded(fan_out()[:14]))
    assert chain(spending) == [("engine", 1.0), (LEAD, 9.0), ("searcher-2", 20.0)]
    assert spending.agents[0].helpers_s == 20.0
    nothing = spending_of([])
    assert (nothing.seconds, nothing.path, nothing.slowest, nothing.parallelism) == (0.0, (), None, None)


def test_tokens_and_money_add_up_by_role_and_agent() -> None:
    """The whole is the sum of the roles and the sum of the agents; the judge is no agent, and is paid."""
    usage = Usage(input_tokens=3000, output_tokens=50, cache_read_tokens=2000)
    judged = CitationsJudged(
        model="m", asked=2, carried=2, not_carried=0, unclear=0, usage=Usage(input_tokens=500), cost_usd=None
    )
    records = recorded([*fan_out(), (90.0, turn(LEAD, 1, usage=usage, provider="x")), (91.0, judged)])
    spending = spending_of(records)
    by_role = {role.role: role.totals for role in spending.roles}
    assert [(role, totals.turns) for role, totals in by_role.items()] == [
        (LEAD, 3),
        ("searcher", 2),
        ("writer", 1),
        ("judge", 2),
    ]
    assert by_role[LEAD].usage == Usage(input_tokens=5000, output_tokens=250, cache_read_tokens=2000)
    assert by_role[LEAD].cache_share == pytest.approx(0.4)
    assert (by_role["searcher"].cost_usd, by_role["judge"].cost_usd) == (pytest.approx(0.02), None)
    assert spending.total.cost_usd is None
    assert spending.total.usage.input_tokens == sum(totals.usage.input_tokens for totals in by_role.values()) == 8500


def saved(usage: Usage, *, url: str = "", **fields: str | None) -> float | None:
    """What caching saved in a run of one turn."""
    events = [(0.0, started(openai_url=url)), (0.0, begins(LEAD)), (5.0, turn(LEAD, 5, 0, usage, **fields))]
    return spending_of(recorded(events)).total.saved_usd


def test_what_caching_saved_is_the_difference_of_the_list_prices() -> None:
    """Reading is cheap and writing dear: both count; a price that is not listed is not guessed."""
    plain = Usage(input_tokens=1_000_000, output_tokens=10)
    all_read = plain.model_copy(update={"cache_read_tokens": 1_000_000})
    full = saved(all_read)
    half = saved(plain.model_copy(update={"cache_read_tokens": 500_000}))
    filled = saved(plain.model_copy(update={"cache_write_tokens": 1_000_000}))
    assert saved(plain) == 0.0
    assert full is not None
    assert half is not None
    assert filled is not None
    assert full > half > 0.0 > filled
    whole, read = (cost_usd(CLAUDE, "anthropic", one, None) for one in (plain, all_read))
    assert whole is not None
    assert read is not None
    assert full == pytest.approx(whole - read)
    cached = plain.model_copy(update={"cache_read_tokens": 9})
    assert saved(cached, model="nobody-knows-it") is None
    assert saved(cached, cost_usd=None) is None
    assert saved(cached, provider="openai-chat", model="gpt-6.1-terra") is not None
    assert saved(cached, provider="openai-chat", model="gpt-6.1-terra", url="http://127.0.0.1:1/v1") is None
    assert saved(plain, cost_usd=None) == 0.0


def test_a_fork_says_what_the_other_run_paid() -> None:
    """The shared records' tokens and money are in the sums, and told apart."""
    records = recorded([*fan_out(), (90.0, RunForked(run_id="y", of="x", shared=25)), (99.0, turn(LEAD, 2))])
    inherited = spending_of(records).inherited
    assert inherited is not None
    assert (inherited.run, inherited.records, inherited.totals.turns) == ("x", 25, 5)
    assert spending_of(records).total.turns == 6
    assert spending_of(recorded(fan_out())).inherited is None


def check(spending: Spending) -> None:
    """What holds of every run."""
    assert sum(link.seconds for link in spending.path) == pytest.approx(spending.seconds)
    assert all(link.seconds > 0 for link in spending.path)
    assert all(_end(one) == pytest.approx(two.start_s) for one, two in pairwise(spending.path))
    for agent in spending.agents:
        parts = agent.model_s + agent.tools_s + agent.helpers_s + agent.waited_s
        assert parts == pytest.approx(agent.seconds, abs=1e-6)
        assert agent.seconds <= spending.seconds + 1e-6


def _end(link: PathSegment) -> float:
    return link.start_s + link.seconds


def test_links_and_times_add_up_at_every_moment_of_a_run() -> None:
    """A made run and one of an earlier version, each cut off after every record: as when it was still running."""
    golden = read(Path(__file__).parents[1] / "golden" / "journal_v1.jsonl")
    for records in (recorded(fan_out()), golden):
        for length in range(len(records) + 1):
            check(spending_of(records[:length]))


def test_a_clock_that_was_set_back_makes_no_circle() -> None:
    """Times that jump give odd figures, never an endless walk or negative time."""
    records = recorded(
        [(seconds if number % 3 else -seconds, event) for number, (seconds, event) in enumerate(fan_out())]
    )
    spending = spending_of(records)
    assert all(link.seconds >= 0 for link in spending.path)
    assert all(min(agent.model_s, agent.tools_s, agent.waited_s) >= 0 for agent in spending.agents)
