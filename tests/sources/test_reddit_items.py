"""Reddit's records and names, read with care."""

import json

import pytest

from engine_stage import NOON
from explorer.schema.errors import ToolError
from explorer.sources.reddit.items import Forest, live_posts, post_of, things_in
from explorer.sources.reddit.routes import PostName, post_at, post_named, subreddit_named
from explorer.sources.threads import CommentRange, submission_entry, walk
from sources.reddit_site import comment, listing, more, post, posts_listing, recorded


def body(value: object) -> bytes:
    """As it comes over the wire."""
    return json.dumps(value).encode()


def test_an_address_that_is_none_drops_no_post() -> None:
    """Python's own parser raises on half a bracket; the post keeps what its author typed, and the others stay."""
    odd = "http://[half/of/an/address"
    posts = live_posts(things_in(body(posts_listing(post(1, url=odd), post(2)))))
    assert [one.url for one in posts] == [odd, "https://www.kites.example/2"]
    assert submission_entry(1, "S1", posts[0], NOON).startswith("1. [S1] ")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("abc123", PostName("abc123")),
        (" t3_ABC123 ", PostName("abc123")),
        ("abc123/def456", PostName("abc123", "def456")),
        ("t3_abc123/t1_def456", PostName("abc123", "def456")),
        ("https://www.reddit.com/r/kites/comments/abc123/a_title/", PostName("abc123")),
        ("https://old.reddit.com/r/kites/comments/abc123/a_title/def456/?context=3", PostName("abc123", "def456")),
        ("np.reddit.com/comments/abc123", PostName("abc123")),
        ("https://reddit.com/gallery/abc123", PostName("abc123")),
        ("https://www.reddit.com/user/ada/comments/abc123/x", PostName("abc123")),
        ("https://redd.it/abc123", PostName("abc123")),
    ],
)
def test_posts_by_name(text: str, name: PostName) -> None:
    """A post is meant by its id, its full name, or any of its addresses."""
    assert post_named(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no post",
        "https://www.reddit.com/r/kites/",
        "https://www.reddit.com/r/kites/s/AbCdEf",
        "https://reddit.com.evil.example/comments/abc123",
        "https://i.redd.it/abc123.png",
        "https://news.ycombinator.com/item?id=1",
        "http://[broken/comments/abc",
    ],
)
def test_what_names_no_post(text: str) -> None:
    """Other words and addresses are none, and the answer says what is wanted."""
    assert post_at(text) is None
    with pytest.raises(ToolError, match="names no Reddit post"):
        post_named(text)


def test_subreddits() -> None:
    """A subreddit's name may come with what people write around it, and nothing else."""
    for text in ("kites", "r/kites", "/r/kites/", "https://www.reddit.com/r/kites/"):
        assert subreddit_named(text) == "kites"
    assert subreddit_named("kites+lines") == "kites+lines"
    for wrong in ("", "k", "kites/../../api/v1/me", "kites?x=1", "two words", "käse"):
        with pytest.raises(ToolError, match="is not a subreddit's name"):
            subreddit_named(wrong)


def test_posts() -> None:
    """A link, a text, removed and pinned posts are told apart, and absurd numbers are unknown."""
    odd = post(3, score="many", num_comments=1e300, created_utc=1e18, permalink=None, url=None, author="[deleted]")
    posts = live_posts(
        things_in(
            body(
                posts_listing(
                    post(1, is_self=True, selftext=" Which &amp; line? "),
                    post(2, stickied=True, over_18=True, selftext="[removed]"),
                    odd,
                    {"title": "without an id"},
                )
            )
        )
    )
    assert [(one.id, one.url, one.text, one.state, one.marks) for one in posts[:2]] == [
        ("p1", "", "Which &amp; line?", "", ()),
        ("p2", "https://www.kites.example/2", "", "removed", ("pinned", "nsfw")),
    ]
    assert (posts[2].points, posts[2].comments, posts[2].time, posts[2].author, posts[2].url) == (None,) * 3 + ("", "")
    assert posts[2].page == "https://www.reddit.com/comments/p3/"
    assert posts[0].page == "https://www.reddit.com/r/kites/comments/p1/kites_lines_1/"
    assert len(posts) == 3


def test_a_bottomless_tree() -> None:
    """Replies nested without end are flattened, cut off and counted; nesting beyond JSON's own bounds is refused."""
    tree = comment("d0", "t1_d1")
    for level in range(1, 180):
        tree = comment(f"d{level}", f"t1_d{level + 1}", tree)
    tree["data"]["parent_id"] = "t3_p1"
    forest = Forest()
    forest.add(things_in(body(listing(tree))))
    page = forest.page("p1", CommentRange(500, 30))
    assert len(list(walk(page.comments))) == 30
    with pytest.raises(ValueError, match="nested"):
        things_in(b'{"data":' * 100_000)


def test_a_circle() -> None:
    """Comments that answer each other, or themselves, hang below nothing."""
    forest = Forest()
    forest.add(things_in(body(listing(comment("a", "t1_b"), comment("b", "t1_a"), comment("c", "t1_c")))))
    assert forest.total("p1") == 0


def test_stubs_are_spent() -> None:
    """Ids that were asked for are not asked for again, whatever came, and the rest stays counted."""
    forest = Forest()
    forest.add(things_in(body(listing(comment("a", "t3_p", more("t1_a", "b", "c", count=9)), more("t3_p", "d")))))
    assert forest.missing("p", CommentRange()) == ("d", "b", "c")
    assert forest.total("p") == 11
    forest.cover(["d", "b"])
    assert forest.missing("p", CommentRange()) == ("c",)
    assert forest.total("p") == 9


@pytest.mark.parametrize(
    ("name", "post_id", "comments", "total"),
    [
        ("comments/3hahrw.json.gz", "3hahrw", 470, 537),
        ("comments/n49rw.json.gz", "n49rw", 485, 1412),
        ("comments/fo7p5b.json.gz", "fo7p5b", 492, 3982),
        ("comments/2np694.json.gz", "2np694", 495, 7586),
    ],
)
def test_recorded_threads(name: str, post_id: str, comments: int, total: int) -> None:
    """Threads as the API sent them are read whole, and stubs account for all that is missing and some that is gone."""
    things = things_in(recorded(name))
    forest = Forest()
    forest.add(things)
    assert sum(thing.kind == "t1" for thing in things) == comments
    assert post_of(things[0]).comments == total
    assert total * 0.95 < forest.total(post_id) < total * 1.15
    assert len(list(walk(forest.page(post_id, CommentRange(50, 6)).comments))) == 50


@pytest.mark.parametrize("name", ["r/netsec/hot.json", "search_go-reddit.json", "r/popular/hot.json.gz", "hot.json"])
def test_recorded_lists(name: str) -> None:
    """Lists of ten years are read: every post has a title, a time and numbers."""
    posts = live_posts(things_in(recorded(name)))
    assert posts
    assert all(one.title and one.time and one.points is not None and one.comments is not None for one in posts)


def test_a_recorded_expansion() -> None:
    """The stub of a recorded thread is filled with the recorded answer to it."""
    forest = Forest()
    forest.add(things_in(recorded("comments/3hahrw.json.gz")))
    before = forest.total("3hahrw")
    exchange = json.loads(recorded("api/morechildren_3hahrw.json"))[0]
    top = [one for one in forest.missing("3hahrw", CommentRange(500, 1)) if one in exchange["request"]["body"]]
    assert len(top) == 28
    forest.cover(top)
    forest.add(things_in(body(exchange["response"])))
    assert not [one for one in forest.missing("3hahrw", CommentRange(500, 1)) if one in top]
    assert before - 4 <= forest.total("3hahrw") <= before
