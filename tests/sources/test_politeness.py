"""One request at a time and a second apart, whoever asks; short queues; and nobody spared who need not be."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from explorer.schema.errors import ToolError
from explorer.sources.http.fetch import FetchPolicy, Web
from explorer.sources.http.fetched import API_LIMITS, PAGE_LIMITS, FetchLimits
from explorer.sources.http.robots import Politeness
from sources.loopback import Answer, Handler, Site, open_web, serving
from sources.public_network import FakeTime

PAGE = Answer(b"<p>hello</p>")


class Watched:
    """A site that notes when each request came, and how many were inside at once."""

    def __init__(self, site: Site, time: FakeTime, robots: str = "") -> None:
        self.came: list[float] = []
        self.most = 0
        self._inside = 0
        self._lock = threading.Lock()
        self._site, self._time = site, time
        site.routes.update({f"/{number}": self._slow for number in range(20)})
        site.routes["/robots.txt"] = Answer(robots.encode(), content_type="text/plain")

    def _slow(self, _handler: Handler) -> Answer:
        with self._lock:
            self.came.append(self._time.now)
            self._inside += 1
            self.most = max(self.most, self._inside)
        self._site.closing.wait(0.01)
        with self._lock:
            self._inside -= 1
        return PAGE

    @property
    def gaps(self) -> list[float]:
        """Seconds between requests."""
        return [later - earlier for earlier, later in zip(self.came, self.came[1:], strict=False)]


def web_with(time: FakeTime, *, is_polite: bool = True) -> Web:
    """A web whose manners hold for loopback too, or that has none."""
    rules = Politeness(clock=time.clock, pause=time.pause, spares_all_hosts=True) if is_polite else None
    return open_web(pause=time.pause, clock=time.clock, fetch_policy=FetchPolicy(politeness=rules))


async def ask(web: Web, urls: Sequence[str], limits: FetchLimits = PAGE_LIMITS) -> list[str]:
    """Ask for all at once, each as an agent of its own; what the refused ones were told."""
    refused: list[str] = []

    async def one(url: str) -> None:
        try:
            await web.get(url, limits=limits)
        except ToolError as error:
            refused.append(error.message)

    async with asyncio.TaskGroup() as group:
        for url in urls:
            group.create_task(one(url))
    return refused


async def test_ten_agents_and_one_host() -> None:
    """Ten agents that read one host at once: one request in flight, each at least a second after the last."""
    time = FakeTime()
    with serving({}) as site:
        seen = Watched(site, time)
        async with web_with(time) as web:
            assert await ask(web, [f"{site.url}/{number}" for number in range(10)]) == []
    assert (len(seen.came), seen.most) == (10, 1)
    assert min(seen.gaps) >= 1.0
    assert sum(seen.gaps) < 10.0


async def test_without_manners_they_crowd() -> None:
    """The same ten without manners come at once: the test above has teeth."""
    time = FakeTime()
    with serving({}) as site:
        seen = Watched(site, time)
        async with web_with(time, is_polite=False) as web:
            await ask(web, [f"{site.url}/{number}" for number in range(10)])
    assert seen.most > 1
    assert min(seen.gaps) < 1.0


async def test_a_pause_the_site_asks_for() -> None:
    """A crawl delay up to ten seconds is kept."""
    time = FakeTime()
    with serving({}) as site:
        seen = Watched(site, time, "User-agent: *\nCrawl-delay: 7.5\n")
        async with web_with(time) as web:
            assert await ask(web, [f"{site.url}/{number}" for number in range(4)]) == []
    assert seen.gaps == pytest.approx([7.5] * 3)


async def test_services_are_not_held_up() -> None:
    """Interfaces made for programs are asked as they bear it."""
    time = FakeTime()
    with serving({}) as site:
        seen = Watched(site, time)
        async with web_with(time) as web:
            await ask(web, [f"{site.url}/{number}" for number in range(10)], API_LIMITS)
    assert seen.most > 1
    assert time.waits == []


async def test_a_long_queue_is_refused() -> None:
    """Who would wait for more than a minute is told at once."""
    time = FakeTime()
    politeness = Politeness(clock=time.clock, pause=time.pause)
    inside: list[str] = []

    async def one() -> None:
        async with politeness.turn("shop.example", 10.0):
            inside.append("")

    async with politeness.turn("shop.example", 10.0), asyncio.TaskGroup() as group:
        waiting = [group.create_task(one()) for _ in range(6)]
        for _ in range(10):  # until all stand in line
            await asyncio.sleep(0)
        with pytest.raises(ToolError, match=r"7 requests wait for shop\.example already"):
            await one()
        async with politeness.turn("other.example"):
            inside.append("other")
        for task in waiting:
            task.cancel()
    assert inside == ["other"]
    await one()
    assert inside == ["other", ""]


async def test_the_first_does_not_wait() -> None:
    """Nobody waits at a host that was not asked before, or long ago; two hosts do not wait for each other."""
    time = FakeTime()
    politeness = Politeness(clock=time.clock, pause=time.pause)
    for host in ("a.example", "b.example"):
        async with politeness.turn(host):
            pass
    time.now += 5
    async with politeness.turn("a.example"):
        pass
    assert time.waits == []
    async with politeness.turn("a.example"):
        pass
    assert time.waits == [pytest.approx(1.0)]
