"""Reasoning goes back only behind exactly what it was made behind."""

import pytest

from explorer.llm.history import BoundReasoning
from explorer.schema.messages import (
    CallResult,
    Message,
    Request,
    Results,
    StopKind,
    ToolCall,
    ToolSchema,
    Turn,
    UserText,
)

READ = ToolSchema(name="read_file", description="Read.", parameters={"type": "object", "properties": {}})


def request_for(*history: Message, model: str = "m", system: str = "s", tools: tuple[ToolSchema, ...] = ()) -> Request:
    return Request(
        agent="a", role="r", model=model, system=system, tools=tools, history=history, max_output_tokens=1, run="x"
    )


def turn(number: int, bound_to: str = "", model: str = "m") -> Turn:
    return Turn(
        provider="anthropic",
        model=model,
        blocks=({"type": "thinking", "n": number}, {"type": "tool_use", "id": f"c{number}"}),
        calls=(ToolCall(id=f"c{number}", name="read_file", arguments={}),),
        stop=StopKind.TOOL_USE,
        bound_to=bound_to,
    )


def results(number: int, content: str = "long") -> Results:
    return Results(results=(CallResult(id=f"c{number}", name="read_file", content=content),))


def conversation(reasoning: BoundReasoning, turns: int, *history: Message) -> tuple[Message, ...]:
    """Go on with a conversation for so many turns, each bound to what stood before it."""
    for _ in range(turns):
        number = len(history)
        digest = reasoning.before(request_for(*history)).digest
        history = (*history, turn(number, digest), results(number))
    return history


def kept(history: tuple[Message, ...], **head: object) -> set[int]:
    """What a process that has seen nothing yet would send back."""
    return set(BoundReasoning("anthropic").before(request_for(*history, **head)).kept)  # pyright: ignore[reportArgumentType]


HISTORY = conversation(BoundReasoning("anthropic"), 3, UserText(text="Go."))


def test_an_unchanged_conversation_keeps_all_reasoning() -> None:
    """In the process that led it and in one that reads it from a journal; words added at the end change nothing."""
    assert kept(HISTORY) == {1, 3, 5}
    stored = tuple(type(message).model_validate_json(message.model_dump_json()) for message in HISTORY)
    assert kept((*stored, UserText(text="Hurry."))) == {1, 3, 5}
    other = Turn(provider="openai", model="x", blocks=(), stop=StopKind.END)
    assert kept((*HISTORY, other, UserText(text="And?"))) == {1, 3, 5}


@pytest.mark.parametrize(
    ("changed", "remaining"),
    [
        ((UserText(text="Stop."), *HISTORY[1:]), set[int]()),
        ((*HISTORY[:2], results(1, "short"), *HISTORY[3:]), {1}),
        ((*HISTORY[:4], results(3, "short"), *HISTORY[5:]), {1, 3}),
        ((*HISTORY[:3], UserText(text="Wait."), *HISTORY[3:]), {1}),
        ((HISTORY[0], *HISTORY[3:]), set[int]()),
        ((*HISTORY[:3], turn(3), *HISTORY[4:]), {1}),
        (
            (
                *HISTORY[:4],
                Results(results=(CallResult(id="c3", name="read_file", content="long", is_error=True),)),
                *HISTORY[5:],
            ),
            {1, 3},
        ),
    ],
    ids=["first words", "first result", "second result", "words between", "left out", "reasoning left out", "error"],
)
def test_a_change_ends_the_reasoning_after_it(changed: tuple[Message, ...], remaining: set[int]) -> None:
    """Whatever changes, the reasoning made behind it is left out, and that before it stays where the cache has it."""
    assert kept(changed) == remaining
    reasoning = BoundReasoning("anthropic")
    further = conversation(reasoning, 2, *changed)
    made = {len(changed), len(changed) + 2}
    assert kept(further) == reasoning.before(request_for(*further)).kept == remaining | made


@pytest.mark.parametrize("head", [{"system": "t"}, {"tools": (READ,)}, {"model": "n"}])
def test_another_head_ends_all_reasoning(head: dict[str, object]) -> None:
    """System text, tools and model stand before everything."""
    assert kept(HISTORY, **head) == set()


def test_back_at_the_first_model_its_reasoning_is_sent_again() -> None:
    """What another model said in between stands behind the first one's reasoning, not before it."""
    between = (*HISTORY, turn(7, "other", model="n"), results(7))
    assert kept(between) == {1, 3, 5}
    assert kept(conversation(BoundReasoning("anthropic"), 1, *between)) == {1, 3, 5, 9}


def test_a_turn_whose_bond_is_unknown_sends_no_reasoning() -> None:
    """Turns of older journals say nothing of what stood before them; what is made after them is bound anew."""
    old = tuple(one.model_copy(update={"bound_to": ""}) if isinstance(one, Turn) else one for one in HISTORY)
    assert kept(old) == set()
    assert kept(conversation(BoundReasoning("anthropic"), 1, *old)) == {7}
    assert "bound_to" not in old[1].model_dump_json()
