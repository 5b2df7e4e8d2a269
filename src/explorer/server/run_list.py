"""Lists of runs for open pages: each is looked up once a second, however many pages show it."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

LOOK_EVERY_S = 1.0
MAX_LISTS = 16


class KeptLists:
    """The latest result of each look-up."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._lock = asyncio.Lock()

    async def of(self, name: Hashable, look_up: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is looked up
        """Return what a look-up of this name found in the last second; look it up if none did."""
        async with self._lock:
            known = self._kept.get(name)
            if known is None or known[0] + LOOK_EVERY_S / 2 < time.monotonic():
                known = self._kept[name] = time.monotonic(), await asyncio.to_thread(look_up)
            self._kept.move_to_end(name)
            while len(self._kept) > MAX_LISTS:
                self._kept.popitem(last=False)
            return known[1]
