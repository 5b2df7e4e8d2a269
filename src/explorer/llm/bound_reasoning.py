"""Which reasoning of earlier turns may be sent back: only that before which nothing has changed since it was made.

Newer models bind their reasoning to everything before it: system text, tools and messages. Behind anything else
Anthropic refuses the whole request, and OpenAI ignores the reasoning. Much changes what stands before a turn: old
results are cleared, old exchanges summarised, a run is forked with other roles, another version writes a message
otherwise. So there is no list of such changes. Each turn carries a digest of what stood before it when it was made
(`Turn.bound_to`, in the journal), and each request compares: reasoning goes back when the digest is the same, and is
left out when it is another one or none. What is made after a change is bound to the changed history, and stays.

A change leaves the reasoning before it alone, so a provider's cache is lost from the change on, and no earlier.

For an adapter whose provider binds reasoning:

    bound = self._reasoning.before(request)           # one `BoundReasoning(PROVIDER)` an adapter
    ...write the history with the reasoning of the turns at `bound.kept`, without that of all others...
    turn = turn.model_copy(update={"bound_to": bound.digest})     # when the reply has reasoning
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from explorer.llm.projection import is_own
from explorer.llm.wire_json import encode
from explorer.schema.messages import JsonObject, Message, Request, Results, ToolSchema, Turn

DIGEST_BYTES = 12


class _Hash(Protocol):
    """One of hashlib's."""

    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...
    def copy(self) -> "_Hash": ...


@dataclass(frozen=True, slots=True)
class KeptReasoning:
    """What holds for one request."""

    kept: frozenset[int]
    """Places in the history of turns whose reasoning is sent back."""
    digest: str
    """Of everything in the request: what the reply's reasoning is bound to."""


@dataclass(slots=True)
class _Read:
    """One agent's last request: the next one mostly only adds to it, and is then not read again from the start."""

    model: str
    system: str
    tools: tuple[ToolSchema, ...]
    history: tuple[Message, ...]
    kept: frozenset[int]
    state: _Hash

    def is_begin_of(self, request: Request) -> bool:
        """Whether a request goes on from here. Messages are the same objects all along, so comparing costs nothing."""
        if len(self.history) > len(request.history) or (self.model, self.system) != (request.model, request.system):
            return False
        pairs = zip(self.history, request.history, strict=False)
        return self.tools == request.tools and all(old is new for old, new in pairs)


class BoundReasoning:
    """The digests of all conversations that one adapter sends.

    Args:
        provider: Whose turns are sent back as they are.
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._read: dict[tuple[str, str], _Read] = {}

    def before(self, request: Request) -> KeptReasoning:
        """Compare each turn's digest with what stands before it in this request."""
        read = self._read.get((request.run, request.agent))
        if read is None or not read.is_begin_of(request):
            read = _Read(request.model, request.system, request.tools, (), frozenset(), _prefix(request))
        state, kept = read.state.copy(), set(read.kept)
        for index in range(len(read.history), len(request.history)):
            message = request.history[index]
            if isinstance(message, Turn):
                if is_own(message, self._provider, request.model) and message.bound_to == _text(state):
                    kept.add(index)
                # Reasoning that is left out is missing before all that is made later, so that it was is part of this.
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
