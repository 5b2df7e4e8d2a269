"""The beginning of every request of a role: tools and system text, made into bytes once and the same for the whole run.

A provider reads from its cache what begins with the same bytes as a request before. So what stays stands first, the
history is only added to, and what may differ from request to request (the length of the reply) stands last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from explorer.llm.wire_json import encode
from explorer.schema.messages import JsonObject, Request, ToolSchema


@dataclass(frozen=True, slots=True)
class _EncodedPrefix:
    """One role's, and what it was made of."""

    model: str
    system: str
    tools: tuple[ToolSchema, ...]
    run: str
    start: bytes
    """Everything up to the first word of the history; the list of messages is open."""

    def is_of(self, request: Request) -> bool:
        """Whether it begins this request. The tools are the same objects all along, so comparing them costs nothing."""
        mine = (self.model, self.run, self.system, self.tools)
        return mine == (request.model, request.run, request.system, request.tools)


class PromptPrefixes:
    """The heads of all roles that ask through one adapter.

    Args:
        write: Writes a request without its history, `messages` last: an empty list, or one with the system text.
    """

    def __init__(self, write: Callable[[Request], JsonObject]) -> None:
        self._write = write
        self._prefixes: dict[str, _EncodedPrefix] = {}

    def body(self, request: Request, messages: Sequence[JsonObject], rest: JsonObject) -> bytes:
        """A whole request: the head, the history, and the rest, which may differ each time."""
        start = self._start(request)
        joint = b"," if messages and not start.endswith(b"[") else b""
        return b"".join((start, joint, encode(messages)[1:], b",", encode(rest)[1:]))

    def _start(self, request: Request) -> bytes:
        prefix = self._prefixes.get(request.role)
        if prefix is None or not prefix.is_of(request):
            start = encode(self._write(request)).removesuffix(b"]}")
            prefix = _EncodedPrefix(request.model, request.system, request.tools, request.run, start)
            self._prefixes[request.role] = prefix
        return prefix.start
