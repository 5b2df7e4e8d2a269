"""The one HTTP client: what holds for pages, services and Reddit alike."""

import gzip
import re
from pathlib import Path

import pytest

from explorer.network.client import GuardedClient
from explorer.network.exchange import Attempt, HttpRequest, HttpResponse, with_retries
from explorer.network.guard import Guard, UrlRefusedError
from explorer.schema.network import Network
from sources.loopback import Answer, serving

PACKAGE = Path(__file__).parents[2] / "src" / "explorer"


def opened(*allowed: str) -> GuardedClient:
    """A client of a guard that allows hosts."""
    return GuardedClient(Guard(allowed), "test/1", Network(), seconds=5.0)


async def sent(client: GuardedClient, url: str, **more: int) -> HttpResponse:
    """What a plain GET brings."""
    try:
        return await client.send(HttpRequest("GET", url, **more))  # type: ignore[arg-type]
    finally:
        await client.aclose()


def test_no_other_module_opens_a_client() -> None:
    """Nothing but models goes round the guard, the bounds and the rules for cookies and redirects."""
    opening = re.compile(r"httpx2\.(AsyncClient|Client|AsyncHTTPTransport)\(|httpx2\.(get|post|request|stream)\(")
    found = [path for path in PACKAGE.rglob("*.py") if opening.search(path.read_text())]
    assert {str(path.relative_to(PACKAGE)) for path in found} == {
        "network/client.py",
        "llm/model_list.py",
        "llm/streaming.py",
        # The protocol's SDK brings its own requests; they are sent through the guard, too.
        "mcp_client/transports.py",
    }
    transport = (PACKAGE / "mcp_client/transports.py").read_text()
    assert re.findall(r"AsyncClient\(\s*transport=(\w+)\(", transport) == ["GuardedMcpTransport"]
    assert "self._below = GuardedTransport(guard, " in transport


async def test_an_internal_address_is_refused_before_anything_is_sent() -> None:
    """Also as a literal address, and whoever calls: there is no client without a guard."""
    with serving({"/": Answer(b"secret")}) as site:
        with pytest.raises(UrlRefusedError):
            await sent(opened(), f"{site.url}/")
        assert site.asked == []


async def test_a_redirect_is_reported_and_not_followed() -> None:
    """Where it leads is for the caller to have judged; its body is not read."""
    routes = {"/a": Answer(b"x" * 100, 302, headers={"Location": "/b"}), "/b": Answer(b"there")}
    with serving(routes) as site:
        answer = await sent(opened("127.0.0.1"), f"{site.url}/a")
        assert (answer.status, answer.redirect, answer.body) == (302, "/b", b"")
        assert site.paths() == ["/a"]


@pytest.mark.parametrize(
    ("status", "read"),
    [(200, 1_000), (404, 100)],
)
async def test_a_body_is_read_up_to_its_bound_after_decompression(status: int, read: int) -> None:
    """Answers with an error status can have a bound of their own."""
    packed = Answer(gzip.compress(b"0" * 5_000), status, headers={"Content-Encoding": "gzip"})
    with serving({"/": packed}) as site:
        answer = await sent(opened("127.0.0.1"), f"{site.url}/", body_bytes=1_000, error_bytes=100)
    assert (answer.body, answer.is_truncated) == (b"0" * read, True)


async def test_an_encoding_that_was_not_asked_for_is_not_read() -> None:
    """Its name is there for the caller to say."""
    with serving({"/": Answer(b"x", headers={"Content-Encoding": "gzip, gzip"})}) as site:
        answer = await sent(opened("127.0.0.1"), f"{site.url}/")
    assert (answer.unread_encoding, answer.body) == ("gzip, gzip", b"")


class Attempts:
    """Attempts that bring what was scripted, and waits that are noted."""

    def __init__(self, *scripted: Attempt[str]) -> None:
        self.left = list(scripted)
        self.waits: list[float] = []

    async def pause(self, seconds: float) -> None:
        """Note a wait."""
        self.waits.append(seconds)

    async def attempt(self) -> Attempt[str]:
        """Bring the next."""
        return self.left.pop(0)

    async def outcome(self, retries: int = 2) -> str:
        """What comes of them."""
        return await with_retries(self.attempt, retries, self.pause)


async def test_what_may_be_repeated_is_repeated_until_the_last() -> None:
    """The last outcome stands, an error as well as an answer."""
    script = [Attempt[str](OSError("first"), may_repeat=True), Attempt("second", may_repeat=True, wait_s=2.0)]
    attempts = Attempts(*script, Attempt("third", may_repeat=True), Attempt("never asked for"))
    assert await attempts.outcome() == "third"
    assert len(attempts.waits) == 2
    assert 0 <= attempts.waits[0] <= 0.5
    assert attempts.waits[1] == 2.0
    with pytest.raises(OSError, match="first"):
        await Attempts(script[0]).outcome(retries=0)


@pytest.mark.parametrize(
    # Who asks for a minute is not asked again after five seconds.
    ("may_repeat", "wait_s"),
    [(False, None), (True, 60.0)],
)
async def test_what_cannot_help_is_not_repeated(may_repeat: bool, wait_s: float | None) -> None:  # noqa: FBT001
    """Neither an answer that stays nor one that asks for a long wait."""
    attempts = Attempts(Attempt("final", may_repeat, wait_s))
    assert await attempts.outcome() == "final"
    assert attempts.waits == []
