"""Threads of Lobsters: the tree, who wrote what, what is gone."""

from typing import Any

import pytest

from explorer.documents.parsing.parser import TrustingParser
from explorer.schema.errors import ToolError
from explorer.sources.lobsters import Lobsters
from explorer.sources.page import WebPage
from sources.loopback import Answer, as_json, open_web, serving

STORY = {
    "short_id": "ab12cd",
    "created_at": "2026-08-09T08:00:00.000-05:00",
    "title": "Folding\nlighthouses",
    "url": "https://harbour.example/fold",
    "score": 31,
    "comment_count": 4,
    "description_plain": "Why card?",
    "submitter_user": "ada",
    "tags": ["art", "paper"],
}


def comment(name: str, depth: int, **more: Any) -> dict[str, Any]:
    """A comment as the service gives it today."""
    common = {"short_id": name, "created_at": "2026-08-09T09:00:00.000-05:00", "score": 3, "commenting_user": "bob"}
    return {**common, "depth": depth, "comment_plain": f"Words of {name}.", **more}


COMMENTS = [
    comment("c1", 0),
    comment("c2", 1),
    comment("c3", 4, comment_plain=None, comment='<p>See <a href="https://x.example/">this</a>.</p><p>Bye</p>'),
    comment("c4", 0, is_deleted=True, commenting_user=None),
]


async def read(story: object, url: str = "https://lobste.rs/s/ab12cd/folding_lighthouses") -> WebPage | None:
    """Read a story's page."""
    answer = story if isinstance(story, Answer) else as_json(story)
    with serving({"/s/ab12cd.json": answer}) as site:
        async with open_web() as web:
            return await Lobsters(web, TrustingParser(), site.url).read(url)


async def test_a_thread() -> None:
    """A story is its facts, its text, and its comments as an indented list."""
    page = await read({**STORY, "comments": COMMENTS})
    assert page
    assert (page.url, page.title, page.author) == ("https://lobste.rs/s/ab12cd", "Folding lighthouses", "ada")
    assert (page.via, page.kind, page.flags, page.published[:10]) == ("lobsters", "comments", (), "2026-08-09")
    assert page.text.splitlines()[3:] == [
        "31 points, 4 comments; tags: art, paper",
        "Text of the story: Why card?",
        "- bob (2026-08-09T14:00:00Z, 3 points, id c1): Words of c1.",
        "  - bob (2026-08-09T14:00:00Z, 3 points, id c2): Words of c2.",
        "    - bob (2026-08-09T14:00:00Z, 3 points, id c3): See this (https://x.example/).",
        "      Bye",
        "- [deleted] (id c4)",
    ]


async def test_older_answers() -> None:
    """Answers of earlier years name users by objects, and levels from one on."""
    older = [
        {"short_id": "c1", "comment": "<p>One</p>", "indent_level": 1, "commenting_user": {"username": "eve"}},
        {"short_id": "c2", "comment": "<p>Two</p>", "indent_level": 2, "commenting_user": {"username": "eve"}},
    ]
    page = await read({"short_id": "ab12cd", "title": "T", "submitter_user": {"username": "ada"}, "comments": older})
    assert page
    assert page.author == "ada"
    assert page.text.endswith("- eve (?, id c1): One\n  - eve (?, id c2): Two")


async def test_a_very_long_thread() -> None:
    """A thread of thousands is cut, and says so; a level beyond reason is survived."""
    page = await read({**STORY, "comments": [comment(f"c{n}", n) for n in range(3_000)]})
    assert page
    assert page.flags == ("truncated",)


@pytest.mark.parametrize(
    "path", ["/", "/newest", "/u/ada", "/s/", "/c/ab12cd", "/s/ab12cd/x/y", "/s/ab12cd%2f..%2fx"], ids=str
)
async def test_other_pages(path: str) -> None:
    """What is no story's page is read like any other page."""
    assert await read({}, f"https://lobste.rs{path}") is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(b"no", 404), "no such page"),
        (as_json({"title": 1}), "something unexpected"),
        (Answer(b"<"), "unexpected"),
    ],
)
async def test_what_is_not_given(answer: Answer, words: str) -> None:
    """A story that is not there, or an answer that is none, is told."""
    with pytest.raises(ToolError, match=words):
        await read(answer)
