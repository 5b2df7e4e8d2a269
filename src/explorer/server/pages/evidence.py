"""The report with its evidence: citations as cards, every checked sentence, sources with their text, downloads."""

import asyncio
import re
from pathlib import PurePosixPath
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response

from explorer.reports.evidence import Evidence
from explorer.reports.formats.cards import VERDICT_WORDS, card_html, claim_html
from explorer.reports.formats.writers import format_of
from explorer.schema.errors import ExplorerError, NotFoundError
from explorer.server.lookups import claims_with, counts_of, source_page
from explorer.server.markdown import cleaned_card, report_html
from explorer.server.site import OfSite
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
router = APIRouter(include_in_schema=False)


@router.get("/runs/{run_id}/report")
async def show_report(run_id: str, site: OfSite) -> HTMLResponse:
    """Show the report; a click on a citation opens its card next to it."""
    feed = await site.feed(run_id)
    found = await site.lookups.of(feed.folder)
    return site.page(
        "report.html",
        run_id=feed.folder.name,
        head=head_of(feed),
        report=await asyncio.to_thread(report_html, found.document, feed.folder.name),
        facts=found.document.facts,
        counts=counts_of(found.evidence),
        words=FILTER_WORDS,
        language=found.document.language,
        formats=list(KINDS),
    )


@router.get("/runs/{run_id}/citations/{number}")
async def show_citation(run_id: str, number: int, site: OfSite, *, part: bool = False) -> HTMLResponse:
    """Show the card of a citation, as a page or as a part of one."""
    feed = await site.feed(run_id)
    found = await site.lookups.of(feed.folder)
    card = found.evidence.card(number)
    if card is None:
        raise NotFoundError(f"the report has no citation [{number}]", hint="go back to the report")
    address = f"/runs/{feed.folder.name}/sources/{card.id}" if SOURCE_ID.fullmatch(card.id) else ""
    html = cleaned_card(card_html(card, address))
    template = "parts/card.html" if part else "citation.html"
    return site.page(template, run_id=feed.folder.name, head=head_of(feed), number=number, card=html)


@router.get("/runs/{run_id}/claims")
async def show_claims(run_id: str, site: OfSite, verdict: Annotated[str, Query(max_length=40)] = "") -> HTMLResponse:
    """Show every checked sentence: all, or those with a verdict."""
    feed = await site.feed(run_id)
    evidence: Evidence = (await site.lookups.of(feed.folder)).evidence
    places = {id(claim): place for place, claim in enumerate(evidence.claims)}
    claims = [
        (cleaned_card(claim_html(claim)), places.get(id(claim)), [one for one in claim.ids if SOURCE_ID.fullmatch(one)])
        for claim in claims_with(evidence, verdict)
    ]
    counts = counts_of(evidence) | ({verdict: len(claims)} if verdict in FILTER_WORDS else {})
    return site.page(
        "claims.html",
        run_id=feed.folder.name,
        head=head_of(feed),
        claims=claims,
        counts=counts,
        words=FILTER_WORDS,
        verdict=verdict,
    )


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
    evidence = await site.lookups.evidence_of(feed.folder)
    found = await asyncio.to_thread(source_page, feed.folder, source_id, evidence, claim)
    return site.page("source.html", run_id=feed.folder.name, head=head_of(feed), found=found, words=FILTER_WORDS)


@router.get("/runs/{run_id}/download/report.{suffix}")
async def download_report(run_id: str, suffix: Suffix, site: OfSite) -> Response:
    """Send the report as a file: markdown, one HTML page that works offline, JSON, PDF or Word."""
    folder = await site.shown_folder(run_id)
    found = await site.lookups.of(folder)
    written = format_of(PurePosixPath(f"report.{suffix}").suffix)
    content, _ = await asyncio.to_thread(written.write, found.document)
    if Redactor(site.runs.secrets).is_in(content):
        raise ExplorerError(
            "the report has a key in it, and is not sent", hint=f"see it with: explorer report {folder.name}"
        )
    name = f"{folder.name}.{suffix}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=KINDS[suffix], headers=headers)
