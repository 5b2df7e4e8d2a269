"""The tools that read Hacker News: ranked lists, stories by day, comment threads, search, users."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from typing import Literal, Self, TypeVar

from pydantic import Field

from explorer.schema.errors import RefusedCallError
from explorer.schema.tool import Arguments, SourceDraft, Tool, ToolContext, ToolResult, shown
from explorer.sources.connections import SourceConnections
from explorer.sources.date_ranges import Window, days_in, window
from explorer.sources.hackernews.hackernews import VIA, HackerNews, hn_draft, hn_entry, hn_thread_text
from explorer.sources.hackernews.items import HnUser, SearchHit
from explorer.sources.hackernews.services import HnFound, HnQuery, or_advise
from explorer.sources.http.wire import moment
from explorer.sources.threads import CommentRange, stored, submission_facts
from explorer.text.rendering import ModelText, block, code, own, render, without_marks
from explorer.text.sanitize import single_line

MAX_STORIES = 200
MAX_COMMENTS = 500
MAX_DAYS = 14
TAGS = re.compile(r"[\w(),-]+")
USER_NAME = re.compile(r"[A-Za-z0-9_-]{2,32}")

Args = TypeVar("Args", bound=Arguments)


class GetHnStoriesArguments(Arguments):
    """Arguments of `get_hn_stories`."""

    story_type: Literal["top", "new", "best", "ask", "show", "job"] = "top"
    limit: int = Field(default=30, ge=1, le=MAX_STORIES)
    date: str = Field(
        default="",
        description="Only those submitted on: today, yesterday, 2026-08-10, 2026-08-10..2026-08-12",
    )


class GetHnCommentsArguments(Arguments):
    """Arguments of `get_hn_comments`."""

    story_id: int = Field(ge=1, description="Or a comment's id, for the replies to it")
    limit: int = Field(default=50, ge=1, le=MAX_COMMENTS)
    depth: int = Field(default=6, ge=1, le=30)
    offset: int = Field(default=0, ge=0)


class SearchHnArguments(Arguments):
    """Arguments of `search_hn`."""

    query: str = Field(max_length=300, description="One to four keywords")
    since: str = Field(default="", description="today, last week, 24h, 2026-08-01, 2026-08")
    until: str = ""
    sort: Literal["relevance", "date"] = "relevance"
    tags: str = Field(
        default="story",
        description="story, comment, ask_hn, show_hn, author_<name>, story_<id>; a,b = both, (a,b) = either",
    )


class GetHnUserArguments(Arguments):
    """Arguments of `get_hn_user`."""

    name: str


@dataclass(frozen=True)
class _Group:
    """Hits under a heading."""

    hits: Sequence[SearchHit]
    heading: str = ""


class _HackerNewsTool(Tool[Args]):
    """The base of these tools; `zone` is the user's, for days."""

    is_lookup = True

    def __init__(self, client: HackerNews, zone: tzinfo = UTC) -> None:
        self._client = client
        self._zone = zone

    @classmethod
    def connect(cls, connections: SourceConnections) -> Self:
        """Make the tool with the run's sites."""
        return cls(connections.site(HackerNews), connections.zone)

    @staticmethod
    async def _listed(head: ModelText, groups: Sequence[_Group], context: ToolContext) -> ToolResult:
        """Store stories as sources and list them, numbered through all groups."""
        sources = await context.store([hn_draft(hit.story) for group in groups for hit in group.hits])
        now, lines, place = context.now(), list[str](), 0
        for group in groups:
            lines += [group.heading] if group.heading else []
            for hit in group.hits:
                place += 1
                lines.append(hn_entry(place, sources[place - 1].id, hit, now))
        content = render(head, block("\n".join(lines)) if sources else own(""))
        hits = [hit for group in groups for hit in group.hits]
        stories = [submission_facts(source, hit.story, now) for source, hit in zip(sources, hits, strict=True)]
        metadata = {**shown(len(stories), "story", "stories"), "stories": stories}
        return ToolResult(success=True, content=content, metadata=metadata)


class HnStoriesTool(_HackerNewsTool[GetHnStoriesArguments]):
    """`get_hn_stories`: lists stories."""

    name = "get_hn_stories"
    description = "List Hacker News stories with points and comments: a ranked list of now, or those of a day."
    arguments = GetHnStoriesArguments
    activity = "looking at Hacker News {story_type} stories"

    async def execute(self, arguments: GetHnStoriesArguments, context: ToolContext) -> ToolResult:
        """Return the stories."""
        if arguments.date.strip():
            return await self._of_days(arguments, context)
        found = await or_advise(
            self._client.stories(arguments.story_type, arguments.limit), "Try search_hn or web_search, or this later."
        )
        head = _stories_head(arguments.story_type, len(found.stories), found.total)
        return await self._listed(head, [_Group([SearchHit(story) for story in found.stories])], context)

    async def _of_days(self, arguments: GetHnStoriesArguments, context: ToolContext) -> ToolResult:
        days = days_in(arguments.date, context.now(), self._zone, MAX_DAYS)
        limit = min(arguments.limit, MAX_STORIES // len(days))
        found = await or_advise(
            self._client.stories_of_days(arguments.story_type, days, self._zone, limit),
            "Without date, the present lists may still answer.",
        )
        groups = [
            _Group(
                [SearchHit(story) for story in one.stories],
                f"{one.day} ({one.day:%A}): {len(one.stories)} of {one.total} stories",
            )
            for one in found
        ]
        shown, total = sum(len(group.hits) for group in groups), sum(one.total for one in found)
        head = _stories_head(arguments.story_type, shown, total)
        note = _days_note(days, self._zone, is_newest_first=arguments.story_type == "new")
        return await self._listed(render(head, note), groups, context)


class HnSearchTool(_HackerNewsTool[SearchHnArguments]):
    """`search_hn`: searches stories and comments."""

    name = "search_hn"
    description = "Search all stories or comments of Hacker News."
    arguments = SearchHnArguments
    activity = 'searching Hacker News for "{query}"'
    is_search = True

    async def execute(self, arguments: SearchHnArguments, context: ToolContext) -> ToolResult:
        """Search and return the hits."""
        tags = arguments.tags.replace(" ", "")
        if tags and not TAGS.fullmatch(tags):
            raise RefusedCallError.of(
                'tags="{tags}" is not understood: write e.g. story, comment or author_<name>.', tags=arguments.tags[:60]
            )
        span = window(arguments.since, arguments.until, context.now(), self._zone)
        query = HnQuery(
            arguments.query, _second(span.start), _second(span.end), is_by_date=arguments.sort == "date", tags=tags
        )
        found = await or_advise(
            self._client.search(query), "Try get_hn_stories for current stories, or web_search with site names."
        )
        return await self._listed(_search_head(arguments.query, found, span, self._zone), [_Group(found.hits)], context)


class HnCommentsTool(_HackerNewsTool[GetHnCommentsArguments]):
    """`get_hn_comments`: reads a thread."""

    name = "get_hn_comments"
    description = "Read the discussion under a Hacker News story."
    arguments = GetHnCommentsArguments
    activity = "reading the comments on {story_id}"

    async def execute(self, arguments: GetHnCommentsArguments, context: ToolContext) -> ToolResult:
        """Return the thread."""
        thread = await or_advise(
            self._client.thread(arguments.story_id, CommentRange(arguments.limit, arguments.depth, arguments.offset)),
            "Try this later, or look for the discussion with web_search.",
        )
        content, data = await stored(hn_thread_text(thread, "story_id"), context.store)
        return ToolResult(success=True, content=content, metadata=data)


class HnUserTool(_HackerNewsTool[GetHnUserArguments]):
    """`get_hn_user`: reads a profile."""

    name = "get_hn_user"
    description = "Look up a Hacker News user: karma, since when, about."
    arguments = GetHnUserArguments
    activity = "looking up the Hacker News user {name}"

    async def execute(self, arguments: GetHnUserArguments, context: ToolContext) -> ToolResult:
        """Return the profile."""
        name = arguments.name.strip()
        if not USER_NAME.fullmatch(name):
            raise RefusedCallError.of(
                '"{name}" is not the name of a Hacker News user: letters, digits, _ and -.', name=single_line(name)[:40]
            )
        user = await or_advise(self._client.user(name), "Try search_hn with tags=author_<name>.")
        facts = _user_facts(user)
        text = f"{user.name}: {without_marks(facts)}\n\n{user.about}".strip()
        draft = SourceDraft(url=user.url, title=f"{user.name} on Hacker News", kind="profile", via=VIA, text=text)
        (source,) = await context.store([draft])
        content = render(
            own("Hacker News user [{id}] {name}: {facts}.", id=code(source.id), name=code(name), facts=facts),
            own(
                'Their newest posts: search_hn with query="", sort=date, tags=story,author_{name} (or comment,...).',
                name=code(name),
            ),
            block(user.about),
        )
        return ToolResult(success=True, content=content)


def _stories_head(kind: str, shown: int, total: int) -> ModelText:
    count = own("1-{shown}", shown=shown) if shown else own("0")
    return own("Hacker News {kind} stories, {count} of {total}.", kind=code(kind), count=count, total=total)


def _days_note(days: Sequence[date], zone: tzinfo, *, is_newest_first: bool) -> ModelText:
    last = own("..{day}", day=days[-1]) if len(days) > 1 else own("")
    return own(
        "Submitted on {first}{last} ({zone}), {order}: this is not the front page of that time.",
        first=days[0],
        last=last,
        zone=_zone_name(zone),
        order=own("newest first" if is_newest_first else "by their points as of now"),
    )


def _search_head(asked: str, found: HnFound, span: Window, zone: tzinfo) -> ModelText:
    lines = [
        own(
            'Hacker News search for "{words}": {shown} of {total} hits.',
            words=found.words,
            shown=len(found.hits),
            total=found.total,
        )
    ]
    if span.start or span.end:
        start = own("from {time:%Y-%m-%d %H:%M} ", time=span.start.astimezone(zone)) if span.start else own("")
        end = own("until {time:%Y-%m-%d %H:%M} ", time=span.end.astimezone(zone)) if span.end else own("")
        lines.append(own("Submitted {start}{end}({zone}).", start=start, end=end, zone=_zone_name(zone)))
    if not found.hits:
        lines.append(own("Try other or fewer words, or a longer time."))
    elif found.words != " ".join(asked.split()):
        lines.append(own('Nothing was found for "{asked}", so words were left out.', asked=asked))
    return render(*lines)


def _user_facts(user: HnUser) -> ModelText:
    posts = own(", {count} posts and comments", count=user.submitted) if user.submitted is not None else own("")
    karma = own("?") if user.karma is None else own("{karma}", karma=user.karma)
    since = own("?") if user.created is None else own("{time}", time=code(moment(user.created)[:10]))
    return own("karma {karma}, since {since}{posts}", karma=karma, since=since, posts=posts)


def _second(when: datetime | None) -> int | None:
    return None if when is None else int(when.timestamp())


def _zone_name(zone: tzinfo) -> ModelText:
    name: str = getattr(zone, "key", "") or "UTC"
    return render(*map(code, name.split("/")), between="/")
