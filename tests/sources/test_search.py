"""Web search through Tavily's SDK, against a stand-in on loopback."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from explorer.schema.errors import ToolError
from explorer.sources.http.api_client import ApiRules
from explorer.sources.search.port import PAGE_TEXT_CHARS, WebHit, WebQuery
from explorer.sources.search.tavily import TavilySearch
from sources.loopback import Answer, Handler, Route, Site, as_json, closed_port, no_pause, serving

RESULTS = {
    "query": "glue",
    "answer": None,
    "images": [],
    "results": [
        {"title": "Glue  guide", "url": "https://a.example/glue?utm_source=x", "content": "All of\nit.", "score": 0.9},
        {"title": "Glue again", "url": "https://A.example/glue/#part", "content": "The same page.", "score": 0.8},
        {"title": None, "url": "https://b.example/", "content": None, "raw_content": None, "new": {"x": 1}},
        {
            "title": "News",
            "url": "https://c.example",
            "content": "n",
            "published_date": "Sat, 01 Aug 2026 10:00:00 GMT",
        },
        {"title": "No address", "url": "", "content": "x"},
        {"title": "Broken address", "url": "https://[broken", "content": "x"},
    ],
    "response_time": 0.5,
    "request_id": "r",
}
RULES = ApiRules(pause=no_pause)


def search(site: Site, key: str = "") -> TavilySearch:
    """A search against the stand-in."""
    return TavilySearch(key, site.url, rules=RULES)


async def ask(route: Route, key: str = "", query: WebQuery | None = None) -> tuple[tuple[WebHit, ...], Site]:
    """Search once."""
    with serving({"/search": route}) as site:
        async with search(site, key) as engine:
            return (await engine.search(query or WebQuery("glue"))).hits, site


async def failure(route: Route, key: str = "") -> tuple[str, int]:
    """The error's text, and how often was asked."""
    with serving({"/search": route}) as site:
        async with search(site, key) as engine:
            with pytest.raises(ToolError) as caught:
                await engine.search(WebQuery("glue"))
        return f"{caught.value.message} [{caught.value.hint}]", len(site.asked)


async def test_results() -> None:
    """Results have one shape, one per address, without those that have none."""
    hits, _ = await ask(as_json(RESULTS))
    assert [(hit.rank, hit.title, hit.url) for hit in hits] == [
        (1, "Glue guide", "https://a.example/glue?utm_source=x"),
        (2, "https://b.example/", "https://b.example/"),
        (3, "News", "https://c.example"),
    ]
    assert hits[0].snippet == "All of\nit."
    assert (hits[0].score, hits[0].published, hits[2].published) == (0.9, "", "2026-08-01")


async def test_keyless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key of ours the request says keyless; a key in the environment is not picked up."""
    monkeypatch.setenv("TAVILY_API_KEY", "key-of-somebody-else")
    hits, site = await ask(as_json(RESULTS))
    headers = site.asked[0].headers
    assert headers["x-tavily-access-mode"] == "keyless"
    assert "authorization" not in headers
    assert {hit.engine for hit in hits} == {"tavily-keyless"}


async def test_keyed() -> None:
    """With a key it is sent, and the results are labelled plainly."""
    hits, site = await ask(as_json(RESULTS), "tvly-key")
    headers = site.asked[0].headers
    assert headers["authorization"] == "Bearer tvly-key"
    assert "x-tavily-access-mode" not in headers
    assert {hit.engine for hit in hits} == {"tavily"}


async def test_a_key_that_is_repeated_back() -> None:
    """A refusal that repeats the key is passed on without it."""
    text, _ = await failure(as_json({"detail": {"error": "Bad key tvly-secret-1."}}, 401), "tvly-secret-1")
    assert "Bad key [key]." in text
    assert "tvly-secret-1" not in text


async def test_the_request() -> None:
    """All that was asked for is sent, and nothing that was not."""
    query = WebQuery("glue", 3, "advanced", ("a.example",), ("b.example",), "2026-08-01")
    _, site = await ask(as_json(RESULTS), query=query)
    assert json.loads(site.asked[0].body) == {
        "query": "glue",
        "search_depth": "advanced",
        "max_results": 3,
        "include_raw_content": "markdown",
        "include_domains": ["a.example"],
        "exclude_domains": ["b.example"],
        "start_date": "2026-08-01",
    }
    _, site = await ask(as_json(RESULTS))
    assert json.loads(site.asked[0].body) == {
        "query": "glue",
        "search_depth": "basic",
        "max_results": 8,
        "include_raw_content": "markdown",
    }


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy is taken from the environment, neither the usual ones nor Tavily's own."""
    for name in ("HTTP_PROXY", "ALL_PROXY", "all_proxy", "TAVILY_HTTP_PROXY", "TAVILY_HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    hits, _ = await ask(as_json(RESULTS))
    assert hits


async def test_keyless_cap() -> None:
    """Over the cap the text says which window, when it opens, and what a user can set."""
    error = {
        "code": "keyless_limit",
        "message": "Keyless usage is exhausted.",
        "window": "daily",
        "retry_after_seconds": 3600,
        "next_actions": [{"type": "sign_up"}],
    }
    text, asked = await failure(as_json({"error": error}, 429))
    assert "over its keyless cap (daily window)" in text
    assert "opens again in 3600 s" in text
    assert "Keyless usage is exhausted." in text
    assert "TAVILY_API_KEY" in text
    assert "search_hn" in text
    assert asked == 1


@pytest.mark.parametrize(
    ("status", "words", "asked"),
    [
        (400, "did not accept the query", 1),
        (401, "did not accept its key", 1),
        (403, "refused access", 1),
        (429, "over its rate limit", 1),
        (432, "over its plan's limit", 1),
        (433, "over its pay-as-you-go limit", 1),
        (500, "failed (status 500)", 3),
        (503, "failed (status 503)", 3),
        (201, "failed (status 201)", 1),
        (302, "failed (status 302)", 1),
        (418, "failed (status 418)", 1),
    ],
)
async def test_refusals(status: int, words: str, asked: int) -> None:
    """Each status has its meaning, the service's own words are passed on, and only a server's failure is retried."""
    text, count = await failure(as_json({"detail": {"error": "Some words of theirs."}}, status), "tvly-key")
    assert words in text
    assert "Some words of theirs." in text
    assert "Web search (tavily)" in text
    assert "tvly-key" not in text
    assert count == asked


@pytest.mark.parametrize("body", [b"", b"<b>no</b>", b'{"detail": "text"}', b'{"error": "text"}', b"[1]", b"null"])
async def test_refusals_of_any_shape(body: bytes) -> None:
    """A refusal without the promised body is still told by its status."""
    text, _ = await failure(Answer(body, 403))
    assert "refused access (status 403)" in text


@pytest.mark.parametrize("body", [b"", b"<html>no</html>", b"[]", b"null", b'{"results": 5}', b'{"results": [5]}'])
async def test_answers_of_any_shape(body: bytes) -> None:
    """An answer that is none is told as such."""
    text, asked = await failure(Answer(body))
    assert "sent something unexpected" in text
    assert asked == 1


async def test_a_short_wait_is_waited_for() -> None:
    """429 with a wait of seconds is asked again after it."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    def twice(answers: list[Answer]) -> Callable[[Handler], Answer]:
        return lambda _handler: answers.pop(0)

    busy = Answer(b"{}", 429, "application/json", {"Retry-After": "2"})
    with serving({"/search": twice([busy, as_json(RESULTS)])}) as site:
        async with TavilySearch("", site.url, rules=ApiRules(pause=pause)) as engine:
            assert (await engine.search(WebQuery("glue"))).hits
    assert pauses == [2.0]


@pytest.mark.slow
async def test_unreachable() -> None:
    """When nobody listens, or nothing comes in time, the run is told to go on without."""
    async with TavilySearch("", f"http://127.0.0.1:{closed_port()}", rules=RULES) as engine:
        with pytest.raises(ToolError, match=r"cannot be reached .*Continue with search_site"):
            await engine.search(WebQuery("glue"))
    with serving({}) as site:

        def silent(_handler: Handler) -> None:
            site.closing.wait()

        site.routes["/search"] = silent
        async with TavilySearch("", site.url, rules=replace(RULES, seconds=0.2)) as engine:
            with pytest.raises(ToolError, match=r"did not answer within 0\.2 s"):
                await engine.search(WebQuery("glue"))


async def test_the_text_of_the_pages() -> None:
    """The page's whole text comes along, cut at its limit and then flagged; without one there is none."""
    whole = "word " * PAGE_TEXT_CHARS
    results = [
        {"title": "A", "url": "https://a.example", "content": "c", "raw_content": "# All of it\n\nwords"},
        {"title": "B", "url": "https://b.example", "content": "c", "raw_content": whole},
        {"title": "C", "url": "https://c.example", "content": "c", "raw_content": None},
    ]
    hits, _ = await ask(as_json({"results": results}))
    assert [(len(hit.text), hit.flags) for hit in hits] == [(18, ()), (PAGE_TEXT_CHARS, ("truncated",)), (0, ())]


async def test_an_answer_beyond_bounds() -> None:
    """An answer larger than its limit is not read to its end."""
    with serving({"/search": as_json({"results": [], "more": "x" * 100_000})}) as site:
        async with TavilySearch("", site.url, rules=replace(RULES, body_bytes=50_000)) as engine:
            with pytest.raises(ToolError, match="sent more than 50000 bytes"):
                await engine.search(WebQuery("glue"))
    assert len(site.asked) == 1


async def test_closing_twice() -> None:
    """Closing is harmless, opened or not."""
    engine = TavilySearch("", "http://127.0.0.1:9")
    await engine.aclose()
    await engine.aclose()
    assert engine.name == "tavily-keyless"
