"""Two runs side by side: what is new, gone and changed, by story, claim and source."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from explorer.journal.listing import RUNNING, UNFINISHED, is_running
from explorer.reports.compare import Comparison, compare_runs, snapshot_on_disk
from explorer.schema.errors import ConfigError
from explorer.server.site import OfSite, WebSite

MAX_CHOICES = 200
RunName = Annotated[str, Query(max_length=200)]
router = APIRouter(include_in_schema=False)


@router.get("/compare")
async def show_comparison(site: OfSite, a: RunName = "", b: RunName = "") -> HTMLResponse:
    """Show what differs between two runs; without them, the box to choose."""
    runs = await asyncio.to_thread(_choices, site)
    found = await comparison_of(site, a, b) if a and b else None
    return site.page("compare.html", runs=runs, a=a, b=b, found=found)


async def comparison_of(site: WebSite, a: str, b: str) -> Comparison:
    """Return what differs between two runs.

    Raises:
        ExplorerError: One is not there, both are the same, or a journal is damaged.
    """
    first, second = await site.shown_folder(a), await site.shown_folder(b)
    if first == second:
        raise ConfigError("both are the same run", hint="choose two runs")

    def compared() -> Comparison:
        one, other = (
            snapshot_on_disk(folder, RUNNING if is_running(folder) else UNFINISHED) for folder in (first, second)
        )
        return compare_runs(one, other)

    return await asyncio.to_thread(compared)


def _choices(site: WebSite) -> list[tuple[str, str]]:
    lines = (site.overviews.of(folder) for folder in site.overviews.folders(site.runs)[:MAX_CHOICES])
    return [(line.run_id, f"{line.run_id[:15]} {line.question}") for line in lines]
