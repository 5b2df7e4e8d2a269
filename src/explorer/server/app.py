"""The application: pages, their JSON twins, static files, errors as pages, and who may ask for any of it."""

import ast
import inspect
import sys
import typing
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
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
from explorer.server.fleet_status import AskFleet, CopyOf, DecideElsewhere, Queued
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


def build_site(  # noqa: PLR0913, PLR0917 - what a fleet is asked
    runs: ServedRuns,
    access: ServerAccess,
    fleet: AskFleet | None = None,
    elsewhere: CopyOf | None = None,
    decide_elsewhere: DecideElsewhere | None = None,
    queued: Queued = lambda _run: "",
) -> FastAPI:
    """Return the application over the runs of a workspace, and over their fleet, if there is one."""
    site = WebSite(runs, fleet, elsewhere, decide_elsewhere, queued)

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
    return site.page("error.html", code=status, error=known, run=await _run_of(request, site))


async def _run_of(request: Request, site: WebSite) -> str:
    """Return the id of the run that a request is about; empty where there is none, or its own page was asked for."""
    run = str(request.path_params.get("run_id", ""))
    if not run or request.url.path == f"/runs/{run}":
        return ""
    try:
        return (await site.shown_folder(run)).name
    except ExplorerError:
        return ""


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


Modules = dict[str, dict[str, ast.ClassDef]]
"""The classes at the top of each module that has been looked into."""


def add_notes(document: dict[str, Any], answers: Iterable[type]) -> None:
    """Add the note of each field that has one to a document, for all types that these answers are made of.

    Pydantic would read the notes of each class when it is imported; here they are read when the document is asked for.
    """
    schemas: dict[str, Any] = document["components"]["schemas"]
    modules: Modules = {}
    for kind in _reached(answers):
        for name, note in _notes(kind, modules).items():
            field = schemas.get(kind.__name__, {}).get("properties", {}).get(name)
            if field is not None:
                field.setdefault("description", note)


def _reached(answers: Iterable[type]) -> set[type]:
    """Return the records among types, and those that their fields are made of."""
    found, open_ones = set[type](), list[type](answers)
    while open_ones:
        kind = open_ones.pop()
        if kind not in found:
            found.add(kind)
            for hint in typing.get_type_hints(kind).values():
                open_ones += _records_in(hint)
    return found


def _records_in(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, BaseModel)):
        yield hint
    for part in typing.get_args(hint):
        yield from _records_in(part)


def _notes(kind: type, modules: Modules) -> dict[str, str]:
    """Return the note under each field of a class, and of those that it derives from."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("explorer."):
            if base.__module__ not in modules:
                modules[base.__module__] = _classes(base.__module__)
            found |= dict(_written(modules[base.__module__][base.__name__]))
    return found


def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes at the top of a module: its source is parsed once, and not once for each class."""
    body = ast.parse(inspect.getsource(sys.modules[module])).body
    return {node.name: node for node in body if isinstance(node, ast.ClassDef)}


def _written(body: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, note in pairwise(body.body):
        match field, note:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
            case _:
                pass
