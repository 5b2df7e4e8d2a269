"""Attacks on the way to the network: none reaches an internal address, and the same without the guard does."""

import asyncio
import gzip
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest

from explorer.documents.parsing.parser import TrustingParser
from explorer.network.guard import UrlRefusedError
from explorer.schema.errors import ToolError
from explorer.sources.http.fetched import FetchLimits
from explorer.sources.pages import PageReader
from sources.loopback import Answer, Handler, Site, open_web, serving
from sources.public_network import ChecksThenForgets, PublicNetwork, Unguarded

PUBLIC = "93.184.215.14"
TRAP = Answer(b"the secrets of this machine", content_type="text/plain")

INTERNAL_URLS = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://localhost/",
    "http://app.localhost/",
    "http://0.0.0.0/",
    "http://169.254.169.254/latest/meta-data/iam/",
    "http://[fd00:ec2::254]/latest/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://100.100.100.200/latest/",
    "http://100.64.0.1/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://10.0.0.1/",
    "http://user:word@shop.example/",
    "http://shop.example@127.0.0.1/",
    "file:///etc/passwd",
    "gopher://shop.example/1",
    "ftp://shop.example/x",
    "http://shop.example:22/",
    "http://shop.example:6379/",
]


def internal(site: Site, *names: str) -> PublicNetwork:
    """A network where every internal address, and each name, leads to a site."""
    addresses = ["127.0.0.1", "169.254.169.254", "10.0.0.1", "100.64.0.1", "100.100.100.200", "0.0.0.0"]  # noqa: S104 - as a target
    return PublicNetwork(
        {name: [["127.0.0.1"]] for name in names}, dict.fromkeys([*addresses, "::1", "fd00:ec2::254"], site.port)
    )


@pytest.mark.parametrize("url", INTERNAL_URLS)
async def test_internal_addresses(url: str) -> None:
    """A URL of an internal address is refused as it is written: no lookup, no connection."""
    with serving({}) as site:
        network = internal(site, "localhost", "app.localhost", "metadata.google.internal", "shop.example")
        async with network.web() as web:
            with pytest.raises(UrlRefusedError):
                await web.get(url)
        assert (network.lookups, network.connected, site.asked) == ([], [], [])


async def test_without_the_guard_they_are_reached() -> None:
    """The same network gives away its secrets to a web without a guard: the test above has teeth."""
    with serving({"/": TRAP, "/latest/meta-data/iam/": TRAP}) as site:
        network = internal(site, "localhost")
        async with network.web(guard=Unguarded()) as web:
            for url in ("http://127.0.0.1/", "http://169.254.169.254/latest/meta-data/iam/", "http://localhost/"):
                assert (await web.get(url)).body == TRAP.body
        assert len(network.connected) == 3


REBINDING = {"turns.example": [[PUBLIC], ["127.0.0.1"]]}


async def test_rebinding() -> None:
    """A name that is public when judged and internal afterwards: one lookup, and only the judged address is met."""
    with serving({"/": Answer(b"public", content_type="text/plain")}) as site:
        network = PublicNetwork(REBINDING, {PUBLIC: site.port})
        async with network.web() as web:
            assert (await web.get("http://turns.example/")).body == b"public"
    assert network.lookups == ["turns.example"]
    assert network.connected == [PUBLIC]


async def test_rebinding_catches_who_looks_twice() -> None:
    """A guard that judges a name and connects by name is led to the internal address by the same answers."""
    with serving({"/": TRAP}) as site:
        network = PublicNetwork(REBINDING, {"127.0.0.1": site.port})
        async with network.web(guard=ChecksThenForgets(resolve=network.resolve)) as web:
            assert (await web.get("http://turns.example/")).body == TRAP.body
    assert network.connected == ["127.0.0.1"]


def _hop(site: Site, location: str) -> None:
    site.routes["/"] = Answer(status=302, headers={"Location": location, "Connection": "close"})


HOPS = [
    "http://127.0.0.1/inner",
    "http://[::1]/inner",
    "//169.254.169.254/inner",
    "http://2130706433/inner",
    "http://user@turns.example/inner",
    "file:///etc/passwd",
    "http://inward.example/inner",
    "http://turns.example/inner",
]


@pytest.mark.parametrize("location", HOPS)
async def test_a_second_hop_inward(location: str) -> None:
    """A redirect is judged like a first address, also when its name, or the same name, has just turned inward."""
    with serving({"/inner": TRAP}) as site:
        _hop(site, location)
        network = PublicNetwork(
            {**REBINDING, "inward.example": [["127.0.0.1"]]}, {PUBLIC: site.port, "127.0.0.1": site.port}
        )
        async with network.web() as web:
            with pytest.raises(UrlRefusedError):
                await web.get("http://turns.example/")
    assert network.connected == [PUBLIC]
    assert site.paths() == ["/"]


async def test_a_second_hop_without_the_guard() -> None:
    """Who judges the first address only, is led inward by the second."""
    with serving({"/inner": TRAP}) as site:
        _hop(site, "http://turns.example/inner")
        network = PublicNetwork(REBINDING, {PUBLIC: site.port, "127.0.0.1": site.port})
        async with network.web(guard=Unguarded()) as web:
            assert (await web.get("http://turns.example/")).body == TRAP.body
    assert network.connected == [PUBLIC, "127.0.0.1"]


@pytest.mark.parametrize("answers", [[PUBLIC, "10.0.0.1"], ["10.0.0.1", PUBLIC], [PUBLIC, "::ffff:127.0.0.1"]])
async def test_mixed_answers(answers: Sequence[str]) -> None:
    """A name with a public and an internal address is refused as a whole; nothing is connected to."""
    with serving({"/": TRAP}) as site:
        network = PublicNetwork({"mixed.example": [answers]}, dict.fromkeys(answers, site.port))
        async with network.web() as web:
            with pytest.raises(UrlRefusedError, match="leads to"):
                await web.get("http://mixed.example/")
        assert network.connected == []
        async with network.web(guard=Unguarded()) as web:
            assert (await web.get("http://mixed.example/")).body == TRAP.body


async def test_a_program_is_not_a_page() -> None:
    """An executable is not read, whatever it calls itself."""
    program = b"MZ\x90\x00\x03\x00\x00\x00" + bytes(2_000)
    routes = {
        "/a": Answer(program, content_type="application/vnd.microsoft.portable-executable"),
        "/b": Answer(program, content_type="text/plain"),
    }
    with serving(routes) as site:
        async with open_web() as web:
            for path in routes:
                with pytest.raises(ToolError):
                    await PageReader(web, TrustingParser()).read(f"{site.url}{path}")


async def test_a_lying_length() -> None:
    """Less than promised is a failure, more is cut off; two different promises are no answer at all."""

    def says(*lengths: int) -> bytes:
        return b"".join(b"Content-Length: %d\r\n" % length for length in lengths)

    def answering(head: bytes) -> Site:
        def lie(handler: Handler) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + head + b"\r\n" + b"x" * 5_000)
            handler.close_connection = True

        return Site({"/": lie})

    limits = FetchLimits(retries=0)
    for head, expected in ((says(10), b"x" * 10), (says(9_000), None), (says(10, 20), None), (says(10**30), None)):
        with serving(answering(head).routes) as site:
            async with open_web() as web:
                if expected is None:
                    with pytest.raises(ToolError):
                        await web.get(f"{site.url}/", limits=limits)
                else:
                    assert (await web.get(f"{site.url}/", limits=limits)).body == expected


async def test_a_head_without_an_end() -> None:
    """Headers that never end are given up after some hundred kilobytes."""
    sent = 0

    def endless(handler: Handler) -> None:
        nonlocal sent
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for _ in range(2_000):
            sent += handler.wfile.write(b"X-More: " + b"y" * 16_000 + b"\r\n")

    with serving({"/": endless}) as site:
        async with open_web() as web:
            with pytest.raises(ToolError, match="Could not reach"):
                await web.get(f"{site.url}/", limits=FetchLimits(retries=0))
    assert sent < 20_000_000


async def test_a_head_in_drips() -> None:
    """A server that sends its headers byte by byte is given up at the total deadline too."""
    with serving({}) as site:

        def drip(handler: Handler) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not site.closing.wait(0.02):
                handler.wfile.write(b"x")

        site.routes["/"] = drip
        async with open_web() as web, asyncio.timeout(30):
            with pytest.raises(ToolError, match="did not answer completely"):
                await web.get(f"{site.url}/", limits=FetchLimits(seconds=0.2))


async def test_a_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment names as a proxy sees nothing of us; a client that heeds it sends it everything."""
    with serving({"/": Answer(b"page")}) as site, serving({}) as proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        async with open_web() as web:
            assert (await web.get(f"{site.url}/")).body == b"page"
        assert proxy.asked == []
        async with httpx2.AsyncClient(trust_env=True) as client:
            await client.get(f"{site.url}/")
        assert len(proxy.asked) == 1


MEMORY = """
import asyncio, re, sys
from pathlib import Path
from explorer.schema.errors import ToolError
from explorer.sources.http.fetch import Web
from explorer.sources.http.fetched import FetchLimits
from explorer.network.guard import Guard
import httpx2

def peak_kb():
    # Not by getrusage: there a new process begins with what the one that started it had.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

async def guarded(url):
    async with Web(Guard(["127.0.0.1"])) as web:
        for path in ("/small", *sys.argv[3:]):
            if path != "/small" and not before:
                before.append(peak_kb())
            try:
                await web.get(url + path, limits=FetchLimits(seconds=20, retries=0))
            except ToolError:
                pass

async def naive(url):
    async with httpx2.AsyncClient(timeout=60, trust_env=False) as client:
        await client.get(url + "/small")
        before.append(peak_kb())
        for path in sys.argv[3:]:
            await client.get(url + path)

before = []
asyncio.run({"guarded": guarded, "naive": naive}[sys.argv[1]](sys.argv[2]))
print((peak_kb() - before[0]) // 1024)
"""


def grown_mb(kind: str, site: Site, *paths: str) -> int:
    """By how many megabytes a process grows that fetches these."""
    command = [sys.executable, "-c", MEMORY, kind, site.url, *paths]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    return int(subprocess.run(command, check=True, capture_output=True, env=environment, timeout=60).stdout)


@pytest.mark.slow
def test_memory_under_attack() -> None:
    """Bombs, stacked bombs and plain floods of 200 MB grow a process by less than 60 MB; without limits, by all."""
    bomb = gzip.compress(bytes(200_000_000), 9)

    def flood(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        for _ in range(200):
            handler.wfile.write(bytes(1_000_000))

    routes = {
        "/small": Answer(b"x"),
        "/bomb": Answer(bomb, headers={"Content-Encoding": "gzip"}),
        "/stacked": Answer(gzip.compress(bomb), headers={"Content-Encoding": "gzip, gzip"}),
        "/flood": flood,
    }
    with serving(routes) as site:
        assert grown_mb("guarded", site, "/bomb", "/stacked", "/flood") < 60
        assert grown_mb("naive", site, "/bomb") > 150
