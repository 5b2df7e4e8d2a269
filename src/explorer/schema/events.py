"""What can happen in a run, and how things end: frozen, versioned records, the only base of a run's state."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from explorer.schema.event import Event
from explorer.schema.messages import Count, Estimate, Frozen, JsonObject, Moment, ToolSchema, Turn, Usage
from explorer.schema.plan import PlanDecided, PlanProposed, RoundAssessed
from explorer.schema.reasons import EndCause


class WrittenFile(Frozen):
    """One file an agent wrote, as it was right after the write."""

    path: str
    """The path relative to the run's folder."""
    title: str
    """Its first heading or first words."""
    lines: Count
    bytes: Count
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
    """ISO date or date-time; empty when the source does not give it."""
    retrieved: Moment
    sha256: str
    """The digest of the stored text, in hexadecimal."""
    chars: Count
    language: str = ""
    """A code of the text's language, such as `en`; empty when it is not known."""
    flags: tuple[str, ...] = ()
    """`truncated`, `paywall`, `challenge`, `script_shell`, `stale`, `sample`, ..."""


class FileChange(Frozen):
    """What a `checked` tool is about to do to a file, so that after a crash we compare and know."""

    path: str
    before: str
    """The SHA-256 of the file's bytes; empty when it does not exist."""
    after: str


class Status(StrEnum):
    """How an agent or a run ended. Only runs end with those after `FAILED`."""

    COMPLETE = "complete"
    """An agent did its task; a run has an answer that rests on sources."""
    PARTIAL = "partial"
    """It stopped early with some result, or parts of the answer do not rest on sources."""
    FAILED = "failed"
    NOTHING_FOUND = "nothing_found"
    """The services answered, and nothing relevant was found."""
    SOURCES_UNAVAILABLE = "sources_unavailable"
    """No lookup reached a source: the run can be continued when the services answer again."""
    WAITING = "waiting"
    """No end: the run's plan waits for the user's decision. Results have it, and no record."""


class Lookup(StrEnum):
    """The outcome of a call that asked an external service or the user's folder for evidence."""

    NONE = ""
    """The call is no lookup, or was refused before anything was asked."""
    FOUND = "found"
    """It brought at least one source."""
    EMPTY = "empty"
    """The service answered, and has nothing of the kind."""
    FAILED = "failed"
    """The service did not answer, or not with anything that can be used."""


JOURNAL_VERSION = 1
"""The version of records, raised when their meaning changes; `journal/codec.py` reads older ones with upcasters."""

NO_EFFECT = "pure"
"""The `effect` of calls that change nothing."""

ORCHESTRATOR = "orchestrator"
"""The `agent` that answers the question, whatever its role is called."""


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
    single_agent: SingleAgent | None = Field(default=None, exclude_if=lambda agent: agent is None)
    """The agent that does the whole run; None: the roles do it, and write a report."""


class ModelInUse(Frozen):
    """A role's model in a session, and why it was chosen."""

    model: str
    """Its name with the vendor's prefix: `VENDOR:NAME`."""
    why: str
    effort: str = ""
    """How much it is to reason; empty: the vendor's default."""
    before: str = ""
    """The role's model in the session before, if it was another one."""


class LimitInUse(Frozen):
    """A limit in a session, and where it comes from."""

    value: Count | float | None
    """The limit; None: no limit."""
    origin: str


class CarriedRun(Frozen):
    """What a session does not take from the journal of a run that this user is not known to have made."""

    not_taken: dict[str, str]
    """The recorded settings that differ from the session's, as short texts by name."""
    no_key: str = ""
    """Why no run can be proven to be the user's; empty where that can be."""


class SessionConfigured(Event):
    """What a session of the run works with, and why; recorded when the run starts and each time it is resumed."""

    type: Literal["session_configured"] = "session_configured"
    pid: Count = Field(default=0, exclude_if=lambda pid: not pid)
    """The id of the process that works on the run from here on; 0 in journals that did not record it."""
    host: str = Field(default="", exclude_if=lambda host: not host)
    """The machine's name."""
    models: dict[str, ModelInUse]
    """The model of each role, and of the judge if the run has one."""
    search: tuple[str, ...]
    """Engines of the web search in the order of asking; empty: none."""
    search_why: str
    reader: str = Field(default="", exclude_if=lambda reader: not reader)
    """The host of the service that pages are read through; empty: they are read directly."""
    reader_why: str = Field(default="", exclude_if=lambda why: not why)
    shell: str
    """What confines the commands of agents; empty: agents have no shell."""
    shell_why: str
    limits: dict[str, LimitInUse]
    """The limits by their names in the settings."""
    report_cost_usd: float = Field(default=0.0, exclude_if=lambda usd: not usd)
    """What writing the report can cost with these models; 0 where money is not limited."""
    report_tokens: Count = Field(default=0, exclude_if=lambda tokens: not tokens)
    """The tokens that writing the report can use; 0 where they are not limited."""
    lean: str = Field(default="", exclude_if=lambda lean: not lean)
    """Why the session is in lean mode; empty: it is not."""
    preset: str = Field(default="", exclude_if=lambda preset: not preset)
    """The name of the preset that the run is configured as; empty: none."""
    unmeasured: str = Field(default="", exclude_if=lambda model: not model)
    """The leading model, where it is a small one of this machine and nobody measured what it can do; else empty."""
    skills: dict[str, str] = Field(default={}, exclude_if=lambda skills: not skills)
    """The skills that are not built in: the folder of each, by name."""
    skills_left_out: dict[str, str] = Field(default={}, exclude_if=lambda left_out: not left_out)
    """The skills that do not count: why, by folder."""
    mcp: dict[str, str] = Field(default={}, exclude_if=lambda mcp: not mcp)
    """The MCP servers whose tools roles have, each with how it is reached and what confines it."""
    carried: CarriedRun | None = Field(default=None, exclude_if=lambda carried: carried is None)
    """What a run from elsewhere is not given; None: the run is the user's own."""


class RoleLoaded(Event):
    """A role's prompt, tools and model, frozen for the run: what its agents' models see before any history."""

    type: Literal["role_loaded"] = "role_loaded"
    role: str
    model: str
    """Its name with the vendor's prefix: `VENDOR:NAME`."""
    system: str
    tools: tuple[ToolSchema, ...]
    max_steps: Count
    effort: str = Field(default="", exclude_if=lambda effort: not effort)
    """How much the model is to reason; empty: the vendor's default."""


class McpTool(Frozen):
    """A tool of an MCP server, frozen for the run."""

    name: str
    """The name for models: `mcp__SERVER__TOOL`."""
    remote: str
    """The server's name of it."""
    description: str
    """What a model reads; the server's words are fenced."""
    parameters: JsonObject
    effect: str
    """What a resumed run does with an interrupted call of it; a value of `Effect`."""
    sha256: str
    """The digest of what the server said of it."""


class McpToolsListed(Event):
    """The tools of an MCP server that roles of this run have, as the server listed them at its start."""

    type: Literal["mcp_tools_listed"] = "mcp_tools_listed"
    server: str
    tools: tuple[McpTool, ...]


class AgentStarted(Event):
    """An agent's conversation begins; on disk before its first request."""

    type: Literal["agent_started"] = "agent_started"
    role: str
    parent: str = ""
    parent_call: str = ""
    """The engine's key of the `call_agent` call that started it; empty for the orchestrator."""
    task: str
    """What it is asked, with the files for it; the first part of its history's first message."""
    context: str = Field(default="", exclude_if=lambda context: not context)
    """What the engine states with the task (`agents/context_block.py`); the rest of that message."""
    max_steps: Count
    inputs: dict[str, str] = Field(default={}, exclude_if=lambda inputs: not inputs)
    """The user's files, for the orchestrator: paths in the run's folder, each with its source id."""
    question: str = Field(default="", exclude_if=lambda question: not question)
    """The id of the plan's sub-question that it works on; empty: none."""


class AgentContinued(Event):
    """A finished agent gets a further task and keeps its conversation."""

    type: Literal["agent_continued"] = "agent_continued"
    parent_call: str = ""
    """The `call_agent` call that asked; empty when the user asked."""
    task: str
    context: str = Field(default="", exclude_if=lambda context: not context)
    """What the engine states with it, such as date and limits; the model reads it after the text."""
    max_steps: Count
    """Further turns it may take."""
    renews_limits: bool = False
    """The user asked something further: the run's limits count from here."""
    reason: str = Field(default="", exclude_if=lambda reason: not reason)
    """The `NoteReason` of a task of the engine; empty for one of an agent or the user."""
    question: str = Field(default="", exclude_if=lambda question: not question)
    """The id of the plan's sub-question that it works on; empty: none."""


class NoteAdded(Event):
    """The engine adds a note to a conversation."""

    type: Literal["note"] = "note"
    text: str
    reason: str = ""
    """A `NoteReason`; journals of other versions may hold others."""
    data: JsonObject = Field(default={}, exclude_if=lambda data: not data)
    """The facts that its text is made of."""


class Steered(Event):
    """The user adds a message to a running conversation."""

    type: Literal["steered"] = "steered"
    text: str
    context: str = Field(default="", exclude_if=lambda context: not context)
    """What the engine states with it, such as date and limits; the model reads it after the text."""
    order: str = ""
    """Id of the order left by another process; applied once."""


class RequestSent(Event):
    """A request is about to be sent; until a `turn` or a `turn_failed` of its agent it counts as billed in full."""

    type: Literal["request_sent"] = "request_sent"
    model: str
    """The model's name, without the provider's prefix."""
    input_tokens: Count
    """An upper bound."""
    output_tokens: Count
    """The limit of the reply."""
    cost_usd: float = Field(default=0.0, exclude_if=lambda cost: not cost)
    """An upper bound; 0 where no price is known."""

    @property
    def is_barrier(self) -> bool:
        """False: a request costs the same whether or not its record is on disk, and a sync for each would cost time."""
        return False

    @property
    def is_written_at_once(self) -> bool:
        """True: after its process is killed, only the record shows what was sent."""
        return True


class TurnTaken(Event):
    """A model's reply; on disk before any of its calls has an effect, and before the next request."""

    type: Literal["turn"] = "turn"
    turn: Turn
    seconds: float
    """The seconds from request to last byte, for people."""

    @property
    def is_barrier(self) -> bool:
        """Whether it calls no tool: a call that changes something, or its result, is synced with all before it."""
        return not self.turn.calls

    @property
    def is_written_at_once(self) -> bool:
        """True: after its process is killed, it is not paid for again."""
        return True


class TurnFailed(Event):
    """An attempt at a turn failed."""

    type: Literal["turn_failed"] = "turn_failed"
    fault: str
    message: str
    attempt: Count
    waits_s: float | None
    """Seconds until the next attempt; None when there is none."""
    waiting_since: Moment | None = Field(default=None, exclude_if=lambda since: since is None)
    """When the current outage began; None: no outage."""
    is_billed: bool = Field(default=False, exclude_if=lambda is_billed: not is_billed)
    """Whether the provider may bill it: it then costs what its `request_sent` says."""


class ToolStarted(Event):
    """A call begins; on disk before the call's effect, unless it has none."""

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
    """Whether the agent's work is done with this result."""
    data: JsonObject = Field(default={}, exclude_if=lambda data: not data)
    """The `metadata` of the tool's result without files and sources, for programs."""
    lookup: Lookup = Lookup.NONE
    """The outcome of a lookup; empty in records from before this field, too."""


class ApprovalAnswer(StrEnum):
    """The answer to a call that an approval rule asks about."""

    ONCE = "once"
    """This call is allowed."""
    RUN = "run"
    """This call is allowed, and each further one of its tool that the same rule asks about."""
    NO = "no"
    UNASKED = "unasked"
    """Nobody could be asked, so it is refused."""


class ApprovalDecided(Event):
    """A call that an approval rule asks about was allowed or refused; on disk before the call begins."""

    type: Literal["approval_decided"] = "approval_decided"
    call: str
    name: str
    """The tool's name."""
    rule: str
    answer: ApprovalAnswer
    words: str = Field(default="", exclude_if=lambda words: not words)
    """The reason that was given for the agent."""

    @property
    def is_allowed(self) -> bool:
        """Whether the call may be made."""
        return self.answer in {ApprovalAnswer.ONCE, ApprovalAnswer.RUN}


class SourceRecorded(Event):
    """A piece of evidence was stored."""

    type: Literal["source_recorded"] = "source_recorded"
    source: Source


class SandboxChosen(Event):
    """What confines the commands of agents in this session of the run."""

    type: Literal["sandbox_chosen"] = "sandbox_chosen"
    tier: str
    """The kind of sandbox; empty: agents have no shell."""
    why: str


class PathMoved(Event):
    """Something at the report's path was moved: a folder, a link, a device, a binary file."""

    type: Literal["path_moved"] = "path_moved"
    path: str
    """Its path before."""
    to: str
    """Its path now."""


class CitationsJudged(Event):
    """A model was asked, in addition to the check, whether sources support the cited sentences."""

    type: Literal["citations_judged"] = "citations_judged"
    model: str
    asked: Count
    carried: Count
    not_carried: Count
    unclear: Count
    problem: str = ""
    """Why asking ended early; empty when it did not."""
    usage: Usage
    cost_usd: float | None
    estimated: Estimate | None = Field(default=None, exclude_if=lambda estimated: estimated is None)
    """The estimated part of usage and cost; None: nothing."""


class StopAsked(Event):
    """Another process ordered the run to write the report and stop."""

    type: Literal["stop_asked"] = "stop_asked"
    order: str
    reason: str


class Clearing(StrEnum):
    """Why old results were cleared."""

    REFUSED = "refused"
    """The provider said that the conversation no longer fits the model's window."""
    FULL = "full"
    """The conversation reached the share of the window at which it is shortened."""
    CARRIED = "carried"
    """Keeping the results cost more than clearing them."""


class Compacted(Event):
    """Old tool results of a conversation were cleared to save space."""

    type: Literal["compacted"] = "compacted"
    before: Count
    """The number of messages at the start of the history whose results are shown as a short line from now on."""
    why: Clearing = Clearing.REFUSED
    tokens: Count = 0
    """The estimated tokens of the conversation before; 0 when they were not known."""


class Summarised(Event):
    """Old exchanges of a conversation were left out: its model had written down what it needs of them."""

    type: Literal["summarised"] = "summarised"
    before: Count
    """The number of messages at the start of the history that are left out, except tasks and messages of the user."""
    text: str
    """The text in their place: the model's summary, and what is on record."""


class ReasoningDropped(Event):
    """The provider refused reasoning of earlier turns; from now on it is left out of requests."""

    type: Literal["reasoning_dropped"] = "reasoning_dropped"
    before: Count
    """The number of messages at the start of the history whose turns are sent without reasoning."""


class AgentFinished(Event):
    """An agent's end; on disk before its parent's result."""

    type: Literal["agent_finished"] = "agent_finished"
    status: Status
    reason: str
    """The cause in words, for people."""
    cause: EndCause = EndCause.OTHER
    """The cause as a code, for programs."""
    summary: str
    fault: str = Field(default="", exclude_if=lambda fault: not fault)
    """The `ModelFault` of its model; empty: the model did not fail."""


class RunFinished(Event):
    """The end of a run; a follow-up may come after it."""

    type: Literal["run_finished"] = "run_finished"
    status: Status
    reason: str
    """The cause in words, for people."""
    cause: EndCause = EndCause.OTHER
    """The cause as a code, for programs."""
    answer: str = ""
    """The answer to a follow-up, with references, where the report was not revised for it."""


class RunForked(Event):
    """The records before belong to another run; from here on they belong to this one."""

    type: Literal["run_forked"] = "run_forked"
    run_id: str
    of: str
    shared: Count
    """The number of records of the other run."""


class Repaired(Event):
    """A torn tail was cut off at opening; the cut bytes are in `journal.torn`."""

    type: Literal["repaired"] = "repaired"
    cut_bytes: Count


AnyEvent = Annotated[
    RunStarted
    | SessionConfigured
    | RoleLoaded
    | McpToolsListed
    | AgentStarted
    | AgentContinued
    | NoteAdded
    | Steered
    | PlanProposed
    | PlanDecided
    | RoundAssessed
    | StopAsked
    | Compacted
    | Summarised
    | ReasoningDropped
    | RequestSent
    | TurnTaken
    | TurnFailed
    | ToolStarted
    | ToolFinished
    | ApprovalDecided
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

Append = Callable[[AnyEvent], Awaitable[None]]
"""Put an event on disk, and apply it to the state."""


class JournalRecord(Frozen):
    """An event with its place in the run's one total order."""

    v: int
    seq: int
    """The record's number: 1, 2, 3, ... without gaps."""
    at: Moment
    event: AnyEvent
