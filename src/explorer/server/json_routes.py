"""What all routes of the JSON side share: no key in an answer, and one form of errors."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute

from explorer.server.json_models import ErrorAnswer
from explorer.server.site import WebSite

ERRORS: Mapping[int | str, dict[str, Any]] = {
    400: {"model": ErrorAnswer, "description": "Something in the request cannot be used."},
    404: {"model": ErrorAnswer, "description": "There is no such run, agent, source, file or report."},
    409: {
        "model": ErrorAnswer,
        "description": "The run is not in a state for it: at work, not at work, locked or damaged; or too many are.",
    },
    413: {"model": ErrorAnswer, "description": "More was sent than is taken."},
    "default": {
        "model": ErrorAnswer,
        "description": "401 without the token, 403 from another site, 421 by another name, 500 when the disk fails.",
    },
}
"""The errors of every route."""


class CleanRoute(APIRoute):
    """A route whose answer passes the site's redactor, whatever it is made of."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        answer = super().get_route_handler()

        async def cleaned(request: Request) -> Response:
            response = await answer(request)
            site = request.app.state.site
            assert isinstance(site, WebSite)
            # A stream cleans each of its events itself.
            if isinstance(response, StreamingResponse) or not response.body:
                return response
            content = await asyncio.to_thread(_cleaned, site, bytes(response.body))
            headers = {name: value for name, value in response.headers.items() if name != "content-length"}
            return Response(content, response.status_code, headers)

        return cleaned


def _cleaned(site: WebSite, content: bytes) -> bytes:
    """Return JSON without keys: value by value, because JSON escapes what a key may contain."""
    return json_line(site.clean(json.loads(content)))


def json_line(value: object) -> bytes:
    """Return JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def json_router(tag: str) -> APIRouter:
    """Return a router of the JSON side, whose routes are described under a tag."""
    return APIRouter(prefix="/api", route_class=CleanRoute, tags=[tag], responses=dict(ERRORS))
