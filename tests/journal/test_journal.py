import asyncio
import errno
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_stage import GOLDEN, NOON, noon, one_of_each
from explorer.journal.codec import ENVELOPE, GENESIS, encode, scan
from explorer.journal.journal import Journal, Protection, read
from explorer.journal.run_state import RunState
from explorer.schema.errors import JournalDamagedError, RunLockedError, StorageError
from explorer.schema.events import (
    AgentFinished,
    AnyEvent,
    JournalRecord,
    NoteAdded,
    Repaired,
    RequestSent,
    RunFinished,
    RunStarted,
    Status,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnTaken,
)
from explorer.schema.messages import StopKind, TaskData, ToolCall, Turn, UserText
from explorer.schema.reasons import EndCause, NoteReason
from explorer.schema.tool import Effect
from explorer.testing import says
from thoroughness import examples, some

SMALL: tuple[AnyEvent, ...] = (
    NoteAdded(text="é\n", reason="a"),
    RunFinished(status=Status.FAILED, reason=""),
    Steered(text="{}"),
    NoteAdded(text='"}\\', reason="b"),
)
HOLDER = """
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from explorer.journal.journal import Journal
journal = Journal.open(Path(sys.argv[1]), lambda: datetime.now(UTC))
print("open", flush=True)
sys.stdin.read()
"""


def lines_of(events: Sequence[AnyEvent]) -> list[bytes]:
    """The lines of a journal that holds these events."""
    lines: list[bytes] = []
    crc = GENESIS
    for number, event in enumerate(events, 1):
        line, crc = encode(JournalRecord(v=1, seq=number, at=NOON, event=event), crc)
        lines.append(line)
    return lines


def events_of(records: Sequence[JournalRecord]) -> list[AnyEvent]:
    """Only what happened."""
    return [record.event for record in records]


def open_journal(folder: Path, *observers: Callable[[JournalRecord], None]) -> Journal:
    """The journal in a folder."""
    return Journal.open(folder, noon, observers)


async def append_all(folder: Path, *events: AnyEvent) -> None:
    """Open, append, close."""
    journal = open_journal(folder)
    try:
        for event in events:
            await journal.append(event)
    finally:
        journal.close()


@contextmanager
def limited_file_size(limit_bytes: int) -> Generator[None]:
    """A full disk, as the kernel plays it: no file of this process grows past the limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Syncs:
    """Stands before `os.fdatasync`: counts, and waits or fails as told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.fails_with: OSError | None = None
        self.open = threading.Event()
        self.open.set()
        self._entered = threading.Event()
        real = os.fdatasync

        def fdatasync(descriptor: int) -> None:
            self.count += 1
            self._entered.set()
            assert self.open.wait(10)
            if self.fails_with is not None:
                raise self.fails_with
            real(descriptor)

        monkeypatch.setattr(os, "fdatasync", fdatasync)

    async def is_waiting(self) -> None:
        """Return once the journal's thread stands here."""
        assert await asyncio.to_thread(self._entered.wait, 10)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    return Syncs(monkeypatch)


texts = st.text(st.characters(codec=None, categories=None), max_size=30) | st.sampled_from(
    ["\0", "\ud800", '"', "\\", "\n", "\r\n", "\u2028", '"}\n{"v":1', ',"crc":"00000000"}', "\U0001f9ea", "\x7f\x80"]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def events(draw: st.DrawFn) -> AnyEvent:
    """Any words anywhere a model or a user can put them."""
    text = draw(texts)
    turn = Turn(provider="p", model="m", blocks=(draw(st.dictionaries(st.text(), json_values)),), stop=StopKind.END)
    finished = ToolFinished(agent="a", call="a.t1.1", name=text, success=False, content=text)
    choices: list[AnyEvent] = [Steered(text=text), NoteAdded(text=text, reason=text), finished]
    return draw(st.sampled_from([*choices, TurnTaken(agent="a", turn=turn, seconds=0.0)]))


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(events(), max_size=6))
def test_what_is_encoded_is_read_back(written: list[AnyEvent]) -> None:
    """Every text comes back as it was, but for lone surrogates, which no UTF-8 can hold."""
    found = scan(b"".join(lines_of(written)))

    def has_surrogates(event: AnyEvent) -> bool:
        words = json.dumps(event.model_dump(), ensure_ascii=False, default=str)
        return any("\ud800" <= letter <= "\udfff" for letter in words)

    assert found.torn == b""
    assert [record.seq for record in found.records] == list(range(1, len(written) + 1))
    for event, read_back in zip(written, events_of(found.records), strict=True):
        if has_surrogates(event):
            assert type(read_back) is type(event)
            assert not has_surrogates(read_back)
        else:
            assert read_back == event


async def test_appended_records_are_read_back(tmp_path: Path) -> None:
    """One event of every type goes to disk and comes back, by a reopened journal and by a plain reader."""
    events = one_of_each()
    await append_all(tmp_path, *events)
    assert events_of(read(tmp_path / "journal.jsonl")) == events
    journal = open_journal(tmp_path)
    journal.close()
    assert events_of(journal.records) == events
    assert not (tmp_path / "journal.torn").exists()


async def test_a_journal_cut_at_any_byte_keeps_its_whole_records(tmp_path: Path) -> None:
    """At every length: the whole records stay, the rest is kept aside, the cut is on record, appending works."""
    lines = lines_of(SMALL[1:])
    content = b"".join(lines)
    path = tmp_path / "journal.jsonl"
    ends = [len(b"".join(lines[:number])) for number in range(len(lines))]
    for length in sorted(
        {*some(range(len(content))), *ends, *(end + 1 for end in ends), *(end - 1 for end in ends[1:])}
    ):
        path.write_bytes(content[:length])
        (tmp_path / "journal.torn").unlink(missing_ok=True)
        whole = sum(length >= len(b"".join(lines[: number + 1])) for number in range(len(lines)))
        torn = content[len(b"".join(lines[:whole])) : length]
        await append_all(tmp_path, Steered(text="after"))
        expected = [*SMALL[1 : 1 + whole], *([Repaired(cut_bytes=len(torn))] if torn else []), Steered(text="after")]
        assert events_of(read(path)) == expected, f"cut at byte {length}"
        kept = (tmp_path / "journal.torn").read_bytes() if torn else b""
        assert kept == torn, f"cut at byte {length}"


@pytest.mark.slow
def test_no_flipped_bit_makes_a_wrong_record() -> None:
    """Whatever byte is hit: damage before intact records is refused by number; in the last one it is a torn tail."""
    lines = lines_of(SMALL)
    content = b"".join(lines)
    ends = [len(b"".join(lines[: number + 1])) for number in range(len(lines))]
    for position in range(len(content)):
        damaged_record = 1 + sum(position >= end for end in ends)
        for bit in (0x01, 0x20, 0x80):
            hit = bytearray(content)
            hit[position] ^= bit
            where = f"byte {position}, bit {bit:#x}"
            if damaged_record == len(lines):
                found = scan(bytes(hit))
                assert events_of(found.records) == list(SMALL[:-1]), where
                assert found.torn == hit[ends[-2] :], where
            else:
                with pytest.raises(JournalDamagedError, match=f"record {damaged_record} "):
                    scan(bytes(hit))


def test_without_check_sums_flipped_bits_would_pass() -> None:
    """The control for the test above: a reader that only parses takes many a wrong record."""
    event = Steered(text="a long enough text to be hit by a flipped bit")
    (line,) = lines_of([event])
    accepted = 0
    for position in range(len(line) - 1):
        hit = bytearray(line)
        hit[position] ^= 0x01
        with suppress(ValueError, KeyError):
            accepted += Steered(text=json.loads(hit)["text"]) != event
    assert accepted > 20


@pytest.mark.parametrize(
    "order", [[1, 2], [0, 2], [0, 1, 3], [0, 2, 1], [0, 1, 2, 2], [0, 1, 1, 2], [1], [0, 0]], ids=str
)
def test_missing_foreign_or_doubled_lines_are_refused(order: list[int]) -> None:
    """Intact lines in the wrong place are never taken for a torn tail, and never accepted."""
    lines = lines_of(SMALL)
    with pytest.raises(JournalDamagedError, match="record"):
        scan(b"".join(lines[index] for index in order))


def test_a_tail_of_zeros_is_cut(tmp_path: Path) -> None:
    """What a power cut leaves on many file systems, a run of zeros, is a torn tail."""
    lines = lines_of(SMALL)
    found = scan(b"".join(lines) + b"\0" * 300)
    assert events_of(found.records) == list(SMALL)
    assert len(found.torn) == 300
    (tmp_path / "journal.jsonl").write_bytes(b"\0" * 300)
    journal = open_journal(tmp_path)
    journal.close()
    assert events_of(journal.records) == [Repaired(cut_bytes=300)]


def test_a_newer_version_is_refused_in_clear_words(tmp_path: Path) -> None:
    """A record of a later format stops the reader, who is told to update, and nothing is cut off."""
    line, _ = encode(JournalRecord(v=2, seq=1, at=NOON, event=Steered(text="x")), GENESIS)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(line)
    for attempt in (lambda: read(path), lambda: open_journal(tmp_path)):
        with pytest.raises(JournalDamagedError, match=r"record 1 has version 2; .* up to 1") as caught:
            attempt()
        assert "update explorer" in caught.value.hint
    assert path.read_bytes() == line


def test_an_unknown_event_is_refused_by_number() -> None:
    """An intact record that this version does not understand is no torn tail."""

    class Unknown(Steered):
        type: Any = "unknown_to_us"

    line, _ = encode(JournalRecord.model_construct(v=1, seq=1, at=NOON, event=Unknown(text="x")), GENESIS)
    with pytest.raises(JournalDamagedError, match="record 1 is intact but not understood"):
        scan(line)


async def test_damage_is_refused_at_opening_and_the_lock_given_back(tmp_path: Path) -> None:
    """A damaged journal is left exactly as it is, and can be opened once it is mended."""
    content = b"".join(lines_of(SMALL))
    damaged = b"X" + content[1:]
    path = tmp_path / "journal.jsonl"
    path.write_bytes(damaged)
    with pytest.raises(JournalDamagedError, match="record 1 "):
        open_journal(tmp_path)
    assert path.read_bytes() == damaged
    path.write_bytes(content)
    open_journal(tmp_path).close()


def test_a_second_process_is_locked_out_until_the_first_is_killed(tmp_path: Path) -> None:
    """The other is told who works on the run; a killed holder leaves nothing to clean up."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(RunLockedError, match=f"process {holder.pid} is working on this run") as caught:
            open_journal(tmp_path)
        assert f"process {holder.pid} " in caught.value.message
        assert caught.value.hint.endswith(f"explorer stop {tmp_path.parent.name}")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        asyncio.run(append_all(tmp_path, *SMALL))
    assert len(read(tmp_path / "journal.jsonl")) == len(SMALL)


async def test_concurrent_appends_share_syncs(tmp_path: Path, syncs: Syncs) -> None:
    """64 appends at once cost a handful of syncs, stand in one order, and reach the observer in it."""
    seen: list[int] = []
    journal = open_journal(tmp_path, lambda record: seen.append(record.seq))
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(journal.append(Steered(text=str(number)))) for number in range(64)]
    finally:
        journal.close()
    assert syncs.count <= 4
    records = read(tmp_path / "journal.jsonl")
    assert [record.seq for record in records] == list(range(1, 65)) == seen
    for task in tasks:
        assert records[task.result().seq - 1] == task.result()


async def test_an_observer_that_fails_costs_the_others_no_record(tmp_path: Path) -> None:
    """Each gets every record of a batch in order; what one raises reaches the loop's exception handler."""
    seen: list[int] = []
    failed: list[int] = []
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, facts: raised.append(facts.get("exception")))

    def fail(record: JournalRecord) -> None:
        failed.append(record.seq)
        raise KeyError(record.seq)

    journal = open_journal(tmp_path, fail, lambda record: seen.append(record.seq))
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(journal.append(Steered(text=str(number))))
        await journal.append(Steered(text="last"))
    finally:
        journal.close()
    assert seen == failed == list(range(1, 10))
    assert raised
    assert all(isinstance(error, KeyError) for error in raised)


async def test_appends_one_after_the_other_are_synced_one_by_one(tmp_path: Path, syncs: Syncs) -> None:
    """The control for the test above: nothing is acknowledged without a sync of its own or a shared one."""
    await append_all(tmp_path, *(Steered(text=str(number)) for number in range(8)))
    assert syncs.count == 8


async def test_nobody_hears_of_a_record_before_it_is_durable(tmp_path: Path, syncs: Syncs) -> None:
    """While the disk is busy neither the appender goes on nor an observer is called."""
    seen: list[int] = []
    journal = open_journal(tmp_path, lambda record: seen.append(record.seq))
    syncs.open.clear()
    first = asyncio.ensure_future(journal.append(Steered(text="1")))
    second = asyncio.ensure_future(journal.append(Steered(text="2")))
    await syncs.is_waiting()
    for _ in range(20):
        await asyncio.sleep(0)
    assert (first.done(), second.done(), seen) == (False, False, [])
    syncs.open.set()
    await first
    assert seen[0] == 1
    await second
    assert seen == [1, 2]
    journal.close()


async def test_a_cancelled_append_leaves_a_sound_journal(tmp_path: Path, syncs: Syncs) -> None:
    """Whether its record was on its way or still waiting, those after it are appended and read in order."""
    journal = open_journal(tmp_path)
    syncs.open.clear()
    tasks = [asyncio.ensure_future(journal.append(Steered(text=str(number)))) for number in range(4)]
    await syncs.is_waiting()
    tasks[0].cancel()
    tasks[2].cancel()
    await asyncio.wait([tasks[0], tasks[2]])
    syncs.open.set()
    await asyncio.wait(tasks)
    await journal.append(Steered(text="last"))
    journal.close()
    texts = [event.text for event in events_of(read(tmp_path / "journal.jsonl")) if isinstance(event, Steered)]
    assert texts == ["0", "1", "2", "3", "last"]


async def test_cancelled_and_closed_is_still_a_sound_journal(tmp_path: Path, syncs: Syncs) -> None:
    """A run stopped in the middle of an append leaves whole records, and the next life goes on after them."""
    journal = open_journal(tmp_path)
    syncs.open.clear()
    tasks = [asyncio.ensure_future(journal.append(Steered(text=str(number)))) for number in range(3)]
    await syncs.is_waiting()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    syncs.open.set()
    journal.close()
    await append_all(tmp_path, Steered(text="next life"))
    records = read(tmp_path / "journal.jsonl")
    assert events_of(records) == [Steered(text="0"), Steered(text="next life")]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS])
async def test_a_failing_sync_stops_the_journal(tmp_path: Path, syncs: Syncs, number: int) -> None:
    """What was acknowledged is readable; the failed append and all later ones say so; reopening works."""
    journal = open_journal(tmp_path)
    await journal.append(Steered(text="kept"))
    syncs.fails_with = OSError(number, os.strerror(number))
    async with asyncio.TaskGroup() as group:
        failing = [group.create_task(expect_failure(journal, os.strerror(number))) for _ in range(5)]
    assert all(task.result() for task in failing)
    syncs.fails_with = None
    assert await expect_failure(journal, os.strerror(number))
    journal.close()
    await append_all(tmp_path, Steered(text="mended"))
    found = events_of(read(tmp_path / "journal.jsonl"))
    assert (found[0], found[-1]) == (Steered(text="kept"), Steered(text="mended"))


SENT = RequestSent(agent="a", model="m", input_tokens=1, output_tokens=1)


async def expect_failure(journal: Journal, words: str, event: AnyEvent = Steered(text="lost")) -> bool:  # noqa: B008 - frozen
    """Append, and want it refused in these words, with the way on."""
    with pytest.raises(StorageError, match=words) as caught:
        await journal.append(event)
    return "everything acknowledged so far is safe" in caught.value.message and "resume" in caught.value.hint


@pytest.mark.parametrize("event", [Steered(text="lost"), SENT], ids=["synced", "only written"])
async def test_a_disk_that_fills_up_in_the_middle_of_a_line(tmp_path: Path, event: AnyEvent) -> None:
    """A real short write: the half line is cut off at the next opening, and the rest is all there."""
    journal = open_journal(tmp_path)
    await journal.append(Steered(text="kept"))
    size = (tmp_path / "journal.jsonl").stat().st_size
    with limited_file_size(size + 40):
        assert await expect_failure(journal, "File too large", event)
        assert await expect_failure(journal, "File too large")
        journal.close()
    assert (tmp_path / "journal.jsonl").stat().st_size == size + 40
    await append_all(tmp_path, Steered(text="mended"))
    records = events_of(read(tmp_path / "journal.jsonl"))
    assert records == [Steered(text="kept"), Repaired(cut_bytes=40), Steered(text="mended")]


async def test_an_event_that_cannot_be_written_spoils_nothing(tmp_path: Path) -> None:
    """A key no UTF-8 can hold is an error of its caller; the records after it still follow each other."""
    journal = open_journal(tmp_path)
    bad = TurnTaken(turn=says("x", ("search", {"\ud800": 1})), seconds=0.0)
    with pytest.raises(ValueError, match="surrogates"):
        await journal.append(bad)
    await journal.append(Steered(text="after"))
    journal.close()
    assert events_of(read(tmp_path / "journal.jsonl")) == [Steered(text="after")]


async def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    """No folder, no journal: one clear error."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        open_journal(tmp_path / "file" / "inside")
    with pytest.raises(StorageError, match="cannot read"):
        read(tmp_path / "missing.jsonl")


def test_the_golden_journal_of_version_1_still_folds(request: pytest.FixtureRequest) -> None:
    """A journal as version 1 wrote it, with every type of event, gives the same run today.

    Written anew only while no version with the new events is released.
    """
    path = GOLDEN / "journal_v1.jsonl"
    if request.config.getoption("--update-golden"):
        path.write_bytes(b"".join(lines_of(one_of_each())))
    records = read(path)
    known = {kind.__name__ for kind in get_args(get_args(AnyEvent)[0])}
    assert {type(record.event).__name__ for record in records} == known
    run_state = RunState.of(events_of(records))
    assert isinstance(records[0].event, RunStarted)
    assert (records[0].at, records[0].event.question) == (NOON, "What is notable?")
    helper, lead = run_state.agents["searcher-1"], run_state.agents["orchestrator"]
    assert (helper.steps, helper.parent_call, list(helper.files)) == (2, "orchestrator.t1.1", ["notes/a.md"])
    assert helper.finished is not None
    assert (helper.finished.summary, helper.finished.cause) == ("One story [S1].", EndCause.ANSWERED)
    assert helper.messages[0] == UserText(text="look", task=TaskData(words="look"))
    assert lead.messages[0] == UserText(
        text="Question: x", task=TaskData(words="What is notable?", settings={"a": [1]})
    )
    assert (lead.steps, lead.finished, lead.steps_left, run_state.finished) == (2, None, 60, None)
    assert [type(message).__name__ for message in lead.messages] == [
        "UserText", "Turn", "Results", "UserText", "Turn", "UserText",
    ]  # fmt: skip
    assert (run_state.cost_usd, run_state.usage.total_tokens, list(run_state.sources)) == (0.75, 502, ["S1"])
    assert run_state.agents["searcher-1"].messages[2] == one_of_each()[8].turn  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("event", "reason", "code"),
    [
        (RunFinished(status=Status.PARTIAL, reason="time limit; nothing was found"), "cause", EndCause.TIME_LIMIT),
        (RunFinished(status=Status.PARTIAL, reason="step limit of its role (9)"), "cause", EndCause.OTHER),
        (AgentFinished(status=Status.PARTIAL, reason="cost limit", summary=""), "cause", EndCause.COST_LIMIT),
        (AgentFinished(status=Status.COMPLETE, reason="found nothing", summary=""), "cause", EndCause.FOUND_NOTHING),
        (NoteAdded(text="It ended.", reason="bash_12_ended"), "reason", NoteReason.JOB_ENDED),
    ],
)
def test_codes_that_were_not_written_are_added(event: AnyEvent, reason: str, code: str, tmp_path: Path) -> None:
    """Explorer 0.1 wrote words alone; they never changed, so a code stands for them from the moment they are read."""
    line, _ = encode(JournalRecord(v=1, seq=1, at=NOON, event=event), GENESIS)
    head = line.partition(b',"crc"')[0].replace(b'"cause":"other",', b"")
    path = tmp_path / "old.jsonl"
    path.write_bytes(head + b',"crc":"%08x"}\n' % zlib.crc32(head))
    (record,) = read(path)
    assert getattr(record.event, reason) == code
    if isinstance(record.event, NoteAdded):
        assert record.event.data == {"job": "bash_12"}


SENDER = """
import asyncio
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from explorer.schema.events import NoteAdded, RequestSent
from explorer.journal.journal import Journal

async def main():
    journal = Journal.open(Path(sys.argv[1]), lambda: datetime.now(UTC))
    await journal.append(NoteAdded(text="a", reason="a"))
    sent = [RequestSent(agent=f"a-{n}", model="m", input_tokens=1, output_tokens=1) for n in range(20)]
    os.fdatasync = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # Not one of them may wait for a sync.
    async with asyncio.TaskGroup() as group:
        for one in sent:
            group.create_task(journal.append(one))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_killed_process_leaves_what_it_had_sent(tmp_path: Path) -> None:
    """A request's record is in the file before the request goes out, without a sync of its own."""
    done = subprocess.run([sys.executable, "-c", SENDER, tmp_path], check=False, timeout=30)
    assert done.returncode == -signal.SIGKILL
    assert [record.event.type for record in read(tmp_path / "journal.jsonl")] == ["note"] + 20 * ["request_sent"]


async def test_a_second_store_never_keeps_the_loop_waiting(tmp_path: Path) -> None:
    """It may block, so it is called in the journal's thread, for whatever kind of record."""
    threads: set[int] = set()

    class Slow:
        def write(self, entries: Sequence[tuple[JournalRecord, bytes]], *, is_synced: bool) -> None:  # noqa: ARG002
            threads.add(threading.get_ident())

    journal = Journal.open(tmp_path, noon, protection=Protection(store=Slow()))
    for event in (SENT, Steered(text="kept"), SENT):
        await journal.append(event)
    journal.close()
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_a_record_in_the_file_is_not_called_durable(tmp_path: Path) -> None:
    """What was written without a sync counts as on disk only after the next one."""
    note = NoteAdded(text="a", reason="a")
    await append_all(tmp_path, note, SENT, SENT, note, note)
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [line["sure"] for line in lines] == [0, 1, 1, 1, 4]


def test_no_event_has_a_field_of_the_envelope() -> None:
    """An event's own `at` or `seq` would be written over the record's, and no such journal could be read again."""
    for kind in get_args(get_args(AnyEvent)[0]):
        assert not set(kind.model_fields) & set(ENVELOPE), kind.__name__


async def test_a_power_cut_in_the_middle_of_a_batch_is_repaired(tmp_path: Path) -> None:
    """A page lost from records written together and never acknowledged is cut off with what follows it."""
    lines: list[bytes] = []
    crc = GENESIS
    for number in range(1, 7):
        record = JournalRecord(v=1, seq=number, at=NOON, event=Steered(text=f"word {number} " + "x" * 50))
        line, crc = encode(record, crc, sure=min(number - 1, 3))  # 4 to 6 were handed over in one batch
        lines.append(line)
    hole = b"\0" * len(lines[3])
    (tmp_path / "journal.jsonl").write_bytes(b"".join([*lines[:3], hole, *lines[4:]]))
    journal = Journal.open(tmp_path, lambda: NOON)
    assert [record.seq for record in journal.records] == [1, 2, 3, 4]
    assert isinstance(journal.records[-1].event, Repaired)
    journal.close()
    with_later_batch, _ = encode(JournalRecord(v=1, seq=7, at=NOON, event=Steered(text="later")), crc, sure=6)
    with pytest.raises(JournalDamagedError, match="record 4"):
        scan(b"".join([*lines[:3], hole, *lines[4:], with_later_batch]))


async def test_an_event_without_effect_is_written_with_the_next_one(tmp_path: Path, syncs: Syncs) -> None:
    """The start of a call that changes nothing costs no sync of its own, and stands before what came after it."""
    journal = Journal.open(tmp_path, noon)
    started = ToolStarted(agent="a", call="a.t1.0", name="read_file", effect="pure")
    before = syncs.count
    await journal.append(started)
    assert syncs.count == before
    await journal.append(Steered(text="next"))
    assert syncs.count == before + 1
    journal.close()
    assert events_of(read(tmp_path / "journal.jsonl")) == [started, Steered(text="next")]


CALLING = Turn(
    provider="p",
    model="m",
    blocks=(),
    calls=(ToolCall(id="c", name="read_file", arguments={}),),
    stop=StopKind.TOOL_USE,
)


async def test_a_lone_agent_waits_for_one_sync_a_turn(tmp_path: Path, syncs: Syncs) -> None:
    """Its reply is in the file before its calls start, and on disk with their results; one without calls at once."""
    journal = Journal.open(tmp_path, noon)
    reply = TurnTaken(agent="a", turn=CALLING, seconds=0.0)
    started = ToolStarted(agent="a", call="a.t1.0", name="read_file", effect="pure")
    done = ToolFinished(agent="a", call="a.t1.0", name="read_file", success=True, content="text")
    before = syncs.count
    await journal.append(SENT)
    await journal.append(reply)
    assert events_of(read(tmp_path / "journal.jsonl")) == [SENT, reply]
    await journal.append(started)
    assert syncs.count == before
    await journal.append(done)
    assert syncs.count == before + 1
    await journal.append(TurnTaken(agent="a", turn=CALLING.model_copy(update={"calls": ()}), seconds=0.0))
    assert syncs.count == before + 2
    journal.close()
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [line["sure"] for line in lines] == [0, 0, 0, 0, 4]


async def test_a_reply_is_on_disk_soon_however_long_its_calls_take(tmp_path: Path, syncs: Syncs) -> None:
    """A power cut may take what came in the last tenth of a second, and not a reply whose pages load for minutes."""
    journal = Journal.open(tmp_path, noon)
    before = syncs.count
    await journal.append(TurnTaken(agent="a", turn=CALLING, seconds=0.0))
    assert syncs.count == before
    await syncs.is_waiting()
    assert syncs.count == before + 1
    journal.close()


async def test_an_event_that_nobody_waits_for_is_written_by_itself(tmp_path: Path) -> None:
    """Whoever looks at a run sees a long call that changes nothing, though nothing follows it."""
    seen = asyncio.Event()
    journal = Journal.open(tmp_path, noon, [lambda _record: seen.set()])
    await journal.append(ToolStarted(agent="a", call="a.t1.0", name="read_webpage", effect="pure"))
    assert not seen.is_set()
    await asyncio.wait_for(seen.wait(), 20)
    assert len(read(tmp_path / "journal.jsonl")) == 1
    journal.close()


async def test_the_start_of_an_effect_is_on_disk_before_it(tmp_path: Path, syncs: Syncs) -> None:
    """Every effect but none at all waits for its record."""
    journal = Journal.open(tmp_path, noon)
    for number, effect in enumerate(set(Effect) - {Effect.PURE}, 1):
        before = syncs.count
        await journal.append(ToolStarted(agent="a", call=f"a.t{number}.0", name="x", effect=effect))
        assert syncs.count == before + 1
    journal.close()


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=12))
def test_waited_for_or_not_the_order_is_one(steps: list[tuple[int, bool]]) -> None:
    """Whoever appends at once, without waiting, or is cancelled while others write: no gap, no wrong order."""

    async def live(folder: Path) -> list[int]:
        heard: list[int] = []
        journal = Journal.open(folder, noon, [lambda record: heard.append(record.seq)])
        for number, is_cancelled in steps:
            tasks = [asyncio.ensure_future(journal.append(Steered(text=str(n)))) for n in range(number)]
            tasks.append(asyncio.ensure_future(journal.append(ToolStarted(agent="a", call="", name="", effect="pure"))))
            await asyncio.sleep(0)
            if is_cancelled:
                tasks[0].cancel()
            await asyncio.wait(tasks)
        await journal.append(Steered(text="end"))
        journal.close()
        return heard

    with tempfile.TemporaryDirectory() as folder:
        heard = asyncio.run(live(Path(folder)))
        records = read(Path(folder) / "journal.jsonl")
    assert heard == [record.seq for record in records] == list(range(1, len(records) + 1))
    assert len(records) == sum(number + 1 for number, _ in steps) + 1
