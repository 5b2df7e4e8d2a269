"""What can happen in a run, and how things end: frozen, versioned records. A run's state is a fold over these only."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from explorer.schema.messages import Estimate, Frozen, JsonObject, ToolSchema, Turn, Usage
from explorer.schema.reasons import EndCause


class WrittenFile(Frozen):
    """One file an agent wrote, as it stood right after the write."""

    path: str
    """Relative to the run's folder."""
    title: str
    """Its first heading or first words."""
    lines: int
    bytes: int
    sha256: str


class Source(Frozen):
    """One stored piece of evidence; its text is in `.explorer/sources/<id>.md`."""

    id: str
    """`S1`, `S2`, ... in the order of storing."""
    url: str
    """Where it can be looked up; `file:<path>` for a local file."""
    title: str
    kind: str
    """`page`, `story`, `comments`, `search_hit`, `file`, ..."""
    via: str
    """What gave it: `hackernews`, `tavily-keyless`, `direct`, `reader`, `file`, ..."""
    author: str = ""
    published: str = ""
    """ISO date or date-time, as far as the source tells it; empty when it does not."""
    retrieved: AwareDatetime
    sha256: str
    """Of the stored text."""
    chars: int
    language: str = ""
    """Of the text, a code like `en`, as far as it is known."""
    flags: tuple[str, ...] = ()
    """`truncated`, `paywall`, `challenge`, `script_shell`, `stale`, `sample`, ..."""


class FileChange(Frozen):
    """What a `checked` tool is about to do to a file, so that after a crash we compare and know."""

    path: str
    before: str
    """sha256 of the file's bytes; empty when it does not exist."""
    after: str


class Status(StrEnum):
    """How an agent or a run ended. The last two are of runs alone."""

    COMPLETE = "complete"
    """An agent did its task; a run has an answer that rests on sources."""
    PARTIAL = "partial"
    """Stopped early, with something in hand; or the answer does not rest on sources throughout."""
    FAILED = "failed"
    NOTHING_FOUND = "nothing_found"
    """The services answered, and nothing relevant was found."""
    SOURCES_UNAVAILABLE = "sources_unavailable"
    """No lookup reached a source: the run can be continued when the services answer again."""


class Lookup(StrEnum):
    """What a call brought that asked an outside service or the user's folder for evidence."""

    NONE = ""
    """The call is no lookup, or was refused before anything was asked."""
    FOUND = "found"
    """It brought at least one source."""
    EMPTY = "empty"
    """The service answered, and has nothing of the kind."""
    FAILED = "failed"
    """The service did not answer, or not with anything that can be used."""


JOURNAL_VERSION = 1
"""Raised when a record's meaning changes; older versions are read through pure upcasters in `journal.py`."""

NO_EFFECT = "pure"
"""The `effect` of calls that change nothing."""

ENGINE = "engine"
"""The `agent` of events that belong to the run as a whole."""

ORCHESTRATOR = "orchestrator"
"""The `agent` that answers the question, whatever its role is called."""


class Event(Frozen):
    """What all events share."""

    agent: str = ENGINE

    @property
    def is_barrier(self) -> bool:
        """Whether nobody goes on until it is on disk."""
        return True

    @property
    def is_written_at_once(self) -> bool:
        """Whether nobody goes on until it is in the file, where the end of this process cannot take it back."""
        return self.is_barrier


class SingleAgent(Frozen):
    """One agent that does a whole run: it has no helpers and writes no report."""

    instructions: str
    """Its system prompt."""
    tools: tuple[str, ...]
    """Names of the tools it may call."""


class RunStarted(Event):
    """The first event of every journal."""

    type: Literal["run_started"] = "run_started"
    run_id: str
    question: str
    engine: str
    """Version of explorer that started the run."""
    settings: JsonObject
    """The resolved settings, without secrets."""
    single_agent: SingleAgent | None = None
    """The agent that does the whole run; None: the roles do it, and write a report."""


class ModelInUse(Frozen):
    """A role's model in a session, and why it is this one."""

    model: str
    """With the provider's prefix, e.g. `anthropic:claude-opus-5-5`."""
    why: str
    effort: str = ""
    """How much it is to reason; empty: as the vendor has it."""
    before: str = ""
    """The role's model in the session before, where that was another."""


class LimitInUse(Frozen):
    """A limit in a session, and where it comes from."""

    value: int | float | None
    """None: no limit."""
    origin: str


class SessionConfigured(Event):
    """What a session of the run works with, and why; recorded when the run starts and each time it is resumed."""

    type: Literal["session_configured"] = "session_configured"
    pid: int = Field(default=0, exclude_if=lambda pid: not pid)
    """Of the process that works on the run from here on; 0 in journals that did not record it."""
    host: str = Field(default="", exclude_if=lambda host: not host)
    """The machine's name."""
    models: dict[str, ModelInUse]
    """By role, that of the judge included where there is one."""
    search: tuple[str, ...]
    """Engines of the web search in the order of asking; empty: none."""
    search_why: str
    reader: str = Field(default="", exclude_if=lambda reader: not reader)
    """The host of the service that pages are read through; empty: they are read directly."""
    reader_why: str = Field(default="", exclude_if=lambda why: not why)
    shell: str
    """What holds the commands of agents; empty: there is no shell."""
    shell_why: str
    limits: dict[str, LimitInUse]
    """By their names in the settings."""
    report_cost_usd: float = Field(default=0.0, exclude_if=lambda usd: not usd)
    """What writing the report can cost with these models; 0 where money is not limited."""
    report_tokens: int = Field(default=0, exclude_if=lambda tokens: not tokens)
    """The same in tokens, where they are limited."""


class RoleLoaded(Event):
    """A role's head, frozen for the run: what its agents' models see before any history."""

    type: Literal["role_loaded"] = "role_loaded"
    role: str
    model: str
    """With the provider's prefix, e.g. `anthropic:claude-opus-5-5`."""
    system: str
    tools: tuple[ToolSchema, ...]
    max_steps: int
    effort: str = Field(default="", exclude_if=lambda effort: not effort)
    """How much the model is to reason; empty: as the vendor has it."""


class AgentStarted(Event):
    """A new conversation; on disk before the agent's first request."""

    type: Literal["agent_started"] = "agent_started"
    role: str
    parent: str = ""
    parent_call: str = ""
    """The engine's key of the `call_agent` call that started it; empty for the orchestrator."""
    task: str
    """The first words of its history, complete."""
    max_steps: int
    inputs: dict[str, str] = Field(default={}, exclude_if=lambda inputs: not inputs)
    """Of the orchestrator: the user's files by their paths in the run's folder, each with its source id."""


class AgentContinued(Event):
    """A finished agent gets a further task and goes on with its memory."""

    type: Literal["agent_continued"] = "agent_continued"
    parent_call: str = ""
    """The `call_agent` call that asked; empty when the user asked."""
    task: str
    max_steps: int
    """Further turns it may take."""
    renews_limits: bool = False
    """The user asked something further: the run's limits count from here."""
    reason: str = Field(default="", exclude_if=lambda reason: not reason)
    """The `NoteReason` of words of the engine; empty for those of an agent or of the user."""


class NoteAdded(Event):
    """Words the engine adds to a conversation."""

    type: Literal["note"] = "note"
    text: str
    reason: str = ""
    """A `NoteReason`; journals of other versions may hold others."""
    data: JsonObject = Field(default={}, exclude_if=lambda data: not data)
    """The facts its words are made of."""


class Steered(Event):
    """Words the user adds to a running conversation."""

    type: Literal["steered"] = "steered"
    text: str
    order: str = ""
    """Id of the order left by another process; applied once."""


class RequestSent(Event):
    """A request is about to be sent; until a `turn` or a `turn_failed` of its agent it counts as billed in full."""

    type: Literal["request_sent"] = "request_sent"
    model: str
    """The model's name, without the provider's prefix."""
    input_tokens: int
    """At most."""
    output_tokens: int
    """How long the reply may be."""
    cost_usd: float = Field(default=0.0, exclude_if=lambda cost: not cost)
    """At most; 0 where no price is known."""

    @property
    def is_barrier(self) -> bool:
        """No: a request costs the same whether or not the disk has it, and a sync for each would cost time."""
        return False

    @property
    def is_written_at_once(self) -> bool:
        """Yes: a killed process cannot say any more what it had sent."""
        return True


class TurnTaken(Event):
    """A model's reply; on disk before any of its tools starts."""

    type: Literal["turn"] = "turn"
    turn: Turn
    seconds: float
    """From request to last byte, for people."""


class TurnFailed(Event):
    """An attempt at a turn that brought nothing."""

    type: Literal["turn_failed"] = "turn_failed"
    fault: str
    message: str
    attempt: int
    waits_s: float | None
    """Seconds until the next attempt; None when there is none."""
    waiting_since: AwareDatetime | None = Field(default=None, exclude_if=lambda since: since is None)
    """When the outage began that this attempt met; None: no outage."""
    is_billed: bool = Field(default=False, exclude_if=lambda is_billed: not is_billed)
    """The provider may bill it: it counts as its `request_sent` says."""


class ToolStarted(Event):
    """On disk before the call's effect; a call without one does not wait for it."""

    type: Literal["tool_started"] = "tool_started"
    call: str
    """The engine's key of the call: `<agent>.t<turn>.<index>`, unique in the run."""
    name: str
    effect: str
    change: FileChange | None = None
    activity: str = Field(default="", exclude_if=lambda words: not words)
    """What the call does, in a few words for people; empty: the tool's name says it."""

    @property
    def is_barrier(self) -> bool:
        """Whether the call is about to change something; a resumed run makes the others again in any case."""
        return self.effect != NO_EFFECT


class ToolFinished(Event):
    """A call's result; on disk before the next request."""

    type: Literal["tool_finished"] = "tool_finished"
    call: str
    name: str
    success: bool
    content: str
    """Exactly what the model reads."""
    files: tuple[WrittenFile, ...] = ()
    removed: tuple[str, ...] = Field(default=(), exclude_if=lambda removed: not removed)
    """Paths of files that the call removed or moved away."""
    sources: tuple[str, ...] = ()
    ends_agent: bool = False
    """The agent's work is done with this result."""
    data: JsonObject = Field(default={}, exclude_if=lambda data: not data)
    """What else the tool handed back, for programs: its result's `metadata` without files and sources."""
    lookup: Lookup = Lookup.NONE
    """What it brought as a lookup; records from before this field say nothing of it."""


class SourceRecorded(Event):
    """A piece of evidence was stored."""

    type: Literal["source_recorded"] = "source_recorded"
    source: Source


class SandboxChosen(Event):
    """What holds the commands of agents in this life of the run."""

    type: Literal["sandbox_chosen"] = "sandbox_chosen"
    tier: str
    """Empty: nothing does, and there is no shell."""
    why: str


class PathMoved(Event):
    """Something that stood in the report's way was moved: a folder, a link, a device, a binary file."""

    type: Literal["path_moved"] = "path_moved"
    path: str
    """Where it stood."""
    to: str
    """Where it is now."""


class CitationsJudged(Event):
    """A model was asked, besides the check, whether sources carry the cited sentences."""

    type: Literal["citations_judged"] = "citations_judged"
    model: str
    asked: int
    carried: int
    not_carried: int
    unclear: int
    problem: str = ""
    """Why asking ended early; empty when it did not."""
    usage: Usage
    cost_usd: float | None
    estimated: Estimate | None = Field(default=None, exclude_if=lambda estimated: estimated is None)
    """What of usage and cost was estimated; None: nothing."""


class StopAsked(Event):
    """Someone outside asked the run to write up and stop."""

    type: Literal["stop_asked"] = "stop_asked"
    order: str
    reason: str


class Clearing(StrEnum):
    """Why old results were cleared."""

    REFUSED = "refused"
    """The provider said that the conversation no longer fits the model's window."""
    FULL = "full"
    """It came near the window's end."""
    CARRIED = "carried"
    """They had been sent again so often that keeping them cost more than making room."""


class Compacted(Event):
    """Old tool results of a conversation were cleared, to make room."""

    type: Literal["compacted"] = "compacted"
    before: int
    """Results in the first so many messages of the history are shown as a short line from now on."""
    why: Clearing = Clearing.REFUSED
    tokens: int = 0
    """About how many the conversation had; 0 when that was not known."""


class Summarised(Event):
    """Old exchanges of a conversation were left out: its model had written down what it needs of them."""

    type: Literal["summarised"] = "summarised"
    before: int
    """The first so many messages of the history are left out, but for the tasks and the user's words."""
    text: str
    """What stands in their place: the model's words, and what is on record."""


class ReasoningDropped(Event):
    """The provider refused reasoning of earlier turns; from now on it is left out of requests."""

    type: Literal["reasoning_dropped"] = "reasoning_dropped"
    before: int
    """That of the turns among the first so many messages of the history."""


class AgentFinished(Event):
    """An agent's end; on disk before its parent's result."""

    type: Literal["agent_finished"] = "agent_finished"
    status: Status
    reason: str
    """For people."""
    cause: EndCause = EndCause.OTHER
    """For programs."""
    summary: str
    fault: str = Field(default="", exclude_if=lambda fault: not fault)
    """What its model failed with; empty: it did not."""


class RunFinished(Event):
    """The end of a run; a follow-up may come after it."""

    type: Literal["run_finished"] = "run_finished"
    status: Status
    reason: str
    """For people."""
    cause: EndCause = EndCause.OTHER
    """For programs."""
    answer: str = ""
    """The words that answer a follow-up, with their references, where the report was not revised for it."""


class RunForked(Event):
    """What stands before was another run's; from here on it is this one's."""

    type: Literal["run_forked"] = "run_forked"
    run_id: str
    of: str
    shared: int
    """How many records are the other run's."""


class Repaired(Event):
    """A torn tail was cut off at opening; the cut bytes are in `journal.torn`."""

    type: Literal["repaired"] = "repaired"
    cut_bytes: int


AnyEvent = Annotated[
    RunStarted
    | SessionConfigured
    | RoleLoaded
    | AgentStarted
    | AgentContinued
    | NoteAdded
    | Steered
    | StopAsked
    | Compacted
    | Summarised
    | ReasoningDropped
    | RequestSent
    | TurnTaken
    | TurnFailed
    | ToolStarted
    | ToolFinished
    | SourceRecorded
    | SandboxChosen
    | CitationsJudged
    | PathMoved
    | AgentFinished
    | RunFinished
    | RunForked
    | Repaired,
    Field(discriminator="type"),
]


class JournalRecord(Frozen):
    """An event with its place in the run's one total order."""

    v: int
    seq: int
    """1, 2, 3, ... without gaps."""
    at: AwareDatetime
    event: AnyEvent
