"""What of earlier turns is sent to a provider: another provider's turns rewritten, and reasoning that is still valid.

Newer models bind their reasoning to everything before it: system text, tools and messages. After anything else
Anthropic refuses the whole request, and OpenAI ignores the reasoning. Much changes what comes before a turn: old
results are cleared, old exchanges summarised, a run is forked with other roles, another version writes a message in
another form. So there is no list of such changes. Each turn has a digest of what came before it when it was made
(`Turn.bound_to`, in the journal), and each request compares: reasoning is sent back when the digest is the same, and
left out when it is another one or none. Reasoning after a change is bound to the changed history, and stays.

A change does not affect the reasoning before it, so a provider's cache is lost from the change on, and no earlier.

For an adapter whose provider binds reasoning:

    bound = self._reasoning.before(request)           # one `BoundReasoning(PROVIDER)` an adapter
    ...write the history with the reasoning of the turns at `bound.kept`, without that of all others...
    turn = turn.model_copy(update={"bound_to": bound.digest})     # when the reply has reasoning
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Protocol

from explorer.llm.wire_json import encode
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import JsonObject, Message, Request, Results, StopKind, ToolCall, ToolSchema, Turn

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_CHARS = 64
_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
"""The only form of an id that every server accepts, which is Mistral's."""


def is_own(turn: Turn, provider: str, model: str) -> bool:
    """Return whether a turn's blocks may be sent back unchanged: signatures are valid for one provider and model."""
    return turn.provider == provider and turn.model == model


def projected_ids(position: int, turn: Turn) -> Mapping[str, str]:
    """Return ids for the calls of another provider's turn that every provider accepts and no other turn has."""
    return {call.id: f"c{position:05}{number:03}" for number, call in enumerate(turn.calls)}


def is_short_id(call_id: str) -> bool:
    """Return whether an id has the form that every server accepts."""
    return bool(_SHORT_ID.fullmatch(call_id))


def accepted_name(name: str) -> str:
    """Return a call's name in letters that every provider accepts; models make up names, too."""
    return _NOT_IN_NAMES.sub("_", name)[:_NAME_CHARS] or "unknown"


def arguments_text(call: ToolCall) -> str:
    """Return a call's arguments as JSON text; `{}` for broken ones, so that the next request is valid."""
    return json.dumps(call.arguments or {}, ensure_ascii=False)


def require_unique_ids(ids: Iterable[str]) -> None:
    """Refuse a turn in which two calls have one id: neither may be run.

    Raises:
        ModelError: Two calls have one id (transport, so the request is repeated).
    """
    seen: set[str] = set()
    for call_id in ids:
        if call_id in seen:
            raise ModelError(ModelFault.TRANSPORT, f"the reply has two calls with the id {call_id!r}")
        seen.add(call_id)


def with_ids(ids: list[str]) -> list[str]:
    """Return ids with new ones, unique within the turn, in place of those that a server left out."""
    if all(ids):
        return ids
    taken = set(ids)
    filled: list[str] = []
    number = 0
    for call_id in ids:
        if call_id:
            filled.append(call_id)
            continue
        number += 1
        while made_up_id(number) in taken:
            number += 1
        filled.append(made_up_id(number))
    return filled


def settled_stop(stop: StopKind, *, has_calls: bool) -> StopKind:
    """Return `TOOL_USE` or `END` by the calls of a turn: servers use either word for both."""
    if stop in {StopKind.END, StopKind.TOOL_USE}:
        return StopKind.TOOL_USE if has_calls else StopKind.END
    return stop


def made_up_id(number: int) -> str:
    """Return an id for a call that has none, in the form that every server accepts."""
    return f"call{number:05}"


DIGEST_BYTES = 12


def is_begin_of(history: Sequence[object], longer: Sequence[object]) -> bool:
    """Return whether a history only adds to another one. Its messages are then the same objects, so this is cheap."""
    return len(history) <= len(longer) and all(map(is_, history, longer))


class _Hash(Protocol):
    """A hash object of hashlib."""

    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...
    def copy(self) -> "_Hash": ...


@dataclass(frozen=True, slots=True)
class KeptReasoning:
    """The reasoning that is valid in one request."""

    kept: frozenset[int]
    """The indexes in the history of turns whose reasoning is sent back."""
    digest: str
    """The digest of the request, to which the reply's reasoning is bound."""


@dataclass(slots=True)
class _Read:
    """One agent's last request. The next one usually only adds to it, and is then not read from the start."""

    model: str
    system: str
    tools: tuple[ToolSchema, ...]
    history: tuple[Message, ...]
    kept: frozenset[int]
    state: _Hash

    def is_begin_of(self, request: Request) -> bool:
        """Return whether a request only adds to this one. Messages stay the same objects, so comparing is cheap."""
        mine = (self.model, self.system, self.tools)
        return mine == (request.model, request.system, request.tools) and is_begin_of(self.history, request.history)


class BoundReasoning:
    """The digests of all conversations of one adapter.

    Args:
        provider: The provider whose turns are sent back unchanged.
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._read: dict[tuple[str, str], _Read] = {}

    def before(self, request: Request) -> KeptReasoning:
        """Compare each turn's digest with what comes before it in this request."""
        read = self._read.get((request.run, request.agent))
        if read is None or not read.is_begin_of(request):
            read = _Read(request.model, request.system, request.tools, (), frozenset(), _prefix(request))
        state, kept = read.state.copy(), set(read.kept)
        for index in range(len(read.history), len(request.history)):
            message = request.history[index]
            if isinstance(message, Turn):
                if is_own(message, self._provider, request.model) and message.bound_to == _text(state):
                    kept.add(index)
                # Later reasoning is bound to whether this reasoning was sent, so that is part of the digest.
                _add(state, "kept" if index in kept else "turn", encode(message.blocks))
            elif isinstance(message, Results):
                for one in message.results:
                    _add(state, "error" if one.is_error else "result", encode([one.id, one.content]))
            else:
                _add(state, "words", encode(message.text))
        self._read[request.run, request.agent] = _Read(
            request.model, request.system, request.tools, request.history, frozenset(kept), state
        )
        return KeptReasoning(frozenset(kept), _text(state))


def _prefix(request: Request) -> _Hash:
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    tools: Sequence[JsonObject] = [tool.model_dump() for tool in request.tools]
    _add(state, "head", encode([request.model, request.system, tools]))
    return state


def _add(state: _Hash, kind: str, data: bytes) -> None:
    state.update(b"%s %d " % (kind.encode(), len(data)))
    state.update(data)


def _text(state: _Hash) -> str:
    return state.hexdigest()


class HistoryWriter(Protocol):
    """Writes one agent's history as a provider's messages, one message after the other."""

    messages: list[JsonObject]
    """The messages written so far."""

    def add(self, position: int, message: Message, *, keeps_reasoning: bool) -> None:
        """Write the message at this index of the history; its reasoning only where it may be sent back."""
        ...


@dataclass(slots=True)
class _Written:
    """One agent's history as it was last sent."""

    model: str
    writer: HistoryWriter
    history: tuple[Message, ...] = ()
    kept: frozenset[int] = frozenset()

    def is_begin_of(self, request: Request, kept: frozenset[int]) -> bool:
        """Return whether the request only adds to this history. Its messages are then the same objects."""
        sent = frozenset(position for position in kept if position < len(self.history))
        return (self.model, self.kept) == (request.model, sent) and is_begin_of(self.history, request.history)


class Histories:
    """The histories of all agents of one adapter: each message is written once, and a request adds to what is there.

    Args:
        begin: Returns a writer without messages, for a model.
    """

    def __init__(self, begin: Callable[[str], HistoryWriter]) -> None:
        self._begin = begin
        self._written: dict[tuple[str, str], _Written] = {}

    def messages(self, request: Request, kept: Collection[int] = ()) -> list[JsonObject]:
        """Return the history as messages, in a list of the caller's own; the messages themselves must not be changed.

        Args:
            request: The request.
            kept: The indexes of turns whose reasoning is sent; that of all others is left out.
        """
        kept = frozenset(kept)
        agent = (request.run, request.agent)
        written = self._written.get(agent)
        if written is None or not written.is_begin_of(request, kept):
            written = self._written[agent] = _Written(request.model, self._begin(request.model))
        for position in range(len(written.history), len(request.history)):
            written.writer.add(position, request.history[position], keeps_reasoning=position in kept)
        written.history, written.kept = request.history, kept
        return list(written.writer.messages)
