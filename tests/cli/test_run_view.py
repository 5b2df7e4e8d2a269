"""A run as people see it."""

import io
import re
from datetime import timedelta

import pytest
from rich.console import Console

from explorer.cli.screens.live import drawing
from explorer.cli.screens.screen import Lines, line_of
from explorer.observe.formatting import as_given, counted, duration, money, one_line, plain, tokens
from explorer.observe.run_view import RunView, outcome
from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    JournalRecord,
    LimitInUse,
    ModelInUse,
    RoleLoaded,
    SessionConfigured,
    Status,
    ToolFinished,
)
from explorer.schema.messages import JsonObject


def seen(records: list[JournalRecord]) -> RunView:
    """The state after records."""
    view = RunView()
    for record in records:
        view.apply(record)
    return view


def drawn(records: list[JournalRecord], width: int, *, height: int = 30, encoding: str = "utf-8") -> str:
    """The live view as text."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="replace")
    console = Console(file=stream, width=width, height=height, force_terminal=True, color_system=None)
    console.print(drawing(seen(records), records[-1].at + timedelta(seconds=30), console))
    stream.flush()
    return raw.getvalue().decode(encoding)


def test_figures_are_sums_over_all_agents(small_run: list[JournalRecord]) -> None:
    """Steps, tokens and agents add up; one unknown price makes the cost unknown."""
    view = seen(small_run)
    assert (view.steps, view.usage.total_tokens, len(view.agents)) == (3, 3000, 3)
    assert view.cost_usd is None
    assert view.agents["searcher-1"].cost_usd == pytest.approx(0.01)


def test_each_agent_tells_what_it_does(small_run: list[JournalRecord]) -> None:
    """The orchestrator waits, one helper reads a page, the other has ended early."""
    agents = seen(small_run).agents
    assert agents["orchestrator"].doing == "waiting for 2 helpers"
    assert agents["searcher-1"].doing == "reading lantern-db.example"
    assert (agents["searcher-2"].status, agents["searcher-2"].reason) == ("partial", "step limit")


def test_records_seen_twice_count_once(small_run: list[JournalRecord]) -> None:
    """A resumed run may tell its past again."""
    assert seen([*small_run, *small_run]) == seen(small_run)


def test_the_end_of_the_run_is_known(finished_run: list[JournalRecord]) -> None:
    """Its status is that of the last record."""
    assert seen(finished_run).status == "complete"


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(small_run: list[JournalRecord], width: int) -> None:
    """Every line is cut, none wraps."""
    lines = drawn(small_run, width).splitlines()
    assert max(len(line) for line in lines) <= width
    assert len(lines) == (11 if width >= 100 else 12)


def test_outside_text_cannot_steer_the_terminal(small_run: list[JournalRecord]) -> None:
    """Titles and addresses lose control sequences, and are never read as markup."""
    text = drawn(small_run, 100)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "Red alert [bold]not markup[/bold] (evil.example)" in text
    assert "owned" not in text


def test_a_crowd_of_agents_fits_the_screen(small_run: list[JournalRecord]) -> None:
    """Those at work are shown; the rest is counted."""
    crowd = list(small_run)
    start = next(record for record in small_run if record.seq == 6)
    for number in range(3, 60):
        event = start.event.model_copy(update={"agent": f"searcher-{number}"})
        crowd.append(start.model_copy(update={"seq": len(crowd) + 1, "event": event}))
    text = drawn(crowd, 80, height=24)
    assert len(text.splitlines()) <= 24
    assert "agents and more" not in text
    assert "more" in text


def test_a_terminal_without_unicode_gets_ascii(small_run: list[JournalRecord]) -> None:
    """The tree is drawn with characters it has."""
    assert "* searcher-1" in drawn(small_run, 80, encoding="ascii").replace("|-", "").replace("`-", "")


def test_lines_tell_calls_with_their_outcome(small_run: list[JournalRecord]) -> None:
    """One line per event that matters: time, agent, call, what it brought; nothing hostile in it."""
    written: list[str] = []
    screen, view = Lines(written.append), RunView()
    for record in small_run:
        screen.observe(record, view)
        view.apply(record)
    assert any(line.endswith("searcher-1  get_hn_comments 123 → 50 comments") for line in written)
    assert any("searcher-2  partial (step limit): some" in line for line in written)
    assert all(re.match(r"\d\d:\d\d:\d\d \S", line) for line in written)
    assert "\x1b" not in "".join(written)


def test_events_without_news_have_no_line(small_run: list[JournalRecord]) -> None:
    """A source or a started tool is not worth a line."""
    view = RunView()
    silent = [r for r in small_run if r.event.type in {"source_recorded", "tool_started", "turn", "role_loaded"}]
    assert {line_of(record, view) for record in silent} == {""}


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\x1b[31mb\x1b[0m", "ab"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\x", "x"),
        ("\x9b31mred", "red"),
        ("a\rb\x08c\x7f", "abc"),
        ("tag\U000e0041s and \u200bzero", "tags and zero"),
    ],
)
def test_control_sequences_are_dropped_whole(raw: str, clean: str) -> None:
    """Neither the escape nor what belongs to it is left."""
    assert plain(raw) == clean


def test_long_text_is_cut_to_one_line() -> None:
    """Newlines become spaces; the cut is marked."""
    assert one_line("a\nb\t c") == "a b c"
    assert one_line("abcdef", 4) == "abc…"


def test_figures_read_well() -> None:
    """Money, tokens, time and counts in the shortest true form."""
    assert [money(None), money(0), money(0.0123), money(12.5)] == ["cost unknown", "$0.00", "$0.0123", "$12.50"]
    assert [tokens(950), tokens(12_345), tokens(1_234_567)] == ["950", "12.3k", "1.2M"]
    assert [duration(9.4), duration(125), duration(3725)] == ["9s", "2m05s", "1h02m"]
    assert [counted(1, "source"), counted(0, "source")] == ["1 source", "0 sources"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"shown": 30, "unit": "stories"}, "30 stories"),
        ({"shown": 1_200, "unit": "comments", "total": 3_000}, "1,200 comments"),
        ({"first": 0, "last": 200, "total": 452, "unit": "characters"}, "characters 0-200 of 452"),
        ({"first": 1, "last": 40, "total": 120, "unit": "lines"}, "lines 1-40 of 120"),
        ({}, "9 hits shown."),
        ({"shown": "many"}, "9 hits shown."),
    ],
)
def test_the_outcome_of_a_call_is_a_few_words(data: JsonObject, words: str) -> None:
    """Taken from the result's data; without any, as in older journals, the first line that the model got."""
    content = "9 hits shown.\nMore."
    assert (
        outcome(ToolFinished(agent="a", call="a.t1.1", name="tool", success=True, content=content, data=data)) == words
    )


def test_a_mark_of_untrusted_text_is_not_shown() -> None:
    """Where text from outside begins with the first line, nothing is said of it."""
    content = "<<untrusted 3f9a12bc4d5e6f70>>\nBuy now."
    assert outcome(ToolFinished(agent="a", call="a.t1.1", name="own_tool", success=True, content=content)) == ""


def test_a_failed_call_tells_why() -> None:
    """The words the model got."""
    event = ToolFinished(agent="a", call="a.t1.1", name="x", success=False, content="no such page\ntry another")
    assert outcome(event) == "failed: no such page try another"


LIMITS = {
    "max_cost_usd": LimitInUse(value=5.0, origin="default"),
    "max_steps": LimitInUse(value=300, origin="default"),
    "max_time_s": LimitInUse(value=3600, origin="default"),
}
SESSION = SessionConfigured(
    models={
        "orchestrator": ModelInUse(model="anthropic:claude-opus-5-5", why="set"),
        "searcher": ModelInUse(model="offline", why="set"),
    },
    search=(),
    search_why="",
    shell="",
    shell_why="",
    limits=LIMITS,
    report_cost_usd=0.25,
)


def with_session(records: list[JournalRecord], place: int, *events: AnyEvent) -> list[JournalRecord]:
    """Records with others put in at a place, all numbered anew, a second apart."""
    all_events = [record.event for record in records]
    all_events[place:place] = events
    return [
        JournalRecord(v=1, seq=number, at=records[0].at + timedelta(seconds=number), event=event)
        for number, event in enumerate(all_events, 1)
    ]


@pytest.mark.parametrize("width", [80, 100])
def test_each_agent_has_its_task_state_time_tokens_money_and_model(small_run: list[JournalRecord], width: int) -> None:
    """And the run what it spent of each limit, at the two usual widths."""
    queued = AgentStarted(agent="searcher-3", role="searcher", parent="orchestrator", task="wait", max_steps=5)
    loaded = RoleLoaded(role="searcher", model="anthropic:claude-haiku-5-5", system="", tools=(), max_steps=9)
    records = with_session([*small_run], 1, SESSION, loaded)
    records.append(JournalRecord(v=1, seq=len(records) + 1, at=records[-1].at, event=queued))
    lines = drawn(records, width).splitlines()
    text = "\n".join(lines)
    assert re.search(
        r"^spent +cost unknown of \$5\.00 · 3 of 300 steps · 3\.0k tokens · \d+s of 1h00m", text, re.MULTILINE
    )
    assert "4 agents (2 working, 1 queued, 1 done)" in text
    helper = next(line for line in lines if "searcher-1" in line)
    assert re.search(r"● searcher-1 +look .* 1/5 +\d+s +1\.0k  \$0\.0100", helper), helper
    assert "reading lantern-db.example" in lines[lines.index(helper) + 1]
    assert re.search(r"○ searcher-3 +queued: wait .* 0/5 +0s", text)
    assert ("claude-haiku-5-5" in helper) == (width >= 100)
    assert any(line.startswith("models   claude-opus-5-5 (orchestrator)") for line in lines) == (width < 100)


def test_an_agents_clock_stands_still_while_nobody_works(small_run: list[JournalRecord]) -> None:
    """In the queue, between two sessions of a run, and after its end."""
    view = seen(small_run)
    helper, at = view.agents["searcher-1"], small_run[-1].at
    begun = next(
        record.at for record in small_run if record.event.type == "turn" and record.event.agent == "searcher-1"
    )
    assert helper.seconds(at) == (at - begun).total_seconds()
    ended = view.agents["searcher-2"]
    assert ended.seconds(at + timedelta(hours=1)) == ended.seconds(at)
    view.apply(JournalRecord(v=1, seq=99, at=at + timedelta(hours=9), event=SESSION))
    assert helper.seconds(at + timedelta(hours=9)) == (at - begun).total_seconds()
    assert helper.is_queued


def test_a_follow_up_is_compared_with_limits_of_its_own(finished_run: list[JournalRecord]) -> None:
    """What was used before it does not count against them."""
    again = AgentContinued(agent="orchestrator", task="And then?", max_steps=9, renews_limits=True)
    view = seen(with_session(finished_run, len(finished_run), SESSION, again))
    assert (view.used_before.steps, view.used_before.tokens) == (3, 3000)
    assert (view.agents["orchestrator"].task, view.agents["orchestrator"].is_queued) == ("And then?", True)


def test_what_a_helper_returned_is_shown(small_run: list[JournalRecord]) -> None:
    """In a line of its own, and in the live view in place of its task; lists by their lengths, nothing hostile."""
    result: JsonObject = {"sources_found": ["S1", "S2"], "confidence": "high\x1b[31m"}
    last = small_run[-1]
    ends: list[AnyEvent] = [
        AgentFinished(agent="searcher-1", status=Status.COMPLETE, reason="", summary="Found."),
        ToolFinished(
            agent="orchestrator",
            call="orchestrator.t1.1",
            name="call_agent",
            success=True,
            content="",
            data={"agent_id": "searcher-1", "result": result},
        ),
    ]
    records = [last.model_copy(update={"seq": last.seq + n, "event": event}) for n, event in enumerate(ends, 1)]
    view = seen([*small_run, records[0]])
    words = "sources found 2, confidence high"
    assert line_of(records[1], view) == f"searcher-1  returned: {words}"
    assert words in drawn([*small_run, *records], 120)


def test_a_parsed_file_has_the_name_that_the_user_knows() -> None:
    """The text of a PDF is in a file of its own, of which the user has not heard."""
    assert as_given("read_file inputs/my%20tide.pdf.md → lines 1-8") == "read_file inputs/my%20tide.pdf → lines 1-8"
    assert (
        as_given("files: `inputs/a.docx.md` [S1], `inputs/b.md` [S2]")
        == "files: `inputs/a.docx` [S1], `inputs/b.md` [S2]"
    )
    assert as_given("write_file notes/tide.pdf.md") == "write_file notes/tide.pdf.md"
