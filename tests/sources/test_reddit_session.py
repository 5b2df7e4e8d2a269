"""Asking Reddit's API: tokens, limits, refusals, and nothing secret in any words."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from explorer.network.guard import Guard
from explorer.sources.reddit.api import Access, RedditSession
from explorer.sources.reddit.routes import RedditRefusedError, RouteClosedError
from sources.loopback import Answer, Handler, Route, Site, as_json, closed_port, serving
from sources.reddit_site import SECRET, SHELL, TOKEN, recorded, token

APP = Access(identity="app", secret=SECRET)


def access_of(app: Access | None, url: str) -> Access:
    """The way to a server of our own, with an app or without."""
    return replace(app or Access(), url=url)


class Clock:
    """A clock that pauses move."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        """Seconds."""
        return self.now

    async def pause(self, seconds: float) -> None:
        """Wait without waiting."""
        self.pauses.append(seconds)
        self.now += seconds


@asynccontextmanager
async def open_session(
    site: Site, app: Access | None = APP, clock: Clock | None = None
) -> AsyncGenerator[RedditSession]:
    """A session at a server of our own."""
    clock = clock or Clock()
    session = RedditSession(Guard(["127.0.0.1"]), access_of(app, site.url), pause=clock.pause, clock=clock)
    try:
        yield session
    finally:
        await session.aclose()


def one_after_another(*answers: Answer) -> Route:
    """Answers in turn; the last one stays."""
    left = list(answers)

    def answer(_handler: Handler) -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


def with_token(path: str, route: Route) -> dict[str, Route]:
    """A path beside the token's."""
    return {"/api/v1/access_token": token, path: route}


async def test_a_token_is_asked_once() -> None:
    """One token serves until it runs out; each request has it, `raw_json`, and a name of our own."""
    clock = Clock()
    with serving(with_token("/x", as_json({}))) as site:
        async with open_session(site, clock=clock) as session:
            await session.get("/x", {"limit": 5})
            await session.post("/x", {"children": "a,b"})
            clock.now += 4_000
            await session.get("/x", {})
    assert [path.partition("?")[0] for path in site.paths()] == [
        "/api/v1/access_token",
        "/x",
        "/x",
        "/api/v1/access_token",
        "/x",
    ]
    first, second, third = site.asked[:3]
    assert first.body == b"grant_type=client_credentials"
    assert second.path == "/x?limit=5&raw_json=1"
    assert second.headers["authorization"] == f"bearer {TOKEN}"
    assert ":explorer:" in second.headers["user-agent"]
    assert third.body == b"children=a%2Cb&raw_json=1"


async def test_an_installed_app() -> None:
    """An app without a secret asks with its own grant; nobody's device is named."""
    with serving({"/api/v1/access_token": as_json({"access_token": TOKEN}), "/x": as_json({})}) as site:
        async with open_session(site, Access(identity="app")) as session:
            await session.get("/x", {})
    assert b"installed_client" in site.asked[0].body
    assert b"device_id=DO_NOT_TRACK_THIS_DEVICE" in site.asked[0].body


async def test_a_token_that_ran_out_early() -> None:
    """A 401 brings one new token, and a second 401 closes the route."""
    refusal = as_json({"message": "Unauthorized", "error": 401}, 401)
    with serving(with_token("/x", one_after_another(refusal, as_json({"ok": 1}), refusal))) as site:
        async with open_session(site) as session:
            assert await session.get("/x", {}) == b'{"ok": 1}'
            with pytest.raises(RouteClosedError, match="token was refused"):
                await session.get("/x", {})
    assert [path.partition("?")[0] for path in site.paths()].count("/api/v1/access_token") == 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (as_json({"message": "Unauthorized", "error": 401}, 401), r"credentials were refused \(status 401\)"),
        (Answer(b"<html>", 403), r"credentials were refused \(status 403\)"),
        (as_json({"error": "unsupported_grant_type"}), "gave no token for the credentials"),
        (Answer(b"<html>", 503), r"gave no token \(status 503\)"),
        (as_json({"access_token": "two\nlines"}), "a token that is none"),
    ],
)
async def test_no_token(answer: Answer, words: str) -> None:
    """Without a token nothing else is asked, and the words do not hold the secret."""
    with serving({"/api/v1/access_token": answer}) as site:
        async with open_session(site) as session:
            with pytest.raises(RouteClosedError, match=words) as caught:
                await session.get("/x", {})
    assert len(site.asked) == 1
    assert caught.value.for_s >= 600
    assert SECRET not in f"{caught.value!r} {caught.value.__cause__!r}"


QUARANTINED = {"reason": "quarantined", "quarantine_message_html": "IGNORE ALL", "message": "Forbidden", "error": 403}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (as_json({"message": "Forbidden", "error": 403}, 403), "not open to all readers"),
        (as_json({"message": "Forbidden", "error": 403, "reason": "private"}, 403), "it is private"),
        (as_json(QUARANTINED, 403), "it is quarantined"),
        (as_json({"message": "Not Found", "error": 404}, 404), "no such thing"),
        (as_json({"message": "Not Found", "error": 404, "reason": "banned"}, 404), "it was banned"),
        (as_json({"message": "Bad Request", "reason": "BAD_SR_NAME", "explanation": "IGNORE"}, 400), "BAD_SR_NAME"),
        (as_json({"message": "Bad Request", "reason": "<b>IGNORE"}, 400), r"no sense to it \(status 400\)"),
        (Answer(b"", 302, headers={"Location": "https://www.reddit.com/subreddits/search?q=x"}), "no such subreddit"),
    ],
)
async def test_refusals(answer: Answer, words: str) -> None:
    """What Reddit refuses for good is told in words of ours, never in the answer's."""
    with serving(with_token("/x", answer)) as site:
        async with open_session(site) as session:
            with pytest.raises(RedditRefusedError, match=words) as caught:
                await session.get("/x", {})
    assert "IGNORE" not in caught.value.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (SHELL, r"a web page instead of data .* \(status 403\)"),
        (Answer(b"<html><h1>400 Bad request</h1>", 400), r"it refused \(status 400\)"),
        (Answer(b"<html>welcome</html>"), r"a web page instead of data \(status 200\)"),
        (Answer(b"", 302, headers={"Location": "https://www.reddit.com/login"}), r"leads elsewhere \(status 302\)"),
        (Answer(b"<html>", 503), r"its server failed \(status 503\)"),
        (as_json({"message": "Internal Server Error", "error": 500}, 500), r"its server failed \(status 500\)"),
    ],
)
async def test_closed(answer: Answer, words: str) -> None:
    """What is nothing of the API closes the route, and the next may be taken."""
    with serving(with_token("/x", answer)) as site:
        async with open_session(site) as session:
            with pytest.raises(RouteClosedError, match=words):
                await session.get("/x", {})


async def test_a_redirect_is_not_followed() -> None:
    """The token goes to no other host, whatever an answer says."""
    with serving({}) as other:
        away = Answer(b"", 302, headers={"Location": f"{other.url}/x"})
        with serving(with_token("/x", away)) as site:
            async with open_session(site) as session:
                with pytest.raises(RouteClosedError):
                    await session.get("/x", {})
        assert other.asked == []


async def test_a_short_limit_is_waited_for() -> None:
    """A 429 that passes within seconds is waited for, once, as long as it says."""
    busy = Answer(b"", 429, headers={"x-ratelimit-reset": "7", "x-ratelimit-remaining": "0.0"})
    clock = Clock()
    with serving(with_token("/x", one_after_another(busy, as_json({"ok": 1}), busy))) as site:
        async with open_session(site, clock=clock) as session:
            assert await session.get("/x", {}) == b'{"ok": 1}'
            assert clock.pauses == [7.0]
            with pytest.raises(RouteClosedError, match="429"):
                await session.get("/x", {})


async def test_a_long_limit_closes_the_route() -> None:
    """A limit that lasts is not waited for, and nothing is asked until it is over."""
    busy = Answer(b"", 429, headers={"retry-after": "300"})
    clock = Clock()
    with serving(with_token("/x", busy)) as site:
        async with open_session(site, clock=clock) as session:
            for _ in range(2):
                with pytest.raises(RouteClosedError, match="used up for 300 s") as caught:
                    await session.get("/x", {})
                assert caught.value.for_s == 300
    assert clock.pauses == []
    assert len(site.asked) == 2


async def test_the_last_request_of_a_limit() -> None:
    """When an answer says that none is left, the next request waits for the reset."""
    last = Answer(b"{}", 200, "application/json", {"x-ratelimit-remaining": "0.0", "x-ratelimit-reset": "3"})
    some = Answer(b"{}", 200, "application/json", {"x-ratelimit-remaining": "597.0", "x-ratelimit-reset": "323"})
    odd = Answer(b"{}", 200, "application/json", {"x-ratelimit-remaining": "nan", "x-ratelimit-reset": "inf"})
    clock = Clock()
    with serving(with_token("/x", one_after_another(some, odd, last, some))) as site:
        async with open_session(site, clock=clock) as session:
            for _ in range(4):
                await session.get("/x", {})
    assert clock.pauses == [3.0]


async def test_nobody_there() -> None:
    """A host that does not answer, or must not be asked, closes the route without the library's words."""
    absent = Site({})
    absent.port = closed_port()
    async with open_session(absent) as session:
        with pytest.raises(RouteClosedError, match=r"cannot be reached \(ConnectError\)"):
            await session.get("/x", {})
    session = RedditSession(Guard(), access_of(APP, "http://127.0.0.1:8080"))
    with pytest.raises(RouteClosedError, match="cannot be reached: Not fetched"):
        await session.get("/x", {})


async def test_an_endless_answer() -> None:
    """An answer that does not end is cut off by its size."""

    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.end_headers()
        for _ in range(20):
            handler.wfile.write(b" " * 1_000_000)

    with serving(with_token("/x", endless)) as site:
        async with open_session(site) as session:
            with pytest.raises(RouteClosedError, match="more than 16000000 bytes"):
                await session.get("/x", {})


async def test_recorded_errors() -> None:
    """Every error that was recorded is either a refusal or a closed route, told without the answer's own words."""
    errors = json.loads(recorded("errors.json"))
    answers: Sequence[Answer] = [
        Answer(
            error["body"].encode(),
            error["status"],
            next((_first(value) for name, value in error["headers"].items() if name.lower() == "content-type"), ""),
            {name: _first(value) for name, value in error["headers"].items() if name.lower().startswith("x-rate")},
        )
        for error in errors
    ]
    routes: dict[str, Route] = {f"/{number}": answer for number, answer in enumerate(answers)}
    with serving({"/api/v1/access_token": token, **routes}) as site:
        async with open_session(site) as session:
            for number, error in enumerate(errors):
                with pytest.raises((RedditRefusedError, RouteClosedError), match=r"status|token") as caught:
                    await session.get(f"/{number}", {})
                assert "must have an active" not in caught.value.message
                assert isinstance(caught.value, RouteClosedError) == (
                    error["status"] not in {400, 403, 404} or "html" in str(error["headers"]).lower()
                )


def _first(value: str | list[str]) -> str:
    return value if isinstance(value, str) else value[0]
