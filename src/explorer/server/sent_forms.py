"""Forms that were sent: one that comes again, as after a second click, orders nothing more."""

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

MAX_KEPT = 1_000
MAX_KEY_CHARS = 64
KEY_BYTES = 12


def new_key() -> str:
    """Return a key for a form of a page that is written now."""
    return secrets.token_urlsafe(KEY_BYTES)


@dataclass
class _SentForm:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    folder: Path | None = None
    """The run that it led to; None: nothing was ordered yet, or it was refused."""


class SentForms:
    """The latest forms, by their key and content: with other words, a form that the browser kept is another order."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _SentForm] = OrderedDict()

    async def once(self, key: str, content: object, order: Callable[[], Awaitable[Path]]) -> Path:
        """Order what a form says, unless it was ordered; return the folder of the run that it led to.

        A form without a key is ordered each time. One that was refused can be sent again.
        """
        if not key:
            return await order()
        name = hashlib.sha256(repr((key, content)).encode("utf-8", "replace")).hexdigest()
        form = self._known.setdefault(name, _SentForm())
        self._known.move_to_end(name)
        while len(self._known) > MAX_KEPT:
            self._known.popitem(last=False)
        async with form.lock:
            if form.folder is None:
                form.folder = await order()
            return form.folder
