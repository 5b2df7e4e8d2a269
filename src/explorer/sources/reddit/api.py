"""Reads Reddit through its API: current scores, whole trees, stubs expanded; with a token of the user's own app.

The token goes to one host only: redirects are not followed. Neither the token nor the app's secret is ever in an error.
What an answer means is described in our own text, because the server's text could reach a model as an instruction.
"""

import asyncio
import base64
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import LiteralString, cast
from urllib.parse import urlencode

from pydantic import ValidationError

from explorer.network.client import GuardedClient
from explorer.network.exchange import Attempt, ExchangeError, HttpRequest, HttpResponse, with_retries
from explorer.network.guard import Guard
from explorer.schema.errors import ToolError
from explorer.sources.http.caller import Caller
from explorer.sources.http.wire import WireModel
from explorer.sources.reddit.items import Forest, Post, live_posts, post_of, things_in
from explorer.sources.reddit.routes import (
    EVERYWHERE,
    SEARCH_SORTS,
    PostName,
    PostsQuery,
    RedditPosts,
    RedditRefusedError,
    RouteClosedError,
    read_answer,
    total_of,
)
from explorer.sources.threads import CommentRange, Thread, thread_under
from explorer.text.rendering import ModelText, own

MOST_SECONDS = 1e6
CLOSED_S = 600.0
"""The seconds for which a route stays closed that shows a web page instead of data."""
REASON = re.compile(r"[A-Za-z_]{1,40}")
REFUSALS: Mapping[str, LiteralString] = {
    "private": "it is private",
    "quarantined": "it is quarantined, and opens only to readers who agree to that with an account",
    "banned": "it was banned",
    "gold_only": "it is for paying members",
    "gated": "it is gated, and opens only to readers who agree to that with an account",
}


def _is_json(answer: HttpResponse) -> bool:
    """Return whether an answer's type is JSON: errors come as pages, too."""
    return "json" in answer.headers.get("content-type", "").lower()


def _reason(answer: HttpResponse) -> str:
    """Return Reddit's own code for a refusal; empty when there is none."""
    try:
        whole: object = json.loads(answer.body) if _is_json(answer) else None
    except (ValueError, RecursionError):
        return ""
    value = cast("dict[str, object]", whole).get("reason") if isinstance(whole, dict) else ""
    return value if isinstance(value, str) and REASON.fullmatch(value) else ""


def _token_problem(status: int) -> ModelText:
    """Return the reason why no token came."""
    if status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return own("the credentials were refused (status {status})", status=status)
    return own("it gave no token (status {status})", status=status)


def _judged(answer: HttpResponse) -> bytes:
    """Return the body of a successful answer.

    Raises:
        RouteClosedError: It is nothing of Reddit's API.
        RedditRefusedError: It is a refusal.
    """
    status, reason, is_json = answer.status, _reason(answer), _is_json(answer)
    if status < HTTPStatus.MULTIPLE_CHOICES:
        if not is_json:
            raise RouteClosedError.of("it sent a web page instead of data (status {status})", status=status)
        return answer.body
    if status < HTTPStatus.BAD_REQUEST:
        if "/subreddits/search" in answer.headers.get("location", ""):
            raise RedditRefusedError.of("there is no such subreddit")
        raise RouteClosedError.of("it leads elsewhere (status {status})", status=status)
    if status in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND} and is_json:
        is_missing = status == HTTPStatus.NOT_FOUND
        unnamed = "there is no such thing" if is_missing else "it is not open to all readers"
        raise RedditRefusedError.of(
            "{reason} (status {status})", reason=own(REFUSALS.get(reason, unnamed)), status=status
        )
    if status == HTTPStatus.BAD_REQUEST and is_json:
        raise RedditRefusedError.of(
            "the request makes no sense to it (status 400{why})",
            why=own(", {reason}", reason=reason) if reason else own(""),
        )
    raise RouteClosedError(_closed_words(status), for_s=CLOSED_S if status == HTTPStatus.FORBIDDEN else 0.0)


def _closed_words(status: int) -> ModelText:
    if status == HTTPStatus.FORBIDDEN:
        return own("it shows a web page instead of data to readers without an account (status 403)")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return own("it asks to send fewer requests (status 429)")
    if status == HTTPStatus.UNAUTHORIZED:
        return own("its token was refused (status 401)")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return own("its server failed (status {status})", status=status)
    return own("it refused (status {status})", status=status)


def _number_in(text: str) -> float | None:
    """Return a number of a header, which Reddit writes as `597.0`; None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < MOST_SECONDS else None


TOKEN_HOST = "https://www.reddit.com"  # noqa: S105 - an address
API_HOST = "https://oauth.reddit.com"
TOKEN_PATH = "/api/v1/access_token"  # noqa: S105 - the same
INSTALLED_GRANT = {
    "grant_type": "https://oauth.reddit.com/grants/installed_client",
    "device_id": "DO_NOT_TRACK_THIS_DEVICE",
}
SECONDS = 20.0
MOST_BYTES = 16_000_000
LONGEST_WAIT_S = 10.0
"""The longest wait in seconds when the limit is used up; a longer one closes the route for that time."""
TOKEN_MARGIN_S = 60.0
SERVER_WAIT_S = 1.0
MOST_REPEATS = 2
"""The number of repetitions: one with a new token, and one after a wait."""
IN_FLIGHT = 2
REFUSED_S = 600.0
"""The seconds until refused credentials are tried again."""


@dataclass(frozen=True)
class Access:
    """The access to Reddit; `url` replaces all its hosts and the archive's."""

    url: str = ""
    identity: str = ""
    """The id of the user's own app; empty: none."""
    secret: str = ""
    """The secret of that app; an installed app has none."""
    caller: Caller = field(default_factory=Caller)

    @property
    def grant(self) -> Mapping[str, str]:
        """The form that requests a token."""
        return {"grant_type": "client_credentials"} if self.secret else INSTALLED_GRANT

    @property
    def basic(self) -> str:
        """The header with the app's credentials."""
        return "Basic " + base64.b64encode(f"{self.identity}:{self.secret}".encode()).decode("ascii")


class _Token(WireModel):
    access_token: str
    expires_in: float = 3_600.0


class RedditSession:
    """Connections to Reddit's API, opened with the first request; without an app, requests have no token.

    `pause` and `clock` are for waiting.
    """

    def __init__(
        self,
        guard: Guard,
        access: Access,
        *,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._token_host = access.url.rstrip("/") or TOKEN_HOST
        self._host = access.url.rstrip("/") or API_HOST
        self._pause = pause
        self._clock = clock
        caller = access.caller
        self._client = GuardedClient(guard, caller.reddit_user_agent, caller.network, seconds=SECONDS)
        self._gate = asyncio.Semaphore(IN_FLIGHT)
        self._token = ""
        self._token_until = 0.0
        self._token_lock = asyncio.Lock()
        self._free_at = 0.0

    async def aclose(self) -> None:
        """Close all connections, if there are any."""
        await self._client.aclose()

    async def get(self, path: str, parameters: Mapping[str, str | int]) -> bytes:
        """Return the JSON body at a path.

        Raises:
            RouteClosedError: The API cannot be used just now.
            RedditRefusedError: It can, and refuses this.
        """
        return await self._asked("GET", f"{path}?{urlencode({**parameters, 'raw_json': 1})}")

    async def post(self, path: str, form: Mapping[str, str]) -> bytes:
        """Send a form, and return the JSON body.

        Raises:
            RouteClosedError: The API cannot be used just now.
            RedditRefusedError: It can, and refuses this.
        """
        return await self._asked("POST", path, {**form, "raw_json": "1"})

    async def _asked(self, method: str, path: str, form: Mapping[str, str] | None = None) -> bytes:
        """Send, repeat once with a new token or after a short wait, and judge the answer."""
        repeated: set[bool] = set()

        async def attempt() -> Attempt[HttpResponse]:
            await self._turn()
            token = await self._valid_token() if self._access.identity else ""
            answer = await self._once(method, f"{self._host}{path}", f"bearer {token}" if token else "", form)
            self._heed(answer)
            is_unauthorized = bool(token) and answer.status == HTTPStatus.UNAUTHORIZED
            if is_unauthorized and self._token == token:
                self._token = ""
            is_server = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            is_passing = is_unauthorized or is_server or answer.status == HTTPStatus.TOO_MANY_REQUESTS
            may_repeat = is_passing and is_unauthorized not in repeated
            repeated.add(is_unauthorized)
            return Attempt(answer, may_repeat, SERVER_WAIT_S if is_server else 0.0)

        return _judged(await with_retries(attempt, MOST_REPEATS, self._pause))

    async def _turn(self) -> None:
        """Wait until the limit allows another request."""
        wait_s = self._free_at - self._clock()
        if wait_s > LONGEST_WAIT_S:
            raise RouteClosedError(own("its limit is used up for {wait_s:.0f} s", wait_s=wait_s), for_s=wait_s)
        if wait_s > 0:
            await self._pause(wait_s)

    def _heed(self, answer: HttpResponse) -> None:
        """Note the limit that an answer reports."""
        reset_s = _number_in(answer.headers.get("x-ratelimit-reset", ""))
        left = _number_in(answer.headers.get("x-ratelimit-remaining", ""))
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            wait_s = answer.retry_after_s or reset_s or LONGEST_WAIT_S / 2
            self._free_at = self._clock() + wait_s
        elif reset_s and left is not None and left < 1.0:
            self._free_at = self._clock() + reset_s

    async def _valid_token(self) -> str:
        async with self._token_lock:
            if not self._token or self._clock() >= self._token_until:
                await self._new_token()
            return self._token

    async def _new_token(self) -> None:
        address = f"{self._token_host}{TOKEN_PATH}"
        answer = await self._once("POST", address, self._access.basic, self._access.grant)
        if answer.status != HTTPStatus.OK:
            raise RouteClosedError(_token_problem(answer.status), for_s=REFUSED_S)
        try:
            token = _Token.model_validate_json(answer.body)
        except ValidationError as error:
            # A refusal can come with status 200: {"error": "invalid_grant"}.
            raise RouteClosedError(own("it gave no token for the credentials"), for_s=REFUSED_S) from error
        if not token.access_token.isascii() or not token.access_token.isprintable():
            raise RouteClosedError(own("it gave a token that is none"), for_s=REFUSED_S)
        self._token = token.access_token
        self._token_until = self._clock() + max(token.expires_in - TOKEN_MARGIN_S, TOKEN_MARGIN_S)

    async def _once(self, method: str, url: str, authorization: str, form: Mapping[str, str] | None) -> HttpResponse:
        headers = {"Accept": "application/json"} | ({"Authorization": authorization} if authorization else {})
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        content = None if form is None else urlencode(form).encode()
        request = HttpRequest(method, url, headers, content, MOST_BYTES)
        try:
            async with self._gate, asyncio.timeout(SECONDS):
                answer = await self._client.send(request)
        except TimeoutError as error:
            raise RouteClosedError.of("it did not answer within {seconds:g} s", seconds=SECONDS) from error
        except ExchangeError as error:
            if error.is_timeout:
                raise RouteClosedError.of("it did not answer within {seconds:g} s", seconds=SECONDS) from error
            # The library's words may repeat what was sent; those about a proxy are ours.
            raise RouteClosedError.of(
                "it cannot be reached ({why})", why=error if error.is_proxy else error.kind
            ) from error
        except ToolError as error:  # of the guard: there is no such host, or it must not be asked
            raise RouteClosedError.of("it cannot be reached: {why}", why=error.words) from error
        if answer.is_truncated:
            raise RouteClosedError.of("it sent more than {most_bytes} bytes", most_bytes=MOST_BYTES)
        return answer


MOST_COMMENTS = 500
"""The number of comments in one answer."""
MOST_IDS = 100
"""The number of ids in one request for more comments."""
MAX_EXPANSIONS = 5
"""The number of further requests for one thread."""


class RedditApi:
    """Reads Reddit through its API."""

    via = "reddit-api"
    label = own("its API")
    lack = own("")

    def __init__(self, session: RedditSession) -> None:
        self._session = session
        self._expanding = asyncio.Lock()

    async def posts(self, query: PostsQuery) -> RedditPosts:
        """Return the posts of a subreddit, or the hits of a search in it.

        Raises:
            RouteClosedError: The API cannot be used just now.
            RedditRefusedError: The subreddit cannot be read.
        """
        parameters: dict[str, str | int] = {"limit": query.limit}
        if query.time:
            parameters["t"] = query.time
        path = f"/r/{query.subreddit}/{query.sort}"
        if query.words:
            parameters |= {"q": query.words, "sort": SEARCH_SORTS[query.sort], "type": "link"}
            is_everywhere = query.subreddit.lower() == EVERYWHERE
            path = "/search" if is_everywhere else f"/r/{query.subreddit}/search"
            parameters |= {} if is_everywhere else {"restrict_sr": 1}
        things = read_answer(things_in, await self._session.get(path, parameters))
        return RedditPosts(tuple(live_posts(things)[: query.limit]))

    async def thread(self, name: PostName, part: CommentRange) -> Thread[Post]:
        """Return a post and a part of its comments; stubs are expanded as far as the part needs it.

        Raises:
            RouteClosedError: The API cannot be used just now.
            RedditRefusedError: The post cannot be read.
        """
        limit = min(part.limit + part.offset, MOST_COMMENTS)
        # One level more below a comment: the comment itself is on the first.
        depth = part.depth + bool(name.comment)
        parameters: dict[str, str | int] = {"sort": "confidence", "limit": limit, "depth": depth}
        if name.comment:
            parameters |= {"comment": name.comment, "context": 0}
        things = read_answer(things_in, await self._session.get(f"/comments/{name.post}", parameters))
        post = next((post_of(thing) for thing in things if thing.kind == "t3"), None)
        if post is None:
            raise RouteClosedError.of("it sent a thread without its post")
        forest = Forest()
        forest.add(things)
        root = forest.comment(name.comment) if name.comment else None
        if name.comment and root is None:
            raise RedditRefusedError.of("there is no such comment under the post")
        base = name.comment or post.id
        await self._expand(forest, PostName(post.id, name.comment), part)
        page, known = forest.page(base, part), forest.total(base)
        if root is None:
            return Thread(post, page.comments, total_of(post, known), page.next_offset)
        return thread_under(root, post, page, known)

    async def _expand(self, forest: Forest, name: PostName, part: CommentRange) -> None:
        """Request comments that the page lacks, a few times; after a refusal they remain counted as missing."""
        base = name.comment or name.post
        async with self._expanding:  # Reddit wants one expansion at a time of each client
            for _ in range(MAX_EXPANSIONS):
                if forest.held(base, part) >= part.limit:
                    return
                try:
                    if not await self._expanded(forest, name, part):
                        return
                except (RouteClosedError, RedditRefusedError):
                    return

    async def _expanded(self, forest: Forest, name: PostName, part: CommentRange) -> bool:
        """Request further comments, and return whether there were any to request."""
        base = name.comment or name.post
        if ids := forest.missing(base, part)[:MOST_IDS]:
            form = {
                "link_id": f"t3_{name.post}",
                "children": ",".join(ids),
                "sort": "confidence",
                "limit_children": "false",
                "api_type": "json",
            }
            things = read_answer(things_in, await self._session.post("/api/morechildren", form))
            forest.cover(ids)
            forest.add(things)
            return True
        if left := forest.left_off(base, part)[:1]:
            parameters: dict[str, str | int] = {
                "comment": left[0],
                "context": 0,
                "depth": part.depth,
                "limit": MOST_IDS,
            }
            things = read_answer(things_in, await self._session.get(f"/comments/{name.post}", parameters))
            forest.cover_left_off(left[0])
            forest.add(things)
            return True
        return False
