"""The fleet: its workers with their leases, its queue, and how many runs ended in the last hour."""

import asyncio

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from explorer.schema.errors import NotFoundError
from explorer.server.site import OfSite

router = APIRouter(include_in_schema=False)


@router.get("/fleet")
async def show_fleet(site: OfSite) -> HTMLResponse:
    """Show the fleet whose database the settings name."""
    if site.fleet is None:
        raise NotFoundError("there is no fleet in this workspace", hint='begin one: explorer submit "your question"')
    return site.page("fleet.html", fleet=await asyncio.to_thread(site.fleet))
