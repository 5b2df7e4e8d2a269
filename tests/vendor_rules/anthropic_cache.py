"""What Anthropic's prompt cache would find: no rule, for what finds nothing is answered, at ten times the price.

An entry is written at each mark. A request finds the longest entry that ends at one of its marks or at most 20 blocks
before it (https://platform.claude.com/docs/en/build-with-claude/prompt-caching).
"""

import hashlib
import json
from collections.abc import Iterator

from vendor_rules.anthropic_thinking import JsonObject, bare, placed

LOOKBACK_BLOCKS = 20


class PromptCache:
    """All entries that a server's requests have written."""

    def __init__(self) -> None:
        self._entries: set[str] = set()
        self.missed = 0
        """Requests that found a shorter entry than there was, because it stood too far before their marks."""

    def take(self, body: JsonObject) -> None:
        """Look a request up, then write its entries."""
        digests: list[str] = []
        marks: list[int] = []
        for digest, is_marked in _positions(body):
            if is_marked:
                marks.append(len(digests))
            digests.append(digest)
        known = [at for at, digest in enumerate(digests) if digest in self._entries]
        found = [at for at in known if any(0 <= mark - at <= LOOKBACK_BLOCKS for mark in marks)]
        self.missed += max(found, default=-1) < max(known, default=-1)
        self._entries.update(digests[mark] for mark in marks)


def _positions(body: JsonObject) -> Iterator[tuple[str, bool]]:
    """The end of each block of tools, system text and messages: a digest of all up to it, and whether it is marked."""
    state = hashlib.sha256(str(body.get("model")).encode())
    parts: list[tuple[str, JsonObject]] = [("tools", one) for one in body.get("tools") or ()]
    parts += [("system", one) for one in body.get("system") or () if isinstance(one, dict)]
    parts += [(one.role, one.content) for one in placed(body)]
    for role, block in parts:
        state.update(json.dumps([role, bare(block)], sort_keys=True).encode())
        yield state.hexdigest(), bool(block.get("cache_control"))
