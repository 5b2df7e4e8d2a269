"""The limits that a run of the fleet shares with all others, as its requests and its worker meet them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from random import random
from time import monotonic
from typing import TypeVar

import sqlalchemy as sa
from loguru import logger

from explorer.fleet.dead_holdings import amounts_of, settle_earlier, spent_by
from explorer.fleet.leases import Leases, TakenRun
from explorer.fleet.ledger import Ledger, Refused, Taking
from explorer.fleet.limits import SliceName, Unit
from explorer.fleet.picking import Ticket, is_stalled, take_next
from explorer.fleet.rates import KeyIds, KeyState
from explorer.fleet.shares import RETRY_S, Holdings, WorkerShares
from explorer.journal.listing import is_run, read_records
from explorer.llm.retry import THROTTLING_FAULTS
from explorer.run.settings_parts import model_setup
from explorer.schema.errors import ConfigError, ModelError, PausedError, StorageError
from explorer.schema.settings import Settings
from explorer.schema.shared_limits import RequestUse, SharedHold

ASK_AGAIN_S = 0.5
"""The time after which a request that waits for what others hold asks again."""
PATIENCE_S = 60.0
"""A run whose provider asks to wait for longer goes back to the queue."""
UNNAMED_WAIT_S = 2.0
"""How long all workers wait where a provider throttles and does not say for how long."""
SPREAD_S = 1.0
"""After a wait, workers continue within so many seconds, and not all in the same instant."""


@dataclass
class SentSlots:
    """Times at which requests with one key may be sent, got and not used yet."""

    due: list[float] = field(default_factory=list[float])

    def use(self, late_s: float) -> bool:
        """Use one that is due, and not so late that it is void; return whether there was one."""
        now = monotonic()
        self.due = [at for at in self.due if now - at <= late_s]
        if self.due:
            self.due.pop(0)
            return True
        return False


@dataclass
class RunLimits:
    """The port of one run at work to the limits of its fleet."""

    shares: WorkerShares
    holdings: Holdings
    key_ids: KeyIds
    keys: set[str] = field(default_factory=set[str])
    """The ids of the keys that the run has used."""
    _slots: dict[str, SentSlots] = field(default_factory=dict[str, SentSlots])
    _refusal: str = ""
    """Why no further request is sent; those at work are waited for."""
    _at_work: int = 0
    _quiet: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def holding(self, provider: str, most: RequestUse) -> AsyncGenerator[SharedHold]:
        """Hold the worst case of one attempt while inside.

        Raises:
            PausedError: Too little is left, and no more will come soon; or the provider asks to wait for long.
            ConfigError: A limit of money cannot be kept, because the model has no known price.
        """
        key_id = self.key_ids.id_of(provider)
        self.keys.add(key_id)
        await self.shares.read()
        need = await self._hold(provider, key_id, most)
        hold = SharedHold()
        self._begin()
        try:
            if await self._opens(key_id):
                await self._get_slot(key_id)
                yield hold
                return
        finally:
            self.holdings.settle(need, amounts_of([hold.used]))
            self._end()
        await self._pause()

    @asynccontextmanager
    async def sending(self, provider: str) -> AsyncGenerator[None]:
        """Send one request while inside: at its time, also where it was held back since."""
        key_id = self.key_ids.id_of(provider)
        while True:
            await self.shares.read()
            state = self.shares.keys.get(key_id, KeyState())
            if state.closed_s:
                await asyncio.sleep(state.closed_s + random() * SPREAD_S)  # noqa: S311 - no secret
            elif not state.has_rate or self._slots.setdefault(key_id, SentSlots()).use(state.late_s):
                break
            else:
                await self._get_slot(key_id)
        try:
            yield
        except ModelError as error:
            if error.fault in THROTTLING_FAULTS:
                self.shares.close(key_id, error.retry_after_s or UNNAMED_WAIT_S, error.message)
            raise

    async def _hold(self, provider: str, key_id: str, most: RequestUse) -> dict[SliceName, int]:
        """Return what is reserved for a request; wait while only what others hold is in the way."""
        amounts = amounts_of([most])
        while True:
            if self._refusal:
                await self._pause()
            need = self.shares.need_of(self.holdings.taking, key_id, amounts)
            self._check_price(provider, need, most)
            if self.holdings.take(need):
                return need
            refused = await self.shares.ask(self.holdings, key_id, amounts)
            if isinstance(refused, Refused) and refused.is_final:
                self._refusal = refused.words
            elif refused is not None:
                await asyncio.sleep(ASK_AGAIN_S)

    @staticmethod
    def _check_price(provider: str, need: Mapping[SliceName, int], most: RequestUse) -> None:
        if most.cost_usd is None and any(name.limit.unit == Unit.USD for name in need):
            raise ConfigError(
                f"the fleet has a limit of money, but no price is known for a model of {provider}",
                hint="give its price in USD per million tokens, input/output: EXPLORER_PRICE=0.5/1.5",
            )

    async def _opens(self, key_id: str) -> bool:
        """Wait as long as the provider asked any worker to; return False where that is too long."""
        while (state := self.shares.keys.get(key_id, KeyState())).closed_s:
            if state.closed_s > PATIENCE_S:
                self._refusal = f"the provider asks to wait for {state.closed_s:.0f} s: {state.closed_why}"
                return False
            await asyncio.sleep(state.closed_s + random() * SPREAD_S)  # noqa: S311 - no secret
            await self.shares.read()
        return True

    async def _get_slot(self, key_id: str) -> None:
        """Wait for the next time at which a request with a key may be sent, where the key has a rate."""
        if not self.shares.keys.get(key_id, KeyState()).has_rate:
            return
        due = await self.shares.slot(key_id)
        if due is not None:
            await asyncio.sleep(max(0.0, due - monotonic()))
            self._slots.setdefault(key_id, SentSlots()).due.append(due)

    async def _pause(self) -> None:
        """Let the requests at work end, so that what they cost is not lost.

        Raises:
            PausedError: Always.
        """
        while self._at_work:
            self._quiet.clear()
            await self._quiet.wait()
        raise PausedError(self._refusal, hint="see the limits: explorer fleet limit")

    def _begin(self) -> None:
        self._at_work += 1

    def _end(self) -> None:
        self._at_work -= 1
        self._quiet.set()


T = TypeVar("T")


@dataclass
class WorkerLimits:
    """The shared limits, as one worker meets them."""

    leases: Leases
    settings: Settings
    keys: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The ids of the keys that runs used, by the models that they were submitted with."""

    @cached_property
    def shares(self) -> WorkerShares:
        """What the worker's runs hold."""
        return WorkerShares(Ledger(self.leases.database, self.leases.worker))

    async def take_next(self, ticket: Ticket) -> TakenRun | None:
        """Take the waiting run whose turn it is; None when there is none that may be taken now."""
        return await asyncio.to_thread(take_next, self.leases, ticket, self.keys)

    async def is_stalled(self) -> bool:
        """Return whether all runs that wait are held back by limits, and none is at work."""
        return await asyncio.to_thread(is_stalled, self.leases, self.keys)

    async def begin(self, taken: TakenRun, folder: Path) -> RunLimits:
        """Return the limits of a run that was taken, after what earlier workers held for it is settled by its journal.

        Args:
            taken: The run.
            folder: Its folder, which holds all that earlier workers wrote.
        """
        key_ids = await when_answered(self._key_ids)
        records = await asyncio.to_thread(read_records, folder) if is_run(folder) else ()
        spent = spent_by(records, key_ids.vendor_of)
        await when_answered(partial(settle_earlier, self.leases.database, taken.run_id, taken.epoch, spent))
        last_seq = records[-1].seq if records else 0
        holdings = await self.shares.begin(Taking(taken.run_id, taken.epoch, taken.tenant, last_seq))
        return RunLimits(self.shares, holdings, key_ids, self.keys.setdefault(taken.models, set()))

    async def release(self, taken: TakenRun) -> Callable[[sa.Connection], None]:
        """Return what books the last spending of a run, in the transaction that records its end."""
        return await self.shares.release(taken.run_id)

    def _key_ids(self) -> KeyIds:
        return KeyIds(self.leases.database.salt, model_setup(self.settings))


async def when_answered(ask: Callable[[], T]) -> T:
    """Return what the database says, as soon as it answers."""
    while True:
        try:
            return await asyncio.to_thread(ask)
        except StorageError as error:
            logger.warning("{}", error.message)
            await asyncio.sleep(RETRY_S)
