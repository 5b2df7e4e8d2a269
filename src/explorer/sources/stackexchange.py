"""Searches questions of Stack Exchange's sites, and reads one with its answers, through its API.

Without a key it allows 300 requests a day; an answer's `backoff` must be waited for: https://api.stackexchange.com/docs/throttle
"""

import html
import re
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import SecretStr

from explorer.schema.setting import ExtensionSettings, address_of, key_of
from explorer.sources.http.api_client import ApiClient, ApiRules
from explorer.sources.http.wire import Seconds, WireModel, moment
from explorer.sources.page import Site, SiteAccess, ThreadReader, WebPage
from explorer.sources.search.port import WebAnswer, WebHit, WebQuery
from explorer.sources.site_search import SearchableSite
from explorer.text.rendering import own
from explorer.text.sanitize import single_line

if TYPE_CHECKING:
    from explorer.documents.parsing.parser import DocumentParser

RULES = ApiRules(in_flight=1)
WITH_BODY = "withbody"
DEFAULT_SITE = "stackoverflow"
SITE_IN_QUERY = re.compile(r"(?:^|\s)site:([a-z0-9.-]{2,40})", re.IGNORECASE)
QUESTION = re.compile(r"/(?:questions|q)/(\d{1,12})(?:/.*)?")
HOSTS = (
    "stackoverflow.com",
    "superuser.com",
    "serverfault.com",
    "askubuntu.com",
    "stackexchange.com",
    "mathoverflow.net",
)
FULL_NAMES = frozenset({"mathoverflow.net"})
"""Sites whose name in the API has its whole host."""
MAX_ANSWERS = 30
SNIPPET_CHARS = 600


class _Owner(WireModel):
    display_name: str | None = None


class _Post(WireModel):
    title: str = ""
    link: str = ""
    body: str = ""
    score: int = 0
    answer_count: int = 0
    accepted_answer_id: int | None = None
    is_accepted: bool = False
    tags: tuple[str, ...] = ()
    creation_date: Seconds = None
    owner: _Owner | None = None

    @property
    def author(self) -> str:
        """Who wrote it."""
        return single_line(html.unescape(self.owner.display_name or "")) if self.owner else ""


class _Answer(WireModel):
    items: tuple[_Post, ...] = ()
    backoff: int = 0
    has_more: bool = False


class StackExchange(SearchableSite):
    """Searches and reads questions; other pages of the sites are read like any others.

    `parser` reads the HTML of posts, in a confined process.
    """

    name = "stackexchange"
    finds = "questions with answers of Stack Overflow, or of another site with site:superuser in the query"
    remedy = "set EXPLORER_STACKEXCHANGE_KEY: without one, it allows 300 requests a day"

    def __init__(self, call: ApiClient, parser: "DocumentParser", key: str = "") -> None:
        super().__init__(call)
        self._parser = parser
        self._key = key
        self._closed_until_s = 0.0

    async def _found(self, query: WebQuery) -> WebAnswer:
        from explorer.documents.parsing.kinds import COMMENTS  # noqa: PLC0415 - every command reads the sites
        from explorer.documents.parsing.parser import texts_of  # noqa: PLC0415 - the same

        named = SITE_IN_QUERY.search(query.words)
        since = str(int(datetime.fromisoformat(query.since).replace(tzinfo=UTC).timestamp())) if query.since else ""
        parameters = {
            "q": SITE_IN_QUERY.sub("", query.words).strip(),
            "site": named[1].lower() if named else DEFAULT_SITE,
            "pagesize": str(query.max_results),
            "fromdate": since,
            "order": "desc",
            "sort": "relevance",
            "filter": WITH_BODY,
        }
        found = await self._posts("/search/advanced", parameters)
        texts = await texts_of(self._parser, COMMENTS, (post.body for post in found.items))
        return self.answer(_hit(post, texts[post.body]) for post in found.items)

    async def _item(self, url: str) -> WebPage | None:
        from explorer.documents.parsing.kinds import POSTS  # noqa: PLC0415 - as above
        from explorer.documents.parsing.parser import texts_of  # noqa: PLC0415 - as above

        found = QUESTION.fullmatch(urlsplit(url).path)
        if not found:
            return None
        parameters = {"site": _site_of(urlsplit(url).hostname or ""), "filter": WITH_BODY}
        asked = await self._posts(f"/questions/{found[1]}", parameters)
        if not asked.items:
            raise self.refusal(own("has no such question"))
        best = {**parameters, "order": "desc", "sort": "votes", "pagesize": str(MAX_ANSWERS)}
        answers = await self._posts(f"/questions/{found[1]}/answers", best)
        pieces = (post.body for post in (asked.items[0], *answers.items))
        return self._page(asked.items[0], answers, await texts_of(self._parser, POSTS, pieces))

    def _page(self, question: _Post, answers: _Answer, texts: Mapping[str, str]) -> WebPage:
        parts = [f"Question of {question.author or '?'} (score {question.score}):\n\n{texts[question.body]}"]
        for post in answers.items:
            accepted = ", accepted" if post.is_accepted else ""
            head = f"{moment(post.creation_date)[:10]} (score {post.score}{accepted})"
            parts.append(f"## Answer of {post.author or '?'}, {head}\n\n{texts[post.body]}")
        return WebPage(
            url=question.link,
            title=single_line(html.unescape(question.title)),
            text="\n\n".join(parts),
            via=self.name,
            author=question.author,
            published=moment(question.creation_date),
            kind="comments",
            flags=("truncated",) if answers.has_more else (),
        )

    async def _posts(self, path: str, parameters: Mapping[str, str]) -> _Answer:
        """Ask once, unless the service asked to wait.

        Raises:
            ToolError: It did, or it gave no answer.
        """
        wait_s = self._closed_until_s - time.monotonic()
        if wait_s > 0:
            raise self.refusal(own("asks to wait {seconds} s more", seconds=int(wait_s) + 1))
        answer = await self._asked(_Answer, path, {**parameters, "key": self._key})
        self._closed_until_s = time.monotonic() + answer.backoff
        return answer


def _hit(post: _Post, text: str) -> WebHit:
    accepted = ", one accepted" if post.accepted_answer_id else ""
    facts = f"score {post.score}, {post.answer_count} answers{accepted}; tags: {', '.join(post.tags)}"
    return WebHit(
        title=single_line(html.unescape(post.title)),
        url=post.link,
        snippet=f"{facts}. {single_line(text)[:SNIPPET_CHARS]}",
        published=moment(post.creation_date)[:10],
        author=post.author,
    )


def _site_of(host: str) -> str:
    """Return a site's name in the API: `stackoverflow`, or `unix` for `unix.stackexchange.com`."""
    bare = host.removeprefix("www.")
    return bare if bare in FULL_NAMES else bare.removesuffix(".stackexchange.com").removesuffix(".com")


class StackExchangeSettings(ExtensionSettings):
    """The address of the service, and the key for it."""

    url: Annotated[str, address_of("EXPLORER_STACKEXCHANGE_URL", "Stack Exchange's API")] = (
        "https://api.stackexchange.com/2.3"
    )
    key: Annotated[
        SecretStr,
        key_of("EXPLORER_STACKEXCHANGE_KEY", "Key for Stack Exchange; free, for 10,000 requests a day instead of 300"),
    ] = SecretStr("")


def _connect(settings: StackExchangeSettings, access: SiteAccess) -> AbstractAsyncContextManager[ThreadReader]:
    key = settings.key.get_secret_value()
    call = ApiClient(settings.url, {}, rules=access.rules(RULES), secret=key)
    return aclosing(StackExchange(call, access.parser, key))


SITE = Site("stackexchange", HOSTS, settings=StackExchangeSettings, connect=_connect, is_on_sample_day=False)
