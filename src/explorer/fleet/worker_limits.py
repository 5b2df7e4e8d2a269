"""What a worker does about the limits that the fleet shares, when it takes a run, begins it, and ends it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from loguru import logger

from explorer.fleet.dead_holdings import settle_earlier, spent_by
from explorer.fleet.key_ids import KeyIds
from explorer.fleet.leases import Leases, TakenRun
from explorer.fleet.ledger import Ledger, Taking
from explorer.fleet.picking import Ticket, is_stalled, take_next
from explorer.fleet.run_limits import RunLimits
from explorer.fleet.shares import RETRY_S, WorkerShares
from explorer.journal.listing import is_run, read_records
from explorer.run.settings_parts import model_setup
from explorer.schema.errors import StorageError
from explorer.schema.settings import Settings

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
