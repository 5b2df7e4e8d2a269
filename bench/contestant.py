"""The engine as the bench runs it: its own start, journal and limits, with tools that bring text from nowhere."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import yaml
from pydantic import Field, SecretStr
from scenarios import HELPER, LEAD, Scenario, prose, tool_text
from wires import ANTHROPIC, OPENAI

from explorer.agents.budget import Budget
from explorer.agents.compaction import ContextPolicy
from explorer.agents.roles import built_in_roles
from explorer.agents.run_rules import Model
from explorer.journal.journal import Journal, JournalStore, NoStore
from explorer.journal.run_state import RunState
from explorer.llm.retry import OnFailure, WaitLimits
from explorer.run.hooks import RunHooks
from explorer.run.resources import RunResources, open_resources
from explorer.run.run import start
from explorer.run.run_journal import RunJournal, SessionRecords
from explorer.run.session import RunSession
from explorer.schema.events import (
    JOURNAL_VERSION,
    ORCHESTRATOR,
    AnyEvent,
    JournalRecord,
    RoleLoaded,
    RunStarted,
    Status,
    ToolFinished,
    TurnTaken,
)
from explorer.schema.messages import JsonObject
from explorer.schema.settings import Limits, Secrets, Services, Settings
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult
from explorer.workspace.workspace import Workspace

MODELS = {OPENAI: "bench", ANTHROPIC: "claude-sonnet-5-5"}
"""Anthropic's has a price, which is worked out for every turn; nobody knows what another server asks."""


class ReadArguments(Arguments):
    """Of `bench_read`."""

    number: int = Field(description="Which text")
    chars: int = Field(default=1_000, description="How long it is")


class SearchArguments(Arguments):
    """Of the bench's `web_search`."""

    query: str = Field(description="Words to search for")
    number: int = Field(default=0, description="Which search")


class PageArguments(Arguments):
    """Of the bench's `read_webpage`."""

    url: str = Field(description="Address of the page")
    number: int = Field(default=0, description="Which page")


class _TextTool(Tool):
    """Brings a text made from its arguments."""

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:  # noqa: ARG002
        """Make it."""
        return ToolResult(success=True, content=tool_text(self.name, arguments.model_dump()))


class BenchRead(_TextTool):
    """Reads one of the bench's texts."""

    name = "bench_read"
    description = "Read a text of the bench. " + prose(5, 200)
    arguments = ReadArguments


class BenchSearch(_TextTool):
    """In the place of the web search."""

    name = "web_search"
    description = "Search. " + prose(5, 200)
    arguments = SearchArguments


class BenchPage(_TextTool):
    """In the place of reading pages."""

    name = "read_webpage"
    description = "Read a page. " + prose(5, 200)
    arguments = PageArguments


RUN = "run"
TOOLS = (BenchRead(), BenchSearch(), BenchPage())


@dataclass
class Watch:
    """What a run's records tell on the way."""

    lead_cpu: list[float] = field(default_factory=list[float])
    turns: int = 0
    journal_text: int = 0
    """Bytes of what tools and models said, and of the roles' heads."""
    failed: int = 0
    """Calls without success."""

    def see(self, record: JournalRecord) -> None:
        """Take one record in."""
        event = record.event
        if isinstance(event, TurnTaken):
            self.turns += 1
            calls = sum(len(str(call.arguments)) for call in event.turn.calls)
            self.journal_text += len(event.turn.text) + calls
            if event.agent == ORCHESTRATOR:
                self.lead_cpu.append(time.process_time())
        elif isinstance(event, RoleLoaded):
            self.journal_text += len(event.system) + sum(len(tool.model_dump_json()) for tool in event.tools)
        elif isinstance(event, ToolFinished):
            self.journal_text += len(event.content)
            self.failed += not event.success


def settings_for(scenario: Scenario, wire: str, url: str, folder: Path) -> Settings:
    """High limits, no shell, nothing outside but the model server."""
    limits = Limits(max_steps=None, max_cost_usd=None, max_time_s=None, max_agents=1_000, max_parallel_agents=1_000)
    is_anthropic = wire == ANTHROPIC
    # What the report cites: a run without a source ends partial.
    folder.mkdir(parents=True, exist_ok=True)
    notes = folder / "notes.md"
    notes.write_text("Output rose in May.\n", encoding="utf-8")
    return Settings(
        workspace=folder / "workspace",
        reports_dir=folder / "reports",
        model=f"{wire}:{MODELS[wire]}",
        roles_dir=write_roles(folder / "roles", scenario),
        limits=limits,
        services=Services(anthropic_url=url if is_anthropic else "", openai_url="" if is_anthropic else f"{url}/v1"),
        secrets=Secrets(anthropic_key=SecretStr("bench"), openai_key=SecretStr("bench")),
        shell="off",
        files=(notes,),
        context_window=200_000,
    )


def write_roles(folder: Path, scenario: Scenario) -> Path:
    """The scenario's roles: the built-in ones that may also search and read, or plain ones of the bench."""
    folder.mkdir(parents=True, exist_ok=True)
    roles = {role for role, _ in scenario.agents} | {LEAD}
    for role in sorted(roles):
        (folder / f"{role}.md").write_text(_role_text(role, scenario), encoding="utf-8")
    return folder


def _role_text(role: str, scenario: Scenario) -> str:
    if scenario.name.startswith("research"):
        _, head, prompt = (built_in_roles() / f"{role}.md").read_text(encoding="utf-8").split("---\n", 2)
        fields: JsonObject = yaml.safe_load(head)
        if role != LEAD:
            fields["tools"] = sorted({*fields["tools"], "web_search", "read_webpage"})
        return f"---\n{json.dumps(fields)}\n---\n{prompt}"
    tools = ["bench_read"] if role == HELPER else ["call_agent", "bench_read", "write_file", "finish_exploration"]
    fields = {"name": role, "description": "Reads.", "tools": tools, "limits": {"max_steps": 1_000}}
    return f"---\n{json.dumps(fields)}\n---\n{prose(3, 1_500)}\n"


class Variant(StrEnum):
    """How the engine runs."""

    WHOLE = "engine"
    """As it comes."""
    NO_JOURNAL = "engine-no-journal"
    """Records are folded and not kept: what the journal costs is the difference."""
    NO_COMPACTION = "engine-no-compaction"
    """Every request has the whole history, as the loops it is compared with send it."""


async def play(  # noqa: PLR0913, PLR0917 - what a cell is made of
    scenario: Scenario,
    wire: str,
    url: str,
    folder: Path,
    variant: Variant = Variant.WHOLE,
    store: JournalStore | None = None,
) -> JsonObject:
    """One whole run; returns what its records told.

    Raises:
        AssertionError: It did not end complete, or a call failed.
    """
    watch = Watch()
    settings = settings_for(scenario, wire, url, folder)
    question = scenario.opening(LEAD, 0)
    if variant is Variant.WHOLE:
        hooks = RunHooks(tools=TOOLS, observe=watch.see, run_id=RUN, store=store or NoStore())
        result = await start(question, settings, hooks)
        assert result.status is Status.COMPLETE, f"the run ended {result.status}: {result.reason}"
        status = result.status
    else:
        status = await _lived(question, settings, watch.see, variant)
    assert status is Status.COMPLETE, f"the run ended {status}"
    assert not watch.failed, f"{watch.failed} calls failed"
    journal = settings.workspace / RUN / ".explorer" / "journal.jsonl"
    beyond = journal.stat().st_size - watch.journal_text if journal.exists() else None
    return {
        "turns": watch.turns,
        "lead_cpu": watch.lead_cpu,
        "journal_bytes_a_turn": None if beyond is None else round(beyond / watch.turns),
    }


class WholeHistory(RunResources):
    """Equipment whose models need everything they were told."""

    def model_of(self, role: str, on_failure: OnFailure, waits: WaitLimits) -> Model:
        """The model of a role, with no window."""
        return replace(super().model_of(role, on_failure, waits), context_policy=ContextPolicy(None))


class Unwritten(RunJournal):
    """A run's records that are in no file: the state that they add up to, and nothing else."""

    def __init__(self, records: SessionRecords, observe: Callable[[JournalRecord], None]) -> None:
        self.records, self.run_state = records, RunState()
        self._observe, self._count = observe, 0

    async def record(self, event: AnyEvent) -> None:
        """Apply an event to the state."""
        self._count += 1
        kept = JournalRecord(v=JOURNAL_VERSION, seq=self._count, at=_now(), event=event)
        self.records.see(kept)
        self._observe(kept)
        await asyncio.sleep(0)
        self.run_state.apply(kept.event)


async def _lived(
    question: str, settings: Settings, observe: Callable[[JournalRecord], None], variant: Variant
) -> Status:
    """A life of a run put together by hand, as `explorer.run.run` does it, with one part left out."""
    folder = settings.workspace / RUN
    (folder / ".explorer").mkdir(parents=True)
    (folder / "inputs").mkdir()
    for one in settings.files:
        (folder / "inputs" / one.name).write_bytes(one.read_bytes())
    records, journal = SessionRecords(), None
    if variant is Variant.NO_JOURNAL:
        opened_journal: RunJournal = Unwritten(records, observe)
    else:
        journal = Journal.open(folder / ".explorer", _now, [records.see, observe])
        opened_journal = RunJournal(journal, folder, records, lambda _records: None)
    async with open_resources(settings, TOOLS) as opened:
        resources = WholeHistory(**vars(opened)) if variant is Variant.NO_COMPACTION else opened
        await opened_journal.record(
            RunStarted(run_id=RUN, question=question, engine="bench", settings=settings.public())
        )
        budget = Budget(settings.limits, time.monotonic)
        life = RunSession(Workspace(folder), resources, budget, opened_journal, RunHooks(now=_now))
        conclusion = await life.work("")
    if journal is not None:
        journal.close()
    return conclusion.status


def _now() -> datetime:
    return datetime.now(UTC)
