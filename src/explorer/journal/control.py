"""Orders to a running run: another process leaves a file in a folder, and the run takes it at its next turn.

An order is written whole or not at all. It is removed once it is in the journal under its id, so that it is applied
exactly once, even if the run is killed in between. Who left it can follow it until the run took it.
"""

import asyncio
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from explorer.journal.listing import JournalTail, is_running
from explorer.schema.errors import ConfigError, StorageError
from explorer.schema.events import JournalRecord, Steered, StopAsked
from explorer.workspace.access import restore_access
from explorer.workspace.safe_open import make_private_folder, open_private, read_below

FOLDER = "inbox"
MAX_MESSAGE_BYTES = 64 * 1024


class ControlKind(StrEnum):
    """The kind of an order to a running run."""

    STEER = "steer"
    """Send a message to the orchestrator."""
    STOP = "stop"
    """Write the report and stop."""


@dataclass(frozen=True)
class ControlMessage:
    """One order to a run."""

    id: str
    """A unique id that sorts by time."""
    kind: ControlKind
    text: str


class Inbox:
    """The folder of orders for one run."""

    def __init__(self, engine_folder: Path) -> None:
        """Use the run's `.explorer` folder."""
        self._folder = engine_folder / FOLDER

    def leave(self, kind: ControlKind, text: str, time_ns: Callable[[], int]) -> ControlMessage:
        """Leave an order, durably.

        Raises:
            ConfigError: The text is too long.
            StorageError: The folder cannot be written.
        """
        order = ControlMessage(f"{time_ns():020d}-{secrets.token_hex(3)}", kind, text)
        self.put(order)
        return order

    def put(self, order: ControlMessage) -> None:
        """Put an order here that was left elsewhere, durably.

        Raises:
            ConfigError: The text is too long.
            StorageError: The folder cannot be written.
        """
        content = json.dumps({"kind": order.kind, "text": order.text}, ensure_ascii=False).encode("utf-8", "replace")
        if len(content) > MAX_MESSAGE_BYTES:
            raise ConfigError(
                f"the words have {len(content):,} bytes; a running run takes {MAX_MESSAGE_BYTES:,}",
                hint="say it shorter, or wait for the end and use: explorer resume RUN",
            )
        try:
            make_private_folder(self._folder)
            temporary = self._folder / f".{order.id}"
            with open_private(temporary, "w") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(self._folder / f"{order.id}.json")
        except OSError as error:
            raise StorageError(f"the order could not be left in {self._folder}: {error.strerror}") from error

    def waiting(self) -> list[ControlMessage]:
        """Return the orders not yet taken, oldest first; other files are skipped."""
        try:
            names = sorted(one for one in os.listdir(self._folder) if one.endswith(".json"))  # noqa: PTH208 - at each turn
        except FileNotFoundError:
            return []
        except PermissionError:
            # A command closed the folder; the orders are taken at the next look.
            restore_access(self._folder.parent.parent)
            return []
        return [order for name in names if (order := self._read(name)) is not None]

    def _read(self, name: str) -> ControlMessage | None:
        try:
            fields = json.loads(read_below(self._folder.parent, f"{FOLDER}/{name}", MAX_MESSAGE_BYTES))
            return ControlMessage(name.removesuffix(".json"), ControlKind(fields["kind"]), str(fields["text"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def done(self, order: ControlMessage) -> None:
        """Remove an order that is in the journal, or that came too late."""
        (self._folder / f"{order.id}.json").unlink(missing_ok=True)

    def drop_all(self) -> None:
        """Remove all orders, whoever left them."""
        for order in self.waiting():
            self.done(order)

    def drop_stops(self) -> None:
        """Remove orders to stop that came too late for their session, so that the next session does not stop."""
        for order in self.waiting():
            if order.kind is ControlKind.STOP:
                self.done(order)


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
