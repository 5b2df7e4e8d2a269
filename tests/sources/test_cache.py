"""What is kept of fetched pages: in memory for a while, on disk for a workspace and its processes."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from explorer.documents.parsing.parser import TrustingParser
from explorer.network.guard import Guard, UrlRefusedError
from explorer.schema.errors import ToolError
from explorer.sources.http.cache import CACHE_FOLDER, CacheKey, DiskCache, ResponseCache, clear
from explorer.sources.http.fetch import FetchPolicy, Web
from explorer.sources.http.fetched import API_LIMITS, PAGE_LIMITS, Fetched, FetchLimits
from explorer.sources.page import WebPage
from explorer.sources.pages import PageReader
from explorer.workspace.user_key import UserKey
from sources.loopback import NOW, Answer, Handler, Route, Site, closed_port, no_pause, open_web, serving
from thoroughness import each_slow_but

PAGE = Answer(b"<p>hello</p>")
KEY = CacheKey("https://shop.example/x", "*/*")


def own_key() -> UserKey:
    """The user's."""
    return UserKey(b"k" * 32)


class Wall:
    """A wall clock that is set by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        """The moment."""
        return self.now


def fetched(body: bytes = b"hello", keep_s: float = 1_000.0, url: str = KEY.url) -> Fetched:
    """An answer worth keeping."""
    return Fetched(url, 200, "text/plain", body, fetched_at=NOW, keep_s=keep_s)


@pytest.fixture
def wall() -> Wall:
    """The moment of all tests here."""
    return Wall()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the cache of a workspace is."""
    yield tmp_path / CACHE_FOLDER
    for path in (tmp_path / CACHE_FOLDER).rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, f"{path} is open to others"


def web_of(folder: Path, wall: Wall, allow: str = "127.0.0.1") -> Web:
    """The web of one run in this workspace."""
    disk = DiskCache(folder, own_key, now=wall)
    return Web(Guard([allow]), pause=no_pause, fetch_policy=FetchPolicy(disk=disk, now=wall))


async def read(folder: Path, wall: Wall, url: str, limits: FetchLimits = PAGE_LIMITS) -> Fetched:
    """Fetch in a life of its own, as another process or a resumed run does."""
    async with web_of(folder, wall) as web:
        return await web.get(url, limits=limits)


async def test_the_next_life_reads_the_same(folder: Path, wall: Wall) -> None:
    """A resumed run gets the very body of before, with the time it was fetched at, and asks nobody."""
    with serving({}) as site:

        def changing(_handler: Handler) -> Answer:
            return PAGE if len(site.asked) == 1 else Answer(b"changed")

        site.routes["/x"] = changing
        first = await read(folder, wall, f"{site.url}/x")
        wall.now += timedelta(hours=23)
        again = await read(folder, wall, f"{site.url}/x#part")
        assert len(site.asked) == 1
        wall.now += timedelta(hours=2)
        assert (await read(folder, wall, f"{site.url}/x")).body == b"changed"
    assert (first.from_cache, again.from_cache) == (False, True)
    assert again == replace(first, from_cache=True)
    assert again.fetched_at == NOW


async def test_without_a_workspace_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A web by default remembers in memory; the time of retrieval is told all the same."""
    monkeypatch.chdir(tmp_path)
    with serving({"/x": PAGE}) as site:
        async with Web(Guard(["127.0.0.1"])) as web:
            first, again = await web.get(f"{site.url}/x"), await web.get(f"{site.url}/x")
    assert (first.from_cache, again.from_cache, again.fetched_at) == (False, True, first.fetched_at)
    assert first.fetched_at
    assert abs((datetime.now(UTC) - first.fetched_at).total_seconds()) < 60
    assert _files(tmp_path) == []


@pytest.mark.parametrize(
    ("header", "fresh_s", "stale_s"),
    each_slow_but(
        3,
        [
            ("", 86_000, 87_000),
            ("max-age=600", 590, 610),
            ("public, max-age = 3600", 3_500, 3_700),
            ("max-age=0", 290, 310),
            ("no-cache", 290, 310),
            ("max-age=99999999", 86_000, 87_000),
            ("max-age=soon", 86_000, 87_000),
            ("no-store", None, 0),
            ("max-age=600, No-Store", None, 0),
        ],
    ),
)
async def test_how_long(folder: Path, wall: Wall, header: str, fresh_s: float | None, stale_s: float) -> None:
    """A page is kept for a day, or as long as it says itself, within five minutes and a day; no-store is not kept."""
    with serving({"/x": Answer(b"page", headers={"Cache-Control": header} if header else {})}) as site:
        await read(folder, wall, f"{site.url}/x")
        if fresh_s is not None:
            wall.now = NOW + timedelta(seconds=fresh_s)
            assert (await read(folder, wall, f"{site.url}/x")).from_cache
        wall.now = NOW + timedelta(seconds=stale_s)
        assert not (await read(folder, wall, f"{site.url}/x")).from_cache


async def test_lists_are_fresh(folder: Path, wall: Wall) -> None:
    """An API's answer is kept for a minute, whatever its headers say."""
    with serving({"/x": Answer(b"[1]", headers={"Cache-Control": "max-age=9999"})}) as site:
        for seconds, from_cache in ((0, False), (59, True), (61, False)):
            wall.now = NOW + timedelta(seconds=seconds)
            assert (await read(folder, wall, f"{site.url}/x", API_LIMITS)).from_cache is from_cache


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        (Answer(b"gone", 404), "/x"),
        (Answer(b"busy", 503), "/x"),
        (PAGE, "/x?api_key=abc"),
        (PAGE, "/x?a=1&X-Amz-Signature=abc"),
        (PAGE, "/x?access_token=abc"),
        (Answer(status=302, headers={"Location": "/y?token=abc"}), "/x"),
    ],
)
async def test_what_is_not_kept(folder: Path, wall: Wall, answer: Answer, path: str) -> None:
    """Errors, and addresses that hold a key, or lead to one that does, leave nothing on disk."""
    with serving({"/x": answer, "/y": PAGE}) as site:
        await read(folder, wall, f"{site.url}{path}")
        asked = len(site.asked)
        await read(folder, wall, f"{site.url}{path}")
        assert len(site.asked) == 2 * asked
    assert _files(folder, "entries") == _files(folder, "bodies") == []


async def test_keys_in_headers(folder: Path, wall: Wall) -> None:
    """A request with a key is answered from memory only, apart for each key; the key goes to no other origin."""
    with serving({"/y": PAGE}) as other:
        routes: dict[str, Route] = {"/x": PAGE, "/away": Answer(status=302, headers={"Location": f"{other.url}/y"})}
        with serving(routes) as site:
            async with web_of(folder, wall) as web:
                for key in ("one", "one", "two"):
                    await web.get(f"{site.url}/x", headers={"Authorization": key})
                await web.get(f"{site.url}/away", headers={"Authorization": "one"})
    assert [asked.headers["authorization"] for asked in site.asked] == ["one", "two", "one"]
    assert "authorization" not in other.asked[0].headers
    assert _files(folder) == []


async def test_the_last_address_too(folder: Path, wall: Wall) -> None:
    """A page found by a redirect is there under its last address as well; one body serves both."""
    with serving({"/old": Answer(status=301, headers={"Location": "/new"}), "/new": PAGE}) as site:
        await read(folder, wall, f"{site.url}/old")
        assert (await read(folder, wall, f"{site.url}/new")).from_cache
        assert (await read(folder, wall, f"{site.url}/old")).url == f"{site.url}/new"
    assert site.paths() == ["/old", "/new"]
    assert len([path for path in (folder / "bodies").rglob("*") if path.is_file()]) == 1


async def test_the_guard_comes_first(folder: Path, wall: Wall) -> None:
    """What was read while a host was opened is not shown to a run for which it is closed."""
    with serving({"/x": PAGE}) as site:
        await read(folder, wall, f"{site.url}/x")
        async with web_of(folder, wall, allow="other.example") as web:
            with pytest.raises(UrlRefusedError):
                await web.get(f"{site.url}/x")
    cache = DiskCache(folder, own_key, now=wall)
    opened = replace(KEY, is_opened=True)
    await cache.put(opened, fetched())
    assert await cache.get(opened, PAGE_LIMITS)
    assert await cache.get(KEY, PAGE_LIMITS) is None


async def test_other_words_other_answers(folder: Path, wall: Wall) -> None:
    """What was answered to one Accept header is no answer to another."""
    cache = DiskCache(folder, own_key, now=wall)
    await cache.put(KEY, fetched())
    assert await cache.get(replace(KEY, accept="text/plain"), PAGE_LIMITS) is None
    assert await cache.get(replace(KEY, url=KEY.url + "y"), PAGE_LIMITS) is None


async def test_a_cut_body(folder: Path, wall: Wall) -> None:
    """A body that was cut serves who wanted no more of it, and nobody else."""
    cache = DiskCache(folder, own_key, now=wall)
    await cache.put(KEY, replace(fetched(b"12345"), is_truncated=True))
    assert await cache.get(KEY, FetchLimits(body_bytes=5))
    assert await cache.get(KEY, FetchLimits(body_bytes=6)) is None


def _files(folder: Path, kind: str = "") -> list[Path]:
    return [path for path in (folder / kind).rglob("*") if path.is_file()]


DAMAGES = {
    "empty": b"",
    "half": b'{"v": 1, "asked": "https://shop.exa',
    "binary": bytes(range(256)),
    "a later form": b'{"v": 2}',
    "long": b"{" + b" " * 100_000 + b"}",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_damage_is_absence(folder: Path, wall: Wall, damage: bytes) -> None:
    """A damaged entry or body is as good as none, and is mended by the next fetch."""
    cache = DiskCache(folder, own_key, now=wall)
    for kind in ("entries", "bodies"):
        await cache.put(KEY, fetched())
        (path,) = _files(folder, kind)
        path.write_bytes(damage)
        assert await cache.get(KEY, PAGE_LIMITS) is None
        await cache.put(KEY, fetched())
        found = await cache.get(KEY, PAGE_LIMITS)
        assert found
        assert found.body == b"hello"


async def test_an_entry_that_lies(folder: Path, wall: Wall) -> None:
    """An entry cannot lead out of the cache, nor answer for another address, nor be of tomorrow."""
    cache = DiskCache(folder, own_key, now=wall)
    await cache.put(KEY, fetched())
    (path,) = _files(folder, "entries")
    honest = json.loads(path.read_text())
    lies: list[Mapping[str, object]] = [
        {"sha256": "../../../../etc/passwd"},
        {"asked": "https://other.example/"},
        {"fetched_at": (NOW + timedelta(days=400)).isoformat()},
    ]
    for lie in lies:
        path.write_text(json.dumps({**honest, **lie}))
        assert await cache.get(KEY, PAGE_LIMITS) is None
    path.write_text(json.dumps(honest))
    assert await cache.get(KEY, PAGE_LIMITS)
    path.unlink()
    path.symlink_to(folder / "elsewhere")
    (folder / "elsewhere").write_text(json.dumps(honest))
    (folder / "elsewhere").chmod(0o600)
    assert await cache.get(KEY, PAGE_LIMITS) is None
    path.unlink()


@pytest.mark.parametrize("key", [UserKey(b"x" * 32), UserKey(problem="there is none")], ids=["another", "none"])
async def test_a_page_that_somebody_else_kept_was_not_fetched(folder: Path, wall: Wall, key: UserKey) -> None:
    """Neither what another user's key marked nor, as in the caches of older versions, what none did."""
    await DiskCache(folder, own_key, now=wall).put(KEY, fetched())
    assert await DiskCache(folder, lambda: key, now=wall).get(KEY, PAGE_LIMITS) is None
    (path,) = _files(folder, "entries")
    entry = json.loads(path.read_text())
    for changed in ({"mark": ""}, {"url": "https://bank.example/"}, {"fetched_at": "2026-08-10T11:59:00Z"}):
        path.write_text(json.dumps(entry | changed))
        assert await DiskCache(folder, own_key, now=wall).get(KEY, PAGE_LIMITS) is None
    path.write_text(json.dumps({name: value for name, value in entry.items() if name not in {"mark", "is_opened"}}))
    assert await DiskCache(folder, own_key, now=wall).get(KEY, PAGE_LIMITS) is None
    path.write_text(json.dumps(entry))
    assert await DiskCache(folder, own_key, now=wall).get(KEY, PAGE_LIMITS)


async def test_a_disk_that_refuses(tmp_path: Path, wall: Wall) -> None:
    """Without a place to write there is no cache, and pages are read all the same."""
    (tmp_path / "file").write_text("")
    with serving({"/x": PAGE}) as site:
        for _ in range(2):
            assert (await read(tmp_path / "file" / CACHE_FOLDER, wall, f"{site.url}/x")).body == PAGE.body
    assert len(site.asked) == 2


async def test_no_more_than_allowed(folder: Path, wall: Wall) -> None:
    """Beyond its size, what was unused for longest goes; what is used stays."""
    cache = DiskCache(folder, own_key, now=wall, max_bytes=100_000)
    keys = [replace(KEY, url=f"https://shop.example/{number}") for number in range(40)]
    for number, key in enumerate(keys):
        wall.now += timedelta(seconds=1)
        await cache.put(key, replace(fetched(bytes([number]) * 10_000, 80_000, key.url), fetched_at=wall.now))
        assert await cache.get(keys[0], PAGE_LIMITS), f"the first, used every time, is gone after {number}"
    assert sum(path.stat().st_size for path in _files(folder, "bodies")) <= 110_000
    assert await cache.get(keys[-1], PAGE_LIMITS)
    assert await cache.get(keys[5], PAGE_LIMITS) is None
    await cache.put(KEY, fetched(bytes(50_000)))
    assert await cache.get(KEY, PAGE_LIMITS) is None


async def test_remains_are_swept(folder: Path, wall: Wall) -> None:
    """Out-of-date entries and bodies, and what crashed processes left, go with time."""
    await DiskCache(folder, own_key, now=wall).put(KEY, fetched())
    left = folder / "bodies" / "ab" / "xyz.tmp"
    left.parent.mkdir(mode=0o700, exist_ok=True)
    left.touch(0o600)
    os.utime(left, (NOW.timestamp(), NOW.timestamp()))
    wall.now += timedelta(days=2)
    other = replace(KEY, url="https://shop.example/other")
    await DiskCache(folder, own_key, now=wall).put(other, replace(fetched(b"new", 60, other.url), fetched_at=wall.now))
    assert (len(_files(folder, "entries")), len(_files(folder, "bodies"))) == (1, 1)


async def test_a_wait_is_bounded(folder: Path, wall: Wall) -> None:
    """Who waits for another process's fetch for too long fetches too."""
    holder, waiter = DiskCache(folder, own_key, now=wall), DiskCache(folder, own_key, now=wall, longest_wait_s=0.1)
    async with holder.alone(KEY), asyncio.timeout(10), waiter.alone(KEY):
        pass
    async with asyncio.timeout(10), waiter.alone(KEY):
        pass


def slow_site(site: Site) -> None:
    """Let a site take its time over `/x`."""

    def slow(_handler: Handler) -> Answer:
        site.closing.wait(0.2)
        return Answer(b"once")

    site.routes["/x"] = slow


@pytest.mark.slow
async def test_several_runs_at_once(folder: Path, wall: Wall) -> None:
    """Runs of one workspace that want a page at the same time cause one request; without a workspace, one each."""
    with serving({}) as site:
        slow_site(site)
        async with asyncio.TaskGroup() as group:
            reading = [group.create_task(read(folder, wall, f"{site.url}/x")) for _ in range(3)]
        assert {task.result().body for task in reading} == {b"once"}
        assert len(site.asked) == 1
        async with open_web() as one, open_web() as other, asyncio.TaskGroup() as group:
            for web in (one, other):
                group.create_task(web.get(f"{site.url}/x"))
        assert len(site.asked) == 3


PROCESS = """
import asyncio, sys
from pathlib import Path
from explorer.sources.http.cache import DiskCache
from explorer.sources.http.fetch import FetchPolicy, Web
from explorer.network.guard import Guard
from explorer.workspace.user_key import UserKey

async def main():
    disk = DiskCache(Path(sys.argv[1]), lambda: UserKey(b"k" * 32))
    async with Web(Guard(["127.0.0.1"]), fetch_policy=FetchPolicy(disk=disk)) as web:
        print((await web.get(sys.argv[2])).body.decode())

asyncio.run(main())
"""


@pytest.mark.slow
def test_several_processes(folder: Path) -> None:
    """Processes that want one page at the same time cause one request, and all get its answer."""
    with serving({}) as site:
        slow_site(site)
        command = [sys.executable, "-c", PROCESS, str(folder), f"{site.url}/x"]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(3)]
        outputs = [process.communicate()[0] for process in processes]
        assert len(site.asked) == 1
    assert outputs == [b"once\n"] * 3


async def test_clearing(tmp_path: Path, folder: Path, wall: Wall) -> None:
    """A cleared cache is gone, tells its size, and can be used on."""
    assert clear(tmp_path) == 0
    cache = DiskCache(folder, own_key, now=wall)
    await cache.put(KEY, fetched(bytes(1_000)))
    assert clear(tmp_path) > 1_000
    assert _files(folder) == []
    assert await cache.get(KEY, PAGE_LIMITS) is None
    await cache.put(KEY, fetched())
    assert await cache.get(KEY, PAGE_LIMITS)


def test_memory() -> None:
    """In memory, what is old or too much is forgotten, the least recently used first."""
    now = [0.0]
    cache = ResponseCache[str](lambda: now[0], max_bytes=10, max_age_s=100)
    for name in "abc":
        cache.put(name, name, size=4)
    assert [cache.get(name) for name in "abc"] == [None, "b", "c"]
    cache.put("b", "more", size=11)
    assert cache.get("b") is None
    now[0] = 101
    assert cache.get("c") is None


async def test_a_site_that_failed_is_asked_again(folder: Path, wall: Wall) -> None:
    """A failure is never kept on disk."""
    async with web_of(folder, wall) as web:
        with pytest.raises(ToolError):
            await web.get(f"http://127.0.0.1:{closed_port()}/x")
    assert _files(folder, "entries") == []


async def test_a_kept_page_is_as_old_as_its_fetching(folder: Path, wall: Wall) -> None:
    """A source made of a page out of the cache says when it was fetched, not when it was looked at again."""
    pages: list[WebPage] = []
    with serving({"/x": Answer(b"<p>" + b"A page with words. " * 30 + b"</p>")}) as site:
        for _ in range(2):
            async with web_of(folder, wall) as web:
                pages.append(await PageReader(web, TrustingParser()).read(f"{site.url}/x"))
            wall.now += timedelta(hours=1)
    assert [page.kept_since for page in pages] == [None, NOW]
