"""The adapters write each message of a history once, and send what they would send if they wrote all of it anew."""

from collections import Counter
from collections.abc import Callable, Collection
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.llm.anthropic.messages import MessagesWriter, with_cache_marks
from explorer.llm.history import Histories, HistoryWriter
from explorer.llm.openai.chat import ChatWriter
from explorer.llm.openai.dialect import Dialect
from explorer.llm.openai.responses import InputWriter
from explorer.llm.options import Timeouts
from explorer.llm.prompt_cache import EncodedRequests
from explorer.schema.messages import (
    CallResult,
    JsonObject,
    Message,
    Request,
    Results,
    StopKind,
    ToolCall,
    Turn,
    UserText,
)
from llm.conversations import ANTHROPIC, CHAT, QUESTION, RESPONSES
from llm.test_conversations import client_for, request_for, server_for
from model_servers import Reply
from thoroughness import each_slow_but

REQUESTS = 30
READS: Counter[int] = Counter()
"""How often the blocks of the turn with this number were read."""


class CountedTurn(Turn):
    """A turn that counts how often its blocks are read."""

    number: int

    def __getattribute__(self, name: str) -> object:
        """Count, then do as usual."""
        if name == "blocks":
            READS[object.__getattribute__(self, "__dict__")["number"]] += 1
        return super().__getattribute__(name)


@pytest.mark.slow
@pytest.mark.parametrize("wire", each_slow_but(3, zip([ANTHROPIC, CHAT, RESPONSES])))
async def test_a_long_conversation_is_written_once(wire: str) -> None:
    """The last request of many reads no earlier turn again: each is read as often as in the first request with it."""
    READS.clear()
    replies = [Reply(text=f"Answer {number}.") for number in range(REQUESTS)]
    history: tuple[Message, ...] = QUESTION
    with server_for(wire, *replies) as server:
        async with client_for(wire, server.url, Timeouts()) as client:
            for number in range(REQUESTS):
                turn = await client.generate(request_for(history))
                counted = CountedTurn(number=number, **{name: getattr(turn, name) for name in Turn.model_fields})
                history = (*history, counted, UserText(text="Go on."))
    assert str(server.requests[-1]).count("Go on.") == REQUESTS - 1
    assert len(READS) == REQUESTS - 1
    assert set(READS.values()) == {READS[REQUESTS - 2]}


WRITERS: dict[str, Callable[[str], HistoryWriter]] = {
    "anthropic": MessagesWriter,
    "openai-chat": lambda model: ChatWriter(model, Dialect()),
    "openai-responses": InputWriter,
}
OWN: dict[str, tuple[JsonObject, ...]] = {
    "anthropic": (
        {"type": "thinking", "thinking": "Dry, I think.", "signature": "c2ln"},
        {"type": "text", "text": "Words."},
    ),
    "openai-chat": (
        {
            "role": "assistant",
            "content": "Words.",
            "reasoning_details": [{"signature": "c2ln"}],
            "tool_calls": [{"id": "call", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}],
        },
    ),
    "openai-responses": (
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []},
    ),
}


def messages_of(wire: str, kind: int, number: int) -> tuple[Message, ...]:
    """Words; a turn of the vendor's own with a call, whose id comes back; one of another vendor with a call."""
    if kind == 0:
        return (UserText(text=f"Said {number}." if number % 3 else " "),)
    call = ToolCall(id="call" if kind == 1 else f"call{number:05}", name="read_file", arguments={"n": number})
    content, is_error = f"Found {number}.", number % 2 == 0
    results = Results(results=(CallResult(id=call.id, name=call.name, content=content, is_error=is_error),))
    provider, blocks = (wire, OWN[wire]) if kind == 1 else ("another", ())
    turn = Turn(provider=provider, model="m1", blocks=blocks, text="Words.", calls=(call,), stop=StopKind.TOOL_USE)
    return (turn, results) if kind < 3 else (turn, results, UserText(text="Go on."))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "many", "many", "same", "shorten", "compact", "forget", "model"]),
        st.integers(0, 3),
    ),
    min_size=3,
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(WRITERS)), STEPS)
def test_what_is_added_is_what_would_be_written_anew(wire: str, steps: list[tuple[str, int]]) -> None:
    """Also after a history was shortened or compacted, reasoning was left out, or the model was another one."""
    histories, bodies = Histories(WRITERS[wire]), EncodedRequests(prefix_of)
    history: tuple[Message, ...] = (UserText(text="How was May?"),)
    kept: frozenset[int] = frozenset()
    model = "m1"
    for number, (step, kind) in enumerate(steps):
        match step:
            case "add":
                history += messages_of(wire, kind, number)
                kept |= {position for position in range(len(history)) if number % 2}
            case "many":
                history += tuple(one for part in range(6) for one in messages_of(wire, kind, 100 * number + part))
            case "shorten":
                history = history[: max(1, len(history) - kind)]
            case "compact":
                history = (UserText(text=f"Summary {number}."), *history[2:])
            case "forget":
                kept = frozenset(sorted(kept)[kind:])
            case "model":
                model = "m2" if model == "m1" else "m1"
            case _:
                pass
        request = Request(agent="a", role="r", model=model, system="s", tools=(), history=history, max_output_tokens=9)
        assert histories.messages(request, kept) == Histories(WRITERS[wire]).messages(request, kept)
        sent, rest = sent_messages(wire, histories, request, kept), {"max_tokens": number}
        assert bodies.body(request, sent, rest) == EncodedRequests(prefix_of).body(request, deepcopy(sent), rest)


def prefix_of(request: Request) -> JsonObject:
    """A prefix; what is in it does not matter here."""
    return {"model": request.model, "messages": []}


def sent_messages(wire: str, histories: Histories, request: Request, kept: Collection[int]) -> list[JsonObject]:
    """The messages as the wire's adapter sends them."""
    messages = histories.messages(request, kept)
    return with_cache_marks(messages) if wire == "anthropic" else messages
