"""Only addresses that were seen are fetched, in the spelling they were seen in."""

import math
import re
from collections.abc import Iterable

import pytest

from explorer.schema.errors import StorageError, ToolError
from explorer.schema.events import (
    AgentContinued,
    AnyEvent,
    JournalRecord,
    NoteAdded,
    RunStarted,
    Source,
    SourceRecorded,
    Steered,
    ToolFinished,
    TurnTaken,
)
from explorer.sources.http.url_allowlist import LIBRARY_BITS, LINK_BITS, UrlAllowlist, given_by_user, registrable_domain
from explorer.testing import says
from sources.loopback import NOW

REFUSED = "was not in the question, in a search result or on a page read"


def given(text: str) -> UrlAllowlist:
    """What a question has shown."""
    seen = UrlAllowlist()
    seen.saw(text)
    return seen


def linked(text: str, base: str = "") -> UrlAllowlist:
    """What a page has shown."""
    seen = UrlAllowlist()
    seen.saw(text, is_page=True, base=base)
    return seen


SPELLINGS = [
    ("Read https://shop.example/x.", "https://shop.example/x"),
    ("(https://shop.example/x)", "https://shop.example/x"),
    ("see <https://shop.example/x>, please", "https://shop.example/x"),
    ("[a word](https://shop.example/x) follows", "https://shop.example/x"),
    ("[a word](<https://shop.example/x> 'title')", "https://shop.example/x"),
    ('[a word](https://shop.example/x "title")', "https://shop.example/x"),
    ("[https://shop.example/x](https://other.example/y)", "https://shop.example/x"),
    ("[https://shop.example/x](https://other.example/y)", "https://other.example/y"),
    ("https://en.wikipedia.org/wiki/Foo_(bar)", "https://en.wikipedia.org/wiki/Foo_(bar)"),
    ("(as in https://en.wikipedia.org/wiki/Foo_(bar)).", "https://en.wikipedia.org/wiki/Foo_(bar)"),
    ("[Foo](https://en.wikipedia.org/wiki/Foo_(bar))", "https://en.wikipedia.org/wiki/Foo_(bar)"),
    ('"https://shop.example/x"', "https://shop.example/x"),
    ("'https://shop.example/x'", "https://shop.example/x"),
    ("`https://shop.example/x`", "https://shop.example/x"),
    ("**https://shop.example/x**", "https://shop.example/x"),
    ("https://shop.example/x, https://shop.example/y; https://shop.example/z", "https://shop.example/y"),
    ("Is https://shop.example/x?q=1&r=2 right?", "https://shop.example/x?q=1&r=2"),
    ("https://shop.example/x?q=1&amp;r=2", "https://shop.example/x?q=1&r=2"),
    ("https://shop.example/x?utm_source=hn", "https://shop.example/x"),
    ("https://shop.example/x/", "https://shop.example/x"),
    ("https://shop.example/x#part", "https://shop.example/x"),
    ("HTTPS://Shop.Example/X", "https://shop.example/X"),
    ("http://shop.example/x", "https://shop.example/x"),
    ("https://shop.example:443/x", "https://shop.example/x"),
    ("https://shop.example/a/b/c", "https://shop.example/"),
    ("https://shop.example/a/b/c", "https://shop.example"),
    ("https://shop.example/caf\u00e9", "https://shop.example/caf%C3%A9"),
    ("https://shop.example/caf%c3%a9", "https://shop.example/caf\u00e9"),
    ("\u8bf7\u8bfb https://shop.example/x\u3002\u7136\u540e", "https://shop.example/x"),
    ("\u8bf7\u8bfb\uff08https://shop.example/x\uff09\u8c22\u8c22", "https://shop.example/x"),
    ("https://shop.example/a\u200bb", "https://shop.example/ab"),
    ("https://shop.example/x|https://shop.example/y", "https://shop.example/x"),
    ("| cell | https://shop.example/x | cell |", "https://shop.example/x"),
]


@pytest.mark.parametrize(("text", "url"), SPELLINGS)
async def test_an_address_in_prose(text: str, url: str) -> None:
    """An address is found in whatever prose or markup it stands, by the user's hand and on a page."""
    await given(text).check(url)
    await linked(text).check(url)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("What does example.com/x say?", "https://example.com/x"),
        ("What does example.com/x say?", "http://example.com/x"),
        ("What does example.com/x say?", "example.com/x"),
        ("Compare example.com, www.example.org and docs.example.net.", "https://www.example.org/"),
        ("(example.com:8080/a?b=c)", "https://example.com:8080/a?b=c"),
    ],
)
async def test_an_address_without_its_scheme(text: str, url: str) -> None:
    """People leave the scheme out, and the model puts one before it; on pages such words are no links."""
    assert await given(text).check(url) == (url if "//" in url else f"https://{url}").removesuffix("/")
    with pytest.raises(ToolError, match=REFUSED):
        await linked(text).check(url)


SEEN = (
    "https://shop.example/a?x=1 https://shop.example/b?utm_source=hn https://shop.example/c/ http://10.0.0.1/ "
    "https://sub.other.example/d?token=t"
)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/?q=SECRET",
        "https://shop.example/?q=SECRET",
        "https://shop.example/a?x=SECRET",
        "https://shop.example/a?x=1&y=SECRET",
        "https://shop.example/a",
        "https://shop.example/SECRET",
        "https://shop.example/c/SECRET",
        "https://shop.example/A?x=1",
        "https://secret.shop.example/",
        "https://example/",
        "https://other.example/",
        "https://shop.example:8443/a?x=1",
        "https://shop.example.evil.example/a?x=1",
        "https://user@shop.example/a?x=1",
        "https://SECRET:x@shop.example/",
        "https://shop.example\\@evil.example/",
        "https:/evil.example/?q=SECRET",
        "https:///evil.example/?q=SECRET",
        "//evil.example/?q=SECRET",
        "evil.example/?q=SECRET",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "",
        "https://",
        "https://[broken/",
        "https://shop.example:99999999/",
    ],
)
async def test_what_was_put_together(url: str) -> None:
    """Another host, path or query than was seen is refused, and so is what is no address."""
    for seen in (given(SEEN), linked(SEEN)):
        with pytest.raises(ToolError, match=REFUSED):
            await seen.check(url)


@pytest.mark.parametrize(
    ("asked", "fetched"),
    [
        ("https://shop.example/b?utm_source=SECRET", "https://shop.example/b?utm_source=hn"),
        ("https://shop.example/b?fbclid=SECRET&ref_src=SECRET", "https://shop.example/b?utm_source=hn"),
        ("https://shop.example/c////////", "https://shop.example/c/"),
        ("https://SHOP.example/%63", "https://shop.example/c/"),
        ("http://shop.example/a?x=1#SECRET", "https://shop.example/a?x=1"),
        ("https://shop.example/a?%78=%31", "https://shop.example/a?x=1"),
        (" https://shop.example/a\u200b?x=1 ", "https://shop.example/a?x=1"),
        ("https://shop.example//", "https://shop.example/"),
    ],
)
async def test_spellings_carry_nothing(asked: str, fetched: str) -> None:
    """However an address is spelled, what is fetched is what was seen: nothing can be told by a spelling."""
    assert await given(SEEN).check(asked) == fetched


async def test_links_written_relative_to_their_page() -> None:
    """A page's own relative links are links."""
    seen = linked(
        "[up](../b) [root](/c) [here](d?x=1) [mail](mailto:a@b.example) [part](#e)", "https://shop.example/a/x"
    )
    for path in ("b", "c", "a/d?x=1", "a/x"):
        assert await seen.check(f"https://shop.example/{path}")
    assert await linked("[broken](//[x/) [fine](/c)", "https://shop.example/").check("https://shop.example/c")
    with pytest.raises(ToolError, match=REFUSED):
        await linked("[root](/c)", "file:inputs/x.md").check("https://shop.example/c")


async def count(seen: UrlAllowlist, urls: Iterable[str]) -> int:
    """How many of these may be fetched, one after the other."""
    allowed = 0
    for url in urls:
        try:
            await seen.check(url)
        except ToolError as error:
            assert re.search(r"so many links to .+ were followed already", error.message)  # noqa: PT017 - most do not raise
        else:
            allowed += 1
    return allowed


LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def fitting(links: int, bits: float = LINK_BITS) -> int:
    """How many of so many links may be followed; the front page of their host is one of them."""
    return int(bits / math.log2(links + 1))


async def test_links_of_a_page_are_counted() -> None:
    """Of 36 links of a domain, at most twenty letters are followed; those that the user gave are not counted."""
    urls = [f"https://evil.example/{letter}" for letter in LETTERS]
    seen = linked(" ".join(urls))
    seen.saw("https://evil.example/given")
    assert await count(seen, urls) == fitting(36) == 19
    assert await count(seen, ["https://evil.example/given"] * 50) == 50
    seen.saw("https://other.example/", is_page=True)
    await seen.check("https://other.example/")


@pytest.mark.parametrize("place", ["{}.evil.example", "{}.pages.dev", "{}.github.io", "{}.abc.io", "{}.evil.co.uk"])
async def test_a_name_for_each_letter(place: str) -> None:
    """Names below a domain, one's own or one that a service lends out, are no sites of their own."""
    urls = [f"https://{place.format(letter)}/{letter}" for letter in LETTERS]
    assert await count(linked(" ".join(urls)), urls) == int(LINK_BITS / math.log2(72))


async def test_the_same_link_again_is_counted_too() -> None:
    """An address that was asked for and never read counts each time: its failures reach the site as well."""
    assert await count(linked("https://evil.example/a"), ["https://evil.example/a"] * 200) == LINK_BITS


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.org", "example.org"),
        ("a.example.co.uk", "example.co.uk"),
        ("x.github.io", "github.io"),
        ("x.s3.eu-west-1.amazonaws.com:8443", "amazonaws.com"),
        ("l1.abc.io", "abc.io"),
        ("co.uk", "co.uk"),
        ("93.184.215.14", "93.184.215.14"),
        ("127.0.0.1:8080", "127.0.0.1"),
        ("localhost", "localhost"),
    ],
)
def test_what_a_domain_is(host: str, domain: str) -> None:
    """What one registers and pays for; services that lend out names are one domain."""
    assert registrable_domain(host) == domain


async def test_ordinary_research_is_not_refused() -> None:
    """Links of real pages, by the numbers of links that such pages have, may be followed as far as research goes."""
    pages = {  # links to the domain on its pages, and how many of them are followed
        "en.wikipedia.org": (600, 25),
        "github.com": (180, 25),
        "arxiv.org": (320, 25),
        "news.ycombinator.com": (240, 25),
        "docs.python.org": (250, 12),
        "a-blog.example": (30, 20),
        "someone.github.io": (60, 15),
        "lwn.net": (120, 14),
    }
    for host, (links, followed) in pages.items():
        urls = [f"https://{host}/{number}" for number in range(links)]
        assert await count(linked(" ".join(urls)), urls[:followed]) == followed, host
    assert fitting(600, LIBRARY_BITS) == 45


class Run:
    """The records of a run and its stored texts; which of them were read."""

    def __init__(self) -> None:
        self.records: list[JournalRecord] = []
        self.texts: dict[str, str] = {}
        self.read: list[str] = []

    def add(self, event: AnyEvent) -> None:
        """Something happens."""
        self.records.append(JournalRecord(v=1, seq=len(self.records) + 1, at=NOW, event=event))

    def store(self, url: str, text: str, via: str, kind: str = "page") -> None:
        """A source is stored."""
        one = f"S{len(self.texts) + 1}"
        self.texts[one] = text
        source = Source(
            id=one, url=url, title="T", kind=kind, via=via, retrieved=NOW, sha256="", chars=len(text), language=""
        )
        self.add(SourceRecorded(source=source))

    def text(self, source_id: str) -> str:
        """A stored text, in the form of its file."""
        self.read.append(source_id)
        if not self.texts[source_id]:
            raise StorageError("the disk is damaged")
        return f"---\nid: {source_id}\n---\n{self.texts[source_id]}\n"

    def links(self) -> UrlAllowlist:
        """What a life that begins now has seen."""
        return UrlAllowlist(self.records, self.text, ["web_search"], ["own_search"])


def asked(question: str = "What is new?") -> Run:
    """A run that begins."""
    run = Run()
    run.add(RunStarted(run_id="r", question=question, engine="0", settings={}))
    return run


async def test_what_happens_in_a_run_is_seen() -> None:
    """Searches, stories, pages, the user's words and files show addresses, from the moment they are in the journal."""
    run = asked("Read asked.example/e")
    seen = run.links()
    run.store("https://hit.example/a", "of https://text.example/b", "tavily", "search_hit")
    run.store(
        "https://news.ycombinator.com/item?id=1", "Title\nhttps://story.example/s\n5 points", "hackernews", "story"
    )
    run.store("https://read.example/c", "[next](/d)", "direct")
    run.store("file:inputs/notes.md", "see plain.example/e", "file", "file")
    run.add(Steered(agent="orchestrator", text="Look at steered.example, too."))
    given_urls = [
        "https://asked.example/e",
        "https://hit.example/a",
        "https://story.example/s",
        "https://plain.example/e",
        "https://steered.example/",
        "https://read.example/c",
    ]
    assert await count(seen, given_urls * 30) == 30 * len(given_urls)
    assert await count(seen, ["https://text.example/b"] * 200) == LINK_BITS
    await seen.check("https://read.example/d")


async def test_tools_that_store_nothing() -> None:
    """What an embedder's own tool shows counts as a page; what any other tool says does not count."""
    run = asked()
    seen = run.links()
    for name in ("own_search", "read_file"):
        content = f"Found: https://{name.replace('_', '-')}.example/x"
        run.add(ToolFinished(agent="searcher-1", call="searcher-1.t1.1", name=name, success=True, content=content))
    await seen.check("https://own-search.example/x")
    with pytest.raises(ToolError, match=REFUSED):
        await seen.check("https://read-file.example/x")


@pytest.mark.parametrize(
    ("url", "via"), [("library:x.md", "library"), ("run:r/x.md", "earlier run"), ("file:inputs/r.md", "run")]
)
async def test_no_laundering(url: str, via: str) -> None:
    """What agents wrote does not become seen by being read back, from the library or from another run."""
    run = asked()
    run.store(url, "https://evil.example/?q=SECRET", via, "file")
    with pytest.raises(ToolError, match=REFUSED):
        await run.links().check("https://evil.example/?q=SECRET")
    run.store("file:notes/x.md", "https://fine.example/x", "corpus", "file")
    await run.links().check("https://fine.example/x")


async def test_a_resumed_run_knows_them() -> None:
    """After a resume, what was seen before is known; texts are read only when an address is not known otherwise."""
    run = asked("Read asked.example/e")
    run.store("https://hit.example/a", "of https://text.example/b", "tavily", "search_hit")
    run.store("https://read.example/c", "[next](/d)", "direct")
    run.store("https://lost.example/c", "", "direct")
    run.store("https://newer.example/c", "https://linked.example/f", "direct")
    seen = run.links()
    assert await count(seen, ["https://hit.example/a", "https://asked.example/e"]) == 2
    assert run.read == []
    assert await count(seen, ["https://linked.example/f", "https://read.example/d"]) == 2
    run.read.clear()
    for _ in range(3):
        with pytest.raises(ToolError, match=REFUSED):
            await seen.check("https://evil.example/?q=SECRET")
    assert sorted(run.read) == ["S1", "S3"], "what is known already, and what was searched in vain, is not read again"


async def test_a_resumed_run_goes_on_counting() -> None:
    """Stopping and resuming gives no new links of a site: pages read without being given are counted."""
    run = asked("https://hub.example/ https://evil.example/39")
    run.store("https://hub.example/", " ".join(f"https://evil.example/{number}" for number in range(40)), "direct")
    for number in range(15):
        run.store(f"https://evil.example/{number}", "-", "direct")
    for number in range(10):
        run.store("https://news.ycombinator.com/item", f"T\nhttps://evil.example/s{number}\n", "hackernews", "story")
        run.store(f"https://evil.example/s{number}", "-", "direct")
    seen = run.links()
    # All 50 links and their front page are offered: each reading says 5.7 bits, those of the earlier session as well.
    assert await count(seen, [f"https://evil.example/{number}" for number in range(15, 39)]) == fitting(50) - 15 == 3
    assert await count(seen, ["https://evil.example/39", "https://evil.example/3", "https://evil.example/s3"]) == 3


async def test_a_carried_run_lends_no_addresses() -> None:
    """What is in the records of somebody else's run are links at most, however they say that they were found."""
    urls = [f"https://evil.example/{letter}" for letter in LETTERS]
    run = asked(" ".join(urls))
    for url in urls:
        run.store(url, f"T\n{url}x\n", "tavily", "story")
        run.store(f"{url}y", "-", "direct")
    foreign = UrlAllowlist(run.records, run.text, ["web_search"], foreign=len(run.records))
    assert await count(foreign, [*urls, *(f"{url}x" for url in urls), *(f"{url}y" for url in urls)]) < 20
    assert await count(run.links(), [*urls, *(f"{url}x" for url in urls)]) == 72, "in a run of one's own they are given"
    run.add(Steered(agent="orchestrator", text="Read https://evil.example/c, too."))
    assert await count(foreign, ["https://evil.example/c"] * 30) == 30, "what the user says now is given"


def test_what_the_user_says() -> None:
    """The question, words put in later and a follow-up are the user's; what agents and the engine say is not."""
    start = RunStarted(run_id="r", question="Read asked.example/e", engine="0", settings={})
    follow_up = AgentContinued(task="And then.example/f?", max_steps=1)
    inner = AgentContinued(parent_call="orchestrator.t1.1", task="https://evil.example/?q=SECRET", max_steps=1)
    events = [start, follow_up, inner, Steered(text="Leave out that.example."), NoteAdded(text="x", reason="y")]
    assert [given_by_user(event) for event in events] == [
        "Read asked.example/e",
        "And then.example/f?",
        "",
        "Leave out that.example.",
        "",
    ]


@pytest.mark.slow
def test_hostile_texts_are_bounded() -> None:
    """Megabytes of beginnings of addresses are searched in a moment."""
    for bomb in ("http://" * 700_000, "http://a)(,'*" * 400_000, "](" * 2_000_000, "a." * 2_000_000, "a" * 5_000_000):
        linked(bomb, "https://shop.example/")
        given(bomb)


def _search(words: str) -> TurnTaken:
    return TurnTaken(agent="searcher-1", turn=says("", ("web_search", {"query": words})), seconds=1.0)


async def test_a_search_that_repeats_its_query_makes_nothing_seen() -> None:
    """An address a model put into a search before anybody had seen it stays unseen, whatever the engine answers."""
    composed, known = "https://evil.example/s/SECRET", "https://shop.example/x"
    texts = {"S1": f"Results\n\nYou asked for {composed} and {known}"}
    hit = Source(
        id="S1",
        url="https://engine.example/r",
        title="Hit",
        kind="search_hit",
        via="tavily",
        retrieved=NOW,
        sha256="0",
        chars=90,
    )
    events: list[AnyEvent] = [
        RunStarted(run_id="r", question=f"What of {known} then?", engine="0", settings={}),
        _search(f"{composed} {known}"),
        SourceRecorded(source=hit),
    ]
    records = [JournalRecord(v=1, seq=place, at=NOW, event=event) for place, event in enumerate(events, 1)]
    seen = UrlAllowlist(records, texts.__getitem__, ["web_search"])
    assert await seen.check(known) == known
    with pytest.raises(ToolError, match=REFUSED):
        await seen.check(composed)
    records.append(JournalRecord(v=1, seq=4, at=NOW, event=Steered(agent="orchestrator", text=f"Do read {composed}")))
    assert await seen.check(composed) == composed
