"""Archived copies of pages that are gone, from the Internet Archive.

Its Wayback availability API says which copy is closest to a day (https://archive.org/help/wayback_api.php); the copy is
fetched as it was recorded (`id_`), without the archive's own frame.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Annotated
from urllib.parse import urlencode, urlsplit

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from explorer.schema.errors import ToolError
from explorer.sources.http.fetched import Fetched, FetchLimits
from explorer.sources.http.wire import WireModel
from explorer.sources.page import Fetcher

PUBLIC = "https://archive.org"
PLAYBACK = "web.archive.org"
"""The host that has the copies of the public archive."""
LIMITS = FetchLimits(seconds=30.0, is_service=True, in_flight=1)
MOMENT = re.compile(r"\d{14}")
OK = "200"
ARCHIVED = "archived"
"""The flag of an archived copy, followed by its day."""


class _Copy(WireModel):
    available: bool = False
    timestamp: str = ""
    status: str = ""


class _Copies(WireModel):
    closest: _Copy | None = None


class _Answer(WireModel):
    archived_snapshots: Annotated[_Copies, BeforeValidator(lambda value: value or {})] = _Copies()


ANSWER = TypeAdapter(_Answer)


@dataclass(frozen=True)
class ArchivedCopy:
    """A copy of a page, and the day on which it was recorded."""

    fetched: Fetched
    url: str
    """The address at which people see it."""
    day: date

    @property
    def flag(self) -> str:
        """The flag of its source, which reports show: `archived_2013-09-19`."""
        return f"{ARCHIVED}_{self.day.isoformat()}"


class WebArchive:
    """Asks the archive at `url`; it learns the addresses of the pages that are gone."""

    def __init__(self, web: Fetcher, url: str = PUBLIC) -> None:
        self._web = web
        self._url = url.rstrip("/")
        parts = urlsplit(self._url)
        self._playback = f"https://{PLAYBACK}" if self._url == PUBLIC else f"{parts.scheme}://{parts.netloc}"

    async def latest_copy(self, url: str) -> ArchivedCopy | None:
        """Return the latest copy of a page that had an answer; None where there is none, or the archive is down."""
        try:
            found = await self._web.get(f"{self._url}/wayback/available?{urlencode({'url': url})}", limits=LIMITS)
            copy = ANSWER.validate_json(found.body).archived_snapshots.closest
            if found.problem or copy is None or not copy.available or copy.status != OK:
                return None
            if not MOMENT.fullmatch(copy.timestamp):
                return None
            day = date.fromisoformat(copy.timestamp[:8])
            fetched = await self._web.get(f"{self._playback}/web/{copy.timestamp}id_/{url}", limits=LIMITS)
        except (ToolError, ValidationError, ValueError):
            return None
        return None if fetched.problem else ArchivedCopy(fetched, f"{self._playback}/web/{copy.timestamp}/{url}", day)
