"""What a session states to all its agents: the time, what can be reached, and what earlier runs found."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime

from loguru import logger

from explorer.agents.context_block import RunFacts
from explorer.reports.earlier import EarlierHit, SearchLimits, words_matched, words_sought
from explorer.run.extensions import Point, installed_extensions
from explorer.run.resources import RunResources
from explorer.schema.errors import ExplorerError
from explorer.schema.events import SessionConfigured
from explorer.sources.date_ranges import zone_named
from explorer.text.rendering import ModelText, code, codes, inline, own, render
from explorer.tools.library import LIBRARY, Past

QUICK = SearchLimits(seconds=0.5, chars=8_000_000)
"""The limits of the search in earlier work, which every session makes at its start."""
HITS = 30
MAX_SHOWN = 5
ABOUT_CHARS = 140


async def run_facts(
    resources: RunResources, session: SessionConfigured | None, now: Callable[[], datetime], past: Past, question: str
) -> RunFacts:
    """Return what a session states to its agents.

    Args:
        resources: What the session works with.
        session: Its record, with search engines and shell.
        now: The clock of the tools.
        past: The library and the other runs.
        question: What the user asks.
    """
    settings = resources.settings
    zone = zone_named(settings.timezone)
    lines = [*_reachable(resources, session)]
    if resources.connectors.corpus is not None:
        lines.append(await resources.connectors.corpus.line())
    earlier = own("") if settings.is_sample else await asyncio.to_thread(earlier_work, past, question)
    return RunFacts(lambda: now().astimezone(zone), lines, earlier)


def _reachable(resources: RunResources, session: SessionConfigured | None) -> Iterator[ModelText]:
    """Yield a line each on search engines, sites and shell."""
    if session is None:
        return
    if resources.settings.is_sample:
        yield own("This run reads bundled, invented sample data of one day; nothing else can be reached.")
    else:
        engines = codes(session.search) or own("none ({why})", why=session.search_why)
        through = own("through {reader}", reader=code(session.reader)) if session.reader else own("directly")
        hosts = codes(part.value.hosts[0] for part in installed_extensions().of(Point.SOURCES))
        yield own("Web search: {engines}. Pages are read {through}.", engines=engines, through=through)
        yield own("Sites read through their services: {hosts}.", hosts=hosts)
    yield (
        own("Shell, for agents that have it: {tier}.", tier=code(session.shell))
        if session.shell
        else own("Shell: none.")
    )


def earlier_work(past: Past, question: str) -> ModelText:
    """Return what the library and earlier runs hold on a question, as a short list; empty: nothing, or no words."""
    try:
        hits = past.search(question, HITS).hits
    except ExplorerError as error:
        logger.debug("earlier work was not searched: {}", error)
        return own("")
    sought = words_sought(question)
    least = len(sought) // 2 + 1
    found: dict[tuple[str, str], EarlierHit] = {}
    for hit in hits:
        # Of a run one line, of the library one for each report.
        key = (hit.found.origin, hit.found.path if hit.found.origin == LIBRARY else "")
        # More than half of the question's words: texts that share one or two are about something else.
        if words_matched(sought, f"{hit.found.about} {hit.snippet}") >= least:
            found.setdefault(key, hit)
    shown = [_line(hit) for hit in list(found.values())[:MAX_SHOWN]]
    words = "Earlier work on this (leads, not evidence; see list_reports, search_runs): {found}"
    return own(words, found=render(*shown, between="; ")) if shown else own("")


def _line(hit: EarlierHit) -> ModelText:
    found = hit.found
    about, day = inline(found.about, ABOUT_CHARS), code(found.day)
    if found.origin == LIBRARY:
        return own("library report {path}: {about}", path=found.path, about=about)
    return own("run of {day}: {about}", day=day, about=about)
