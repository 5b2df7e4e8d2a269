"""What the JSON side of the site is asked and answers, beyond the engine's own records: its OpenAPI is made of it."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, model_validator

from explorer.observe.command_result import CommandResult
from explorer.observe.provenance import FileOrigin
from explorer.observe.timeline import Interval, PathSegment, SessionInterval, Task
from explorer.reports.compare import Comparison
from explorer.reports.evidence import Card
from explorer.reports.verify.claims import Claim
from explorer.schema.approvals import ApprovalRequest
from explorer.schema.events import JournalRecord, Source, WrittenFile
from explorer.schema.plan import Plan, PlanFacts
from explorer.server.orders import MAX_FILES, MAX_QUESTION_CHARS, MAX_REASON_CHARS, CallDecision, StopHow
from explorer.server.turns import TurnEntry
from explorer.server.views import RunHead

MAX_NAME_CHARS = 200
MessageText = Annotated[str, Field(max_length=MAX_QUESTION_CHARS)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class JsonAnswer(BaseModel):
    """An answer as JSON."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class JsonOrder(BaseModel):
    """The body of an order; a field that it does not have is an error, so that no typing error goes unnoticed."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, str_strip_whitespace=True, allow_inf_nan=False
    )


class ErrorFacts(JsonAnswer):
    """What is wrong, and what to do about it."""

    message: str
    """What happened and why, in one line."""
    hint: str
    """What to do about it; empty when there is nothing to do."""
    type: str
    """The kind of error: `ConfigError` (the request), `NotFoundError`, `ToolError` (not in this state), ..."""


class ErrorAnswer(JsonAnswer):
    """The answer to a request that cannot be met; its HTTP status says which kind of error it is."""

    error: ErrorFacts
    """What is wrong."""


class ListedRun(JsonAnswer):
    """A run in a list."""

    run_id: str
    """Its id, which all other addresses take."""
    question: str
    """What was asked; empty where the journal is damaged."""
    status: str
    """`running`, `unfinished`, `waiting`, `complete`, `partial`, `nothing_found`, `sources_unavailable`, `failed` or
    `damaged`."""
    started: datetime | None
    """When its first record was made."""
    last: datetime | None
    """When its latest record was made."""
    cost_usd: float | None
    """What it cost so far, in US dollars; null when a price is not known."""
    tokens: int
    """Tokens of all requests."""
    agents: int
    """Number of agents."""
    sources: int
    """Number of stored sources."""
    supported: int | None
    """Cited sentences that their sources support; null when nothing was checked."""
    not_supported: int | None
    """Cited sentences that their sources do not support; null when nothing was checked."""


class RunPassageFound(JsonAnswer):
    """A passage that fits the query: of a question, a report, a finding or a source's title."""

    run_id: str
    """The run that has it."""
    day: str
    """The day of the run."""
    path: str
    """The file that has it, in the run's folder."""
    line: int
    """Its line in the file, from 1."""
    snippet: str
    """The passage."""


class RunsAnswer(JsonAnswer):
    """A page of the list of runs, newest first."""

    runs: tuple[ListedRun, ...]
    """The runs whose question or id has the query, and which have the status."""
    found: tuple[RunPassageFound, ...]
    """Passages in runs that fit the query, best first; on the first page alone."""
    next: str | None
    """The address of the next page; null when this is the last one."""


class AgentNode(JsonAnswer):
    """An agent of a run's tree; the tree is a list with each agent before its helpers."""

    id: str
    """Its id, unique in the run."""
    role: str
    """Its role."""
    parent: str
    """The agent that called it; empty for the orchestrator."""
    level: int
    """How deep it is in the tree: 1 for the orchestrator."""
    task: str
    """What it was given to do."""
    status: str
    """`working`, or how it ended: `complete`, `partial`, `failed`."""
    reason: str
    """Why it ended so."""
    doing: str
    """What it does now, in a few words; empty when it has ended."""
    is_queued: bool
    """Whether it waits for its turn to begin."""
    turns: int
    """Turns so far."""
    max_turns: int
    """The limit of its turns."""
    calls: int
    """Calls of tools that were answered."""
    files: int
    """Number of files that it wrote."""
    sources: int
    """Number of sources that its calls returned."""
    tokens: int
    """Tokens of its requests."""
    cost_usd: float | None
    """What it cost, in US dollars; null when a price is not known."""
    seconds: float
    """How long it has been at work."""


class RunAnswer(JsonAnswer):
    """A run as it is, or as it was after a record."""

    result: CommandResult
    """How it ended or how far it is: the same object as that of the command line's `--output-format json`."""
    head: RunHead
    """What is above its page: status, limits and what of them is used, messages to it."""
    agents: tuple[AgentNode, ...]
    """The tree of agents, each before its helpers."""
    plan: PlanFacts | None
    """Its plan with how far it is; null when it has none."""
    files: tuple[WrittenFile, ...]
    """The files that agents wrote, the latest written last."""
    at: int
    """The record that it is shown after."""
    last: int
    """The number of the latest record."""
    is_own: bool
    """Whether this server works on it, so that it can stop it at once."""
    waiting_call: ApprovalRequest | None
    """The call that waits for approval, in a run of this server; null when none does."""
    problem: str
    """The error that ended its latest session in this server; empty when none did."""
    damage: ErrorFacts | None
    """Why the journal cannot be read further; null when it can."""


class EventsAnswer(JsonAnswer):
    """Records of a run's journal, in order."""

    run_id: str
    """The run."""
    records: tuple[JournalRecord, ...]
    """The records, each with its number `seq`: 1, 2, 3, ... without gaps."""
    last: int
    """The number of the latest record."""
    next_after: int | None
    """The number to give as `after` for the next page; null when there are no more records yet."""
    status: str
    """The status of the run, as in the list of runs."""
    is_ended: bool
    """Whether no process works on the run, so that no more records come unless it is resumed."""


class AgentAnswer(JsonAnswer):
    """An agent with its turns and calls."""

    run_id: str
    """The run."""
    agent: AgentNode
    """The agent."""
    entries: tuple[TurnEntry, ...]
    """What it was given, said and did, in order; long texts are cut, and say so."""


class OrderAnswer(JsonAnswer):
    """The run that an order made or changed, once the order is on disk."""

    run_id: str
    """The run; that of a fork is a new one."""
    status: str
    """Its status right after the order, as in the list of runs."""


class SentFile(JsonOrder):
    """A file that a question is about: its name, and its content as text or in base64."""

    model_config = JsonOrder.model_config | ConfigDict(str_strip_whitespace=False)

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
    """Its name; of a path, the last part."""
    text: str | None = None
    """Its content, for a text; null where `base64` has it."""
    base64: Base64Bytes | None = None
    """Its content in base64, for any file; null where `text` has it."""

    @model_validator(mode="after")
    def _has_one_content(self) -> Self:
        if (self.text is None) == (self.base64 is None):
            raise ValueError("give either text or base64")
        return self

    @property
    def content(self) -> bytes:
        """Its bytes."""
        return self.base64 if self.base64 is not None else (self.text or "").encode("utf-8", "replace")


class StartOrder(JsonOrder):
    """A question, and within which limits it is explored. Limits lower those of the server, and never raise them."""

    question: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]
    """What is to be found out."""
    model: Annotated[str, Field(max_length=MAX_NAME_CHARS)] = ""
    """The model; empty: that of the server."""
    language: Annotated[str, Field(max_length=MAX_NAME_CHARS)] = ""
    """The language of the report; empty: that of the question, or of the server's settings."""
    max_cost_usd: Positive | None = None
    """What it may cost at most, in US dollars."""
    max_time_s: Positive | None = None
    """How long it may take at most, in seconds."""
    plan: bool = False
    """Whether it proposes a plan first, and waits for a decision."""
    files: Annotated[tuple[SentFile, ...], Field(max_length=MAX_FILES)] = ()
    """Files that the question is about, each with another name; the whole body may have 24 MB."""


class SteerOrder(JsonOrder):
    """A message to a run at work."""

    message: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]
    """What the orchestrator is to read at its next turn."""


class StopOrder(JsonOrder):
    """How a run is to stop."""

    how: StopHow = "write"
    """`write`: it writes its report first; `now`: at once, which only the process that works on it can do."""


class ResumeOrder(JsonOrder):
    """How a run is to continue. Limits lower those of the server, and never raise them."""

    message: MessageText = ""
    """A further question; empty: it continues where it stopped."""
    max_cost_usd: Positive | None = None
    """What this session may cost at most, in US dollars."""
    max_time_s: Positive | None = None
    """How long this session may take at most, in seconds."""


class ForkOrder(JsonOrder):
    """From where a new run is made of this one."""

    at: Annotated[int, Field(ge=1)] | None = None
    """The last record that the new run shares; null: all of them."""
    message: MessageText = ""
    """What the new run continues with; empty: it waits to be resumed."""


class PlanOrder(JsonOrder):
    """What is decided about the plan that a run waits with."""

    decision: Literal["approve", "edit", "reject"]
    """`approve` it, `edit` it (with `plan`), or `reject` it."""
    message: MessageText = ""
    """What is to be different, for a plan that is rejected; without it the run ends."""
    plan: Plan | None = None
    """The plan as it is to be, for one that is edited."""


class CallOrder(JsonOrder):
    """What is decided about a call that waits for approval."""

    call: Annotated[str, Field(min_length=1, max_length=2 * MAX_NAME_CHARS)]
    """The call: `call` of the run's `waiting_call`."""
    decision: CallDecision
    """`approve` this call, `approve_for_run` also whenever the same rule asks about the same tool, or `deny` it."""
    reason: Annotated[str, Field(max_length=MAX_REASON_CHARS)] = ""
    """Why it is denied, for the agent."""


ClaimFilter = Literal[
    "", "supported", "not_found", "elsewhere", "source_missing", "unchecked", "not_supported", "uncited"
]
"""Which sentences are wanted: those with a verdict, `not_supported` for all faults, or those without a citation."""


class ReportAnswer(JsonAnswer):
    """A run's report, and what each of its citations rests on."""

    run_id: str
    """The run."""
    status: str
    """The status of the run: while it is `running`, the report is a draft."""
    markdown: str
    """The whole text of report.md, with its frontmatter."""
    fields: dict[str, Any]
    """The fields of the frontmatter; dates as texts. A draft has none."""
    counts: dict[str, int]
    """Sentences by verdict, with `not_supported` for all faults and an empty name for all; kinds without one are
    left out."""
    cards: tuple[Card, ...]
    """A card for each citation: its source, each sentence that cites it with its verdict, and the passages."""


class ClaimsAnswer(JsonAnswer):
    """The checked sentences of a report, in its order."""

    run_id: str
    """The run."""
    verdict: ClaimFilter
    """Which ones these are; empty: all."""
    counts: dict[str, int]
    """How many sentences each filter has; filters that have none are left out."""
    claims: tuple[Claim, ...]
    """The sentences, with what was looked up of each."""


class SourceEntry(JsonAnswer):
    """A source in the list of a run's sources."""

    source: Source
    """What is known of it."""
    sentences: int
    """Sentences of the report that cite it."""


class SourcesAnswer(JsonAnswer):
    """The sources that a run stored, in the order of storing."""

    run_id: str
    """The run."""
    sources: tuple[SourceEntry, ...]
    """The sources."""


class SourceAnswer(JsonAnswer):
    """A source with its stored text."""

    run_id: str
    """The run."""
    source: Source
    """What is known of it."""
    text: str
    """The text as it was stored; empty when it is missing."""
    problem: str
    """Why the text is missing, or not the one that was stored; empty when nothing is wrong."""
    claims: tuple[Claim, ...]
    """The sentences of the report that cite it."""


class FileEntry(JsonAnswer):
    """A file of a run's folder."""

    path: str
    """Its path in the folder."""
    bytes: int
    """Its size."""
    origin: FileOrigin | None
    """Who wrote it in which calls, and what it cites; null when no agent did."""


class FilesAnswer(JsonAnswer):
    """The files of a run, by path; the engine's own are left out."""

    run_id: str
    """The run."""
    files: tuple[FileEntry, ...]
    """The files."""


class FileAnswer(JsonAnswer):
    """A file with its text."""

    run_id: str
    """The run."""
    path: str
    """Its path in the folder."""
    bytes: int
    """Its size."""
    kind: str
    """What it is when it is not a text: `a PNG image of 30 x 20 pixels`; empty for a text."""
    text: str | None
    """Its text; null when it is not one."""
    origin: FileOrigin | None
    """Who wrote it in which calls, and what it cites; null when no agent did."""


class AgentTimeline(JsonAnswer):
    """When an agent worked, in seconds on the run's clock, which stops between processes."""

    id: str
    """The agent."""
    role: str
    """Its role."""
    tasks: tuple[Task, ...]
    """Its tasks, in order."""
    intervals: tuple[Interval, ...]
    """What it waited for, in the order of the ends: a model, a tool, a helper."""


class TimelineAnswer(JsonAnswer):
    """When the agents of a run worked, and the chain of waiting that made it last as long as it did."""

    run_id: str
    """The run."""
    at: int
    """The record up to which it is shown."""
    last: int
    """The number of the latest record."""
    seconds: float
    """The seconds of work up to that record."""
    sessions: tuple[SessionInterval, ...]
    """The times in which a process worked on the run."""
    agents: tuple[AgentTimeline, ...]
    """The agents, in the order of their starts."""
    critical_path: tuple[PathSegment, ...]
    """The parts of the critical path from start to end; their seconds add up to those of the run."""


class ComparisonAnswer(JsonAnswer):
    """What differs between two runs."""

    differs: bool
    """Whether any story, claim or source is new, gone or changed."""
    comparison: Comparison
    """The differences of the second run from the first."""
