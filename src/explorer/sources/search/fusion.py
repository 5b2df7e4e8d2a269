"""Several search engines asked the same at the same time, their results joined by reciprocal-rank fusion.

Each address scores 1 / (60 + rank) for each engine that found it, as in Cormack, Clarke and Buettcher, SIGIR 2009: what
several engines rank high comes first, and no engine's own scores have to be comparable.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from loguru import logger

from explorer.sources.search.port import SearchFailedError, WebAnswer, WebHit, WebQuery, WebSearch, joined
from explorer.text.rendering import ModelText, code, own, render
from explorer.text.urls import page_key

RANK_CONSTANT = 60
PATIENCE_S = 30.0
"""The seconds that an engine may take: the others have answered by then."""


class FusedSearch(WebSearch):
    """Asks all engines at once; those that failed lately are left out for as long as they asked for."""

    def __init__(
        self,
        engines: Sequence[WebSearch],
        *,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._engines = tuple(engines)
        self.name = "+".join(engine.name for engine in self._engines)
        self._clock = clock
        self._patience_s = patience_s
        self._rests: dict[str, tuple[float, SearchFailedError]] = {}

    async def aclose(self) -> None:
        """Close all connections of all engines."""
        for engine in self._engines:
            await engine.aclose()

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
        until, resting = self._rests.get(engine.name, (0.0, None))
        if resting and self._clock() < until:
            return resting
        try:
            async with asyncio.timeout(self._patience_s):
                answer = await engine.search(query)
        except SearchFailedError as error:
            failure = error
        except TimeoutError:
            failure = SearchFailedError(engine.name, own("did not answer within {s:g} s", s=self._patience_s))
        else:
            self._rests.pop(engine.name, None)
            return answer
        logger.warning("web search failed: {} {}", failure.engine, failure.problem)
        self._rests[engine.name] = (self._clock() + failure.rest_s, failure)
        return failure


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
