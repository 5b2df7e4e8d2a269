"""Fetching: guarded, bounded, polite, once per URL."""

import asyncio
import gzip
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress

import httpx2
import pytest

from explorer.network.guard import Guard, UrlRefusedError
from explorer.schema.errors import ToolError
from explorer.sources.http.caller import Caller
from explorer.sources.http.fetch import Web
from explorer.sources.http.fetched import API_LIMITS, PAGE_LIMITS, FetchLimits
from sources.loopback import Answer, Handler, Route, Site, closed_port, no_pause, open_web, serving
from thoroughness import each_slow_but

PAGE = Answer(b"<p>hello</p>")


async def test_an_answer() -> None:
    """An answer comes with its address, status, type and decompressed body; the request says who asks."""
    packed = Answer(gzip.compress(b"hello"), 200, "text/plain", {"Content-Encoding": "gzip"})
    with serving({"/x?q=1": packed}) as site:
        async with open_web() as web:
            fetched = await web.get(f"{site.url}/x?q=1")
    assert (fetched.url, fetched.status, fetched.content_type) == (f"{site.url}/x?q=1", 200, "text/plain")
    assert (fetched.body, fetched.is_truncated, fetched.problem) == (b"hello", False, "")
    assert site.asked[0].headers["user-agent"] == Caller().user_agent
    assert site.asked[0].headers["host"] == f"127.0.0.1:{site.port}"


@pytest.mark.parametrize(
    ("status", "words"), [(404, "no such page"), (403, "refused"), (418, "refused"), (501, "failed")]
)
async def test_an_error_status_is_an_answer(status: int, words: str) -> None:
    """What the status means is said in words, and judged by the caller."""
    with serving({"/": Answer(b"gone", status)}) as site:
        async with open_web() as web:
            fetched = await web.get(f"{site.url}/")
    assert fetched.status == status
    assert words in fetched.problem
    assert len(site.asked) == 1


async def test_loopback_is_refused_unless_allowed() -> None:
    """Without the allow list the same server is never asked; the guard is what makes the difference."""
    with serving({"/": PAGE}) as site:
        async with Web(Guard()) as web:
            with pytest.raises(UrlRefusedError):
                await web.get(f"{site.url}/")
        assert site.asked == []
        async with open_web() as web:
            await web.get(f"{site.url}/")
        assert len(site.asked) == 1


async def test_a_name_that_leads_inward_is_refused() -> None:
    """A public-looking name that resolves to loopback is refused before any connection."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        del host, port
        return ["127.0.0.1"]

    with serving({"/": PAGE}) as site:
        async with Web(Guard(resolve=resolve), pause=no_pause) as web:
            with pytest.raises(UrlRefusedError, match=r"leads to 127\.0\.0\.1"):
                await web.get(f"http://shop.example:{site.port}/")
    assert site.asked == []


async def test_the_checked_address_is_the_one_connected_to() -> None:
    """A name is looked up once a connection; a second, different answer is never used. The Host header keeps it."""
    lookups: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        del port
        lookups.append(host)
        return ["127.0.0.1"] if len(lookups) == 1 else ["203.0.113.9"]

    with serving({"/": PAGE}) as site:
        async with Web(Guard(["shop.example"], resolve), pause=no_pause) as web:
            assert (await web.get(f"http://shop.example:{site.port}/")).status == 200
    assert lookups == ["shop.example"]
    assert site.asked[0].headers["host"] == f"shop.example:{site.port}"


async def test_the_next_address_is_tried() -> None:
    """A name with several addresses is reached by the first that answers."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        del host, port
        return ["127.0.0.2", "127.0.0.1"]

    with serving({"/": PAGE}) as site:
        async with Web(Guard(["shop.example"], resolve), pause=no_pause) as web:
            assert (await web.get(f"http://shop.example:{site.port}/")).body == PAGE.body


async def test_redirects_are_followed() -> None:
    """Relative and absolute redirects lead on, and the final address is told."""
    routes: dict[str, Route] = {
        "/a": Answer(status=302, headers={"Location": "/b?x=1"}),
        "/c": PAGE,
    }
    with serving(routes) as site:
        site.routes["/b"] = Answer(status=308, headers={"Location": f"{site.url}/c#part"})
        async with open_web() as web:
            fetched = await web.get(f"{site.url}/a")
    assert fetched.url.startswith(f"{site.url}/c")
    assert site.paths() == ["/a", "/b?x=1", "/c"]


@pytest.mark.parametrize(
    "location",
    [
        "http://localhost:{port}/inner",
        "http://[::1]:{port}/inner",
        "//127.0.0.2:{port}/inner",
        "http://2130706433:{port}/inner",
        "http://169.254.169.254/latest/meta-data/",
        "http://user@127.0.0.1:{port}/inner",
        "file:///etc/passwd",
        "http://leads-inward.example:{port}/inner",
    ],
)
async def test_a_redirect_inward_is_refused(location: str) -> None:
    """Every hop is judged anew: a public page cannot send us to an internal one."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        del host, port
        return ["127.0.0.1"]

    with serving({"/inner": PAGE}) as site:
        site.routes["/"] = Answer(status=302, headers={"Location": location.format(port=site.port)})
        async with Web(Guard(["127.0.0.1"], resolve), pause=no_pause) as web:
            with pytest.raises(UrlRefusedError):
                await web.get(f"{site.url}/")
    assert site.paths() == ["/"]


async def test_a_redirect_loop_ends() -> None:
    """After five redirects it is enough."""
    with serving({"/": Answer(status=301, headers={"Location": "/"})}) as site:
        async with open_web() as web:
            with pytest.raises(ToolError, match="redirects more than 5 times"):
                await web.get(f"{site.url}/")
    assert len(site.asked) == 6


@pytest.mark.parametrize("encoding", each_slow_but(3, zip(["", "gzip", "deflate"])))
async def test_a_large_body_is_cut(encoding: str) -> None:
    """Bytes are counted after decompression, and a bomb is not blown up in memory."""
    packing: dict[str, Callable[[bytes], bytes]] = {"": bytes, "gzip": gzip.compress, "deflate": zlib.compress}
    headers = {"Content-Encoding": encoding} if encoding else {}
    with serving({"/": Answer(packing[encoding](b"0" * 40_000_000), headers=headers)}) as site:
        async with open_web() as web:
            tracemalloc.start()
            fetched = await web.get(f"{site.url}/", limits=FetchLimits(body_bytes=1_000_000))
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert fetched.is_truncated
    assert len(fetched.body) == 1_000_000
    assert peak < 20_000_000


@pytest.mark.parametrize("encoding", ["gzip, gzip", "gzip,deflate", "br", "zstd", "unheard-of"])
async def test_encodings_that_were_not_asked_for_are_refused(encoding: str) -> None:
    """Stacked and unknown encodings are refused unread."""
    body = gzip.compress(gzip.compress(b"0" * 1000))
    with serving({"/": Answer(body, headers={"Content-Encoding": encoding})}) as site:
        async with open_web() as web:
            with pytest.raises(ToolError, match="encoding that is not read"):
                await web.get(f"{site.url}/")


async def test_a_damaged_body() -> None:
    """What calls itself gzip and is not is told as damaged."""
    with serving({"/": Answer(b"not gzip at all", headers={"Content-Encoding": "gzip"})}) as site:
        async with open_web() as web:
            with pytest.raises(ToolError, match="damaged"):
                await web.get(f"{site.url}/")


async def test_a_body_shorter_than_promised() -> None:
    """A connection cut in the middle is tried three times and then told as failed; half a page is never passed on."""

    def cut(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
        handler.close_connection = True

    with serving({"/": cut}) as site:
        async with open_web() as web:
            with pytest.raises(ToolError, match="connection failed"):
                await web.get(f"{site.url}/")
    assert len(site.asked) == 3


async def test_a_drip_ends_at_the_deadline() -> None:
    """A server that sends a byte now and then is given up after the total of seconds, not after each byte."""
    with serving({}) as site:

        def drip(handler: Handler) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not site.closing.wait(0.02):
                handler.wfile.write(b"x")

        site.routes["/"] = drip
        async with open_web() as web:
            # On a busy machine the server may not have been reached in so short a time.
            for seconds in (0.3, 3, 30):
                with pytest.raises(ToolError, match=f"did not answer completely within {seconds} s"):
                    await web.get(f"{site.url}/", limits=FetchLimits(seconds=seconds))
                if site.asked:
                    break
        assert len(site.asked) == 1


async def test_a_silent_server() -> None:
    """No answer at all ends at the same deadline."""
    with serving({}) as site:

        def silent(_handler: Handler) -> None:
            site.closing.wait()

        site.routes["/"] = silent
        async with open_web() as web, asyncio.timeout(30):
            with pytest.raises(ToolError, match="did not answer"):
                await web.get(f"{site.url}/", limits=FetchLimits(seconds=0.2))


HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@pytest.mark.slow
async def test_interim_answers_without_end_are_ended() -> None:
    """A server that only ever sends 103: each of three connections takes about the bytes that a head may have."""
    sent = [0]

    def hints(handler: Handler) -> None:
        handler.close_connection = True
        with suppress(OSError):
            while sent[0] < 500_000_000:
                handler.wfile.write(HINT * 500)
                sent[0] += len(HINT) * 500

    with serving({"/": hints}) as site:
        async with open_web() as web:
            with pytest.raises(ToolError, match="bytes came before an answer began"):
                await web.get(f"{site.url}/")
    assert len(site.asked) == 3
    # What the sockets hold of each connection is sent, too, and not read.
    assert sent[0] < 100_000_000


async def test_a_few_interim_answers_are_passed_over() -> None:
    """What comes before the answer is no part of it, and a body much larger than a head is read to its end, twice."""
    body = b"x" * 1_000_000

    def after_hints(handler: Handler) -> None:
        handler.wfile.write(HINT * 100 + b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + body)

    with serving({"/1": after_hints, "/2": after_hints}) as site:
        async with open_web() as web:
            assert [(await web.get(f"{site.url}/{n}")).body for n in (1, 2)] == [body, body]


async def test_nobody_listens() -> None:
    """A refused connection is told with the address and what to do."""
    async with open_web() as web:
        with pytest.raises(ToolError, match=r"Could not reach http://127.*Try another source"):
            await web.get(f"http://127.0.0.1:{closed_port()}/")


def in_turn(*answers: Answer) -> Route:
    """Give these answers one after the other, the last for ever."""
    left = list(answers)
    return lambda _handler: left.pop(0) if len(left) > 1 else left[0]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_passing_failure_is_tried_again(status: int) -> None:
    """Overload and server errors are asked again, after the wait the server names."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    busy = Answer(b"busy", status, headers={"Retry-After": "2"})
    with serving({"/": in_turn(busy, Answer(b"busy", status), PAGE)}) as site:
        async with open_web(pause=pause) as web:
            assert (await web.get(f"{site.url}/")).status == 200
    assert pauses[0] == 2.0
    assert 0.0 <= pauses[1] <= 1.0


async def test_a_lasting_failure_is_handed_back() -> None:
    """After three attempts the error is the answer, and it is not remembered."""
    with serving({"/": in_turn(*[Answer(b"busy", 503)] * 3, PAGE)}) as site:
        async with open_web() as web:
            assert (await web.get(f"{site.url}/")).status == 503
            assert (await web.get(f"{site.url}/")).status == 200
    assert len(site.asked) == 4


@pytest.mark.parametrize("wait", ["3600", "Wed, 21 Oct 2099 07:28:00 GMT"])
async def test_a_long_wait_is_not_waited_for(wait: str) -> None:
    """A server that asks for more than a few seconds is believed and left alone."""
    with serving({"/": Answer(b"busy", 429, headers={"Retry-After": wait})}) as site:
        async with open_web() as web:
            fetched = await web.get(f"{site.url}/")
    assert fetched.status == 429
    assert fetched.retry_after_s
    assert fetched.retry_after_s > 3000
    assert len(site.asked) == 1


async def gather(web: Web, urls: Sequence[str], limits: FetchLimits = PAGE_LIMITS) -> list[bytes | str]:
    """Fetch all at once: bodies, or the errors' texts."""

    async def one(url: str) -> bytes | str:
        try:
            return (await web.get(url, limits=limits)).body
        except ToolError as error:
            return str(error)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(url)) for url in urls]
    return [task.result() for task in tasks]


async def test_one_fetch_per_url() -> None:
    """Ten askers of one URL cause one request, and later ones none until it is too old."""
    now = [0.0]
    with serving({"/": PAGE}) as site:
        async with open_web(clock=lambda: now[0]) as web:
            assert await gather(web, [f"{site.url}/"] * 10) == [PAGE.body] * 10
            await web.get(f"{site.url}/")
            assert len(site.asked) == 1
            now[0] = 1000.0
            await web.get(f"{site.url}/")
            assert len(site.asked) == 2


async def test_waiting_askers_share_a_failure() -> None:
    """Those who waited for a fetch that failed get its failure; who asks later tries anew."""
    with serving({"/": Answer(status=301, headers={"Location": "/"})}) as site:
        async with open_web() as web:
            failures = await gather(web, [f"{site.url}/"] * 5)
            assert len(set(failures)) == 1
            assert len(site.asked) == 6
            await gather(web, [f"{site.url}/"])
            assert len(site.asked) == 12


async def test_a_cancelled_asker_leaves_the_others() -> None:
    """When the one who fetches is cancelled, the next in line fetches."""
    arrived = threading.Event()
    with serving({}) as site:

        def first_hangs(_handler: Handler) -> Answer | None:
            if len(site.asked) > 1:
                return PAGE
            arrived.set()
            site.closing.wait()
            return None

        site.routes["/"] = first_hangs
        async with open_web() as web, asyncio.TaskGroup() as group:
            first = group.create_task(web.get(f"{site.url}/"))
            await asyncio.to_thread(arrived.wait)
            second = group.create_task(web.get(f"{site.url}/"))
            first.cancel()
        assert second.result().body == PAGE.body


async def most_at_once(limits: FetchLimits) -> int:
    """How many of twelve requests a host saw at the same time."""
    lock = threading.Lock()
    inside, most = 0, 0
    with serving({}) as site:

        def slow(_handler: Handler) -> Answer:
            nonlocal inside, most
            with lock:
                inside += 1
                most = max(most, inside)
            site.closing.wait(0.05)
            with lock:
                inside -= 1
            return PAGE

        site.routes.update({f"/{number}": slow for number in range(12)})
        async with open_web() as web:
            assert await gather(web, [f"{site.url}/{number}" for number in range(12)], limits) == [PAGE.body] * 12
    return most


async def test_politeness() -> None:
    """A site sees at most two requests at a time; an API made for it sees more."""
    assert await most_at_once(FetchLimits()) == 2
    assert 2 < await most_at_once(API_LIMITS) <= 16


@pytest.mark.slow
async def test_waiting_for_a_turn_is_not_counted() -> None:
    """The deadline is for work, so that a queue at one host fails nobody."""
    with serving({}) as site:

        def slow(_handler: Handler) -> Answer:
            site.closing.wait(0.1)
            return PAGE

        site.routes.update({f"/{number}": slow for number in range(12)})
        async with open_web() as web:
            limits = FetchLimits(seconds=0.5)
            assert await gather(web, [f"{site.url}/{number}" for number in range(12)], limits) == [PAGE.body] * 12


async def test_cookies_are_not_kept() -> None:
    """No site recognises us from one page to the next."""
    with serving({"/a": Answer(headers={"Set-Cookie": "id=1; Path=/"}), "/b": PAGE}) as site:
        async with open_web() as web:
            await web.get(f"{site.url}/a")
            await web.get(f"{site.url}/b")
    assert "cookie" not in site.asked[1].headers


async def test_another_transport() -> None:
    """A transport can stand in for the network: nothing is resolved, URLs are still judged as written."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/old":
            return httpx2.Response(302, headers={"Location": "http://10.0.0.1/"})
        return httpx2.Response(200, text="x" * 50, headers={"Content-Type": "text/plain"})

    async with Web(Guard(), transport=httpx2.MockTransport(answer)) as web:
        fetched = await web.get("https://shop.example/new", limits=FetchLimits(body_bytes=10))
        assert (fetched.body, fetched.is_truncated) == (b"x" * 10, True)
        with pytest.raises(UrlRefusedError):
            await web.get("https://shop.example/old")


async def test_a_broken_location() -> None:
    """A redirect to something that is no URL is told, not crashed on."""
    with serving({"/": Answer(status=302, headers={"Location": "http://[broken/"})}) as site:
        async with open_web() as web:
            with pytest.raises(ToolError):
                await web.get(f"{site.url}/")


def test_sites_know_their_address() -> None:
    """A site that is not serving has no port."""
    assert Site({}).port == 0
