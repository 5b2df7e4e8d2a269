"""The records of a run's journal as JSON: page by page, or as server-sent events that follow the run."""

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Header, Query, Response

from explorer.journal.listing import RUNNING
from explorer.schema.events import JournalRecord
from explorer.server.feeds import RunFeed, record_number
from explorer.server.json_models import EventsAnswer
from explorer.server.json_routes import json_line, json_router
from explorer.server.live import KEEP_ALIVE_S, LIVE, event_stream
from explorer.server.site import OfSite, WebSite

MAX_RECORDS = 1_000
CATCH_UP_RECORDS = 100_000
"""Records that a stream reads at once, so that a long journal is not read again for each part of it."""
NO_MORE = 204
router = json_router("events")
STREAM = {
    "description": "The records, as a page of JSON or, with `Accept: text/event-stream`, as server-sent events. Each "
    "event has one record as its data, and the record's number as its id. When no process works on the run, an event "
    "`end` with its status comes, and the stream ends.",
    "content": {LIVE: {"schema": {"type": "string"}}},
}


@router.get(
    "/runs/{run_id}/events",
    summary="Read or follow the journal",
    response_model=EventsAnswer,
    responses={200: STREAM, NO_MORE: {"description": "There is nothing to follow: the run ended, and all was seen."}},
)
async def show_events(  # noqa: PLR0913, PLR0917 - the parameters of a request
    run_id: str,
    site: OfSite,
    after: Annotated[int, Query(ge=0, description="The number of the last record that was seen.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_RECORDS, description="Records on a page of JSON.")] = 100,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    last_event_id: Annotated[str, Header(description="What `after` says, from a browser that connects again.")] = "",
    *,
    follow: Annotated[bool, Query(description="Whether a stream waits for more when the run ended.")] = False,
) -> EventsAnswer | Response:
    """Return the records after one, each once, as a page or as a stream."""
    feed = await site.feed(run_id)
    if LIVE not in accept:
        return await _page(site, feed, after, limit)
    number = record_number(last_event_id)
    seen = after if number is None else number
    if not follow and _is_over(feed, seen):
        # A browser connects again whenever a stream ends, unless it is answered so.
        return Response(status_code=NO_MORE)
    return event_stream(_events(site, feed, seen, follows=follow))


async def _page(site: WebSite, feed: RunFeed, after: int, limit: int) -> EventsAnswer:
    records = await site.feeds.records_after(feed, after, limit)
    last = max(feed.run.view.seq, *(record.seq for record in records[-1:]), 0)
    seen = records[-1].seq if records else after
    return EventsAnswer(
        run_id=feed.folder.name,
        records=records,
        last=last,
        next_after=seen if seen < last else None,
        status=feed.status,
        is_ended=feed.status != RUNNING,
    )


async def _events(site: WebSite, feed: RunFeed, seen: int, *, follows: bool) -> AsyncIterator[bytes]:
    """Yield an event for each record after one; each is sent once, because its number is higher than the one before."""
    async with site.feeds.watched(feed.folder) as watched:
        while not site.feeds.is_closing:
            moment = watched.moment
            records = await site.feeds.records_after(watched, seen, CATCH_UP_RECORDS)
            for record in records:
                seen = record.seq
                yield _event(site, record)
            if records:
                continue
            if not follows and _is_over(watched, seen):
                yield b"event: end\ndata: " + json_line({"status": watched.status}) + b"\n\n"
                return
            if not await watched.after(moment, KEEP_ALIVE_S):
                yield b": still here\n\n"


def _is_over(feed: RunFeed, seen: int) -> bool:
    """Return whether no process works on the run, and all of its records were seen."""
    return feed.status != RUNNING and seen >= feed.run.view.seq


def _event(site: WebSite, record: JournalRecord) -> bytes:
    data = json_line(site.clean(json.loads(record.model_dump_json())))
    return b"id: %d\ndata: %s\n\n" % (record.seq, data)
