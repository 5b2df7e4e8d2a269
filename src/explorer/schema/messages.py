"""The frozen vocabulary of a conversation: turns, calls, results, usage, stop kinds. No I/O, no vendor."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, cast

from pydantic import BaseModel, ConfigDict, Field, FieldSerializationInfo, field_serializer, model_validator

JsonObject = dict[str, Any]
"""A JSON object as it came from, or goes to, the wire."""

ONCE = "once"
"""A context of serialising: what stands in a turn twice is written once."""
WORTH_A_PLACE_CHARS = 200
"""Shorter arguments are not worth saying where else they stand."""


def repair_text(text: str) -> str:
    """Join surrogate pairs that were split, and replace single halves, which nothing can store, by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class Frozen(BaseModel):
    """A value of ours: immutable, and unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class StopKind(StrEnum):
    """Why a model stopped; every vendor's words are mapped onto these by one total table in its adapter."""

    TOOL_USE = "tool_use"
    """It asks for tools: run them."""
    END = "end"
    """It has said what it wanted to say."""
    MAX_TOKENS = "max_tokens"
    """It was cut: nothing of this turn is run."""
    PAUSE = "pause"
    """The provider paused a long turn: send it back verbatim."""
    REFUSAL = "refusal"
    """The model or a filter declined."""
    CONTEXT_EXCEEDED = "context_exceeded"
    """The window is full."""
    UNKNOWN = "unknown"
    """Words no table knows: stop, loudly."""


class Usage(Frozen):
    """Tokens of one request. `input_tokens` includes those read from or written to the provider's cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """Part of `output_tokens`."""

    def __add__(self, other: "Usage") -> "Usage":
        """Sum field by field."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


class Estimate(Frozen):
    """What was booked without the provider's word for it."""

    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Estimate") -> "Estimate":
        """Sum field by field."""
        return Estimate(tokens=self.tokens + other.tokens, cost_usd=self.cost_usd + other.cost_usd)

    def __bool__(self) -> bool:
        """Whether anything was estimated."""
        return self.tokens > 0 or self.cost_usd > 0


class ToolCall(Frozen):
    """One call as the model asked for it."""

    id: str
    """The provider's id, echoed in the result. Unique within its turn, not across turns."""
    name: str
    arguments: JsonObject | None = None
    """The parsed arguments; None when `problem` says why they could not be parsed."""
    problem: str = ""
    """What is wrong with the arguments' JSON, in words for the model; empty when nothing is."""
    at: tuple[int | str, ...] = Field(default=(), exclude_if=lambda at: not at)
    """Where in the turn's blocks the same arguments stand, as an object or as its JSON text; empty: not told."""

    @field_serializer("arguments")
    def _written_once(self, arguments: JsonObject | None, info: FieldSerializationInfo) -> JsonObject | None:
        return None if self.at and info.context == ONCE else arguments


def place_of(arguments: JsonObject | None, *path: int | str) -> tuple[int | str, ...]:
    """The place of a call's arguments in its turn's blocks, when they are long enough to be written only there."""
    chars = sum(len(value) for value in (arguments or {}).values() if isinstance(value, str))
    return path if chars >= WORTH_A_PLACE_CHARS else ()


class Turn(Frozen):
    """One reply of a model: the provider's own blocks, verbatim, and the neutral view derived from them."""

    provider: str
    """Which adapter's blocks these are: `anthropic`, `openai-responses`, `openai-chat`, `offline`, ..."""
    model: str
    """The model that was asked."""
    blocks: tuple[JsonObject, ...]
    """The provider's own content blocks; they go back untouched to the same provider."""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: StopKind
    stop_detail: str = ""
    """The vendor's own word for the stop, and its explanation if it gave one."""
    usage: Usage = Usage()
    cost_usd: float | None = None
    """None when no price is known for the model."""
    is_estimated: bool = Field(default=False, exclude_if=lambda is_estimated: not is_estimated)
    """The provider reported no usage, or an impossible one: `usage` and `cost_usd` are upper bounds of ours."""
    cut_from_tokens: int = Field(default=0, exclude_if=lambda tokens: not tokens)
    """About how many tokens were sent, where the server read only part of them and did not say so; else 0."""
    bound_to: str = Field(default="", exclude_if=lambda digest: not digest)
    """Digest of all that stood before this turn's reasoning when it was made (`llm/bound_reasoning.py`); empty: the
    turn has no reasoning, or nobody knows what stood before it. A provider that binds reasoning to what stands before
    it gets it back only behind the same."""

    @model_validator(mode="before")
    @classmethod
    def _with_arguments(cls, value: Any) -> Any:  # noqa: ANN401 - whatever is to be made a turn
        """Put arguments that were written once back into their calls."""
        if not isinstance(value, dict):
            return value
        turn = cast("JsonObject", value)
        calls: Sequence[ToolCall | JsonObject] = turn.get("calls", ())
        if not any(isinstance(call, dict) and call.get("at") for call in calls):
            return turn
        return turn | {"calls": [_with_arguments(call, turn["blocks"]) for call in calls]}


def _with_arguments(call: ToolCall | JsonObject, blocks: Sequence[JsonObject]) -> ToolCall | JsonObject:
    if isinstance(call, ToolCall) or not call.get("at") or call.get("arguments") is not None or call.get("problem"):
        return call
    found: Any = blocks
    try:
        for step in call["at"]:
            found = found[step]
        return call | {"arguments": json.loads(found) if isinstance(found, str) else found}
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"the arguments of {call.get('id')} are not where they should be") from error


class CallResult(Frozen):
    """What goes back to the model for one call."""

    id: str
    """The provider's call id."""
    name: str
    content: str
    is_error: bool = False
    data: JsonObject = {}
    """The same for programs: the `data` of its `tool_finished`. No model is shown it."""
    sources: tuple[str, ...] = ()
    """Ids of the sources it brought, likewise."""


class TaskData(Frozen):
    """A task for programs, next to the words that a model reads."""

    words: str
    """Of who gave it: the user's question, or what an agent asked of a helper."""
    files: tuple[tuple[str, str], ...] = ()
    """Paths that come with it, each with its source id; that of a file no source was made of is empty."""
    folder: str = ""
    """Where its files belong, without a slash at the end; empty: anywhere."""
    settings: JsonObject = {}
    """Of the run, as they were recorded at its start; for the task that a run starts with."""


class UserText(Frozen):
    """Words to the model that are not a tool's result: the task, a note of the engine, a steer of the user."""

    text: str
    reason: str = ""
    """The `NoteReason` of words of the engine; empty for a task and for the user's words."""
    task: TaskData | None = None
    """What is asked, where these words are a task."""


class Results(Frozen):
    """The results of all calls of the turn before, in call order."""

    results: tuple[CallResult, ...]


Message = UserText | Turn | Results
"""One element of a history."""


class ToolSchema(Frozen):
    """What a model is told about a tool."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments: an object schema, without titles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """All that a model is asked with. The head (system, tools) stays byte-equal for the whole run.

    No pydantic model: it is made of checked parts at each turn, and checking a whole history again costs more the
    longer it is.
    """

    agent: str
    """Who asks, e.g. `searcher-2`."""
    role: str
    """What the asking agent is, e.g. `searcher`."""
    model: str
    """The model's name, without the provider's prefix."""
    system: str
    tools: tuple[ToolSchema, ...]
    history: tuple[Message, ...]
    max_output_tokens: int
    run: str = ""
    """The run's id, as a key for the provider's cache; empty: no key."""
    effort: str = ""
    """How much the model is to reason, in the vendor's word; empty: as the vendor has it."""
    attempt: "Attempt | None" = field(default=None, repr=False, compare=False)
    """Pays for each time that it is sent; None: nobody counts."""


class LLMClient(Protocol):
    """The port to a model: one method."""

    async def generate(self, request: Request) -> Turn:
        """Ask once and return the complete turn.

        Raises:
            ModelError: No turn came; nothing of the attempt may be used.
        """
        ...


Attempt = Callable[[LLMClient, Request], Awaitable[Turn]]
"""Sends a request once through a client, with what has to be done before and after."""
