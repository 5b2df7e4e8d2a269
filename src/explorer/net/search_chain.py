"""Several search engines behind one port: when one fails, the next answers the same question."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from explorer.errors import ToolError
from explorer.net.search import OTHER_TOOLS, SearchFailedError, WebAnswer, WebQuery, WebSearch


@dataclass(frozen=True)
class _Rest:
    """An engine that is left alone for a while, and why."""

    until: float
    error: SearchFailedError


class SearchChain:
    """Asks the engines in their order until one answers; who failed lately is asked last.

    `more` names what else could be configured.
    """

    def __init__(self, engines: Sequence[WebSearch], more: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._engines = tuple(engines)
        self._more = more
        self._clock = clock
        self._rests: dict[str, _Rest] = {}

    @property
    def name(self) -> str:
        """Of the engine that is asked first."""
        return self._engines[0].name if self._engines else "none"

    async def __aenter__(self) -> Self:
        """Open; nothing is sent before the first search."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections of all engines."""
        for engine in self._engines:
            await engine.aclose()

    async def search(self, query: WebQuery) -> WebAnswer:
        """Search; the answer says who gave it and who failed before.

        Raises:
            ToolError: No engine answered; the text says why, and what a user can configure.
        """
        resting = [engine for engine in self._engines if self._rests_now(engine)]
        failed: list[SearchFailedError] = []
        for engine in sorted(self._engines, key=resting.__contains__):
            try:
                answer = await engine.search(query)
            except SearchFailedError as error:
                failed.append(error)
                self._rests[engine.name] = _Rest(self._clock() + error.rest_s, error)
                continue
            told = [*failed, *self._passed_over(engine, resting, failed)]
            self._rests.pop(engine.name, None)
            return replace(answer, notes=(*map(_note, told), *answer.notes))
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
