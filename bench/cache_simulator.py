"""What share of its input tokens a run would read from Anthropic's prompt cache.

The rules, as the provider documents them: an entry is written only at a mark (`cache_control`), at most four a request;
a request finds the longest entry at one of its marks or at most 20 blocks before it; a prefix under a minimum of tokens
is not cached; an entry lives for five minutes after its last use. Tokens are taken as bytes divided by four.

    python bench/cache_simulator.py BODIES.jsonl      one line a request: {"at": seconds, "body": {...}}
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JsonObject = dict[str, Any]

LOOKBACK_BLOCKS = 20
MINIMUM_TOKENS = 1024
LIFETIME_S = 300.0
MAX_MARKS = 4
BYTES_PER_TOKEN = 4


class TooManyMarksError(ValueError):
    """The provider would refuse the request."""


@dataclass(frozen=True)
class Position:
    """The end of one block of a request."""

    digest: bytes
    """Of everything up to here, the block included."""
    tokens: int
    """Up to here."""
    is_marked: bool


@dataclass(frozen=True)
class Served:
    """One request's tokens by where they came from."""

    read: int
    written: int
    fresh: int

    @property
    def total(self) -> int:
        """All input tokens."""
        return self.read + self.written + self.fresh


@dataclass
class Simulator:
    """A cache, as one organisation's requests fill it in the order they come."""

    lifetime_s: float = LIFETIME_S
    minimum_tokens: int = MINIMUM_TOKENS
    served: list[Served] = field(default_factory=list[Served])
    """Request by request."""
    _entries: dict[bytes, float] = field(default_factory=dict[bytes, float])
    """By prefix, when it was last used."""

    def take(self, body: bytes | JsonObject, at: float) -> Served:
        """Serve one request.

        Raises:
            TooManyMarksError: It has more marks than are allowed.
        """
        parsed: JsonObject = json.loads(body) if isinstance(body, bytes) else body
        positions = list(positions_of(parsed))
        marks = [index for index, position in enumerate(positions) if position.is_marked]
        if len(marks) > MAX_MARKS:
            raise TooManyMarksError(f"{len(marks)} cache marks; {MAX_MARKS} are allowed")
        hit = self._longest(positions, marks, at)
        read = positions[hit].tokens if hit >= 0 else 0
        kept = [index for index in marks if positions[index].tokens >= self.minimum_tokens]
        for index in kept:
            self._entries[positions[index].digest] = at
        if hit >= 0:
            self._entries[positions[hit].digest] = at
        last = positions[kept[-1]].tokens if kept else 0
        total = positions[-1].tokens if positions else 0
        found = Served(read, max(0, last - read), total - max(last, read))
        self.served.append(found)
        return found

    def _longest(self, positions: list[Position], marks: list[int], at: float) -> int:
        """The last block up to which an entry is there; -1 without one."""
        for mark in reversed(marks):
            for index in range(mark, max(-1, mark - LOOKBACK_BLOCKS), -1):
                used = self._entries.get(positions[index].digest)
                if used is not None and at - used <= self.lifetime_s:
                    return index
        return -1

    @property
    def share(self) -> float:
        """Of all input tokens so far, those read from the cache."""
        total = sum(one.total for one in self.served)
        return round(sum(one.read for one in self.served) / total, 4) if total else 0.0


def positions_of(body: JsonObject) -> Iterator[Position]:
    """The blocks of a request in the order of the prefix: tools, system text, messages."""
    digest, tokens = hashlib.sha256(body.get("model", "").encode()), 0
    for label, block in _blocks_of(body):
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        text = label + json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        digest.update(text)
        tokens += len(text) // BYTES_PER_TOKEN
        yield Position(digest.digest(), tokens, "cache_control" in block)


def _blocks_of(body: JsonObject) -> Iterator[tuple[bytes, JsonObject]]:
    for tool in body.get("tools", ()):
        yield b"tool", tool
    for block in _as_blocks(body.get("system", ())):
        yield b"system", block
    for message in body["messages"]:
        for block in _as_blocks(message["content"]):
            yield message["role"].encode(), block


def _as_blocks(content: Any) -> list[JsonObject]:  # noqa: ANN401 - a text or blocks, as the API takes both
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def main() -> None:
    """Read recorded bodies and print the share."""
    simulator = Simulator()
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        request: JsonObject = json.loads(line)
        simulator.take(request["body"], float(request.get("at", 0.0)))
    print(json.dumps({"requests": len(simulator.served), "cache_share": simulator.share}))


if __name__ == "__main__":
    main()
