"""How Anthropic's server signs reasoning, and how it looks whether reasoning stands where it was made.

A signature here says in clear what the vendor's says in code: the model, a digest of everything before the block
(system text, tools and messages, without cache marks and without reasoning), and a digest of the reasoning before it.
So the server needs no memory: all it has to know comes back with the block.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]

REASONING = ("thinking", "redacted_thinking")
PREFIX = "https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks"


@dataclass(frozen=True)
class Placed:
    """A block and where it stands in a request."""

    message: int
    block: int
    role: str
    content: JsonObject

    @property
    def path(self) -> str:
        """As error messages name it."""
        return f"messages.{self.message}.content.{self.block}"

    @property
    def is_reasoning(self) -> bool:
        """Whether it holds reasoning."""
        return self.content.get("type") in REASONING


def blocks_of(message: JsonObject) -> list[JsonObject]:
    """Return a message's blocks; a string stands for one text."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def placed(body: JsonObject) -> Iterator[Placed]:
    """Yield all blocks of a request in order."""
    for number, message in enumerate(body.get("messages", ())):
        for at, block in enumerate(blocks_of(message)):
            yield Placed(number, at, message.get("role", ""), block)


class _Prefix:
    """A digest that grows with what is said; cache marks and reasoning are no part of it."""

    def __init__(self, body: JsonObject) -> None:
        self._model = str(body.get("model"))
        self._state = hashlib.sha256(_json([self._model, body.get("system"), body.get("tools")]))

    def say(self, role: str, block: JsonObject) -> None:
        """Add a block."""
        if block.get("type") not in REASONING:
            self._state.update(_json([role, block]))

    def signature(self, before: str) -> str:
        """Sign reasoning that is made here, behind other reasoning (its signature)."""
        return f"{self._model}|{self._state.hexdigest()[:16]}|{hashlib.sha256(before.encode()).hexdigest()[:16]}"


def signed(block: JsonObject) -> str:
    """Return what a reasoning block carries as its signature."""
    return str(block.get("signature") or block.get("data") or "")


class Signer:
    """Signs the reasoning of one reply, block by block.

    Args:
        body: The request that is answered.
    """

    def __init__(self, body: JsonObject) -> None:
        self._prefix = _Prefix(body)
        self._before = ""
        for one in placed(body):
            self._prefix.say(one.role, one.content)
            self._before = signed(one.content) if one.is_reasoning else self._before

    def sign(self) -> str:
        """Sign reasoning that comes next."""
        self._before = self._prefix.signature(self._before)
        return self._before

    def say(self, block: JsonObject) -> None:
        """Take note of a block of the reply that is no reasoning."""
        self._prefix.say("assistant", block)


def misplaced(body: JsonObject) -> tuple[Placed, str] | None:
    """Return the first reasoning block that is not valid where it stands, and why: `model`, `prefix` or `chain`."""
    prefix, before = _Prefix(body), ""
    for one in placed(body):
        prefix.say(one.role, one.content)
        if not one.is_reasoning:
            continue
        own, expected = signed(one.content).split("|"), prefix.signature(before).split("|")
        if len(own) != len(expected) or own[1] != expected[1]:
            return one, "model" if own[0] != expected[0] else "prefix"
        # Reasoning may be left out at the beginning of a history, but not between other reasoning.
        if before and own[2] != expected[2]:
            return one, "chain"
        before = signed(one.content)
    return None


def _json(value: object) -> bytes:
    """A value as bytes, without cache marks."""
    return json.dumps(bare(value), sort_keys=True).encode()


def bare(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Leave the cache marks out of a value."""
    if isinstance(value, dict):
        return {name: bare(inner) for name, inner in value.items() if name != "cache_control"}  # pyright: ignore[reportUnknownVariableType]
    return [bare(inner) for inner in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]
