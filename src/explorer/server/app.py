"""The application: pages, their JSON twins, static files, errors as pages, and who may ask for any of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from explorer.observe.command_result import described
from explorer.run.served import ServedRuns
from explorer.schema.errors import (
    ConfigError,
    ExplorerError,
    JournalDamagedError,
    NotFoundError,
    RunLockedError,
    StorageError,
    ToolError,
)
from explorer.schema.version import __version__
from explorer.server.fleet_status import AskFleet, CopyOf, DecideElsewhere
from explorer.server.json_notes import add_notes
from explorer.server.pages import JSON_PAGES, PAGES
from explorer.server.security import API, RequestGuard, ServerAccess
from explorer.server.site import WebSite

STATIC = Path(__file__).with_name("static")
STATUS_OF = {
    NotFoundError: 404,
    RunLockedError: 409,
    JournalDamagedError: 409,
    StorageError: 500,
    ToolError: 409,
    ConfigError: 400,
}
"""The HTTP status of each kind of error; of others 500."""


class SiteApp(FastAPI):
    """The application; the fields of its JSON are described by the notes under them."""

    def openapi(self) -> dict[str, Any]:
        """Return the description of the JSON side."""
        is_made = self.openapi_schema is not None
        document = super().openapi()
        if not is_made:
            routes = [route for pages in JSON_PAGES for route in pages.routes if isinstance(route, APIRoute)]
            add_notes(document, [route.response_model for route in routes])
        return document


def build_site(
    runs: ServedRuns,
    access: ServerAccess,
    fleet: AskFleet | None = None,
    elsewhere: CopyOf | None = None,
    decide_elsewhere: DecideElsewhere | None = None,
) -> FastAPI:
    """Return the application over the runs of a workspace, and over their fleet, if there is one."""
    site = WebSite(runs, fleet, elsewhere, decide_elsewhere)

    @asynccontextmanager
    async def opened(_app: FastAPI) -> AsyncGenerator[None]:
        async with site.feeds.opened():
            yield

    app = SiteApp(
        title="explorer",
        version=__version__,
        description="The runs of a workspace as JSON: each page of the site has its data here.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=opened,
    )
    app.state.site = site
    for pages in PAGES:
        # The routes themselves: `include_router` works each of them out again, 0.1 s of CPU before the first answer.
        app.router.routes.extend(pages.routes)
    app.mount("/static", StaticFiles(directory=STATIC))
    app.add_exception_handler(ExplorerError, _show_error)
    app.add_exception_handler(HTTPException, _show_error)
    app.add_exception_handler(RequestValidationError, _show_error)
    app.add_middleware(RequestGuard, access=access)
    return app


async def _show_error(request: Request, error: Exception) -> Response:
    """Show what is wrong and what to do, as a page or as JSON."""
    status, known = _explained(error)
    site = request.app.state.site
    assert isinstance(site, WebSite)
    if request.url.path.startswith(API):
        return JSONResponse({"error": site.clean(described(known))}, status)
    return site.page("error.html", code=status, error=known)


def _explained(error: Exception) -> tuple[int, ExplorerError]:
    if isinstance(error, ExplorerError):
        return next((code for kind, code in STATUS_OF.items() if isinstance(error, kind)), 500), error
    if isinstance(error, RequestValidationError):
        wrong = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in error.errors())
        return 400, ConfigError(f"something in the request cannot be used: {wrong}", hint="go back, and correct it")
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:  # noqa: PLR2004 - the number is its name
        return status, NotFoundError("there is no such page", hint="all runs are on the first page: /")
    return status, ConfigError(str(getattr(error, "detail", "it did not work")), hint="go back, and correct it")
