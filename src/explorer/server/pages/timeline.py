"""The timeline: who worked when, the critical path, and a slider that shows the run as it was at any record."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from explorer.server.gantt import BAR_HEIGHT, LABEL_WIDTH, gantt_of
from explorer.server.pages.run import values_then
from explorer.server.site import OfSite

router = APIRouter(include_in_schema=False)


@router.get("/runs/{run_id}/timeline")
async def show_timeline(run_id: str, site: OfSite, at: Annotated[int | None, Query(ge=1)] = None) -> HTMLResponse:
    """Show the timeline, and below it the run as it was at a record; the latest one without a number."""
    feed = await site.feed(run_id)
    records = await site.feeds.records(feed)
    at = max(1, min(at or len(records), len(records)))
    drawing = await asyncio.to_thread(gantt_of, records, at)
    values = await values_then(feed, records[:at])
    moment = records[at - 1].at if records else None
    return site.page(
        "timeline.html",
        **values,
        at=at,
        last=len(records),
        drawing=drawing,
        moment=moment,
        bar_height=BAR_HEIGHT,
        label_width=LABEL_WIDTH,
    )
