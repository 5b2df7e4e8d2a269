"""Runs followed for browsers: one reader of each journal, however many watch, and what changed with which record.

A page is made of parts: the head, the plan, the tree, one agent, the files, the report. A part notes the record that
changed it last, so that a browser that has seen record 40 is sent just the parts that changed after it.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

from explorer.journal.control import Inbox
from explorer.journal.listing import DAMAGED, RUNNING, UNFINISHED, WAITING, JournalTail, holder, is_run, is_running
from explorer.observe.run_view import RUNNING as NOT_ENDED
from explorer.observe.run_view import RunView
from explorer.schema.approvals import ApprovalRequest
from explorer.schema.errors import ExplorerError, NotFoundError
from explorer.schema.event import ENGINE
from explorer.schema.events import JournalRecord
from explorer.workspace.access import REPORT

Shown = TypeVar("Shown")
LOOK_EVERY_S = 0.05
LOCK_EVERY_LOOKS = 20
"""Looks into the journal for each look whether a process works on the run."""
RECENT_RECORDS = 200
"""The latest records of a run that are kept for those who follow all of them."""
MAX_KEPT = 12
"""Runs whose state is kept in memory though nobody watches them."""
HEAD, CALL, PLAN, TREE, FILES, REPORT_PART = "head", "call", "plan", "tree", "files", "report"
AGENT = "agent:"
ASKS = "-asks"
MAX_DIGITS = 18
"""Most digits of a record's number: no journal has more, and `int` refuses some thousands."""
PLAN_EVENTS = frozenset({"plan_proposed", "plan_decided", "round_assessed"})
AsksOf = Callable[[str], ApprovalRequest | None]
"""Return the call of a run that waits for approval in this process, by the run's id."""
OriginOf = Callable[[Path], str]
"""Return what is to be said of a run, by its folder, that nothing proves to be the user's own."""


@dataclass
class AgentTally:
    """What the view of a run does not count for each agent."""

    calls: int = 0
    files: set[str] = field(default_factory=set[str])
    sources: set[str] = field(default_factory=set[str])


def record_number(text: str) -> int | None:
    """Return the number of a record that a browser sent; None where it is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None


@dataclass(frozen=True)
class Moment:
    """What of a run a browser has seen: the last record, and a status that no record says."""

    seq: int = 0
    status: str = ""

    @classmethod
    def of(cls, text: str) -> "Moment":
        """Read the id of an event, `40` or `40-unfinished`; anything else is the beginning."""
        number, _, status = text.partition("-")
        seq = record_number(number)
        return cls() if seq is None else cls(seq, status)

    def __str__(self) -> str:
        """Return the id of an event."""
        return f"{self.seq}-{self.status}" if self.status else str(self.seq)


@dataclass
class SeenRun:
    """A run after the records seen so far. Only `apply` changes it."""

    view: RunView = field(default_factory=RunView)
    tallies: dict[str, AgentTally] = field(default_factory=dict[str, AgentTally])
    changed: dict[str, int] = field(default_factory=dict[str, int])
    """The record that changed each part last."""

    @classmethod
    def of(cls, records: Iterable[JournalRecord]) -> "SeenRun":
        """Return a run after these records."""
        run = cls()
        run.apply(records)
        return run

    def apply(self, records: Iterable[JournalRecord]) -> None:
        """Apply records, in order."""
        for record in records:
            self.view.apply(record)
            self._count(record)
            for part in self._parts(record):
                self.changed[part] = record.seq

    def since(self, seq: int) -> list[str]:
        """Return the parts that changed after a record; agents are left out where the whole tree changed."""
        parts = [part for part, changed in self.changed.items() if changed > seq]
        return [part for part in parts if not part.startswith(AGENT)] if TREE in parts else parts

    def _count(self, record: JournalRecord) -> None:
        event = record.event
        if event.type == "tool_finished":
            tally = self.tallies.setdefault(event.agent, AgentTally())
            tally.calls += 1
            tally.files.update(file.path for file in event.files)
            tally.sources.update(event.sources)

    def _parts(self, record: JournalRecord) -> Iterator[str]:
        event = record.event
        yield HEAD
        if event.type in {"agent_started", "run_finished", "session_configured"}:
            yield TREE
        if event.agent != ENGINE:
            yield AGENT + event.agent
        if event.type in PLAN_EVENTS or event.type == "session_configured":
            yield PLAN
        if event.type == "tool_finished" and (event.files or event.removed):
            yield FILES
            if REPORT in {*event.removed, *(file.path for file in event.files)}:
                yield REPORT_PART
        if event.type == "run_finished":
            yield REPORT_PART


class RunFeed:
    """One run, read once for all browsers that watch it."""

    def __init__(self, folder: Path, asks: AsksOf = lambda _run: None, origin_of: OriginOf = lambda _run: "") -> None:
        self.folder = folder
        self.origin = ""
        """What is to be said of a run that nothing proves to be the user's own; empty for the user's own."""
        self._asks = asks
        self._origin_of = origin_of
        self.asked: ApprovalRequest | None = None
        """The call of it that waits for approval; None where none does, or another process works on the run."""
        self.run = SeenRun()
        self.status = ""
        """The status, as in a list of runs; empty before the first look."""
        self.damage: ExplorerError | None = None
        """Why the journal cannot be read further."""
        self.waiting: tuple[str, ...] = ()
        """Texts of orders that the run has not taken yet."""
        self.holder: int | None = None
        """The process that works on the run."""
        self.watchers = 0
        self.parts: dict[str, tuple[Moment, str]] = {}
        """Parts of the page as they were last written, for the next browser that is sent the same."""
        self.records: tuple[JournalRecord, ...] | None = None
        """All records, for the pages that show the past; None: they are read again when they are needed."""
        self.recent: deque[JournalRecord] = deque(maxlen=RECENT_RECORDS)
        """The latest records that were read."""
        self._tail = JournalTail(folder)
        self._is_held = False
        """Whether a process had the run's lock at the latest look."""
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()

    @property
    def moment(self) -> Moment:
        """What can be seen of the run now."""
        is_said = self.status in {self.run.view.status, RUNNING} and not self.waiting and self.asked is None
        return Moment(self.run.view.seq, "" if is_said else self._unsaid())

    def _unsaid(self) -> str:
        return f"{self.status}{len(self.waiting) or ''}{'' if self.asked is None else ASKS}"

    async def refresh(self, *, looks_at_lock: bool = True) -> None:
        """Read what came since the last look."""
        async with self._lock:
            before = self.moment
            if looks_at_lock:
                # Before the records are read: a process that let go of the run has written all of them by then.
                self._is_held = await asyncio.to_thread(is_running, self.folder)
            if self.run.view.seq == 0:
                # All of it at once, in a thread: a long journal takes a second.
                self.run, records = await asyncio.to_thread(self._read_first)
            else:
                records = await asyncio.to_thread(self._read)
                self.run.apply(records)
                self.records = self.records + records if self.records is not None else None
            self.recent.extend(records)
            if looks_at_lock or self.run.view.seq != before.seq:
                await asyncio.to_thread(self._look_at_process)
            self.asked = self._asks(self.folder.name)
            if self.moment != before:
                self.announce()

    def announce(self) -> None:
        """Wake all who wait for something new."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def after(self, seen: Moment, seconds: float) -> bool:
        """Wait until there is more than what was seen, at most so many seconds; return whether there is."""
        if self.moment != seen:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def follow(self) -> None:
        """Read as long as somebody watches."""
        looks = 0
        while self.watchers:
            await self.refresh(looks_at_lock=looks % LOCK_EVERY_LOOKS == 0)
            looks += 1
            await asyncio.sleep(LOOK_EVERY_S)

    async def steady(self, show: Callable[[], Shown]) -> Shown:
        """Do in a thread what reads the state of the run, which no record changes meanwhile."""
        async with self._lock:
            return await asyncio.to_thread(show)

    async def all_records(self) -> tuple[JournalRecord, ...]:
        """Return all records that were seen, up to the damage where there is one.

        Raises:
            StorageError: The journal cannot be read.
        """
        # Under the lock: what comes meanwhile would be missing in between.
        async with self._lock:
            if self.records is None:
                self.records = (await asyncio.to_thread(good_records, self.folder))[: self.run.view.seq]
            return self.records

    def _read_first(self) -> tuple[SeenRun, tuple[JournalRecord, ...]]:
        run, records = SeenRun(), self._read()
        self.records = records
        run.apply(records)
        if records:
            self.origin = self._origin_of(self.folder)
        return run, records

    def _read(self) -> tuple[JournalRecord, ...]:
        if self.damage is not None:
            return ()
        try:
            records, self.damage = self._tail.look()
        except ExplorerError as error:
            self.damage = error
            return ()
        return records

    def _look_at_process(self) -> None:
        view = self.run.view
        # That a process began since the latest look is seen at once; that one has ended, with the next look.
        self._is_held = self._is_held or (view.status == NOT_ENDED and is_running(self.folder))
        is_at_work = view.status == NOT_ENDED and self._is_held
        self.holder = holder(self.folder) if is_at_work else None
        self.waiting = tuple(order.text for order in Inbox(self.folder / ".explorer").waiting()) if is_at_work else ()
        if self.damage is not None:
            self.status = DAMAGED
        elif view.status != NOT_ENDED:
            self.status = view.status
        elif is_at_work:
            self.status = RUNNING
        else:
            self.status = WAITING if view.plan.is_waiting else UNFINISHED


class RunFeeds:
    """The feeds of a server. Each is followed while somebody watches; some more are kept."""

    def __init__(self, asks: AsksOf = lambda _run: None, origin_of: OriginOf = lambda _run: "") -> None:
        self._asks = asks
        self._origin_of = origin_of
        self._feeds: OrderedDict[Path, RunFeed] = OrderedDict()
        self._group: asyncio.TaskGroup | None = None
        self._is_closing = asyncio.Event()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Own the readers."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self.close()
                self._group = None

    def close(self) -> None:
        """End all readers, and tell those who watch."""
        self._is_closing.set()
        for feed in self._feeds.values():
            feed.watchers = 0
            feed.announce()

    @property
    def is_closing(self) -> bool:
        """Whether the server ends."""
        return self._is_closing.is_set()

    async def closes_within(self, seconds: float) -> bool:
        """Wait so many seconds, or until the server ends; return whether it does."""
        try:
            async with asyncio.timeout(seconds):
                return await self._is_closing.wait()
        except TimeoutError:
            return False

    async def of(self, folder: Path) -> RunFeed:
        """Return the feed of a run, with all that is on record.

        Raises:
            NotFoundError: The folder is no run any more.
        """
        feed = self._feeds.get(folder)
        if not is_run(folder):
            self._feeds.pop(folder, None)
            raise NotFoundError(f"there is no run {folder.name}", hint="explorer runs")
        if feed is None:
            feed = self._feeds[folder] = RunFeed(folder, self._asks, self._origin_of)
        self._feeds.move_to_end(folder)
        self._drop_old(feed)
        await feed.refresh()
        return feed

    @asynccontextmanager
    async def watched(self, folder: Path) -> AsyncGenerator[RunFeed]:
        """Follow a run for one more browser."""
        feed = await self.of(folder)
        feed.watchers += 1
        if feed.watchers == 1 and self._group is not None:
            self._group.create_task(feed.follow())
        try:
            yield feed
        finally:
            feed.watchers = max(0, feed.watchers - 1)

    async def records(self, feed: RunFeed) -> tuple[JournalRecord, ...]:
        """Return all records of a run, up to the damage where there is one. Those of the latest run asked for are kept.

        Raises:
            StorageError: The journal cannot be read.
        """
        return await feed.all_records()

    async def records_after(self, feed: RunFeed, seq: int, most: int) -> tuple[JournalRecord, ...]:
        """Return the records after one, in order, so many at most; those that came last are not read again.

        Raises:
            StorageError: The journal cannot be read.
        """
        first = feed.recent[0].seq if feed.recent else feed.run.view.seq + 1
        records = feed.recent if seq + 1 >= first else await self.records(feed)
        return tuple(islice((one for one in records if one.seq > seq), most))

    def _drop_old(self, latest: RunFeed) -> None:
        """Forget runs that were not asked for lately; and of all but the latest, the records."""
        for feed in self._feeds.values():
            feed.records = feed.records if feed is latest else None
        for folder in [one for one, feed in self._feeds.items() if not feed.watchers][:-MAX_KEPT]:
            del self._feeds[folder]


def good_records(folder: Path) -> tuple[JournalRecord, ...]:
    """Return the records of a run, up to the damage where there is one.

    Raises:
        StorageError: The journal cannot be read.
    """
    return JournalTail(folder).look()[0]
