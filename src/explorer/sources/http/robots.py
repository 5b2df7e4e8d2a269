"""Politeness to sites: the rules of their robots.txt (RFC 9309), one request at a time, and pauses between requests."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2

from explorer.network.guard import NoSuchSiteError, UrlRefusedError
from explorer.schema.errors import ToolError
from explorer.sources.http.caller import PRODUCT
from explorer.sources.http.fetched import DAY_S, Fetched, FetchLimits
from explorer.text.rendering import NOTHING, ModelText

ROBOTS_PATH = "/robots.txt"
ROBOTS_LIMITS = FetchLimits(seconds=10.0, body_bytes=512_000, in_flight=4, retries=1, is_service=True)
"""Limits for a robots.txt. RFC 9309 requires at least 500 kB; the rest is not read."""
KEPT_S = DAY_S
UNREACHABLE_KEPT_S = 900.0
"""The seconds for which a site is not asked after its robots.txt could not be read."""
MAX_ORIGINS = 5_000
AGENT_LINE = re.compile(r"^[ \t]*user[- ]?agent[ \t]*[: \t][ \t]*([^#\n]*).*$", re.IGNORECASE | re.MULTILINE)


class RobotsError(ToolError):
    """A page that its site does not let programs read."""


class TooManyRedirectsError(ToolError):
    """A chain of redirects that does not end."""


@dataclass(frozen=True)
class RobotsRules:
    """The rules of one origin."""

    may_read: Callable[[str], bool]
    delay_s: float
    """The seconds between two pages that its robots.txt asks for; 0 if it does not."""
    until: float
    """The time on the local clock after which the rules are requested again."""
    problem: ModelText = NOTHING
    """The reason why its robots.txt could not be read."""


class Robots:
    """The rules of all origins of a run; `fetch` gets a robots.txt with the same guards as a page."""

    def __init__(
        self, fetch: Callable[[str, FetchLimits], Awaitable[Fetched]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._known: dict[str, RobotsRules] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def delay_s(self, url: httpx2.URL) -> float:
        """Return the seconds to wait between pages of this URL's origin, if the URL may be read at all.

        Raises:
            RobotsError: Its robots.txt forbids the page, or could not be read, which forbids all.
            ToolError: The site cannot be reached, or must not be.
        """
        if url.path == ROBOTS_PATH:
            return 0.0
        rules = await self._rules_of(url)
        if rules.problem:
            raise RobotsError.of(
                "Not fetched: {url}: robots.txt of {host} could not be read ({problem}), and until it can be, "
                "nothing there is to be read by programs (RFC 9309); use another source.",
                url=str(url),
                host=url.host,
                problem=rules.problem,
            )
        if not rules.may_read(str(url)):
            raise RobotsError.of(
                "Not fetched: {url}: robots.txt of {host} forbids it; use another source.", url=str(url), host=url.host
            )
        return rules.delay_s

    async def _rules_of(self, url: httpx2.URL) -> RobotsRules:
        origin = str(url.copy_with(path=ROBOTS_PATH, query=None, fragment=None))
        async with self._locks.setdefault(origin, asyncio.Lock()):
            known = self._known.get(origin)
            if known is None or self._clock() >= known.until:
                known = await self._asked(origin)
                if len(self._known) >= MAX_ORIGINS:
                    self._known.clear()
                self._known[origin] = known
            return known

    async def _asked(self, address: str) -> RobotsRules:
        """Request the rules: a refused robots.txt (4xx) allows everything, one that fails forbids everything."""
        try:
            fetched = await self._fetch(address, ROBOTS_LIMITS)
        except (UrlRefusedError, NoSuchSiteError):
            raise
        except TooManyRedirectsError:
            return self._allowing()
        except ToolError as error:
            return self._forbidding(error.words)
        if fetched.status >= httpx2.codes.INTERNAL_SERVER_ERROR:
            return self._forbidding(fetched.problem)
        if fetched.problem:
            return self._allowing()
        return await asyncio.to_thread(self._parsed, fetched)

    def _parsed(self, fetched: Fetched) -> RobotsRules:
        from protego import Protego  # noqa: PLC0415 - needed by the few runs that read pages directly

        lines = fetched.body.decode("utf-8-sig", "replace").splitlines()
        text = "\n".join(lines[:-1] if fetched.is_truncated else lines)
        rules = Protego.parse(AGENT_LINE.sub(_said_to_us, text))
        return RobotsRules(
            may_read=lambda url: rules.can_fetch(url, PRODUCT),
            delay_s=rules.crawl_delay(PRODUCT) or 0.0,
            until=self._clock() + KEPT_S,
        )

    def _allowing(self) -> RobotsRules:
        return RobotsRules(lambda _url: True, 0.0, self._clock() + KEPT_S)

    def _forbidding(self, problem: ModelText) -> RobotsRules:
        return RobotsRules(lambda _url: False, 0.0, self._clock() + UNREACHABLE_KEPT_S, problem)


def _said_to_us(line: "re.Match[str]") -> str:
    """Return the line if its group is for this program or for all, else one for no program.

    The parser keeps every rule once for each agent of its group: half a megabyte of agents and rules would take it
    hours.
    """
    name = line[1].strip().replace("*", "").lower()
    return line[0] if PRODUCT.startswith(name) else "User-agent: nobody"


GAP_S = 1.0
"""The seconds between the starts of two requests to one host."""
LONGEST_GAP_S = 10.0
"""The longest pause in seconds: a host that asks for more is not read, because agents do not wait so long."""
LONGEST_QUEUE_S = 60.0
"""The longest wait in seconds for a host, which leaves a tool enough time for the page."""


class Politeness:
    """Limits requests to each host. `clock` gives seconds, and `pause` waits.

    Politeness does not apply to interfaces for programs, nor to hosts that the user allowed for this machine. With
    `spares_all_hosts` it applies to allowed hosts, too.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        gap_s: float = GAP_S,
        spares_all_hosts: bool = False,
    ) -> None:
        self.spares_all_hosts = spares_all_hosts
        self._clock = clock
        self._pause = pause
        self._gap_s = gap_s
        self._places: dict[str, _HostSlot] = {}

    @asynccontextmanager
    async def turn(self, host: str, delay_s: float = 0.0) -> AsyncGenerator[None]:
        """Wait until a host is free, and reserve it; `delay_s` is the pause that its robots.txt asks for.

        Raises:
            ToolError: The pause asked for is too long, or too many wait already.
        """
        gap_s = max(delay_s, self._gap_s)
        place = self._places.setdefault(host, _HostSlot())
        if gap_s > LONGEST_GAP_S:
            raise ToolError.of(
                "robots.txt of {host} asks for a pause of {delay_s:g} s between pages, which is too long; use "
                "another source.",
                host=host,
                delay_s=delay_s,
            )
        if place.waiting * gap_s > LONGEST_QUEUE_S:
            raise ToolError.of(
                "{waiting} requests wait for {host} already, which gets one every {gap_s:g} s; use another "
                "source, or this one later.",
                waiting=place.waiting,
                host=host,
                gap_s=gap_s,
            )
        place.waiting += 1
        try:
            async with place.lock:
                wait_s = 0.0 if place.last is None else place.last + gap_s - self._clock()
                if wait_s > 0:
                    await self._pause(wait_s)
                place.last = self._clock()
                yield
        finally:
            place.waiting -= 1


class _HostSlot:
    """A host with its current request and those that wait."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.last: float | None = None
        self.waiting = 0
