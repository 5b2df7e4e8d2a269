"""An order to a run that another process may work on: left in the run's folder, and followed until the run took it."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from explorer.journal.control import ControlKind, ControlMessage, Inbox
from explorer.journal.listing import JournalTail, is_running
from explorer.schema.events import JournalRecord, Steered, StopAsked

LOOK_EVERY_S = 0.05
APPLIED = "applied"
QUEUED = "queued"
ENDED = "ended"


@dataclass(frozen=True)
class Delivery:
    """What became of an order."""

    order: str
    """The order's id."""
    state: str
    """`applied`, `queued` (the run is running, and will take it), or `ended` (the run ended without it)."""
    record: int | None = None


async def deliver(
    folder: Path, kind: ControlKind, text: str, wait_s: float | None, on_queued: Callable[[], None] = lambda: None
) -> Delivery:
    """Leave an order, and return what became of it.

    Args:
        folder: The run's.
        kind: What is ordered.
        text: The message, or the reason.
        wait_s: How long to wait until the run took it; None: as long as it runs.
        on_queued: Called once the order is on disk.

    Raises:
        ConfigError: The text is too long.
        StorageError: The folder cannot be written, or the journal is damaged.
    """
    tail = JournalTail(folder)
    tail.read()
    inbox = Inbox(folder / ".explorer")
    order = inbox.leave(kind, text, time.time_ns)
    on_queued()
    delivery = Delivery(order.id, QUEUED) if wait_s == 0 else await _followed(tail, folder, order, wait_s)
    if delivery.state == ENDED:
        # Nobody takes it any more; a later session of the run must not obey words meant for this one.
        inbox.done(order)
    return delivery


async def _followed(tail: JournalTail, folder: Path, order: ControlMessage, wait_s: float | None) -> Delivery:
    try:
        async with asyncio.timeout(wait_s):
            while True:
                # Asked before reading: what was written before the end is then read.
                is_alive = is_running(folder)
                record = _applied(tail.read(), order)
                if record is not None:
                    return Delivery(order.id, APPLIED, record)
                if not is_alive:
                    return Delivery(order.id, ENDED)
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        return Delivery(order.id, QUEUED)


def _applied(records: Iterable[JournalRecord], order: ControlMessage) -> int | None:
    for record in records:
        if isinstance(record.event, Steered | StopAsked) and record.event.order == order.id:
            return record.seq
    return None
