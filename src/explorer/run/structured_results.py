"""What a run hands over besides its report, as data: the links its orchestrator names, and what each helper did."""

from collections.abc import Sequence
from typing import cast

from explorer.journal.run_state import RunState
from explorer.schema.events import ORCHESTRATOR, Frozen
from explorer.text.urls import page_key

LINKS = "interesting_links"
"""The key under which `finish_exploration` hands links over."""
MAX_LINKS = 20


class FurtherLink(Frozen):
    """A stored source that the orchestrator recommends."""

    url: str
    title: str
    source: str
    """Its id."""


class HelperResult(Frozen):
    """What one helper did."""

    agent: str
    """Its id, such as `searcher-2`."""
    role: str
    status: str
    """How its latest task ended; empty while it works."""
    reason: str
    steps: int
    """Model turns."""
    output_files: tuple[str, ...]
    """Paths in the run's folder."""
    summary: str
    """All that it said at the end, whether or not the orchestrator was shown all of it."""


def further_links(run_state: RunState) -> tuple[FurtherLink, ...]:
    """Return the links that the orchestrator named at its end, best first, each once.

    An address that no source of the run has is left out: a model may have made it up.
    """
    known = {page_key(source.url): source for source in reversed(run_state.sources.values()) if "://" in source.url}
    named = cast("Sequence[object]", run_state.structured_results.get(LINKS) or ())
    keys = dict.fromkeys(page_key(url) for url in named if isinstance(url, str))
    found = [known[key] for key in keys if key in known]
    return tuple(FurtherLink(url=one.url, title=one.title, source=one.id) for one in found[:MAX_LINKS])


def helper_results(run_state: RunState) -> tuple[HelperResult, ...]:
    """Return what each helper did, in the order in which they were started."""
    return tuple(
        HelperResult(
            agent=state.agent,
            role=state.role,
            status=str(state.finished.status) if state.finished is not None else "",
            reason=state.finished.reason if state.finished is not None else "",
            steps=state.steps,
            output_files=tuple(state.files),
            summary=state.finished.summary if state.finished is not None else "",
        )
        for state in run_state.agents.values()
        if state.agent != ORCHESTRATOR
    )
