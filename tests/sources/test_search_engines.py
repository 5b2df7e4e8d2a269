"""Brave, Exa and SearXNG by REST: their wire forms, their refusals, their filters, against stand-ins on loopback."""

import gzip
import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from explorer.network.guard import Guard, UrlRefusedError
from explorer.sources.http.api_client import ApiRules
from explorer.sources.search.brave import RULES as BRAVE_RULES
from explorer.sources.search.brave import BraveSearch
from explorer.sources.search.exa import RULES as EXA_RULES
from explorer.sources.search.exa import ExaSearch
from explorer.sources.search.port import SearchFailedError, WebAnswer, WebQuery, WebSearch
from explorer.sources.search.searxng import SearxngSearch
from explorer.sources.search.tavily import RULES as TAVILY_RULES
from explorer.sources.search.tavily import TavilySearch
from sources.loopback import NOW, Answer, Handler, Route, Site, as_json, closed_port, no_pause, serving

KEY = "key-of-nobody-else"
RULES = ApiRules(pause=no_pause)


def brave(url: str, rules: ApiRules = RULES) -> WebSearch:
    """Brave at an address."""
    return BraveSearch(KEY, url, rules=rules, now=lambda: NOW)


def exa(url: str, rules: ApiRules = RULES) -> WebSearch:
    """Exa at an address."""
    return ExaSearch(KEY, url, rules=rules)


def searxng(url: str, rules: ApiRules = RULES) -> WebSearch:
    """SearXNG at an address."""
    return SearxngSearch(url, rules=rules, now=lambda: NOW)


def tavily(url: str, rules: ApiRules = RULES) -> WebSearch:
    """Tavily at an address."""
    return TavilySearch(KEY, url, rules=rules)


@dataclass(frozen=True)
class Wire:
    """How an engine is opened and where it is asked."""

    make: Callable[..., WebSearch]
    path: str
    empty: Mapping[str, object]


WIRES = {
    "brave": Wire(brave, "/res/v1/web/search", {"type": "search", "query": {"original": "glue"}}),
    "exa": Wire(exa, "/search", {"requestId": "r", "results": []}),
    "searxng": Wire(searxng, "/search", {"query": "glue", "results": [], "unresponsive_engines": []}),
    "tavily": Wire(tavily, "/search", {"query": "glue", "results": []}),
}
ALL = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
BY_REST = pytest.mark.parametrize("wire", [WIRES[name] for name in ("brave", "exa", "searxng")])


async def ask(
    wire: Wire, route: Route, query: WebQuery | None = None, rules: ApiRules = RULES
) -> tuple[WebAnswer, Site]:
    """Search once."""
    with serving({wire.path: route}) as site:
        engine = wire.make(site.url, rules)
        try:
            return await engine.search(query or WebQuery("glue")), site
        finally:
            await engine.aclose()


async def failure(wire: Wire, route: Route, rules: ApiRules = RULES) -> tuple[SearchFailedError, int]:
    """The error, and how often was asked."""
    with serving({wire.path: route}) as site:
        engine = wire.make(site.url, rules)
        with pytest.raises(SearchFailedError) as caught:
            await engine.search(WebQuery("glue"))
        await engine.aclose()
    assert KEY not in f"{caught.value.message} {caught.value.hint} {caught.value.problem} {caught.value.__cause__!r}"
    assert "search_hn" in caught.value.message
    return caught.value, len(site.asked)


def parameters(site: Site) -> dict[str, str]:
    """Of the only request."""
    (asked,) = site.asked
    return {name: values[0] for name, values in parse_qs(urlsplit(asked.path).query).items()}


async def test_brave() -> None:
    """Brave's results lose their marks, gain dates, and are asked for with the key and the count."""
    results = [
        {
            "title": "All about <strong>glue</strong>",
            "url": "https://a.example/glue",
            "description": "Strong &amp; <strong>lasting</strong>: 1 < 2.",
            "age": "August 9, 2026",
            "page_age": "2026-08-08T10:00:00",
            "extra_snippets": ["Another passage.", ""],
            "family_friendly": True,
        },
        {"title": "More", "url": "https://b.example/", "description": None, "age": "3 days ago"},
    ]
    answer, site = await ask(WIRES["brave"], as_json({"type": "search", "web": {"type": "search", "results": results}}))
    first, second = answer.hits
    assert (answer.engine, first.engine, first.rank, second.rank) == ("brave", "brave", 1, 2)
    assert first.title == "All about glue"
    assert first.snippet == "Strong & lasting: 1 < 2.\nAnother passage."
    assert (first.published, second.published, second.snippet) == ("2026-08-08", "2026-08-07", "")
    assert site.asked[0].headers["x-subscription-token"] == KEY
    assert parameters(site) == {"q": "glue", "count": "8", "text_decorations": "false"}


async def test_exa() -> None:
    """Exa's results have highlights as passages and the page's text, and are asked for with all filters."""
    results = [
        {
            "id": "https://a.example/glue",
            "title": "Glue",
            "url": "https://a.example/glue",
            "publishedDate": "2026-08-09T08:00:00.000Z",
            "author": "Ada Example",
            "score": 0.4,
            "text": "The whole page.",
            "highlights": ["A passage.", "Another."],
        },
        {"title": None, "url": "https://a.example/b", "publishedDate": None, "text": "Only text."},
    ]
    query = WebQuery("glue", 5, "advanced", ("a.example",), ("a.example/no",), "2026-08-01")
    answer, site = await ask(WIRES["exa"], as_json({"requestId": "r", "results": results}), query)
    first, second = answer.hits
    assert (first.snippet, first.text, first.author) == ("A passage.\nAnother.", "The whole page.", "Ada Example")
    assert (first.published, first.score, first.flags) == ("2026-08-09", 0.4, ())
    assert (second.title, second.snippet, second.published) == ("https://a.example/b", "Only text.", "")
    assert answer.notes == ()
    assert site.asked[0].headers["x-api-key"] == KEY
    assert json.loads(site.asked[0].body) == {
        "query": "glue",
        "type": "auto",
        "numResults": 5,
        "includeDomains": ["a.example"],
        "startPublishedDate": "2026-08-01T00:00:00.000Z",
        "contents": {"text": {"maxCharacters": 100_000}, "highlights": {"query": "glue", "maxCharacters": 3_000}},
    }


async def test_searxng() -> None:
    """SearXNG's results are of many engines; those that did not answer are named, and duplicates merged."""
    results = [
        {
            "title": "Glue",
            "url": "https://a.example/glue?utm_source=x",
            "content": "All.",
            "engine": "brave",
            "score": 2.0,
        },
        {"title": "Glue!", "url": "https://a.example/glue/", "content": "", "publishedDate": "2026-08-09T00:00:00"},
        {"title": "Old", "url": "https://b.example/", "content": "b", "publishedDate": "2025-01-01T00:00:00"},
        {"title": "Undated", "url": "https://c.example/", "content": "c", "publishedDate": None},
        {"title": "No page", "url": None},
    ]
    silent = [["google", "CAPTCHA"], ["qwant\n<b>", "access denied"], ["odd"], []]
    body = {"query": "glue", "results": results, "answers": [], "unresponsive_engines": silent}
    answer, site = await ask(WIRES["searxng"], as_json(body), WebQuery("glue", since="2026-08-05"))
    assert [(hit.title, hit.published, hit.engine) for hit in answer.hits] == [
        ("Glue", "2026-08-09", "searxng"),
        ("Undated", "", "searxng"),
    ]
    assert answer.notes == (
        "Left out: 1 older than 2026-08-05.",
        "Without a date, perhaps older than 2026-08-05: 1 of 2.",
        "Engines that did not answer: <<google (CAPTCHA), qwantb (access denied), odd>>.",
    )
    assert parameters(site) == {"q": "glue", "format": "json", "pageno": "1", "time_range": "week"}


async def test_searxng_without_any_engine() -> None:
    """When none of its engines answers, that is a failure and not an empty result."""
    body = {"results": [], "unresponsive_engines": [["google", "timeout"]] * 8}
    error, asked = await failure(WIRES["searxng"], as_json(body))
    assert "got nothing from its engines: google (timeout), google" in error.message
    assert error.message.count("google") == 6
    assert "and others" in error.message
    assert asked == 1


async def test_searxng_below_a_folder() -> None:
    """The address may be the base, with a folder, or the search page itself."""
    for tail in ("/searx", "/searx/", "/searx/search"):
        with serving({"/searx/search": as_json({"results": []})}) as site:
            engine = SearxngSearch(site.url + tail, rules=RULES)
            assert (await engine.search(WebQuery("glue"))).hits == ()
            await engine.aclose()


@pytest.mark.parametrize("name", ["brave", "searxng"])
async def test_sites_are_asked_for_in_words_and_checked(name: str) -> None:
    """Engines without filters get operators; what comes from elsewhere all the same is left out, and told."""
    results = [
        {"title": "A", "url": "https://docs.a.example/x"},
        {"title": "B", "url": "https://b.example/"},
        {"title": "C", "url": "https://nota.example/"},
        {"title": "D", "url": "https://www.a.example/private/x"},
    ]
    body = {"results": results, "web": {"results": results}}
    query = WebQuery(
        "glue", include_domains=("https://www.A.example/", "c.example"), exclude_domains=("a.example/private",)
    )
    answer, site = await ask(WIRES[name], as_json(body), query)
    assert [hit.title for hit in answer.hits] == ["A"]
    assert answer.notes == ("Left out: 3 of sites that were not wanted.",)
    assert parameters(site)["q"] == "glue site:a.example OR site:c.example -site:a.example/private"


@ALL
async def test_nothing_found(wire: Wire) -> None:
    """Nothing found is an answer."""
    answer, _ = await ask(wire, as_json(wire.empty))
    assert (answer.hits, answer.notes) == ((), ())


@ALL
@pytest.mark.parametrize(
    ("status", "words", "asked"),
    [
        (400, "did not accept the query", 1),
        (401, "did not accept its key", 1),
        (402, "asks for payment", 1),
        (404, "is not found at its address", 1),
        (429, "(status 429)", 1),
        (500, "failed (status 500)", 3),
        (201, "failed (status 201)", 1),
        (302, "failed (status 302)", 1),
    ],
)
async def test_refusals(wire: Wire, status: int, words: str, asked: int) -> None:
    """Each status has its meaning; the service's words are passed on without the key; only its failure is retried."""
    theirs = "Not so." if wire is WIRES["searxng"] else f"Not with {KEY}, sorry."
    error, count = await failure(wire, as_json({"error": {"code": "X", "detail": theirs}}, status))
    assert words in error.problem
    assert error.stated == theirs.replace(KEY, "[key]")
    assert count == asked


@pytest.mark.parametrize(
    ("name", "status", "body", "words"),
    [
        ("brave", 401, b"{}", "BRAVE_API_KEY"),
        ("brave", 422, b'{"error": {"code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "Invalid."}}', "BRAVE_API_KEY"),
        ("brave", 422, b'{"error": {"code": "VALIDATION", "detail": "Too long."}}', "did not accept the query"),
        ("exa", 401, b'{"error": "Invalid API key", "tag": "INVALID_API_KEY"}', "EXA_API_KEY"),
        ("searxng", 403, b"<h1>Forbidden</h1>", "list json under search.formats in its settings.yml"),
        ("searxng", 429, b"Too Many Requests", "limiter"),
        ("searxng", 404, b"not here", "EXPLORER_SEARXNG_URL"),
    ],
)
async def test_refusals_with_a_remedy(name: str, status: int, body: bytes, words: str) -> None:
    """What a user can mend is named by its variable or its place."""
    error, _ = await failure(WIRES[name], Answer(body, status, "text/plain"))
    assert words in error.message


@ALL
async def test_waits(wire: Wire) -> None:
    """A wait of seconds is waited for and asked again; a long one is told."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    answers = [Answer(b"{}", 429, "application/json", {"Retry-After": "2"}), as_json(wire.empty)]
    await ask(wire, lambda _handler: answers.pop(0), rules=replace(RULES, pause=pause))
    assert pauses == [2.0]
    error, asked = await failure(wire, Answer(b"{}", 429, "application/json", {"Retry-After": "3600"}))
    assert "it opens again in 3600 s" in error.message
    assert (error.rest_s, asked) == (3600.0, 1)


async def test_windows_of_a_rate_limit() -> None:
    """Brave tells the windows that are used up: one of a second is waited for, one of a month is not."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    def busy(left: str) -> Answer:
        headers = {"X-RateLimit-Limit": "1, 2000", "X-RateLimit-Remaining": left, "X-RateLimit-Reset": "1, 1419704"}
        return Answer(b"{}", 429, "application/json", headers)

    wire = WIRES["brave"]
    answers = [busy("0, 1999"), as_json(wire.empty)]
    await ask(wire, lambda _handler: answers.pop(0), rules=replace(RULES, pause=pause))
    assert pauses == [1.0]
    error, _ = await failure(wire, busy("0, 0"))
    assert error.rest_s == 1_419_704


@ALL
@pytest.mark.parametrize("body", [b"", b"<html>no</html>", b"[]", b"null", b'{"results": 5, "web": 5}'])
async def test_answers_of_any_shape(wire: Wire, body: bytes) -> None:
    """An answer that is none is told as such, and not asked for again."""
    error, asked = await failure(wire, Answer(body))
    assert error.problem == "sent something unexpected"
    assert asked == 1


@ALL
async def test_too_large(wire: Wire) -> None:
    """An answer beyond its limit is not read to its end, packed or not."""
    packed = Answer(gzip.compress(b"x" * 5_000_000), headers={"Content-Encoding": "gzip"})
    for answer in (packed, Answer(b"x" * 200_000)):
        error, asked = await failure(wire, answer, replace(RULES, body_bytes=100_000))
        assert error.problem == "sent more than 100000 bytes"
        assert asked == 1


@ALL
async def test_no_such_host(wire: Wire) -> None:
    """The message is one sentence, without the advice that is for the address of a page."""
    engine = wire.make("http://no-such-host.invalid")
    with pytest.raises(SearchFailedError) as caught:
        await engine.search(WebQuery("glue"))
    await engine.aclose()
    problem = caught.value.problem
    assert problem == "cannot be reached (There is no site no-such-host.invalid: the name cannot be resolved)"


@ALL
async def test_nobody_answers(wire: Wire) -> None:
    """Nobody there, silence, and a hang-up are told apart from refusals; silence ends at its limit."""
    engine = wire.make(f"http://127.0.0.1:{closed_port()}")
    with pytest.raises(SearchFailedError, match="cannot be reached"):
        await engine.search(WebQuery("glue"))
    await engine.aclose()
    with serving({}) as site:

        def silent(_handler: Handler) -> None:
            site.closing.wait()

        site.routes[wire.path] = silent
        engine = wire.make(site.url, replace(RULES, seconds=0.1, retries=0))
        with pytest.raises(SearchFailedError, match=r"did not answer within 0\.1 s"):
            await engine.search(WebQuery("glue"))
        await engine.aclose()
        await engine.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exa", "brave", "tavily"])
@pytest.mark.parametrize("ending", ["silence", "hang-up"])
async def test_a_search_that_may_be_billed_is_sent_once(name: str, ending: str) -> None:
    """An engine that took a request and gave no answer may have billed it: the request is not sent again."""
    is_silent = ending == "silence"
    with serving({}) as site:

        def no_answer(handler: Handler) -> None:
            if is_silent:
                site.closing.wait()
            else:
                handler.connection.shutdown(socket.SHUT_RDWR)

        site.routes[WIRES[name].path] = no_answer
        rules = ApiRules(seconds=0.3 if is_silent else 20.0, pause=no_pause, is_billed=True)
        engine = WIRES[name].make(site.url, rules)
        with pytest.raises(SearchFailedError):
            await engine.search(WebQuery("glue"))
        await engine.aclose()
        assert len(site.asked) == 1


async def test_a_search_without_a_bill_is_sent_again() -> None:
    """The control: the user's own SearXNG costs nothing, and is asked again after a broken connection."""

    def hang_up(handler: Handler) -> None:
        handler.connection.shutdown(socket.SHUT_RDWR)

    _, asked = await failure(WIRES["searxng"], hang_up)
    assert asked == 3


def test_engines_that_bill_say_so() -> None:
    """The rules that runs use are those of the test above."""
    assert all(rules.is_billed for rules in (BRAVE_RULES, EXA_RULES, TAVILY_RULES))


@BY_REST
async def test_redirects_are_not_followed(wire: Wire) -> None:
    """A redirect would carry the key elsewhere: it is told, and nobody else is asked."""
    with serving({"/": as_json(wire.empty)}) as elsewhere:
        error, _ = await failure(wire, Answer(status=307, headers={"Location": f"{elsewhere.url}/"}))
        assert "failed (status 307)" in error.message
        assert elsewhere.asked == []


async def test_a_client_that_follows_redirects_gives_the_key_away() -> None:
    """The same redirect, followed: what the engines' own calls must not do."""
    with serving({"/": as_json({})}) as elsewhere:
        away = Answer(status=307, headers={"Location": f"{elsewhere.url}/"})
        with serving({"/search": away}) as site:
            async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as client:
                await client.post(f"{site.url}/search", headers={"x-api-key": KEY})
        assert elsewhere.asked[0].headers["x-api-key"] == KEY


@pytest.mark.parametrize("key", ["two\r\nX-Other: lines", "schlüssel"])
async def test_a_key_that_cannot_be_sent(key: str) -> None:
    """A key with line breaks or letters beyond ASCII is refused before it becomes a header, and is not shown."""
    nowhere = "http://127.0.0.1:9"
    for engine in (BraveSearch(key, nowhere), ExaSearch(key, nowhere), TavilySearch(key, nowhere)):
        with pytest.raises(SearchFailedError, match="a key with characters that no key has") as caught:
            await engine.search(WebQuery("glue"))
        assert key not in caught.value.message


async def test_a_private_host_of_its_own() -> None:
    """The address the user set may be a private one, without any further setting; a password in it is refused."""
    answer, _ = await ask(WIRES["searxng"], as_json(WIRES["searxng"].empty))
    assert answer.engine == "searxng"
    with pytest.raises(UrlRefusedError):
        Guard().check_url("http://127.0.0.1:8888/search")
    with pytest.raises(SearchFailedError, match="password in its address") as caught:
        await searxng("http://me:hunter2@127.0.0.1:9").search(WebQuery("glue"))
    assert "hunter2" not in caught.value.message
