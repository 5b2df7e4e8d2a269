"""Several search engines behind one port: when one fails, the next answers the same question."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from loguru import logger

from explorer.schema.errors import ToolError
from explorer.sources.search.port import OTHER_TOOLS, SearchFailedError, WebAnswer, WebQuery, WebSearch

KEPT_S = 900.0
"""An answer serves everybody who asks the same within this time: engines bill each search."""
MAX_KEPT = 200
"""Answers; they hold the texts of pages."""


@dataclass(frozen=True)
class _Rest:
    """An engine that is left alone for a while, and why."""

    until: float
    error: SearchFailedError


class SearchChain(WebSearch):
    """Asks the engines in their order until one answers; who failed lately is asked last.

    `more` names what else could be configured.
    """

    def __init__(self, engines: Sequence[WebSearch], more: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._engines = tuple(engines)
        self.name = self._engines[0].name if self._engines else "none"
        self._more = more
        self._clock = clock
        self._rests: dict[str, _Rest] = {}
        self._kept: dict[WebQuery, tuple[float, WebAnswer]] = {}
        self._locks: dict[WebQuery, asyncio.Lock] = {}

    async def aclose(self) -> None:
        """Close all connections of all engines."""
        for engine in self._engines:
            await engine.aclose()

    async def search(self, query: WebQuery) -> WebAnswer:
        """Search; the answer says who gave it and who failed before.

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
        resting = [engine for engine in self._engines if self._rests_now(engine)]
        failed: list[SearchFailedError] = []
        for engine in sorted(self._engines, key=resting.__contains__):
            try:
                answer = await engine.search(query)
            except SearchFailedError as error:
                failed.append(error)
                logger.warning("web search failed: {} {}", error.engine, error.problem)
                self._rests[engine.name] = _Rest(self._clock() + error.rest_s, error)
                continue
            logger.info("web search: {} gave {} results", engine.name, len(answer.hits))
            shown = [*failed, *self._passed_over(engine, resting, failed)]
            self._rests.pop(engine.name, None)
            return replace(answer, notes=(*map(_note, shown), *answer.notes))
        raise self._failure(failed) from (failed[-1] if failed else None)

    def _rests_now(self, engine: WebSearch) -> bool:
        rest = self._rests.get(engine.name)
        return rest is not None and self._clock() < rest.until

    def _passed_over(
        self, answering: WebSearch, resting: Sequence[WebSearch], failed: Sequence[SearchFailedError]
    ) -> list[SearchFailedError]:
        """Why engines that would have been asked before the answering one were not, this time."""
        asked = {error.engine for error in failed}
        before = self._engines[: self._engines.index(answering)]
        rests = [self._rests.get(one.name) for one in before if one in resting and one.name not in asked]
        return [rest.error for rest in rests if rest]

    def _failure(self, failed: Sequence[SearchFailedError]) -> ToolError:
        if not failed:
            return ToolError(f"There is no web search on the sample day. {OTHER_TOOLS}")
        more = f"The user can add an engine: {self._more}"
        if len(failed) == 1:
            return ToolError(f"{failed[0].message} {more}.", hint=more)
        each = "; ".join(f"{error.engine} {error.problem}" for error in failed)
        return ToolError(f"No web search answered: {each}. {OTHER_TOOLS} {more}.", hint=more)


def _note(error: SearchFailedError) -> str:
    return f"Failed before: {error.engine}, which {error.problem}."
