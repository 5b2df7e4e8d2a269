"""A small memory of answers: bounded in bytes and in age, the least recently used leave first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

MAX_BYTES = 64_000_000
MAX_AGE_S = 900.0

T = TypeVar("T")


@dataclass(frozen=True)
class _Kept(Generic[T]):
    value: T
    size: int
    stored_at: float


class ResponseCache(Generic[T]):
    """Values by key for a quarter of an hour, so that many agents reading one page fetch it once."""

    def __init__(self, clock: Callable[[], float], *, max_bytes: int = MAX_BYTES, max_age_s: float = MAX_AGE_S) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._kept: OrderedDict[Hashable, _Kept[T]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> T | None:
        """The value, unless it is absent or too old."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if self._clock() - kept.stored_at > self._max_age_s:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return kept.value

    def put(self, key: Hashable, value: T, *, size: int) -> None:
        """Remember a value; one larger than the whole cache is not kept."""
        if key in self._kept:
            self._drop(key)
        if size > self._max_bytes:
            return
        self._kept[key] = _Kept(value, size, self._clock())
        self._bytes += size
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        self._bytes -= self._kept.pop(key).size
