"""The search engines of a run: selected by what is configured, asked one after the other, or all at once and joined.

Each address scores 1 / (60 + rank) for each engine that found it, as in Cormack, Clarke and Buettcher, SIGIR 2009: what
several engines rank high comes first, and no engine's own scores have to be comparable.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from loguru import logger
from pydantic import SecretStr

from explorer.schema.errors import ConfigError, CredentialsError, ToolError
from explorer.schema.setting import ExtensionSettings, extension_place
from explorer.sources.http.caller import Caller
from explorer.sources.search.port import (
    OF_SAMPLE_DAY,
    OTHER_TOOLS,
    SearchAccess,
    SearchEngine,
    SearchFailedError,
    WebAnswer,
    WebHit,
    WebQuery,
    WebSearch,
    joined,
)
from explorer.text.rendering import ModelText, code, own, render, without_marks
from explorer.text.urls import page_key

RANK_CONSTANT = 60
PATIENCE_S = 30.0
"""The seconds that an engine may take: the others have answered by then."""


class _SeveralEngines(WebSearch):
    """Several engines as one; those that failed lately rest for as long as they asked for."""

    def __init__(self, engines: Sequence[WebSearch], name: str, clock: Callable[[], float]) -> None:
        self.name = name
        self._engines = tuple(engines)
        self._clock = clock
        self._rests: dict[str, tuple[float, SearchFailedError]] = {}

    async def aclose(self) -> None:
        """Close all connections of all engines."""
        for engine in self._engines:
            await engine.aclose()

    def _resting(self, engine: WebSearch) -> SearchFailedError | None:
        """Return why an engine is not asked now; None when it is."""
        until, failure = self._rests.get(engine.name, (0.0, None))
        return failure if self._clock() < until else None

    def _failed(self, engine: WebSearch, failure: SearchFailedError) -> SearchFailedError:
        """Note a failure, and return it."""
        logger.warning("web search failed: {} {}", failure.engine, failure.problem)
        self._rests[engine.name] = (self._clock() + failure.rest_s, failure)
        return failure


class FusedSearch(_SeveralEngines):
    """Asks all engines at once; those that failed lately are left out for as long as they asked for."""

    def __init__(
        self,
        engines: Sequence[WebSearch],
        *,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = PATIENCE_S,
    ) -> None:
        super().__init__(engines, "+".join(engine.name for engine in engines), clock)
        self._patience_s = patience_s

    async def search(self, query: WebQuery) -> WebAnswer:
        """Ask all engines, and return their joined results; notes name the engines that gave none.

        Raises:
            SearchFailedError: No engine answered.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._asked(engine, query)) for engine in self._engines]
        results = [task.result() for task in tasks]
        answers = [one for one in results if isinstance(one, WebAnswer)]
        failed = [one for one in results if isinstance(one, SearchFailedError)]
        if not answers:
            problem = own("failed: {each}", each=render(*map(_problem, failed), between="; "))
            raise SearchFailedError(self.name, problem, rest_s=min(error.rest_s for error in failed))
        notes = [own("Failed: {engine}.", engine=_problem(error)) for error in failed]
        notes += [own("{engine}: {note}", engine=code(one.engine), note=note) for one in answers for note in one.notes]
        counts = {one.engine: len(one.hits) for one in answers}
        name = "+".join(one.engine for one in answers)
        return WebAnswer(name, tuple(fused(answers)[: query.max_results]), tuple(notes), counts)

    async def _asked(self, engine: WebSearch, query: WebQuery) -> WebAnswer | SearchFailedError:
        if resting := self._resting(engine):
            return resting
        try:
            async with asyncio.timeout(self._patience_s):
                answer = await engine.search(query)
        except SearchFailedError as error:
            return self._failed(engine, error)
        except TimeoutError:
            words = own("did not answer within {s:g} s", s=self._patience_s)
            return self._failed(engine, SearchFailedError(engine.name, words))
        self._rests.pop(engine.name, None)
        return answer


def fused(answers: Iterable[WebAnswer]) -> list[WebHit]:
    """Return one result for each page, best first; each says which engines found it."""
    scores: dict[str, float] = {}
    found: dict[str, list[WebHit]] = {}
    for answer in answers:
        for hit in answer.hits:
            key = page_key(hit.url)
            scores[key] = scores.get(key, 0.0) + 1 / (RANK_CONSTANT + hit.rank)
            found.setdefault(key, []).append(hit)
    order = sorted(found, key=scores.__getitem__, reverse=True)
    return [_one(found[key], rank, scores[key]) for rank, key in enumerate(order, start=1)]


def _one(hits: Sequence[WebHit], rank: int, score: float) -> WebHit:
    """Return the results for one page as one, beginning with the engine that ranks it highest."""
    first, *others = sorted(hits, key=lambda hit: hit.rank)
    for other in others:
        first = joined(first, other)
    engines = tuple(dict.fromkeys(hit.engine for hit in hits))
    return replace(first, rank=rank, score=score, engine="+".join(engines), found_by=engines)


def _problem(error: SearchFailedError) -> ModelText:
    return own("{engine} {problem}", engine=code(error.engine), problem=error.problem)


KEPT_S = 900.0
"""The seconds for which an answer is shared by all who ask the same: engines bill each search."""
MAX_KEPT = 200
"""The largest number of kept answers, which hold the texts of pages."""


class SearchChain(_SeveralEngines):
    """Asks the engines in their order until one answers; those that failed lately are asked last.

    `more` names what else could be configured.
    """

    def __init__(self, engines: Sequence[WebSearch], more: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(engines, engines[0].name if engines else "none", clock)
        self._more = more
        self._kept: dict[WebQuery, tuple[float, WebAnswer]] = {}
        self._locks: dict[WebQuery, asyncio.Lock] = {}

    async def search(self, query: WebQuery) -> WebAnswer:
        """Search; the answer names its engine and those that failed before.

        Helpers that ask the same at the same time, or within minutes, share one answer.

        Raises:
            ToolError: No engine answered; the text says why, and what a user can configure.
        """
        key = replace(query, include_domains=tuple(query.include_domains), exclude_domains=tuple(query.exclude_domains))
        async with self._locks.setdefault(key, asyncio.Lock()):
            until, kept = self._kept.get(key, (0.0, None))
            if kept is not None and self._clock() < until:
                return kept
            answer = await self._asked(query)
            while len(self._kept) >= MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = (self._clock() + KEPT_S, answer)
            return answer

    async def _asked(self, query: WebQuery) -> WebAnswer:
        """Ask the engines."""
        resting = {engine.name: why for engine in self._engines if (why := self._resting(engine))}
        failed: dict[str, SearchFailedError] = {}
        for engine in sorted(self._engines, key=lambda one: one.name in resting):
            try:
                answer = await engine.search(query)
            except SearchFailedError as error:
                failed[engine.name] = self._failed(engine, error)
                continue
            logger.info("web search: {} gave {} results", engine.name, len(answer.hits))
            self._rests.pop(engine.name, None)
            before = (one.name for one in self._engines[: self._engines.index(engine)])
            not_asked = [resting[name] for name in before if name in resting and name not in failed]
            return replace(answer, notes=(*map(_note, (*failed.values(), *not_asked)), *answer.notes))
        errors = list(failed.values())
        raise self._failure(errors) from (errors[-1] if errors else None)

    def _failure(self, failed: Sequence[SearchFailedError]) -> ToolError:
        if not failed:
            return ToolError.of("There is no web search on the sample day. {other_tools}", other_tools=OF_SAMPLE_DAY)
        more = own("The user can add an engine: {way}", way=self._more)
        if len(failed) == 1:
            return ToolError(own("{why} {more}.", why=failed[0].words, more=more), hint=without_marks(more))
        each = render(*map(_problem, failed), between="; ")
        return ToolError(
            own("No web search answered: {each}. {other_tools} {more}.", each=each, other_tools=OTHER_TOOLS, more=more),
            hint=without_marks(more),
        )


def _note(error: SearchFailedError) -> ModelText:
    return own("Failed before: {engine}, which {problem}.", engine=code(error.engine), problem=error.problem)


AUTO = "auto"
"""The value for the engines that are configured."""


@dataclass(frozen=True)
class ConfiguredEngine:
    """An engine, and what the user set for it."""

    engine: SearchEngine[Any]
    settings: ExtensionSettings

    @property
    def is_ready(self) -> bool:
        """Whether it has the key or address that it needs."""
        value = getattr(self.settings, self.engine.needs) if self.engine.needs else ""
        return bool(value.get_secret_value() if isinstance(value, SecretStr) else value)

    @property
    def name(self) -> str:
        """The label of its results, with or without what it needs."""
        return self.engine.name if self.is_ready else self.engine.without_name or self.engine.name

    @property
    def variable(self) -> str:
        """The variable that makes it available: of what it needs, or of its name."""
        needed = self.engine.needed
        return needed.variable if needed else f"EXPLORER_SEARCH={self.engine.name}"

    @property
    def address(self) -> tuple[str, str]:
        """Its address and the setting for it; both empty when it has no address of its own."""
        url = str(getattr(self.settings, "url", ""))
        return (url, extension_place(self.engine.name, "url", is_secret=False)) if url else ("", "")


@dataclass(frozen=True)
class SearchSetup:
    """The requested engine, and all that there are."""

    engines: Sequence[ConfiguredEngine] = field(default=(), repr=False)
    """In the order in which they are asked."""
    engine: str = AUTO
    """`auto`, the name of an engine, or several with commas between them."""
    caller: Caller = field(default_factory=Caller)
    is_sample: bool = False
    """Whether the run reads the sample day, which has no web search."""


@dataclass(frozen=True)
class SearchPlan:
    """The engines in the order of asking; none on the sample day."""

    asked: tuple[ConfiguredEngine, ...]
    why: str
    more: str
    """Variables that would make other engines available, separated by commas, for people."""
    is_fused: bool = False
    """Whether all are asked at once, and their results joined."""

    @property
    def engines(self) -> tuple[str, ...]:
        """The names of the engines."""
        return tuple(one.name for one in self.asked)


def plan_search(
    setup: SearchSetup, has_module: Callable[[str], bool] = lambda name: find_spec(name) is not None
) -> SearchPlan:
    """Plan the search without opening anything.

    `auto` asks the configured engines one after another until one answers. Engines set by name are the only ones that
    are asked, because the user may not want the query to go elsewhere; several are asked at once.

    Raises:
        ConfigError: The engine set by name cannot be used.
    """
    if setup.is_sample:
        return SearchPlan((), "the sample day has no web search", "")
    ready = [one for one in setup.engines if one.is_ready]
    missing = ", ".join(one.variable for one in setup.engines if one.engine.needs and not one.is_ready)
    if setup.engine == AUTO:
        by_name = ", ".join(one.variable for one in setup.engines if not one.engine.needs)
        asked = (*ready, *(one for one in setup.engines if one.engine.without_name and not one.is_ready))
        first = f"{ready[0].variable} is set" if ready else "nothing else is configured"
        others = f"; when it fails, {', then '.join(one.name for one in asked[1:])}" if asked[1:] else ""
        return SearchPlan(asked, f"{first}{others}", ", ".join(part for part in (missing, by_name) if part))
    chosen = tuple(_named(setup, name) for name in dict.fromkeys(setup.engine.split(",")))
    for one in chosen:
        _check(one, has_module)
    more = "EXPLORER_SEARCH=auto" + (f" and {missing}" if missing else "")
    together = " at once" if len(chosen) > 1 else ""
    names = ", ".join(one.engine.name for one in chosen)
    return SearchPlan(chosen, f"search is set to {names}{together}", more, is_fused=len(chosen) > 1)


def choose_search(setup: SearchSetup, pause: Callable[[float], Awaitable[object]] = asyncio.sleep) -> SearchChain:
    """Return the configured engines as one; nothing is sent before the first search.

    `pause` waits between attempts.

    Raises:
        ConfigError: The engine set by name cannot be used.
    """
    plan = plan_search(setup)
    access = SearchAccess(setup.caller, pause)
    engines = [one.engine.open(one.settings, access) for one in plan.asked]
    return SearchChain([FusedSearch(engines)] if plan.is_fused else engines, plan.more)


def _named(setup: SearchSetup, name: str) -> ConfiguredEngine:
    engines: Mapping[str, ConfiguredEngine] = {one.engine.name: one for one in setup.engines}
    if name not in engines:
        hint = f"one of {', '.join((AUTO, *engines))}"
        raise ConfigError(f"there is no search engine {name!r}", hint=hint)
    return engines[name]


def _check(chosen: ConfiguredEngine, has_module: Callable[[str], bool]) -> None:
    engine = chosen.engine
    if engine.package and not has_module(engine.package):
        hint = f"pip install 'explorer[{engine.package}]', or EXPLORER_SEARCH=auto"
        raise ConfigError(f"search is set to {engine.name}, which is not installed", hint=hint)
    if engine.needed is None or chosen.is_ready or engine.without_name:
        return
    hint = f"set {chosen.variable}, or EXPLORER_SEARCH=auto"
    if engine.needed.is_secret:
        raise CredentialsError(f"search is set to {engine.name}, but its key is missing", hint=hint)
    raise ConfigError(f"search is set to {engine.name}, but its address is missing", hint=hint)
