"""What a worker does about the limits that the fleet shares, when it takes a run, begins it, and ends it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import sqlalchemy as sa

from explorer.fleet.dead_holdings import settle_earlier, spent_by
from explorer.fleet.key_ids import KeyIds
from explorer.fleet.leases import Leases, TakenRun
from explorer.fleet.ledger import Ledger, Taking
from explorer.fleet.picking import Ticket, is_stalled, take_next
from explorer.fleet.run_limits import RunLimits
from explorer.fleet.shares import WorkerShares
from explorer.journal.listing import is_run, read_records
from explorer.run.settings_parts import model_setup
from explorer.schema.settings import Settings


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
        key_ids = await asyncio.to_thread(self._key_ids)
        last_seq = await asyncio.to_thread(self._settle_earlier, taken, folder, key_ids)
        holdings = await self.shares.begin(Taking(taken.run_id, taken.epoch, taken.tenant, last_seq))
        return RunLimits(self.shares, holdings, key_ids, self.keys.setdefault(taken.models, set()))

    async def release(self, taken: TakenRun) -> Callable[[sa.Connection], None]:
        """Return what books the last spending of a run, in the transaction that records its end."""
        return await self.shares.release(taken.run_id)

    def _key_ids(self) -> KeyIds:
        return KeyIds(self.leases.database.salt, model_setup(self.settings))

    def _settle_earlier(self, taken: TakenRun, folder: Path, key_ids: KeyIds) -> int:
        """Settle by the run's journal what earlier workers held; return the number of its last record."""
        records = read_records(folder) if is_run(folder) else ()
        settle_earlier(self.leases.database, taken.run_id, taken.epoch, spent_by(records, key_ids.vendor_of))
        return records[-1].seq if records else 0
