"""What OpenAI's Responses API does with encrypted reasoning: behind anything that has changed it is ignored.

Nothing is refused then, so no rule shows it. `withheld` names reasoning that was sent in vain, `lost` reasoning that
was left out although the model would have been shown it.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise

from vendor_rules.openai_responses import items_of, kind_of
from vendor_rules.rule import Asked, JsonObject

FROM_OUTSIDE = ("user", "function_call_output")


def prefixes(body: JsonObject, items: Sequence[JsonObject]) -> Iterator[str]:
    """Yield a digest of all that stands before each item, then one of the whole request."""
    state = hashlib.sha256(_bytes([body.get("model"), body.get("instructions"), body.get("tools")]))
    yield state.hexdigest()[:24]
    for item in items:
        state.update(_bytes(item))
        yield state.hexdigest()[:24]


def _bytes(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def prefix_of(body: JsonObject) -> str:
    """Return the digest that the reasoning of the reply to a request is bound to."""
    *_, whole = prefixes(body, items_of(Asked(body)))
    return whole


def withheld(body: JsonObject) -> list[JsonObject]:
    """Return what the response says of reasoning that the model is not shown, in `input_transformations`."""
    items = items_of(Asked(body))
    found: list[JsonObject] = []
    for item, prefix in zip(items, prefixes(body, items), strict=False):
        if kind_of(item) != "reasoning":
            continue
        made_behind = bytes.fromhex(item["encrypted_content"].rpartition(".")[2]).decode()
        if made_behind != prefix:
            found.append({"type": "reasoning", "id": item["id"], "action": "removed", "reason": "prefix_mismatch"})
    return found


def lost(bodies: Sequence[JsonObject]) -> list[tuple[int, str]]:
    """Return (request, id of a call) where a turn came back without its reasoning and nothing before it had changed.

    Args:
        bodies: All requests of one conversation with a model that reasons before every reply. Its calls are named
            after the requests that they answer, as `OpenAIResponsesServer` names them: `call_7_0`.
    """
    made = {f"call_{number}_0": prefix_of(body) for number, body in enumerate(bodies)}
    found: list[tuple[int, str]] = []
    for number, body in enumerate(bodies):
        items = items_of(Asked(body))
        begin = ""
        for (before, item), prefix in zip(pairwise([{"role": "user"}, *items]), prefixes(body, items), strict=False):
            if _is_from_outside(before):
                begin = "" if kind_of(item) == "reasoning" else prefix
            call = str(item.get("call_id", ""))
            if kind_of(item) == "function_call" and begin and made.get(call) == begin:
                found.append((number, call))
    return found


def _is_from_outside(item: JsonObject) -> bool:
    return item.get("role", kind_of(item)) in FROM_OUTSIDE
