"""Keyless search through the package `ddgs`: its class is stood in for, and once run for real against a dead proxy."""

import threading
from collections.abc import Sequence

import pytest

from explorer.sources.search.ddgs import DdgsSearch, TextSearch
from explorer.sources.search.port import SearchFailedError, WebQuery
from sources.loopback import NOW, closed_port

ddgs = pytest.importorskip("ddgs", reason="the extra ddgs is not installed")
exceptions = pytest.importorskip("ddgs.exceptions")


class Package:
    """Stands in for the package's class."""

    def __init__(self, answer: Sequence[object] | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str | None, int, str]] = []

    def text(self, query: str, *, timelimit: str | None, max_results: int, backend: str) -> Sequence[object]:
        """Keep the question."""
        self.asked.append((query, timelimit, max_results, backend))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def failure(package: TextSearch, seconds: float = 5.0) -> SearchFailedError:
    """Why nothing came."""
    with pytest.raises(SearchFailedError) as caught:
        await DdgsSearch(make=lambda: package, seconds=seconds).search(WebQuery("glue"))
    return caught.value


async def test_results() -> None:
    """Results have our shape; sites go into the words, days into coarse windows, and no encyclopedia is asked."""
    package = Package(
        [
            {"title": "Glue", "href": "https://a.example/glue", "body": "All of it.", "more": 1},
            {"title": "", "href": "https://a.example/glue/", "body": ""},
            {"title": "Elsewhere", "href": "https://b.example/", "body": "b"},
        ]
    )
    async with DdgsSearch(make=lambda: package, now=lambda: NOW) as engine:
        answer = await engine.search(WebQuery("glue", 5, include_domains=("a.example",), since="2026-08-05"))
    (hit,) = answer.hits
    assert (answer.engine, hit.title, hit.url, hit.snippet, hit.engine) == (
        *("ddgs", "Glue", "https://a.example/glue"),
        *("All of it.", "ddgs"),
    )
    assert "Without a date, perhaps older than 2026-08-05: 1 of 1." in answer.notes
    # Mojeek would pass over the dates.
    assert package.asked == [("glue site:a.example", "w", 5, "duckduckgo,brave,startpage,yahoo")]


async def test_failures() -> None:
    """Each of its errors has its meaning; nothing found is an answer."""
    assert "over its rate limit" in (await failure(Package(exceptions.RatelimitException("202")))).problem
    assert "did not answer in time" in (await failure(Package(exceptions.TimeoutException("timed out")))).problem
    broken = await failure(Package(exceptions.DDGSException("a page\nhas changed")))
    assert (broken.problem, broken.stated) == ("got nothing from its engines", "a page has changed")
    assert (await failure(Package([5]))).problem == "sent something unexpected"
    nothing = DdgsSearch(make=lambda: Package(exceptions.DDGSException("No results found.")))
    assert (await nothing.search(WebQuery("glue"))).hits == ()


async def test_silence_ends() -> None:
    """Its thread cannot be ended, but is not waited for longer than agreed."""
    released = threading.Event()

    class Silent(Package):
        def text(self, query: str, *, timelimit: str | None, max_results: int, backend: str) -> Sequence[object]:
            released.wait(20)
            return super().text(query, timelimit=timelimit, max_results=max_results, backend=backend)

    try:
        assert "did not answer within 0.05 s" in (await failure(Silent([]), 0.05)).problem
    finally:
        released.set()


async def test_the_real_package() -> None:
    """The installed package takes what we give it, and its own failure, without a network, is sorted."""
    proxy = f"http://127.0.0.1:{closed_port()}"
    error = await failure(ddgs.DDGS(proxy=proxy, timeout=2))
    assert error.problem in {"got nothing from its engines", "did not answer in time"}
