"""The first lines of every run: which model answers, with what, within which limits, and why."""

import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from cli.stage import Explorer
from engine_stage import one_of_each
from explorer.cli.screens.live import LiveView
from explorer.cli.screens.screen import Lines
from explorer.cli.screens.session_lines import models_words, session_lines, session_page
from explorer.journal.codec import encode_all
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.llm.profiles import is_small
from explorer.observe.run_view import RunView
from explorer.run.resumed_settings import as_started
from explorer.schema.events import JournalRecord, LimitInUse, ModelInUse, RunStarted, SessionConfigured
from explorer.schema.settings import Limits, Settings
from model_servers import AnthropicServer, Asked, OpenAIServer, Reply
from team_script import NOTES, only_run, team

NOWHERE = "http://127.0.0.1:9"
NO_SOURCES = {
    "EXPLORER_HN_API_URL": f"{NOWHERE}/v0",
    "EXPLORER_HN_SEARCH_URL": f"{NOWHERE}/api/v1",
    "EXPLORER_TAVILY_URL": NOWHERE,
    "EXPLORER_REDDIT_URL": NOWHERE,
}
TODAY = "What is notable on Hacker News today?"
EXPENSIVE = {"input": 240_000, "output": 10}
"""A dollar a turn with the strongest model."""


def sessions_of(folder: Path) -> list[SessionConfigured]:
    """What each session of a run was recorded to work with."""
    return [record.event for record in read_records(folder) if isinstance(record.event, SessionConfigured)]


def test_the_first_lines_name_models_search_shell_and_limits(here: Explorer, tmp_path: Path) -> None:
    """The question, then by role, with the reason, at 80 columns; the journal and the JSON have all of it."""
    (tmp_path / "notes.md").write_text(NOTES)
    with AnthropicServer(team) as server:
        variables = {"ANTHROPIC_BASE_URL": server.url, "EXPLORER_MAX_STEPS": "90"}
        done = here("--file", "notes.md", "--no-shell", "--output-format", "json", "How was May?", **variables)
    lines = done.stderr.splitlines()
    assert lines[:3] == [
        "exploring: How was May?",
        "model claude-opus-5-5 (orchestrator, writer), claude-sonnet-5-5 (analyzer),",
        "  claude-haiku-5-5 (searcher): ANTHROPIC_BASE_URL is set",
    ]
    assert lines[3].startswith("search tavily-keyless, shell none, max $5.00 (default), 90 steps")
    assert max(len(line) for line in lines[:5]) <= 80
    assert "started" in next(line for line in lines[4:] if not line.startswith("  "))
    (recorded,) = sessions_of(only_run(tmp_path / "workspace"))
    assert recorded.limits["max_cost_usd"] == LimitInUse(value=5.0, origin="default")
    assert recorded.limits["max_steps"] == LimitInUse(value=90, origin="environment EXPLORER_MAX_STEPS")
    message = json.loads(done.stdout)["session"]
    assert message == recorded.model_dump(mode="json", exclude={"type", "agent"})
    assert message["shell_why"] == "there is no shell, because it is set to off by flag --no-shell"
    page = here("show", "latest").stdout
    assert "Latest session\n  orchestrator" in page
    assert json.loads(here("show", "latest", "--output-format", "json").stdout)["session"] == message


@pytest.mark.slow
def test_a_limit_too_small_for_a_report_is_named_first(here: Explorer) -> None:
    """In the first lines, with the smallest limit that is enough; by the price the models have."""
    with OpenAIServer(lambda _asked: Reply(calls=[("finish_exploration", {"summary": "."})])) as server:
        words = ("--model", "openai:model-a", "--max-cost", "0.1", "--max-steps", "2", "--no-shell", "q q")
        done = here(*words, OPENAI_BASE_URL=server.url, EXPLORER_PRICE="1/5")
        output = " ".join(done.stderr.split())
        assert "max $0.1000 holds back $0.0500 for the report, which can take $0.1375 with these models:" in output
        assert "--max-cost 0.28 is enough for a whole one" in output
        assert "enough for" not in here(*words, OPENAI_BASE_URL=server.url, EXPLORER_PRICE="0.1/0.5").stderr


@pytest.mark.slow
def test_a_small_model_that_nobody_measured_is_named(here: Explorer) -> None:
    """On this machine, in the first lines; not where the mode was chosen, and not of a model of unknown size."""
    with OpenAIServer(lambda _asked: Reply(calls=[("finish_exploration", {"summary": "."})])) as server:

        def lines(*words: str) -> str:
            done = here(*words, "--max-steps", "2", "--no-shell", "q q", OPENAI_BASE_URL=server.url)
            return " ".join(done.stderr.split())

        hint = "openai:tiny-1.5b is small and was not measured: explorer doctor --probe; or use --lean"
        assert hint in lines("--model", "openai:tiny-1.5b")
        assert "doctor --probe" not in lines("--model", "openai:tiny-1.5b", "--no-lean")
        assert "doctor --probe" not in lines("--model", "openai:model-a")


def test_a_models_name_says_how_large_it_is() -> None:
    """By the number of its parameters, where it has one."""
    small = ["qwen2.5:1.5b", "Llama-3.2-3B-Instruct-Q4_K_M.gguf", "SmolLM2-360M"]
    others = ["qwen3:30b-a3b", "mixtral-8x7b", "qwen2.5:14b", "gpt-5-mini", "model-a"]
    assert [name for name in (*small, *others) if is_small(name)] == small


@pytest.mark.slow
def test_the_service_that_learns_every_pages_address_is_named(here: Explorer) -> None:
    """With a reader set, or a key of Jina's alone, its host is on screen, in JSON and in `show`."""
    words = ("What?", "--model", "offline", "--max-steps", "1", "--no-shell", "--output-format", "json")
    for variables, host, why in (
        ({"JINA_API_KEY": "jina_1"}, "r.jina.ai", "JINA_API_KEY is set"),
        ({"EXPLORER_READER_URL": "https://reader.example/x"}, "reader.example", "EXPLORER_READER_URL is set"),
        ({"JINA_API_KEY": "jina_1", "EXPLORER_READER_URL": "none"}, "", ""),
    ):
        done = here(*words, **variables)
        outcome = json.loads(done.stdout)
        message, shown = outcome["session"], here("show", outcome["run_id"]).stdout
        assert (message.get("reader", ""), message.get("reader_why", "")) == (host, why)
        assert (f"pages read through {host}," in " ".join(done.stderr.split())) == bool(host)
        assert bool(re.search(rf"^  reader +{host} +{why}$", shown, re.MULTILINE)) == bool(host)


def test_without_any_model_the_lines_say_what_was_looked_for(typed: Explorer) -> None:
    """Each name and port, and that what answers now is no language model; also in the log."""
    done = typed("--max-steps", "2", "-v", TODAY, **NO_SOURCES)
    output = " ".join(done.stderr.split())
    assert "model offline for all roles: no ANTHROPIC_API_KEY, OPENAI_API_KEY, " in output
    assert "OPENAI_BASE_URL is set, and no local server answers at port 11434, 1234, 8080" in output
    assert "offline mode is not a language model" in output
    assert "no cost limit, 2 steps (--max-steps)" in output
    assert "model of orchestrator: offline (no ANTHROPIC_API_KEY" in output
    assert "limits: max_steps 2 (flag --max-steps)" in output


def test_an_effort_stands_beside_its_model() -> None:
    """Roles that share a model and differ in effort are named apart."""
    lead = ModelInUse(model="anthropic:claude-opus-5-5", why="a", effort="max")
    rest = ModelInUse(model="anthropic:claude-opus-5-5", why="a")
    words = models_words({"orchestrator": lead, "searcher": rest, "analyzer": rest, "writer": rest})
    assert words == "claude-opus-5-5 at max effort (orchestrator), claude-opus-5-5 (others)"


@pytest.mark.slow
def test_records_for_programs_begin_with_them(here: Explorer) -> None:
    """The second record of `stream-json`, right behind the run's name."""
    first, second = (
        json.loads(line)
        for line in here("demo", "--max-steps", "2", "--output-format", "stream-json").stdout.splitlines()[:2]
    )
    assert (first["type"], second["type"]) == ("run_started", "session_configured")
    assert second["models"]["writer"] == {
        "model": "offline",
        "why": "set by the command demo",
        "effort": "",
        "before": "",
    }


@pytest.mark.slow
def test_a_run_that_began_offline_goes_on_with_a_model(here: Explorer, tmp_path: Path) -> None:
    """Once one is configured, said in the first lines and on record; the report names both."""
    here("--max-steps", "2", TODAY, **NO_SOURCES)

    def end(asked: Asked) -> Reply:
        return Reply(calls=[("finish_exploration", {"summary": f"Nothing after {len(asked.results)} results."})])

    with OpenAIServer(end) as server:
        variables = {"OPENAI_BASE_URL": server.url, **NO_SOURCES}
        done = here("resume", "latest", "--max-steps", "6", "Look again.", **variables)
        assert server.requests, done.stderr
    output = " ".join(done.stderr.split())
    assert re.match(
        r"resuming \S+: Look again\. model openai:model-a for all roles: the first model of OPENAI_BASE_URL", output
    )
    assert "this run began offline, without a language model; it continues with the model above" in output
    before, now = sessions_of(only_run(tmp_path / "workspace"))
    assert before.models["orchestrator"].model == "offline"
    assert now.models["orchestrator"] == ModelInUse(
        model="openai:model-a", why="the first model of OPENAI_BASE_URL", before="offline"
    )
    run_state = RunState.of_records(read_records(only_run(tmp_path / "workspace")))
    assert run_state.answered_by == {"offline", "openai:model-a"}


@pytest.mark.slow
def test_a_run_that_was_asked_to_be_offline_stays_so(here: Explorer, tmp_path: Path) -> None:
    """A key that is there is no wish; a model that is named is one."""
    assert here("demo", "--max-steps", "2").returncode == 3
    with AnthropicServer([]) as server:
        words = ("resume", "latest", "--max-steps", "4", "And the prices?")
        done = here(*words, ANTHROPIC_BASE_URL=server.url, ANTHROPIC_API_KEY="k")
    assert done.returncode == 3, done.stderr
    assert "model offline for all roles: as the run was started" in done.stderr
    run_state = RunState.of_records(read_records(only_run(tmp_path / "workspace")))
    named = as_started(Settings(model="anthropic:claude-opus-5-5"), run_state, is_own=True)
    assert (named.model, named.role_models) == ("anthropic:claude-opus-5-5", {})


def test_a_run_keeps_the_models_of_its_latest_session() -> None:
    """Those that were named on the way stay, although roles were loaded with others."""
    events = [event for event in one_of_each() if not isinstance(event, RunStarted | SessionConfigured)]
    started = RunStarted(run_id="r", question="q", engine="0", settings=Settings().public())
    limits = {name: LimitInUse(value=None, origin="default") for name in Limits.model_fields}
    model = ModelInUse(model="openai:another", why="set by flag --model")
    session = SessionConfigured(
        models={"searcher": model}, search=(), search_why="", shell="", shell_why="", limits=limits
    )
    resumed = as_started(Settings(), RunState.of([started, *events, session]), is_own=True)
    assert resumed.role_models == {"orchestrator": "scripted:m", "searcher": "openai:another"}


@pytest.mark.slow
def test_the_cost_limit_that_nobody_set_ends_a_run_and_names_the_way_on(here: Explorer, tmp_path: Path) -> None:
    """A model that never ends is stopped at $5; the command it tells has $10, and goes on."""

    def spend(asked: Asked) -> Reply:
        return Reply(
            calls=[("search_files", {"pattern": f"x{len(asked.results)}"})],
            usage=EXPENSIVE,
            text=f"{len(asked.results)}",
        )

    with AnthropicServer(spend) as server:
        done = here("--model", "anthropic:claude-opus-5-5", "--no-shell", "q q", ANTHROPIC_BASE_URL=server.url)
        folder = only_run(tmp_path / "workspace")
        assert f"explorer resume {folder.name} --max-cost 10.00" in done.stderr
        assert "cost limit" in done.stderr
        assert "--max-cost 10.00" in (folder / "report.md").read_text()
        paid = RunState.of_records(read_records(folder)).known_cost_usd
        assert 2 < paid <= 5
        asked = len(server.requests)
        here("resume", folder.name, ANTHROPIC_BASE_URL=server.url)
        assert len(server.requests) <= asked + 1
        here("resume", folder.name, "--max-cost", "10", ANTHROPIC_BASE_URL=server.url)
    limits = [session.limits["max_cost_usd"] for session in sessions_of(folder)]
    assert limits == [
        LimitInUse(value=5.0, origin="default"),
        LimitInUse(value=5.0, origin="default"),
        LimitInUse(value=10.0, origin="flag --max-cost"),
    ]
    assert 5 < RunState.of_records(read_records(folder)).known_cost_usd <= 10


def test_a_run_of_an_older_version_keeps_its_limits() -> None:
    """Its record says that money had no limit, and none is made up later; a new run's record leaves it open."""
    old = RunStarted(run_id="r", question="q", engine="0", settings={"limits": {"max_cost_usd": None, "max_tokens": 9}})
    kept = as_started(Settings(), RunState.of([old]), is_own=True).limits
    assert {"max_cost_usd", "max_tokens"} <= kept.model_fields_set
    assert (kept.max_cost_usd, kept.max_tokens) == (None, 9)
    new = RunStarted(run_id="r", question="q", engine="0", settings=Settings(limits=Limits(max_steps=3)).public())
    left_open = as_started(Settings(), RunState.of([new]), is_own=True).limits
    assert left_open.model_fields_set.isdisjoint({"max_cost_usd", "max_tokens"})
    assert left_open.max_steps == 3


@pytest.fixture
def session() -> SessionConfigured:
    """The session of the small run with every event."""
    return next(event for event in one_of_each() if isinstance(event, SessionConfigured))


def numbered(*events: RunStarted | SessionConfigured) -> list[JournalRecord]:
    """Records of events at noon."""
    noon = datetime(2026, 8, 10, 12, 0, tzinfo=UTC)
    return [JournalRecord(v=1, seq=seq, at=noon, event=event) for seq, event in enumerate(events, 1)]


def test_lines_and_the_live_view_show_them_first(session: SessionConfigured) -> None:
    """Lines write them before the run's start; the live view leaves them above itself."""
    written: list[str] = []
    lines = Lines(written.append)
    started = next(event for event in one_of_each() if isinstance(event, RunStarted))
    for record in numbered(started, session):
        lines.observe(record, RunView())
    assert written[:-1] == session_lines(session)
    assert written[-1].endswith("run 20260810-120000-q-0001 started")
    console = Console(file=io.StringIO(), width=40, force_terminal=True)
    (record,) = numbered(session)
    LiveView(console).observe(record, RunView())
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue().splitlines()
    assert shown[0] == "model scripted:m for all roles: set by"
    assert max(len(line) for line in shown) <= 40


def test_a_journal_without_them_is_shown_as_before(kept_run: Path, here: Explorer) -> None:
    """A run of an older version: its records are watched and shown without such lines."""
    records = [record for record in read_records(kept_run) if not isinstance(record.event, SessionConfigured)]
    anew = [record.model_copy(update={"seq": seq}) for seq, record in enumerate(records, 1)]
    (kept_run / ".explorer" / "journal.jsonl").write_bytes(encode_all(anew))
    watched = here("watch", kept_run.name, "--speed", "max")
    assert watched.returncode == 0
    assert "started" in watched.stderr.splitlines()[0]
    assert "Latest session" not in here("show", kept_run.name).stdout


def test_show_has_what_is_held_back_for_the_report() -> None:
    """By money and by tokens, with what a report can cost; nothing of a limit that there is not."""
    session = SessionConfigured(
        models={"orchestrator": ModelInUse(model="anthropic:claude-opus-5-5", why="set")},
        search=(),
        search_why="",
        shell="",
        shell_why="",
        limits={
            "max_cost_usd": LimitInUse(value=5.0, origin="default"),
            "max_tokens": LimitInUse(value=None, origin=""),
        },
        report_cost_usd=0.75,
        report_tokens=90_000,
    )
    rows = [line.strip() for line in session_page(session).splitlines() if "reserve" in line]
    assert len(rows) == 1
    assert re.match(r"report reserve +\$0\.7500 +held back of max cost; a report can take \$0\.7500", rows[0])
    limited = session.model_copy(update={"limits": {"max_tokens": LimitInUse(value=1_000_000, origin="set")}})
    assert "held back of max tokens; a report can take 90,000" in session_page(limited)
