"""Searches repositories, issues and pull requests of GitHub, and reads them, through its REST API.

Without a token it allows 10 searches a minute and 60 other requests an hour, and wants a User-Agent:
https://docs.github.com/en/rest/search/search, https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

import base64
import re
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, SecretStr, TypeAdapter, ValidationError

from explorer.schema.setting import ExtensionSettings, address_of, key_of
from explorer.sources.http.api_client import ApiClient, ApiRules
from explorer.sources.http.wire import WireModel, listed
from explorer.sources.page import Site, SiteAccess, ThreadReader, WebPage
from explorer.sources.search.port import WebAnswer, WebHit, WebQuery
from explorer.sources.site_search import SearchableSite
from explorer.text.rendering import own
from explorer.text.sanitize import single_line

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
RULES = ApiRules(in_flight=1)
OF_ISSUES = re.compile(r"\b(?:is:(?:issue|pr|pull-request)|type:(?:issue|pr)|repo:\S+/\S+)")
KIND_OF_ISSUE = re.compile(r"\b(?:is:(?:issue|pr|pull-request)|type:(?:issue|pr))\b")
NAME = r"[A-Za-z0-9._-]{1,100}"
REPOSITORY = re.compile(rf"/({NAME})/({NAME})/?")
THREAD = re.compile(rf"/({NAME})/({NAME})/(?:issues|pull)/(\d{{1,9}})/?")
NOT_OWNERS = frozenset(
    {"topics", "orgs", "users", "search", "features", "sponsors", "marketplace", "settings", "about"}
)
SNIPPET_CHARS = 600
COMMENTS = 100


class _User(WireModel):
    login: str = ""


class _Repository(WireModel):
    full_name: str
    html_url: str
    description: str | None = None
    stargazers_count: int = 0
    forks_count: int = 0
    open_issues_count: int = 0
    language: str | None = None
    pushed_at: str | None = None
    created_at: str | None = None
    archived: bool = False
    topics: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()

    @property
    def facts(self) -> str:
        """What is known of it, on one line."""
        parts = [
            self.description or "",
            "ARCHIVED" if self.archived else "",
            f"{self.stargazers_count} stars, {self.forks_count} forks, {self.open_issues_count} open issues",
            self.language or "",
            f"last push {(self.pushed_at or '?')[:10]}, since {(self.created_at or '?')[:10]}",
            f"topics: {', '.join(self.topics)}" if self.topics else "",
        ]
        return single_line("; ".join(part for part in parts if part))


class _Issue(WireModel):
    html_url: str = ""
    title: str = ""
    body: str | None = None
    state: str = ""
    comments: int = 0
    created_at: str | None = None
    closed_at: str | None = None
    user: _User | None = None

    @property
    def facts(self) -> str:
        """What is known of it, on one line."""
        closed = f" on {self.closed_at[:10]}" if self.closed_at else ""
        return f"{self.state}{closed}, {self.comments} comments, by {self.author or '?'}"

    @property
    def author(self) -> str:
        """Who opened it."""
        return single_line(self.user.login) if self.user else ""


class _Repositories(WireModel):
    items: tuple[_Repository, ...] = ()
    incomplete_results: bool = False


class _Issues(WireModel):
    items: tuple[_Issue, ...] = ()
    incomplete_results: bool = False


class _Readme(WireModel):
    content: str = ""


COMMENT_LIST = TypeAdapter(list[_Issue])


class GitHub(SearchableSite):
    """Searches and reads; other pages of the site are read like any others."""

    name = "github"
    finds = "repositories; issues with is:issue or repo:owner/name, pull requests with is:pr, in the query"
    remedy = "set EXPLORER_GITHUB_TOKEN: without one, it allows 10 searches a minute and 60 pages an hour"

    async def _found(self, query: WebQuery) -> WebAnswer:
        if not OF_ISSUES.search(query.words):
            since = f" pushed:>={query.since}" if query.since else ""
            parameters = {"q": f"{query.words}{since}", "per_page": str(query.max_results)}
            found = await self._asked(_Repositories, "/search/repositories", parameters)
            return self.answer(map(_repository_hit, found.items), _notes(is_cut=found.incomplete_results))
        # Without a kind, the search of issues is refused.
        kind = "" if KIND_OF_ISSUE.search(query.words) else " is:issue"
        since = f" updated:>={query.since}" if query.since else ""
        parameters = {"q": f"{query.words}{kind}{since}", "per_page": str(query.max_results)}
        issues = await self._asked(_Issues, "/search/issues", parameters)
        return self.answer(map(_issue_hit, issues.items), _notes(is_cut=issues.incomplete_results))

    async def _item(self, url: str) -> WebPage | None:
        path = urlsplit(url).path
        if thread := THREAD.fullmatch(path):
            return await self._thread(url, f"/repos/{thread[1]}/{thread[2]}/issues/{thread[3]}")
        found = REPOSITORY.fullmatch(path)
        return await self._repository(url, found[1], found[2]) if found and found[1] not in NOT_OWNERS else None

    async def _repository(self, url: str, owner: str, name: str) -> WebPage:
        one = await self._asked(_Repository, f"/repos/{owner}/{name}", {})
        readme = await self._asked(_Readme, f"/repos/{owner}/{name}/readme", {})
        text = base64.b64decode(readme.content, validate=False).decode("utf-8", "replace")
        return WebPage(
            url=url,
            title=single_line(one.full_name),
            text=f"{one.facts}\n\n{text}",
            via=self.name,
            published=(one.pushed_at or "")[:10],
        )

    async def _thread(self, url: str, path: str) -> WebPage:
        issue = await self._asked(_Issue, path, {})
        body = await self._body(f"{path}/comments", {"per_page": str(COMMENTS)}) if issue.comments else b"[]"
        try:
            comments = COMMENT_LIST.validate_json(body)
        except ValidationError as error:
            raise self.refusal(own("sent something unexpected")) from error
        said = [f"{one.author or '?'}, {(one.created_at or '')[:10]}:\n{one.body or ''}" for one in comments]
        return WebPage(
            url=url,
            title=single_line(issue.title),
            text="\n\n".join([issue.facts, issue.body or "", *said]),
            via=self.name,
            author=issue.author,
            published=issue.created_at or "",
            kind="comments",
            flags=("truncated",) if issue.comments > len(comments) else (),
        )


def _repository_hit(one: _Repository) -> WebHit:
    return WebHit(single_line(one.full_name), one.html_url, one.facts, published=(one.pushed_at or "")[:10])


def _issue_hit(one: _Issue) -> WebHit:
    text = f"{one.facts}. {(one.body or '')[:SNIPPET_CHARS]}"
    return WebHit(single_line(one.title), one.html_url, text, published=(one.created_at or "")[:10])


def _notes(*, is_cut: bool) -> list[str]:
    return [own("GitHub ran out of time: there may be more.")] if is_cut else []


class GitHubSettings(ExtensionSettings):
    """The address of the service, and the token for it."""

    url: Annotated[str, address_of("EXPLORER_GITHUB_URL", "GitHub's REST API")] = "https://api.github.com"
    token: Annotated[
        SecretStr, key_of("EXPLORER_GITHUB_TOKEN", "Token for searching GitHub, without any rights; raises its limits")
    ] = SecretStr("")


def _connect(settings: GitHubSettings, access: SiteAccess) -> AbstractAsyncContextManager[ThreadReader]:
    token = settings.token.get_secret_value()
    headers = {**HEADERS, **({"Authorization": f"Bearer {token}"} if token else {})}
    return aclosing(GitHub(ApiClient(settings.url, headers, rules=access.rules(RULES), secret=token)))


SITE = Site("github", ("github.com",), settings=GitHubSettings, connect=_connect, is_on_sample_day=False)
