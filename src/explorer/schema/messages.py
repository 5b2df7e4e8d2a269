"""The frozen vocabulary of a conversation: turns, calls, results, usage, stop kinds. No I/O, no vendor."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Protocol, cast

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    FieldSerializationInfo,
    field_serializer,
    model_validator,
)

from explorer.schema.shared_limits import Holding

JsonObject = dict[str, Any]
"""A JSON object of a request or a reply."""

ONCE = "once"
"""A serialisation context in which arguments that are also in a turn's blocks are written only there."""
WORTH_A_PLACE_CHARS = 200
"""The least length of arguments that are written only in the blocks: a place is not worth it for shorter ones."""


def repair_text(text: str) -> str:
    """Join surrogate pairs that were split, and replace single halves, which nothing can store, by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def list_in(data: JsonObject, key: str) -> list[Any]:
    """Return a list of a result's data; empty where a tool, or a journal from elsewhere, has something else there."""
    value = data.get(key)
    return [*cast("Sequence[Any]", value)] if isinstance(value, list | tuple) else []


def number_in(data: JsonObject, key: str, default: int = 0) -> int:
    """Return a whole number of a result's data; the default where something else is there."""
    value = data.get(key)
    return value if isinstance(value, int) else default


class Frozen(BaseModel):
    """Base of our own values: immutable, and unknown fields are errors."""

    # Most kinds of values are not used in most processes, so the schema of each is built at its first use.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


LARGEST_COUNT = 10**18


def _countable(number: int) -> int:
    return max(-LARGEST_COUNT, min(number, LARGEST_COUNT))


Count = Annotated[int, AfterValidator(_countable)]
"""A number of things: a server or a journal from elsewhere may claim one that no float holds, and that is cut."""
Moment = Annotated[AwareDatetime, Field(gt=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC))]
"""A time that every time zone can show."""


class StopKind(StrEnum):
    """Why a model stopped; each adapter has one table from its vendor's words to these."""

    TOOL_USE = "tool_use"
    """The model calls tools: run them."""
    END = "end"
    """The model has finished its reply."""
    MAX_TOKENS = "max_tokens"
    """The reply was cut: none of its calls is run."""
    PAUSE = "pause"
    """The provider paused a long turn: send it back verbatim."""
    REFUSAL = "refusal"
    """The model or a filter declined."""
    CONTEXT_EXCEEDED = "context_exceeded"
    """The window is full."""
    UNKNOWN = "unknown"
    """The adapter's table does not have the vendor's word: the agent ends with an error."""


class Usage(Frozen):
    """Tokens of one request. `input_tokens` includes those read from or written to the provider's cache."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_tokens: Count = 0
    cache_write_tokens: Count = 0
    reasoning_tokens: Count = 0
    """The part of `output_tokens` that is reasoning."""

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum, field by field."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )

    @property
    def total_tokens(self) -> int:
        """The sum of input and output."""
        return self.input_tokens + self.output_tokens


class Estimate(Frozen):
    """Tokens and cost that were booked without a figure of the provider."""

    tokens: Count = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Estimate") -> "Estimate":
        """Return the sum, field by field."""
        return Estimate(tokens=self.tokens + other.tokens, cost_usd=self.cost_usd + other.cost_usd)

    def __bool__(self) -> bool:
        """Return whether anything was estimated."""
        return self.tokens > 0 or self.cost_usd > 0


def known_sum(one: float | None, other: float | None) -> float | None:
    """Return the sum of two costs; None when one of them is not known."""
    return None if one is None or other is None else one + other


class ToolCall(Frozen):
    """One call as the model made it."""

    id: str
    """The provider's id, echoed in the result. Unique within its turn, not across turns."""
    name: str
    arguments: JsonObject | None = None
    """The parsed arguments; None when `problem` says why they could not be parsed."""
    problem: str = ""
    """What is wrong with the arguments' JSON, for the model to read; empty when nothing is."""
    at: tuple[int | str, ...] = Field(default=(), exclude_if=lambda at: not at)
    """The path of the same arguments in the turn's blocks, as an object or as JSON text; empty: not given."""

    @field_serializer("arguments")
    def _written_once(self, arguments: JsonObject | None, info: FieldSerializationInfo) -> JsonObject | None:
        return None if self.at and info.context == ONCE else arguments


def place_of(arguments: JsonObject | None, *path: int | str) -> tuple[int | str, ...]:
    """Return the path of arguments in a turn's blocks if they are long enough to be written only there, else ()."""
    chars = sum(len(value) for value in (arguments or {}).values() if isinstance(value, str))
    return path if chars >= WORTH_A_PLACE_CHARS else ()


class Turn(Frozen):
    """One reply of a model: the provider's own blocks, verbatim, and the neutral view derived from them."""

    provider: str
    """The adapter that wrote the blocks, such as `openai-responses` or `offline`."""
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
    cost_usd: float | None = Field(default=None, ge=0)
    """USD; None when no price is known for the model."""
    is_estimated: bool = Field(default=False, exclude_if=lambda is_estimated: not is_estimated)
    """Whether `usage` and `cost_usd` are our upper bounds: the provider reported no usage, or an impossible one."""
    has_written_calls: bool = Field(default=False, exclude_if=lambda is_so: not is_so)
    """Whether the model wrote its calls as text, where the adapter found them."""
    cut_from_tokens: Count = Field(default=0, exclude_if=lambda tokens: not tokens)
    """The estimated tokens sent, if the server read only part of them and did not say so; else 0."""
    bound_to: str = Field(default="", exclude_if=lambda digest: not digest)
    """Digest of all that came before this turn's reasoning when it was made (`llm/history.py`).

    Empty: the turn has no reasoning, or it is not known what came before. A provider that binds reasoning to what
    comes before it gets it back only after the same messages.
    """

    @model_validator(mode="before")
    @classmethod
    def _with_arguments(cls, value: Any) -> Any:  # noqa: ANN401 - whatever is to be made a turn
        """Put arguments that were written once back into their calls."""
        if not isinstance(value, dict):
            return value
        turn = cast("JsonObject", value)
        calls: Sequence[ToolCall | JsonObject] = turn.get("calls", ())
        if not isinstance(calls, list | tuple):
            return turn
        if not any(isinstance(call, dict) and call.get("at") for call in calls):
            return turn
        return turn | {"calls": [_with_arguments(call, turn.get("blocks", ())) for call in calls]}


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
    """The result of one call for the model."""

    id: str
    """The provider's call id."""
    name: str
    content: str
    is_error: bool = False
    data: JsonObject = {}
    """The `data` of its `tool_finished`, for programs; no model sees it."""
    sources: tuple[str, ...] = ()
    """Ids of the sources it brought, for programs; no model sees them."""
    files: tuple[str, ...] = ()
    """Paths of the files that the call wrote, for programs; no model sees them."""
    is_repeatable: bool = True
    """Whether the same call brings it again: the call changes nothing."""


class TaskData(Frozen):
    """A task for programs, next to the text that a model reads."""

    words: str
    """The user's question, or the task that an agent gave to a helper, verbatim."""
    files: tuple[tuple[str, str], ...] = ()
    """Paths of its files, each with its source id, which is empty for a file that is not a source."""
    folder: str = ""
    """The folder for the files to write, without a slash at the end; empty: any."""
    settings: JsonObject = {}
    """The run's settings as recorded at its start; only in the task that a run starts with."""


class UserText(Frozen):
    """A text for the model that is not a tool's result: a task, a note of the engine, a message of the user."""

    text: str
    """All that the model reads."""
    said: str = ""
    """The text without what the engine stated with it, for programs; empty: all of it."""
    reason: str = ""
    """The `NoteReason` of a note of the engine; empty for a task and for a message of the user."""
    task: TaskData | None = None
    """The task for programs, if the text is a task."""


class Results(Frozen):
    """The results of all calls of the turn before, in call order."""

    results: tuple[CallResult, ...]


Message = UserText | Turn | Results
"""One element of a history."""


class ToolSchema(Frozen):
    """The description of a tool that a model sees."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments: an object schema, without titles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a model. Its prefix (system, tools) stays byte-equal for the whole run.

    No pydantic model: it is made of checked parts at each turn, and checking a whole history again costs more the
    longer it is.
    """

    agent: str
    """The asking agent, e.g. `searcher-2`."""
    role: str
    """The role of the asking agent, e.g. `searcher`."""
    model: str
    """The model's name, without the provider's prefix."""
    system: str
    tools: tuple[ToolSchema, ...]
    history: tuple[Message, ...]
    max_output_tokens: int
    run: str = ""
    """The run's id, as a key for the provider's cache; empty: no key."""
    effort: str = ""
    """How much the model is to reason, in the vendor's word; empty: the vendor's default."""
    reply_schema: JsonObject | None = None
    """JSON Schema of the reply's text, for servers that take one; None: the model writes what it likes."""
    attempt: "Attempt | None" = field(default=None, repr=False, compare=False)
    """Sends it once, and pays for that: `PaidClient` calls it for each attempt. None: it is not counted."""


class LLMClient(Protocol):
    """The port to a model: one method."""

    async def generate(self, request: Request) -> Turn:
        """Send a request once.

        Args:
            request: The conversation so far, the tools, and the limit of the reply in tokens.

        Returns:
            The complete turn.

        Raises:
            ModelError: No turn came; nothing of the attempt may be used.
        """
        ...


Attempt = Callable[[LLMClient, Request, Holding], Awaitable[Turn]]
"""Send a request once through a client, with what has to be done before and after."""
