"""The two ways to read a line: quickly, in one pass, and with a closer look; both say the same."""

import json
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_stage import GOLDEN, NOON, one_of_each
from explorer.journal import codec
from explorer.journal.codec import GENESIS, encode, examine
from explorer.schema.events import AgentFinished, JournalRecord, NoteAdded, RunFinished, TurnTaken
from explorer.schema.messages import JsonObject
from explorer.testing import says
from thoroughness import examples

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def _both(line: bytes, prev: str, seq: int) -> tuple[JournalRecord | None, JournalRecord | None]:
    body = line.rstrip(b"\n")
    return codec._decode_quickly(body, prev, seq), codec._decode(body, prev, seq)


def test_each_event_is_read_quickly_as_it_is_read_closely() -> None:
    """Of every kind, and of the golden journal; only those that version 0.1 wrote otherwise need the closer look."""
    content = codec.encode_all(
        JournalRecord(v=1, seq=number, at=NOON, event=event) for number, event in enumerate(one_of_each(), 1)
    )
    for journal in (content, (GOLDEN / "journal_v1.jsonl").read_bytes()):
        prev, quick_ones = GENESIS, 0
        for seq, line in enumerate(journal.splitlines(keepends=True), 1):
            quick, close = _both(line, prev, seq)
            assert close is not None
            needs_codes = isinstance(close.event, AgentFinished | RunFinished | NoteAdded)
            assert quick == (None if needs_codes else close), line
            assert quick is None or quick.at.tzinfo == close.at.tzinfo
            quick_ones += quick is not None
            prev = json.loads(line)["crc"]
        assert quick_ones


@settings(max_examples=examples(40), deadline=None)
@given(st.dictionaries(st.text(), ANY_JSON, max_size=4))
def test_whatever_a_model_asks_is_read_alike(arguments: JsonObject) -> None:
    """Any JSON in the arguments of a call, down to its last digit."""
    event = TurnTaken(agent="a", turn=says("I look.", ("web_search", arguments)), seconds=0.5)
    line, _ = encode(JournalRecord(v=1, seq=1, at=NOON, event=event), GENESIS)
    quick, close = _both(line, GENESIS, 1)
    assert quick == close
    assert quick is not None
    assert quick.event == event


def test_what_the_quick_way_cannot_read_is_read_closely() -> None:
    """JSON that is nested too deep for the one parser is in the record all the same."""
    deep: Any = 1
    for _ in range(250):
        deep = [deep]
    event = TurnTaken(agent="a", turn=says("I look.", ("web_search", {"deep": deep})), seconds=0.5)
    line, _ = encode(JournalRecord(v=1, seq=1, at=NOON, event=event), GENESIS)
    assert _both(line, GENESIS, 1)[0] is None
    found = examine(line)
    assert [record.event for record in found.records] == [event]
    assert found.damage is None


@pytest.mark.parametrize(
    ("old", "new"), [(b'"v":1', b'"v":1.0'), (b'"seq":1,', b'"seq":2,'), (b'"prev":"00000000"', b'"prev":"00000001"')]
)
def test_a_line_in_a_wrong_place_is_no_record_in_either_way(old: bytes, new: bytes) -> None:
    """Also when its own checksum is right."""
    line, _ = encode(JournalRecord(v=1, seq=1, at=NOON, event=NoteAdded(text="x", reason="a")), GENESIS)
    head = line.replace(old, new)[: -len(',"crc":"00000000"}\n')]
    forged = head + b',"crc":"%08x"}' % zlib.crc32(head)
    assert codec._decode_quickly(forged, GENESIS, 1) is None
