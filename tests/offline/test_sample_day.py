"""The bundled sample day: its transport, and that all of it is invented and whole."""

import re
from functools import cache

import httpx2
import pytest

from explorer.offline.sample_day.items import SampleComment, SampleDay, load_sample_day
from explorer.offline.sample_day.transport import SAMPLE_NOW, SampleDayTransport

FIREBASE = "https://hacker-news.firebaseio.com/v0"
ALGOLIA = "https://hn.algolia.com/api/v1"


@pytest.fixture(scope="module")
def day() -> SampleDay:
    """The bundled files."""
    return load_sample_day()


@cache
def sample_day() -> SampleDayTransport:
    """One for all: each reads and indexes the files anew."""
    return SampleDayTransport()


async def get(url: str, **parameters: str | int) -> httpx2.Response:
    """Ask the sample day."""
    async with httpx2.AsyncClient(transport=sample_day()) as client:
        return await client.get(url, params=parameters or None)


async def test_lists_and_items_have_firebase_form() -> None:
    """Ids in rank order; items with absent fields left out; unknown ids are null."""
    ids = (await get(f"{FIREBASE}/topstories.json")).json()
    item = (await get(f"{FIREBASE}/item/{ids[0]}.json")).json()
    assert item["type"] == "story"
    assert item["kids"]
    assert "dead" not in item
    assert (await get(f"{FIREBASE}/item/1.json")).json() is None
    for kind in ("new", "best", "ask", "show", "job"):
        assert set((await get(f"{FIREBASE}/{kind}stories.json")).json()) <= set(ids)


async def test_new_stories_come_newest_first() -> None:
    """The other lists are ordered as their names say."""
    ids = (await get(f"{FIREBASE}/newstories.json")).json()
    times = [(await get(f"{FIREBASE}/item/{one}.json")).json()["time"] for one in ids[:5]]
    assert times == sorted(times, reverse=True)


async def test_comments_have_hacker_news_html() -> None:
    """Text is escaped as the service does it, and a deleted comment has neither author nor text."""
    stories = [
        (await get(f"{FIREBASE}/item/{one}.json")).json() for one in (await get(f"{FIREBASE}/topstories.json")).json()
    ]
    kids = [(await get(f"{FIREBASE}/item/{kid}.json")).json() for story in stories for kid in story.get("kids", [])]
    assert any("&#x27;" in kid.get("text", "") for kid in kids)
    assert any("<p>" in kid.get("text", "") for kid in kids)
    (deleted, *_) = [kid for kid in kids if kid.get("deleted")]
    assert not {"by", "text"} & deleted.keys()


async def test_search_has_algolia_form() -> None:
    """All words must occur; tags, numbers and paging are obeyed."""
    found = (await get(f"{ALGOLIA}/search", query="embedded database", tags="story")).json()
    assert [hit["title"][:7] for hit in found["hits"]] == ["Lantern"]
    assert found["nbHits"] == 1
    shown = (await get(f"{ALGOLIA}/search", tags="show_hn", numericFilters="points>200", hitsPerPage=1)).json()
    assert (len(shown["hits"]), shown["nbHits"]) == (1, 2)
    newest = (await get(f"{ALGOLIA}/search_by_date", tags="(story,poll)")).json()["hits"]
    assert newest[0]["created_at_i"] >= newest[1]["created_at_i"]
    assert (await get(f"{ALGOLIA}/search", numericFilters="nonsense")).status_code == 400


async def test_a_tree_comes_whole(day: SampleDay) -> None:
    """A story with all comments nested, children ascending by id; unknown ids are a 404."""
    story = max(day.stories, key=lambda story: len(day.threads.get(story.id, ())))
    tree = (await get(f"{ALGOLIA}/items/{story.id}")).json()
    ids = [child["id"] for child in tree["children"]]
    assert ids == sorted(ids)
    assert len(ids) == len(day.threads[story.id])
    assert (await get(f"{ALGOLIA}/items/1")).status_code == 404


async def test_pages_are_pages(day: SampleDay) -> None:
    """Title, author, date and paragraphs in HTML; an address without an article is a 404."""
    for url, article in day.articles.items():
        response = await get(url)
        assert response.status_code == 200
        assert f"<h1>{article.title.split(chr(38))[0]}"[:20] in response.text
        assert f'content="{article.author}"' in response.text
    assert (await get("https://lantern-db.example/nothing")).status_code == 404
    assert (await get("https://elsewhere.example/")).status_code == 404
    assert (await get("https://elsewhere.invalid/x")).status_code == 404


def test_the_day_is_varied(day: SampleDay) -> None:
    """About thirty stories of every kind, most with an article and a thread."""
    assert 28 <= len(day.stories) <= 34
    assert {story.type for story in day.stories} == {"story", "job", "poll"}
    assert sum(not story.url for story in day.stories) >= 4
    assert sum(story.url in day.articles for story in day.stories) >= 20
    assert sum(story.id in day.threads for story in day.stories) >= 24
    assert any(story.url and story.url not in day.articles for story in day.stories)


def test_everything_is_of_that_day_and_hangs_together(day: SampleDay) -> None:
    """Times before the moment of looking, ids that occur once, threads of stories, counts that hold."""
    stories = {story.id: story for story in day.stories}
    assert day.threads.keys() <= stories.keys()
    seen = list(stories)
    for story in day.stories:
        comments = [comment for _, comment in day.replies(story)]
        seen += [comment.id for comment in comments] + [option.id for option in story.options]
        assert story.time < SAMPLE_NOW
        assert story.time.date() == SAMPLE_NOW.date()
        assert all(story.time <= comment.time < SAMPLE_NOW for comment in comments)
        assert len(comments) <= (story.descendants or 0)
    assert len(seen) == len(set(seen))


def test_articles_have_something_to_quote(day: SampleDay) -> None:
    """Each article has several paragraphs with figures in them."""
    for url, article in day.articles.items():
        words = sum(len(paragraph.split()) for paragraph in article.paragraphs)
        assert 80 <= words <= 600, url
        assert re.search(r"\d", " ".join(article.paragraphs)), url


def test_gone_comments_are_there_too(day: SampleDay) -> None:
    """At least one deleted and one dead comment, as on any day."""
    comments = [comment for story in day.stories for _, comment in day.replies(story)]
    assert any(comment.deleted and not comment.text for comment in comments)
    assert any(comment.dead for comment in comments)
    assert sum(_depth(comment) > 1 for thread in day.threads.values() for comment in thread) > 5


def _depth(comment: SampleComment) -> int:
    return 1 + max((_depth(reply) for reply in comment.replies), default=0)


def test_only_invented_names(day: SampleDay) -> None:
    """Every address is under a domain that cannot exist, and no well-known name occurs."""
    addresses = [story.url for story in day.stories if story.url] + list(day.articles)
    assert all(re.match(r"https://[a-z0-9-]+\.example/", address) for address in addresses)
    texts = [story.title + story.text for story in day.stories]
    texts += [" ".join((article.title, article.site, *article.paragraphs)) for article in day.articles.values()]
    texts += [comment.text for story in day.stories for _, comment in day.replies(story)]
    known = (
        r"\b(google|microsoft|apple|amazon|openai|anthropic|meta|github|linux|rust|python|sqlite|postgres|kubernetes)\b"
    )
    assert not re.search(known, " ".join(texts), re.IGNORECASE)
    assert not re.search(r"https?://", " ".join(texts))
