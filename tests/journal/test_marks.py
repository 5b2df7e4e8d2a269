"""Marks prove whose journal it is; nothing else about it changes."""

from pathlib import Path

import pytest

from engine_stage import NOON, noon, one_of_each
from explorer.journal.codec import chain_of, encode_all, encode_marked, is_own, scan
from explorer.journal.journal import Journal, Protection, read
from explorer.schema.events import JournalRecord, Repaired, Steered
from explorer.workspace.user_key import NO_KEY, UserKey

OWN, OTHER = UserKey(b"k" * 32), UserKey(b"x" * 32)


def records() -> list[JournalRecord]:
    """One of each type of event."""
    return [JournalRecord(v=1, seq=number, at=NOON, event=one) for number, one in enumerate(one_of_each(), 1)]


async def written(folder: Path, key: UserKey, *words: str) -> bool:
    """Append messages as a session with a key does; whether the journal was the user's own."""
    journal = Journal.open(folder / ".explorer", noon, protection=Protection(key=key))
    try:
        for text in words:
            await journal.append(Steered(text=text))
        return journal.is_own
    finally:
        journal.close()


def test_a_marked_journal_is_read_as_any_other() -> None:
    """The records are the same, and only the key that marked them finds its marks."""
    marked = encode_marked(records(), OWN)
    assert scan(marked).records == scan(encode_all(records())).records
    assert chain_of(marked, OWN) is not None
    assert chain_of(marked, OTHER) is chain_of(marked, NO_KEY) is chain_of(encode_all(records()), OWN) is None


async def test_sessions_continue_the_marks(tmp_path: Path) -> None:
    """A run stays the user's own over sessions, a torn tail and a move to another folder."""
    run = tmp_path / "run"
    (run / ".explorer").mkdir(parents=True)
    assert await written(run, OWN, "a", "b")
    with (run / ".explorer" / "journal.jsonl").open("ab") as file:
        file.write(b'{"v":1,"seq":3,"at":"2026')
    assert await written(run, OWN, "c")
    run = run.rename(tmp_path / "moved")
    assert await written(run, OWN, "d")
    assert is_own(run, OWN)
    assert [type(one.event) for one in read(run / ".explorer" / "journal.jsonl")][2] is Repaired


@pytest.mark.parametrize("first", [NO_KEY, OTHER], ids=["unmarked", "another's"])
async def test_a_carried_journal_gets_no_marks(tmp_path: Path, first: UserKey) -> None:
    """What others wrote is not made one's own by writing behind it; without the key one's own is not known either."""
    (tmp_path / ".explorer").mkdir()
    await written(tmp_path, first, "a")
    assert not await written(tmp_path, OWN, "b")
    assert not is_own(tmp_path, OWN)
    assert not is_own(tmp_path, first)
    assert not is_own(tmp_path / "nowhere", OWN)
