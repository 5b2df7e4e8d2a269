"""What the runs of one worker hold of the limits that the fleet shares, and when their requests may be sent.

One task speaks to the database for all runs of the worker: it takes what they ask and report meanwhile together, in
one transaction at a time. Between two of them, a run spends what it holds without asking anybody.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeAlias, TypeVar

import sqlalchemy as sa
from loguru import logger

from explorer.fleet.ledger import (
    Answers,
    Later,
    Ledger,
    Refused,
    Report,
    ShareAsked,
    ShareExchange,
    Taking,
    applies,
    release,
)
from explorer.fleet.limits import LimitName, LimitUse, SliceName, window_of
from explorer.fleet.rates import Closing, KeyState, SlotsAsked
from explorer.schema.errors import ExplorerError, StorageError, first_of

T = TypeVar("T")
Due: TypeAlias = "asyncio.Future[float | None]"
"""When a request may be sent; None: its key has no rate."""
TICK_S = 1.0
"""How often limits are read, and what was spent is booked, while runs are at work."""
FRESH_S = 0.25
"""The age at which what is known of a key is read again before a request is sent with it."""
RETRY_S = 1.0
"""The wait after the database did not answer."""


@dataclass
class Slice:
    """What a run holds of a limit. All amounts count since the last report."""

    held: int = 0
    reserved: int = 0
    """Worst cases of requests at work."""
    spent: int = 0

    @property
    def unused(self) -> int:
        """What a further request may take."""
        return max(0, self.held - self.reserved - self.spent)


@dataclass
class Holdings:
    """What one run at work holds."""

    taking: Taking
    slices: dict[SliceName, Slice] = field(default_factory=dict[SliceName, Slice])

    def take(self, need: Mapping[SliceName, int]) -> bool:
        """Reserve something of several slices, or nothing if one has too little; return whether it was reserved."""
        if any(self.slices.get(name, Slice()).unused < amount for name, amount in need.items()):
            return False
        for name, amount in need.items():
            self.slices[name].reserved += amount
        return True

    def settle(self, need: Mapping[SliceName, int], used: Mapping[str, int]) -> None:
        """Give back what was reserved for a request, and count what it used, by unit."""
        for name, amount in need.items():
            self.slices[name].reserved -= amount
            self.slices[name].spent += used[name.limit.unit]

    def forget_others(self, known: Collection[LimitName]) -> None:
        """Drop what is left of limits that were removed: a new limit of the same name is another one."""
        for name, one in self.slices.items():
            if name.limit not in known:
                one.held = one.spent = 0

    def report(self, name: SliceName, *, gives_back: bool) -> Report | None:
        """Return what became of a slice since the last report, which counts as reported now; None: nothing did.

        Args:
            name: The slice.
            gives_back: Whether to give back what no request needs.
        """
        one = self.slices[name]
        spent, released = one.spent, min(one.held, one.spent + (one.unused if gives_back else 0))
        one.spent, one.held = 0, one.held - released
        if not spent and not released:
            return None
        return Report(self.taking.run_id, self.taking.epoch, name, spent, released)

    def unreported(self, report: Report) -> None:
        """Take a report back that may not have arrived. If it did, too much is counted, and never too little."""
        one = self.slices[report.of]
        one.spent += report.spent
        one.held += report.spent


@dataclass(frozen=True)
class _Asked:
    holdings: Holdings
    ask: ShareAsked
    answer: "asyncio.Future[Refused | Later | None]"


@dataclass
class _Waiting:
    """Who waits for an answer of the database."""

    asked: list[_Asked] = field(default_factory=list[_Asked])
    slots: dict[str, list[Due]] = field(default_factory=dict[str, list[Due]])
    readers: list["asyncio.Future[None]"] = field(default_factory=list["asyncio.Future[None]"])

    def __bool__(self) -> bool:
        """Return whether anybody waits."""
        return bool(self.asked or self.slots or self.readers)

    def add(self, others: "_Waiting") -> None:
        """Let others wait, too, after these."""
        self.asked += others.asked
        self.readers += others.readers
        for key_id, due in others.slots.items():
            self.slots.setdefault(key_id, []).extend(due)

    def answer(self, answers: Answers) -> None:
        """Give everybody the answer."""
        for one, answer in zip(self.asked, answers.granted, strict=True):
            if isinstance(answer, Mapping):
                for name, amount in answer.items():
                    one.holdings.slices.setdefault(name, Slice()).held += amount
            _answer(one.answer, None if isinstance(answer, Mapping) else answer)
        received_at = monotonic()
        for key_id, due in self.slots.items():
            granted = answers.slots.get(key_id)
            for number, one in enumerate(due):
                _answer(one, None if granted is None else received_at + granted.first_s + number * granted.every_s)
        for reader in self.readers:
            _answer(reader, None)


@dataclass
class WorkerShares:
    """Speaks to the database for all runs of a worker."""

    ledger: Ledger
    at_work: dict[str, Holdings] = field(default_factory=dict[str, Holdings])
    uses: tuple[LimitUse, ...] = ()
    keys: Mapping[str, KeyState] = field(default_factory=dict[str, KeyState])
    read_at: float = float("-inf")
    """When the database was read last, by this machine's clock."""
    _wanted: frozenset[SliceName] = frozenset()
    _clock_ahead_s: float = 0.0
    """The database's clock less this machine's."""
    _waiting: _Waiting = field(default_factory=_Waiting)
    _closings: list[Closing] = field(default_factory=list[Closing])
    _called: asyncio.Event = field(default_factory=asyncio.Event)
    _speaking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[None]:
        """Exchange what waits with the database while inside."""
        try:
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(self._serve())
                try:
                    yield
                finally:
                    serving.cancel()
        except BaseExceptionGroup as errors:
            raise first_of(errors, ExplorerError) or errors from None

    def now(self) -> float:
        """Return the time by the database's clock."""
        return monotonic() + self._clock_ahead_s

    def need_of(self, taking: Taking, key_id: str, need: Mapping[str, int]) -> dict[SliceName, int]:
        """Return what a request needs of each limit that counts it, as far as is known."""
        concerned = [one.name for one in self.uses if applies(one.name, taking.tenant, key_id)]
        return {SliceName(name, window_of(name.period, self.now())): need[name.unit] for name in concerned}

    async def ask(self, holdings: Holdings, key_id: str, need: Mapping[str, int]) -> Refused | Later | None:
        """Ask for more, for a request; return why there is none, and None when there was."""
        answer: asyncio.Future[Refused | Later | None] = asyncio.get_running_loop().create_future()
        self._waiting.asked.append(_Asked(holdings, ShareAsked(holdings.taking, key_id, need), answer))
        self._called.set()
        return await answer

    async def slot(self, key_id: str) -> float | None:
        """Return when a request with a key may be sent, by this machine's clock; None: the key has no rate."""
        due: Due = asyncio.get_running_loop().create_future()
        self._waiting.slots.setdefault(key_id, []).append(due)
        self._called.set()
        return await due

    async def read(self) -> None:
        """Read limits and keys, unless that was just done."""
        if monotonic() - self.read_at > FRESH_S:
            await self._read_anew()

    async def _read_anew(self) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.readers.append(done)
        self._called.set()
        await done

    def close(self, key_id: str, wait_s: float, why: str) -> None:
        """Let no worker send a request with a key for some seconds."""
        self._closings.append(Closing(key_id, wait_s, why))
        known = self.keys.get(key_id, KeyState())
        if wait_s > known.closed_s:
            self.keys = {**self.keys, key_id: KeyState(wait_s, why, known.has_rate, known.late_s)}
        self._called.set()

    async def begin(self, taking: Taking) -> Holdings:
        """Return what a run that was taken holds, which is nothing yet, when the limits of its tenant are known."""
        holdings = self.at_work[taking.run_id] = Holdings(taking)
        await self._read_anew()
        return holdings

    def drop(self, run_id: str, epoch: int) -> None:
        """Forget a run that is another worker's now."""
        if run_id in self.at_work and self.at_work[run_id].taking.epoch == epoch:
            del self.at_work[run_id]

    async def release(self, run_id: str) -> Callable[[sa.Connection], None]:
        """Forget a run that ends; return what books its last spending and gives the rest back, in a transaction."""
        async with self._speaking:
            holdings = self.at_work.pop(run_id, None)
        if holdings is None:
            return lambda _connection: None
        spent = {name: one.spent + one.reserved for name, one in holdings.slices.items()}
        return lambda connection: release(connection, holdings.taking, spent)

    async def _serve(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._called.wait(), TICK_S)
            self._called.clear()
            if self.at_work or self._waiting or self._closings:
                async with self._speaking:
                    is_said = await self._speak()
                if not is_said:
                    await asyncio.sleep(RETRY_S)

    async def _speak(self) -> bool:
        """Send everything that waits to the database in one go; return whether it answered."""
        waiting, self._waiting = self._waiting, _Waiting()
        closings, self._closings = self._closings, []
        given = ShareExchange(
            reports=self._reports({id(one.holdings) for one in waiting.asked}),
            asks=[one.ask for one in waiting.asked],
            slots=[SlotsAsked(key_id, len(due)) for key_id, due in waiting.slots.items()],
            closings=closings,
            tenants={one.taking.tenant for one in self.at_work.values()},
        )
        try:
            answers = await asyncio.to_thread(self.ledger.exchange, given)
        except StorageError as error:
            logger.warning("{}", error.message)
            for report in given.reports:
                if report.run_id in self.at_work:
                    self.at_work[report.run_id].unreported(report)
            waiting.add(self._waiting)
            self._waiting, self._closings = waiting, [*closings, *self._closings]
            self._called.set()
            return False
        self._take_in(answers)
        waiting.answer(answers)
        return True

    def _reports(self, asking: set[int]) -> list[Report]:
        """Return what runs spent; those that ask for more, or have what others wait for, give back what is unused."""
        kept = {one.of for one in self.uses} - self._wanted
        found = [
            holdings.report(name, gives_back=id(holdings) in asking or name not in kept)
            for holdings in self.at_work.values()
            for name in holdings.slices
        ]
        return [one for one in found if one is not None]

    def _take_in(self, answers: Answers) -> None:
        self.read_at = monotonic()
        self._clock_ahead_s = answers.now - self.read_at
        self.uses, self.keys, self._wanted = tuple(answers.uses), answers.keys, frozenset(answers.wanted)
        known = {one.name for one in self.uses}
        for holdings in self.at_work.values():
            holdings.forget_others(known)


def _answer(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)
