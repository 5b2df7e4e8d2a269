"""What a model server was sent, and how much of it had been sent before in the very same bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

MARK = b',"cache_control":{"type":"ephemeral"}'
"""Says where to cache and is no part of what is cached: providers compare what stands around it."""


@dataclass(frozen=True)
class Recorded:
    """One request."""

    wire: str
    agent: str
    body: bytes
    at: float
    """Seconds of a monotonic clock."""


def common_prefix(one: bytes, other: bytes) -> int:
    """How many bytes two texts share from their beginning on."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def shares(recorded: Sequence[Recorded]) -> dict[str, float]:
    """Over all requests but each agent's first: which part of the request before came again as a byte prefix.

    `prefix_share` is of what was resent, that is of the shorter of the two bodies; a compacted history is short.
    """
    before: dict[str, bytes] = {}
    resent = shared = 0
    for one in recorded:
        body = one.body.replace(MARK, b"")
        # Up to the end of the messages: what closes a body is where the next one goes on.
        body = body[: body.rfind(b"]")]
        last = before.get(one.agent)
        if last is not None:
            resent += min(len(last), len(body))
            shared += common_prefix(last, body)
        before[one.agent] = body
    head = _head_bytes(before)
    return {"prefix_share": round(shared / resent, 4) if resent else 1.0, "helper_head_bytes": head}


def _head_bytes(last: dict[str, bytes]) -> int:
    """Bytes before the first words to a helper: its tools and its system text; the largest helper's."""
    helpers = [body.find(b"bench:") for agent, body in last.items() if ":orchestrator:" not in agent]
    return max(helpers, default=0)
