"""The JSON twins of the pages of evidence: report, claims, sources, files, timeline, and what differs between runs."""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, cast

from fastapi import Query

from explorer.observe.timeline import critical_path, timeline_of
from explorer.schema.events import JournalRecord
from explorer.server.json_models import (
    AgentTimeline,
    ClaimFilter,
    ClaimsAnswer,
    ComparisonAnswer,
    FileAnswer,
    FileEntry,
    FilesAnswer,
    ReportAnswer,
    SourceAnswer,
    SourceEntry,
    SourcesAnswer,
    TimelineAnswer,
)
from explorer.server.json_routes import json_router
from explorer.server.lookups import claims_with, counts_of, source_page
from explorer.server.pages.api import AtRecord
from explorer.server.pages.compare import comparison_of
from explorer.server.pages.files import content_of, origins_of
from explorer.server.site import OfSite
from explorer.text.frontmatter import read_frontmatter
from explorer.workspace.tree import HEAD_BYTES, kind_of
from explorer.workspace.workspace import Workspace

MAX_DEPTH = 20
router = json_router("evidence")
RunName = Annotated[str, Query(min_length=1, max_length=200, description="A run's id, or the beginning of it.")]


@router.get("/runs/{run_id}/report", summary="Read the report")
async def show_report(run_id: str, site: OfSite) -> ReportAnswer:
    """Return the report as far as it is written, with a card of evidence for each of its citations."""
    feed = await site.feed(run_id)
    found = await site.lookups.of(feed.folder)
    evidence = await asyncio.to_thread(found.whole)
    fields, _ = await asyncio.to_thread(read_frontmatter, found.text)
    return ReportAnswer(
        run_id=feed.folder.name,
        status=feed.status,
        markdown=found.text,
        fields=cast("dict[str, Any]", as_json(fields)),
        counts=counts_of(evidence),
        cards=evidence.cards,
    )


def as_json(value: object, depth: int = 0) -> object:
    """Return what YAML can be as JSON: dates and all else that JSON has no form for as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dict() if depth < MAX_DEPTH:
            return {str(name): as_json(one, depth + 1) for name, one in cast("dict[object, object]", value).items()}
        case list() if depth < MAX_DEPTH:
            return [as_json(one, depth + 1) for one in cast("list[object]", value)]
        case dict() | list():
            return "..."
        case _:
            return str(value)


@router.get("/runs/{run_id}/claims", summary="List what was checked")
async def list_claims(
    run_id: str,
    site: OfSite,
    verdict: Annotated[ClaimFilter, Query(description="Only sentences with this verdict.")] = "",
) -> ClaimsAnswer:
    """Return the sentences of the report that were looked up: all, those with a verdict, or those not supported."""
    feed = await site.feed(run_id)
    evidence = await asyncio.to_thread((await site.lookups.of(feed.folder)).whole)
    claims = tuple(claims_with(evidence, verdict))
    return ClaimsAnswer(run_id=feed.folder.name, verdict=verdict, counts=counts_of(evidence), claims=claims)


@router.get("/runs/{run_id}/sources", summary="List sources")
async def list_sources(run_id: str, site: OfSite) -> SourcesAnswer:
    """Return the sources that the run stored, and how many sentences of the report cite each."""
    feed = await site.feed(run_id)
    evidence = await site.lookups.evidence_of(feed.folder)
    cited = Counter(name for claim in evidence.claims for name in claim.ids)
    sources = feed.run.view.sources.values()
    return SourcesAnswer(
        run_id=feed.folder.name,
        sources=tuple(SourceEntry(source=one, sentences=cited[one.id]) for one in sources),
    )


@router.get("/runs/{run_id}/sources/{source_id}", summary="Read a source")
async def show_source(run_id: str, source_id: str, site: OfSite) -> SourceAnswer:
    """Return a source with its whole stored text, and the sentences of the report that cite it."""
    feed = await site.feed(run_id)
    claims = (await site.lookups.evidence_of(feed.folder)).claims
    citing = tuple((place, claim) for place, claim in enumerate(claims) if source_id in claim.ids)
    found = await asyncio.to_thread(source_page, feed.folder, source_id, citing, None)
    return SourceAnswer(
        run_id=feed.folder.name,
        source=found.source,
        text="".join(piece.text for piece in found.pieces),
        problem=found.problem,
        claims=tuple(claim for _, claim in found.claims),
    )


@router.get("/runs/{run_id}/files", summary="List files")
async def list_files(run_id: str, site: OfSite) -> FilesAnswer:
    """Return the files of a run by path, with who wrote each and from which sources."""
    feed = await site.feed(run_id)
    known = await origins_of(site, feed)
    sizes = await asyncio.to_thread(Workspace(feed.folder).sizes)
    files = tuple(FileEntry(path=path, bytes=size, origin=known.get(path)) for path, size in sorted(sizes.items()))
    return FilesAnswer(run_id=feed.folder.name, files=files)


@router.get("/runs/{run_id}/files/{path:path}", summary="Read a file")
async def show_file(run_id: str, path: str, site: OfSite) -> FileAnswer:
    """Return a file of a run with its text. Links, and paths that lead out of the run's folder, are not followed."""
    feed = await site.feed(run_id)
    content = await asyncio.to_thread(content_of, feed, path)
    kind = kind_of(content[:HEAD_BYTES])
    return FileAnswer(
        run_id=feed.folder.name,
        path=path,
        bytes=len(content),
        kind=kind,
        text=None if kind else content.decode("utf-8", "replace"),
        origin=(await origins_of(site, feed)).get(path),
    )


@router.get("/runs/{run_id}/timeline", summary="Show the timeline")
async def show_timeline(run_id: str, site: OfSite, at: AtRecord = None) -> TimelineAnswer:
    """Return when each agent worked and what it waited for, and the critical path through all of them."""
    feed = await site.feed(run_id)
    records = await site.feeds.records(feed)
    return await asyncio.to_thread(_timeline, feed.folder.name, records[:at], len(records))


def _timeline(run_id: str, records: Sequence[JournalRecord], last: int) -> TimelineAnswer:
    work = timeline_of(records)
    agents = (
        AgentTimeline(
            id=agent, role=work.roles.get(agent, ""), tasks=tuple(tasks), intervals=tuple(work.intervals.get(agent, ()))
        )
        for agent, tasks in work.tasks.items()
    )
    return TimelineAnswer(
        run_id=run_id,
        at=len(records),
        last=last,
        seconds=work.seconds,
        sessions=work.clock.sessions,
        agents=tuple(agents),
        critical_path=critical_path(work),
    )


@router.get("/compare", summary="Compare two runs")
async def compare(site: OfSite, a: RunName, b: RunName) -> ComparisonAnswer:
    """Return which stories, claims and sources of the second run are new, gone or changed."""
    found = await comparison_of(site, a, b)
    return ComparisonAnswer(differs=found.differs, comparison=found)
