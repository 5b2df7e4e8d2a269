import tempfile
from datetime import UTC, datetime
from pathlib import Path

import anyio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from explorer.journal.codec import scan
from explorer.journal.journal import Journal, read
from explorer.schema.events import NoteAdded, Repaired, Steered
from thoroughness import examples

NOON = datetime(2026, 8, 10, 12, tzinfo=UTC)


class JournalMachine(RuleBasedStateMachine):
    """A journal under appends, restarts, kills and torn tails, beside a plain list of what it acknowledged."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.acknowledged: list[str] = []
        self.repairs = 0

    @initialize()
    def begin(self) -> None:
        """Open an empty journal."""
        self.journal = Journal.open(self.folder, lambda: NOON)

    @rule(text=st.text(max_size=40), is_note=st.booleans())
    def append(self, text: str, is_note: bool) -> None:  # noqa: FBT001 - hypothesis hands it in
        """One event, acknowledged."""
        event = NoteAdded(text=text, reason="x") if is_note else Steered(text=text)

        async def append() -> None:
            await self.journal.append(event)

        anyio.run(append)
        self.acknowledged.append(text)

    @rule()
    def restart(self) -> None:
        """Close and open."""
        self.journal.close()
        self.journal = Journal.open(self.folder, lambda: NOON)

    @rule(torn=st.binary(min_size=1, max_size=30).filter(lambda tail: b"\n" not in tail))
    def die_while_writing(self, torn: bytes) -> None:
        """A kill in mid-write leaves the beginning of a line."""
        self.journal.close()
        with (self.folder / "journal.jsonl").open("ab") as file:
            file.write(b'{"v":1,"seq":' + torn)
        self.journal = Journal.open(self.folder, lambda: NOON)
        self.repairs += 1

    @invariant()
    def disk_is_model(self) -> None:
        """What was acknowledged is on disk, in order, numbered without gaps; nothing else but repairs is."""
        records = read(self.folder / "journal.jsonl")
        texts = [record.event.text for record in records if isinstance(record.event, NoteAdded | Steered)]
        assert texts == self.acknowledged
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        assert sum(isinstance(record.event, Repaired) for record in records) == self.repairs
        assert not scan((self.folder / "journal.jsonl").read_bytes()).torn

    def teardown(self) -> None:
        """Give the lock back."""
        self.journal.close()


JournalMachine.TestCase.settings = settings(max_examples=examples(25), stateful_step_count=20, deadline=None)
TestJournal = JournalMachine.TestCase
