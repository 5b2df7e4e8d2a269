"""Several search engines at once: joined results, failures of some, and of all."""

import asyncio

import pytest

from explorer.schema.errors import ConfigError, ToolError
from explorer.schema.setting import one_or_some_of
from explorer.sources.search.port import WebAnswer, WebQuery, WebSearch
from explorer.sources.search.selection import FusedSearch, choose_search, plan_search
from explorer.tools.web import TavilySearchTool
from sources.loopback import Ledger, as_json, no_pause, serving
from sources.test_search_chain import OVER, settings
from tool_call import call_plainly

BRAVE = as_json(
    {
        "web": {
            "results": [
                {"title": "Only Brave", "url": "https://one.example/", "description": "b"},
                {"title": "Both", "url": "http://www.both.example/x?utm_source=b", "description": ""},
            ]
        }
    }
)
TAVILY = as_json(
    {
        "results": [
            {"title": "Only Tavily", "url": "https://two.example/", "content": "t"},
            {"title": "Both", "url": "https://both.example/x/", "content": "said by tavily"},
            {"title": "Last", "url": "https://last.example/", "content": "l"},
        ]
    }
)
ROUTES = {"/search": TAVILY, "/res/v1/web/search": BRAVE}


async def test_what_both_found_comes_first_and_says_so() -> None:
    """One page in two spellings is one result, ranked by both engines; a model reads who found what."""
    with serving(ROUTES) as site:
        both = settings("tavily_key", "brave_key", search="tavily,brave", url=site.url)
        async with choose_search(both, no_pause) as search:
            answer = await search.search(WebQuery("glue", max_results=3))
            given = await call_plainly(TavilySearchTool(search), Ledger().context, query="glue", max_results=3)
    assert answer.engine == "tavily+brave"
    assert [(hit.title, hit.found_by, hit.rank) for hit in answer.hits] == [
        ("Both", ("tavily", "brave"), 1),
        ("Only Tavily", ("tavily",), 2),
        ("Only Brave", ("brave",), 3),
    ]
    assert answer.hits[0].snippet == "said by tavily"
    assert "1. [S1] Both, found by tavily and brave" in given.content
    assert given.metadata["engines"] == {"tavily": 3, "brave": 2}
    assert sorted(path.partition("?")[0] for path in site.paths()) == sorted(ROUTES)


async def test_the_failure_of_one_is_stated_and_not_repeated() -> None:
    """The others' results arrive; the engine that refused is not asked again while it rests."""
    with serving({**ROUTES, "/search": OVER}) as site:
        both = settings("tavily_key", "brave_key", search="tavily,brave", url=site.url)
        async with choose_search(both, no_pause) as search:
            for words in ("glue", "paste"):
                answer = await search.search(WebQuery(words))
                assert answer.notes == ("Failed: tavily is over its plan's limit (status 432).",)
                assert (answer.engine, len(answer.hits)) == ("brave", 2)
    assert [path.partition("?")[0] for path in site.paths()].count("/search") == 1


async def test_the_failure_of_all_names_each() -> None:
    """When nobody answers, the text has the reason of each engine."""
    with serving({"/search": OVER, "/res/v1/web/search": OVER}) as site:
        both = settings("tavily_key", "brave_key", search="tavily,brave", url=site.url)
        async with choose_search(both, no_pause) as search:
            with pytest.raises(ToolError, match=r"tavily is over its plan's limit.*; brave failed \(status 432\)"):
                await search.search(WebQuery("glue"))


class Silent(WebSearch):
    """An engine that never answers."""

    name = "silent"

    async def search(self, query: WebQuery) -> WebAnswer:
        """Wait for ever."""
        del query
        await asyncio.Event().wait()
        raise AssertionError


class Quick(WebSearch):
    """An engine that finds nothing."""

    name = "quick"

    async def search(self, query: WebQuery) -> WebAnswer:
        """Answer."""
        del query
        return WebAnswer(self.name, ())


async def test_a_slow_engine_does_not_hold_up_the_others() -> None:
    """After some time the answer goes without it, and says so."""
    async with FusedSearch([Silent(), Quick()], patience_s=0.01) as search:
        answer = await search.search(WebQuery("glue"))
    assert answer.notes == ("Failed: silent did not answer within 0.01 s.",)


def test_engines_by_name_are_checked_one_by_one() -> None:
    """A key that is missing for one of them is named before anything starts, and a wrong name when it is read."""
    assert plan_search(settings("brave_key", "exa_key", search="exa,brave")).engines == ("exa", "brave")
    with pytest.raises(ConfigError) as caught:
        plan_search(settings("brave_key", search="brave,exa"))
    assert caught.value.hint == "set EXA_API_KEY, or EXPLORER_SEARCH=auto"
    read = one_or_some_of("auto", "brave", "exa").parse
    assert (read("auto"), read("Exa, brave,exa")) == ("auto", "exa,brave")
    for wrong in ("auto,brave", "brave,", "google"):
        with pytest.raises(ValueError, match=wrong):
            read(wrong)
