"""Which search engines are asked, in which order, and why: by what is configured."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

from explorer.schema.errors import ConfigError, CredentialsError
from explorer.sources.http.api_client import ApiRules
from explorer.sources.http.caller import Caller
from explorer.sources.search.brave import RULES as BRAVE_RULES
from explorer.sources.search.brave import BraveSearch
from explorer.sources.search.chain import SearchChain
from explorer.sources.search.ddgs import DdgsSearch
from explorer.sources.search.exa import RULES as EXA_RULES
from explorer.sources.search.exa import ExaSearch
from explorer.sources.search.port import WebSearch
from explorer.sources.search.searxng import RULES as SEARXNG_RULES
from explorer.sources.search.searxng import SearxngSearch
from explorer.sources.search.tavily import RULES as TAVILY_RULES
from explorer.sources.search.tavily import TavilySearch

KEYLESS = "tavily-keyless"
VARIABLES = {
    "tavily": "TAVILY_API_KEY",
    "brave": "BRAVE_API_KEY",
    "exa": "EXA_API_KEY",
    "searxng": "EXPLORER_SEARXNG_URL",
}
"""What brings each engine, in the order in which they are asked."""
ENGINES = ("auto", *VARIABLES, "ddgs")
"""What an engine may be asked for as."""
DDGS_WAY = "EXPLORER_SEARCH=ddgs"


@dataclass(frozen=True)
class SearchSetup:
    """Which engine is asked for, and how each is reached."""

    engine: str = "auto"
    """One of `ENGINES`."""
    keys: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """By engine; empty: there is none."""
    urls: Mapping[str, str] = field(default_factory=dict[str, str])
    """By engine."""
    caller: Caller = field(default_factory=Caller)
    is_sample: bool = False
    """The sample day, which has no web search."""


@dataclass(frozen=True)
class SearchPlan:
    """The engines in the order of asking; none on the sample day."""

    engines: tuple[str, ...]
    why: str
    more: str
    """What else could be configured, for people: variables, parted by commas."""


def plan_search(
    setup: SearchSetup, has_module: Callable[[str], bool] = lambda name: find_spec(name) is not None
) -> SearchPlan:
    """Plan without opening anything.

    `auto` asks what is configured, one after another until one answers. An engine set by name is the only one that
    is asked: who names one does not want the question to go elsewhere.

    Raises:
        ConfigError: The engine set by name cannot be used.
    """
    if setup.is_sample:
        return SearchPlan((), "the sample day has no web search", "")
    ready = [name for name in VARIABLES if _is_set(name, setup)]
    missing = ", ".join(VARIABLES[name] for name in VARIABLES if name not in ready)
    if setup.engine == "auto":
        more = f"{missing}, {DDGS_WAY}" if missing else DDGS_WAY
        engines = (*ready, *(() if "tavily" in ready else (KEYLESS,)))
        first = f"{VARIABLES[ready[0]]} is set" if ready else "nothing else is configured"
        others = f"; when it fails, {', then '.join(engines[1:])}" if engines[1:] else ""
        return SearchPlan(engines, f"{first}{others}", more)
    name = setup.engine
    _check(name, is_ready=name in ready, has_module=has_module)
    engine = KEYLESS if name == "tavily" and name not in ready else name
    return SearchPlan(
        (engine,), f"search is set to {name}", "EXPLORER_SEARCH=auto" + (f" and {missing}" if missing else "")
    )


def choose_search(setup: SearchSetup, pause: Callable[[float], Awaitable[object]] = asyncio.sleep) -> SearchChain:
    """The engines that are configured, behind one port; nothing is sent before the first search.

    `pause` waits between attempts.

    Raises:
        ConfigError: The engine set by name cannot be used.
    """
    plan = plan_search(setup)
    return SearchChain([_made(name, setup, pause) for name in plan.engines], plan.more)


def _is_set(name: str, setup: SearchSetup) -> bool:
    """Whether an engine has what brings it: a key, or an address where it needs none."""
    return bool(setup.urls.get(name) if name == "searxng" else setup.keys.get(name))


def _check(name: str, *, is_ready: bool, has_module: Callable[[str], bool]) -> None:
    if name not in ENGINES:
        raise ConfigError(f"there is no search engine {name!r}", hint=f"one of {', '.join(ENGINES)}")
    if name == "ddgs" and not has_module("ddgs"):
        raise ConfigError(
            "search is set to ddgs, which is not installed",
            hint="pip install 'explorer[ddgs]', or EXPLORER_SEARCH=auto",
        )
    if name in {"brave", "exa"} and not is_ready:
        hint = f"set {VARIABLES[name]}, or EXPLORER_SEARCH=auto"
        raise CredentialsError(f"search is set to {name}, but its key is missing", hint=hint)
    if name == "searxng" and not is_ready:
        hint = "set EXPLORER_SEARXNG_URL, or EXPLORER_SEARCH=auto"
        raise ConfigError("search is set to searxng, but its address is missing", hint=hint)


def _made(name: str, setup: SearchSetup, pause: Callable[[float], Awaitable[object]]) -> WebSearch:
    key, url = setup.keys.get(name, ""), setup.urls.get(name, "")

    def patient(rules: ApiRules) -> ApiRules:
        return replace(rules, pause=pause, caller=setup.caller)

    makers: dict[str, Callable[[], WebSearch]] = {
        "tavily": lambda: TavilySearch(key, url, rules=patient(TAVILY_RULES)),
        KEYLESS: lambda: TavilySearch("", url, rules=patient(TAVILY_RULES)),
        "brave": lambda: BraveSearch(key, url, rules=patient(BRAVE_RULES)),
        "exa": lambda: ExaSearch(key, url, rules=patient(EXA_RULES)),
        "searxng": lambda: SearxngSearch(url, rules=patient(SEARXNG_RULES)),
        "ddgs": lambda: DdgsSearch(network=setup.caller.network),
    }
    return makers[name]()
