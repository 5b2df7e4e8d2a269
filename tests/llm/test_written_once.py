"""Long arguments stand in a turn twice, as the provider's block and as the neutral call, and in the journal once."""

import json
from typing import Any

import pytest

from engine_stage import NOON
from explorer.journal.codec import GENESIS, encode, scan
from explorer.llm.options import Timeouts
from explorer.schema.errors import JournalDamagedError
from explorer.schema.events import JournalRecord, TurnTaken
from explorer.schema.messages import Turn
from llm.conversations import BOTH, QUESTION
from llm.test_conversations import client_for, request_for, server_for
from model_servers import Reply

LONG = {
    "lines": 'A "quoted" line, a back\\slash and a\ttab.\n' * 100,
    "any script": "今天 🌍 \u2028 é" * 300,
    "half a pair": "\ud83d" + "x" * 1_000,
}


async def turn_with(wire: str, *calls: tuple[str, Any]) -> Turn:
    """What an adapter makes of a reply with these calls."""
    with server_for(wire, Reply(text="Writing.", calls=calls)) as server:
        async with client_for(wire, server.url, Timeouts()) as client:
            return await client.generate(request_for(QUESTION))


def line_of(turn: Turn) -> bytes:
    event = TurnTaken(agent="a", turn=turn, seconds=0.0)
    return encode(JournalRecord(v=1, seq=1, at=NOON, event=event), GENESIS)[0]


@pytest.mark.parametrize("wire", BOTH)
@pytest.mark.parametrize("kind", LONG)
async def test_long_arguments_are_read_back_from_where_they_are_written(wire: str, kind: str) -> None:
    """Nothing of a turn is different after it was written and read, whatever the arguments hold."""
    calls = [("write_file", {"filepath": f"{n}.md", "content": LONG[kind]}) for n in range(2)]
    turn = await turn_with(wire, *calls, ("read_file", {"filepath": "1.md"}))
    (record,) = scan(line_of(turn)).records
    assert isinstance(record.event, TurnTaken)
    assert record.event.turn == turn


@pytest.mark.parametrize("wire", BOTH)
async def test_long_arguments_are_written_once(wire: str) -> None:
    """A file of 10,000 characters costs its turn's line little more than that."""
    content = "word " * 2_000
    turn = await turn_with(wire, ("write_file", {"filepath": "a.md", "content": content}))
    assert turn.calls[0].arguments == {"filepath": "a.md", "content": content}
    assert line_of(turn).count(content.encode()) == 1
    assert len(line_of(turn)) < len(content) + 1_000


@pytest.mark.parametrize("wire", BOTH)
async def test_whoever_prints_a_turn_sees_its_arguments(wire: str) -> None:
    """Only the journal leaves them out."""
    turn = await turn_with(wire, ("write_file", {"filepath": "a.md", "content": "word " * 2_000}))
    assert json.loads(turn.model_dump_json())["calls"][0]["arguments"] == turn.calls[0].arguments


async def test_a_place_without_arguments_is_refused() -> None:
    """A line that was written by something else, with a right checksum, is told by its number."""
    turn = await turn_with(BOTH[0], ("write_file", {"filepath": "a.md", "content": "word " * 2_000}))
    wrong = turn.model_copy(update={"calls": (turn.calls[0].model_copy(update={"at": (7, "input")}),)})
    with pytest.raises(JournalDamagedError, match="record 1 is intact but not understood"):
        scan(line_of(wrong))
