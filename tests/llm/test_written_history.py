"""The Anthropic adapter writes each message of a history once, and sends what it would send if it wrote all anew."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.llm.anthropic.messages import Histories
from explorer.llm.options import Timeouts
from explorer.schema.messages import CallResult, Message, Request, Results, StopKind, ToolCall, Turn, UserText
from llm.conversations import QUESTION
from llm.test_conversations import client_for, request_for, server_for
from model_servers import Reply

REQUESTS = 30
THINKING = {"type": "thinking", "thinking": "Dry, I think.", "signature": "c2ln"}
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


async def test_a_long_conversation_is_written_once() -> None:
    """The last request of many reads no earlier turn again: each is read as often as in the first request with it."""
    READS.clear()
    replies = [Reply(text=f"Answer {number}.") for number in range(REQUESTS)]
    history: tuple[Message, ...] = QUESTION
    with server_for("anthropic", *replies) as server:
        async with client_for("anthropic", server.url, Timeouts()) as client:
            for number in range(REQUESTS):
                turn = await client.generate(request_for(history))
                counted = CountedTurn(number=number, **{name: getattr(turn, name) for name in Turn.model_fields})
                history = (*history, counted, UserText(text="Go on."))
    assert len(server.requests[-1]["messages"]) == 2 * REQUESTS - 1
    assert len(READS) == REQUESTS - 1
    assert set(READS.values()) == {READS[REQUESTS - 2]}


def messages_of(kind: int, number: int) -> tuple[Message, ...]:
    """Words, a turn of the vendor's own with reasoning, one of another vendor, and calls with their results."""
    call = ToolCall(id=f"toolu_{number}", name="read_file", arguments={"n": number})
    use = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
    words = {"type": "text", "text": f"Words {number}."}
    results = Results(
        results=(CallResult(id=call.id, name=call.name, content=f"Found {number}.", is_error=number % 2 == 0),)
    )
    if kind == 0:
        return (UserText(text=f"Said {number}." if number % 3 else " "),)
    if kind == 1:
        return (Turn(provider="anthropic", model="m1", blocks=(THINKING, words), stop=StopKind.END),)
    provider = "anthropic" if kind == 2 else "openai-chat"
    blocks = (THINKING, words, use) if kind == 2 else ({"role": "assistant", "content": "Words."},)
    turn = Turn(provider=provider, model="m1", blocks=blocks, text="Words.", calls=(call,), stop=StopKind.TOOL_USE)
    return turn, results


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "same", "shorten", "compact", "forget", "model"]), st.integers(0, 3)
    ),
    min_size=3,
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_what_is_added_is_what_would_be_written_anew(steps: list[tuple[str, int]]) -> None:
    """Also after a history was shortened or compacted, reasoning was left out, or the model was another one."""
    histories = Histories()
    history: tuple[Message, ...] = (UserText(text="How was May?"),)
    kept: frozenset[int] = frozenset()
    model = "m1"
    for number, (step, kind) in enumerate(steps):
        match step:
            case "add":
                history += messages_of(kind, number)
                kept |= {len(history) - 1 - (kind > 1)} if number % 2 else frozenset()
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
        assert histories.messages(request, kept) == Histories().messages(request, kept)
