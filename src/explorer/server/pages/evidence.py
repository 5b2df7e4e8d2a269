"""The report with its evidence: citations as cards, every checked sentence, sources with their text, downloads."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from explorer.reports.formats.cards import VERDICT_WORDS, card_html, claim_html
from explorer.reports.formats.writers import format_of
from explorer.schema.errors import ExplorerError, NotFoundError
from explorer.server.feeds import RunFeed
from explorer.server.lookups import AT_ONCE, Citing, CitingPart, ReportLookup, source_page
from explorer.server.markdown import cleaned_card, report_html
from explorer.server.pages.run import why_no_report
from explorer.server.site import OfSite, WebSite
from explorer.server.views import head_of
from explorer.text.sanitize import Redactor

Suffix = Literal["md", "html", "json", "pdf", "docx"]
KINDS = {
    "md": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}
FILTER_WORDS = {"": "all", "not_supported": "not supported", "uncited": "uncited"} | {
    str(verdict): words for verdict, words in VERDICT_WORDS.items()
}
SOURCE_ID = re.compile(r"S\d+")
Wanted = Annotated[str, Query(max_length=40)]
Start = Annotated[int, Query(alias="from", ge=1, le=1_000_000)]
"""The number of a sentence in a list, from 1; the part of the list that has it is shown."""


class ShownClaim(NamedTuple):
    """A checked sentence of a page."""

    html: Markup
    place: int | None
    """Its place among the sentences that cite; None: it cites nothing."""
    sources: list[str]


router = APIRouter(include_in_schema=False)


@router.get("/runs/{run_id}/report")
async def show_report(run_id: str, site: OfSite) -> HTMLResponse:
    """Show the report; a click on a citation opens its card next to it."""
    feed = await site.feed(run_id)
    try:
        found = await site.lookups.of(feed.folder)
    except NotFoundError:
        return _no_report(site, feed, "Report and evidence")
    return site.page(
        "report.html",
        **await _verdicts(found, feed.folder.name),
        head=head_of(feed),
        report=await asyncio.to_thread(report_html, found.document, feed.folder.name),
        facts=found.document.facts,
        language=found.document.language,
        formats=list(KINDS),
    )


def _no_report(site: WebSite, feed: RunFeed, tab: str) -> HTMLResponse:
    """Say why there is no report, between the other pages of the run."""
    values = {"run_id": feed.folder.name, "head": head_of(feed), "why": why_no_report(feed), "tab": tab}
    return site.page("no_report.html", code=404, **values)


async def _verdicts(found: ReportLookup, run_id: str, verdict: str | None = None) -> dict[str, Any]:
    """Look up some further sentences, and return what `parts/verdicts.html` shows of those that are looked up."""
    await asyncio.to_thread(found.look_further)
    counts = found.counts()
    if verdict is not None and verdict in FILTER_WORDS:
        counts.setdefault(verdict, 0)
    return {"run_id": run_id, "found": found, "counts": counts, "words": FILTER_WORDS, "verdict": verdict}


@router.get("/runs/{run_id}/verdicts")
async def show_verdicts(run_id: str, site: OfSite, verdict: Wanted | None = None) -> HTMLResponse:
    """Show how many sentences have which verdict, as a part of a page."""
    feed = await site.feed(run_id)
    found = await site.lookups.of(feed.folder)
    return site.page("parts/verdicts.html", **await _verdicts(found, feed.folder.name, verdict))


@router.get("/runs/{run_id}/citations/{number}")
async def show_citation(
    run_id: str, number: int, site: OfSite, start: Start = 1, *, part: bool = False
) -> HTMLResponse:
    """Show the card of a citation, as a page or as a part of one; of many sentences that cite it, a part."""
    feed = await site.feed(run_id)
    found = await site.lookups.of(feed.folder)
    identifier = dict(found.found.references()).get(number)
    if identifier is None:
        raise NotFoundError(f"the report has no citation [{number}]", hint="go back to the report")
    citing = found.citing(identifier, start - 1)
    address = f"/runs/{feed.folder.name}/sources/{identifier}" if SOURCE_ID.fullmatch(identifier) else ""
    html = await asyncio.to_thread(lambda: card_html(found.found.card(number, identifier, citing.places), address))
    template = "parts/card.html" if part else "citation.html"
    return site.page(
        template, run_id=feed.folder.name, head=head_of(feed), number=number, card=cleaned_card(html), citing=citing
    )


@router.get("/runs/{run_id}/claims")
async def show_claims(
    run_id: str, site: OfSite, verdict: Wanted = "", start: Start = 1, *, part: bool = False
) -> HTMLResponse:
    """Show every checked sentence: all, or those with a verdict; of many, a part, and folds for the others."""
    feed = await site.feed(run_id)
    try:
        found = await site.lookups.of(feed.folder)
    except NotFoundError:
        return _no_report(site, feed, "Claims")
    about: dict[str, Any] = {"run_id": feed.folder.name} if part else await _verdicts(found, feed.folder.name, verdict)
    numbers = found.numbers(verdict)
    first = (start - 1) // AT_ONCE * AT_ONCE
    claims = await asyncio.to_thread(_shown, found, numbers[first : first + AT_ONCE])
    folds = [(begin, numbers[begin : begin + AT_ONCE]) for begin in range(0, len(numbers), AT_ONCE)]
    template = "parts/claims.html" if part else "claims.html"
    return site.page(template, **about, head=head_of(feed), claims=claims, at_once=AT_ONCE, first=first, folds=folds)


def _shown(found: ReportLookup, numbers: Sequence[int]) -> list[ShownClaim]:
    return [
        ShownClaim(
            cleaned_card(claim_html(claim)),
            number if claim.ids else None,
            [one for one in claim.ids if SOURCE_ID.fullmatch(one)],
        )
        for number, claim in ((number, found.claim(number)) for number in numbers)
    ]


@router.get("/runs/{run_id}/sources")
async def show_sources(run_id: str, site: OfSite, q: Annotated[str, Query(max_length=200)] = "") -> HTMLResponse:
    """Show the sources of a run: all, or those with words in title or address."""
    feed = await site.feed(run_id)
    known = feed.run.view.sources.values()
    found = [one for one in known if q.lower() in f"{one.id} {one.title} {one.url}".lower()]
    return site.page("sources.html", run_id=feed.folder.name, head=head_of(feed), sources=found, query=q)


@router.get("/runs/{run_id}/sources/{source_id}")
async def show_source(
    run_id: str, source_id: str, site: OfSite, claim: Annotated[int | None, Query(ge=0)] = None
) -> HTMLResponse:
    """Show the stored text of a source, with the words marked for which it is cited."""
    feed = await site.feed(run_id)
    citing, claims = await _citing(site, feed.folder, source_id, claim)
    found = await asyncio.to_thread(source_page, feed.folder, source_id, claims, claim)
    return site.page(
        "source.html", run_id=feed.folder.name, head=head_of(feed), found=found, citing=citing, words=FILTER_WORDS
    )


async def _citing(site: WebSite, folder: Path, source_id: str, claim: int | None) -> tuple[CitingPart, Citing]:
    """Return a part of the sentences that cite a source: the first, or those around one; none without a report."""
    try:
        found = await site.lookups.of(folder)
    except NotFoundError:
        return CitingPart((), 0, 0), ()
    before = sum(place < claim for place in found.found.places(source_id)) if claim is not None else 0
    citing = found.citing(source_id, before)
    return citing, await asyncio.to_thread(lambda: tuple((place, found.claim(place)) for place in citing.places))


@router.get("/runs/{run_id}/download/report.{suffix}")
async def download_report(run_id: str, suffix: Suffix, site: OfSite) -> Response:
    """Send the report as a file: markdown, one HTML page that works offline, JSON, PDF or Word."""
    folder = await site.shown_folder(run_id)
    found = await site.lookups.of(folder)
    written = format_of(PurePosixPath(f"report.{suffix}").suffix)
    content, _ = await asyncio.to_thread(written.write, replace(found.document, look_up=found.whole))
    if Redactor(site.runs.secrets).is_in(content):
        raise ExplorerError(
            "the report has a key in it, and is not sent", hint=f"see it with: explorer report {folder.name}"
        )
    name = f"{folder.name}.{suffix}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=KINDS[suffix], headers=headers)
