"""robots.txt is asked for once, through the same door, and its words hold."""

import asyncio

import pytest

from explorer.network.guard import Guard, UrlRefusedError
from explorer.schema.errors import ToolError
from explorer.sources.http.caller import Caller
from explorer.sources.http.fetch import FetchPolicy, Web
from explorer.sources.http.fetched import API_LIMITS
from explorer.sources.http.robots import Politeness, RobotsError
from sources.loopback import Answer, Route, open_web, serving
from sources.public_network import FakeTime, PublicNetwork

PAGE = Answer(b"<p>hello</p>")
PUBLIC = "93.184.215.14"


def polite(time: FakeTime | None = None) -> Web:
    """A web that treats loopback as it treats the public."""
    time = time or FakeTime()
    rules = Politeness(clock=time.clock, pause=time.pause, spares_all_hosts=True)
    return open_web(pause=time.pause, clock=time.clock, fetch_policy=FetchPolicy(politeness=rules))


def robots(text: str) -> Answer:
    """A robots.txt."""
    return Answer(text.encode(), content_type="text/plain")


async def verdicts(text: str, *paths: str) -> list[str]:
    """Which of these paths a robots.txt lets us read."""
    with serving({"/robots.txt": robots(text)}) as site:
        site.routes.update(dict.fromkeys(paths, PAGE))
        async with polite() as web:
            read: list[str] = []
            for path in paths:
                try:
                    await web.get(f"{site.url}{path}")
                except RobotsError:
                    continue
                read.append(path)
        assert site.paths() == ["/robots.txt", *read]
    return read


async def test_rules() -> None:
    """Wildcards, ends, the longest rule, and an exception within what is forbidden."""
    text = "User-agent: *\nDisallow: /private/\nAllow: /private/open\nDisallow: /*.cgi$\nDisallow: /*?session=\n"
    paths = ["/", "/private/x", "/private/open/x", "/a.cgi", "/a.cgi?x=1", "/b?session=1", "/b?other=1"]
    assert await verdicts(text, *paths) == ["/", "/private/open/x", "/a.cgi?x=1", "/b?other=1"]


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("User-agent: *\nDisallow: /\n\nUser-agent: explorer\nAllow: /\n", True),
        ("User-agent: *\nAllow: /\n\nUser-agent: Explorer\nDisallow: /\n", False),
        ("User-agent: somebody\nUser-agent: explorer\nDisallow: /\n", False),
        ("User-agent: somebody\nDisallow: /\n", True),
        ("User-agent: explorerbot\nDisallow: /\n", True),
        ("User-agent: explorer\n\nUser-agent: somebody\nDisallow: /other\n", True),
        ("User-agent: *\rDisallow: /\r", False),
        ("\ufeffUser-agent: *\nDisallow: /\n", False),
        ("User-agent: *\nDisallow:\n", True),
        ("<!doctype html><title>Not found</title>", True),
        ("", True),
    ],
)
async def test_groups(text: str, *, is_read: bool) -> None:
    """A group for our name goes before the one for all, whatever groups of others stand beside it."""
    assert (await verdicts(text, "/x") == ["/x"]) == is_read


async def test_the_words_of_a_refusal() -> None:
    """The model is told who forbids it, and what to do."""
    with serving({"/robots.txt": robots("User-agent: *\nDisallow: /\n")}) as site:
        async with polite() as web:
            with pytest.raises(RobotsError, match=r"robots\.txt of 127\.0\.0\.1 forbids it; use another source"):
                await web.get(f"{site.url}/x")
        async with open_web() as web:  # without manners, as the negative control
            assert (await web.get(f"{site.url}/x")).status == 404


async def test_asked_once_a_day() -> None:
    """Many agents and many pages cause one request for robots.txt; a day later there is another."""
    time = FakeTime()
    with serving({"/robots.txt": robots("User-agent: *\nDisallow: /no\n"), "/a": PAGE, "/b": PAGE}) as site:
        async with polite(time) as web:
            async with asyncio.TaskGroup() as group:
                for path in ("/a", "/b"):
                    group.create_task(web.get(f"{site.url}{path}"))
            assert site.paths().count("/robots.txt") == 1
            time.now += 25 * 3600
            await web.get(f"{site.url}/a")
        assert site.paths().count("/robots.txt") == 2
    assert site.asked[0].headers["user-agent"] == Caller().user_agent


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429])
async def test_one_that_is_not_shown(status: int) -> None:
    """A site that has no robots.txt, or shows it to nobody, forbids nothing (RFC 9309, 2.3.1.3)."""
    with serving({"/robots.txt": Answer(b"User-agent: *\nDisallow: /", status), "/x": PAGE}) as site:
        async with polite() as web:
            assert (await web.get(f"{site.url}/x")).body == PAGE.body


async def test_one_that_fails() -> None:
    """A site whose robots.txt fails is left alone for a while (2.3.1.4), and the model is told why."""
    time = FakeTime()
    with serving({"/robots.txt": Answer(b"broken", 503), "/x": PAGE}) as site:
        async with polite(time) as web:
            for _ in range(3):
                with pytest.raises(
                    RobotsError, match=r"could not be read \(the server failed \(status 503\).*RFC 9309"
                ):
                    await web.get(f"{site.url}/x")
            assert site.paths() == ["/robots.txt"] * 2
            site.routes["/robots.txt"] = robots("")
            time.now += 1_000
            assert (await web.get(f"{site.url}/x")).status == 200


async def test_an_unreachable_site() -> None:
    """A site that cannot be reached is told as such, and not tried for every page."""
    network = PublicNetwork({"gone.example": [[PUBLIC]]}, {})
    time = FakeTime()
    politeness = Politeness(clock=time.clock, pause=time.pause)
    async with network.web(politeness=politeness, time=time) as web:
        for path in ("a", "b"):
            with pytest.raises(RobotsError, match="Could not reach"):
                await web.get(f"https://gone.example/{path}")
        assert network.connected == [PUBLIC] * 2
        with pytest.raises(ToolError, match=r"There is no site nowhere\.example"):
            await web.get("https://nowhere.example/")


async def test_redirects_of_the_file() -> None:
    """A moved robots.txt is followed; one that moves inward is not; one that moves for ever is no robots.txt."""
    forbids = robots("User-agent: *\nDisallow: /\n")
    with serving({"/robots.txt": Answer(status=301, headers={"Location": "/moved"}), "/moved": forbids}) as site:
        async with polite() as web:
            with pytest.raises(RobotsError, match="forbids"):
                await web.get(f"{site.url}/x")
    with serving({"/robots.txt": Answer(status=301, headers={"Location": "http://10.0.0.1/"}), "/x": PAGE}) as site:
        async with polite() as web:
            with pytest.raises(UrlRefusedError):
                await web.get(f"{site.url}/x")
        assert site.paths() == ["/robots.txt"]
    with serving({"/robots.txt": Answer(status=301, headers={"Location": "/robots.txt"}), "/x": PAGE}) as site:
        async with polite() as web:
            assert (await web.get(f"{site.url}/x")).status == 200


async def test_every_hop_has_its_own() -> None:
    """A page that redirects to another site is judged by that site's robots.txt."""
    with serving({"/robots.txt": robots("User-agent: *\nDisallow: /secret\n"), "/secret": PAGE}) as other:
        routes: dict[str, Route] = {"/": Answer(status=302, headers={"Location": f"{other.url}/secret"})}
        with serving(routes) as site:
            async with polite() as web:
                with pytest.raises(RobotsError, match="forbids"):
                    await web.get(f"{site.url}/")
    assert other.paths() == ["/robots.txt"]


async def test_the_file_itself_and_services() -> None:
    """robots.txt may always be read, and an interface made for programs is not asked for one."""
    with serving({"/robots.txt": robots("User-agent: *\nDisallow: /\n"), "/api": PAGE}) as site:
        async with polite() as web:
            assert (await web.get(f"{site.url}/api", limits=API_LIMITS)).status == 200
            assert site.paths() == ["/api"]
            assert (await web.get(f"{site.url}/robots.txt", accept="text/plain")).status == 200


async def test_opened_hosts_are_the_users_own() -> None:
    """By default a host the user opened is not asked for robots.txt, and a public one is."""
    with serving({"/robots.txt": robots("User-agent: *\nDisallow: /\n"), "/x": PAGE}) as site:
        async with Web(Guard(["127.0.0.1"])) as web:
            assert (await web.get(f"{site.url}/x")).status == 200
        network = PublicNetwork({"shop.example": [[PUBLIC]]}, {PUBLIC: site.port})
        async with network.web(politeness=Politeness()) as web:
            with pytest.raises(RobotsError):
                await web.get("http://shop.example/x")
    assert site.paths() == ["/x", "/robots.txt"]


@pytest.mark.parametrize("delay", ["11", "3600", "1e300"])
async def test_a_pause_too_long(delay: str) -> None:
    """A site that asks for more than ten seconds between pages is not read, and the model is told."""
    with serving({"/robots.txt": robots(f"User-agent: *\nCrawl-delay: {delay}\n"), "/x": PAGE}) as site:
        async with polite() as web:
            with pytest.raises(ToolError, match=r"asks for a pause of .* s between pages, which is too long"):
                await web.get(f"{site.url}/x")
    assert site.paths() == ["/robots.txt"]


HOSTILE = {
    "agents times rules": "".join(f"User-agent: {n}\n" for n in range(20_000)) + "Disallow: /\n" * 20_000,
    "the same on old line ends": "".join(f"User-agent: {n}\r" for n in range(20_000)) + "Disallow: /\r" * 20_000,
    "wildcards": "User-agent: *\n" + "Disallow: /*a*a*a*a*a*a*b\n" * 18_000,
    "one line": "User-agent: *" + " " * 500_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
async def test_hostile_files(text: str) -> None:
    """Half a megabyte made to keep a parser busy for hours is read within a moment; what lies beyond is cut off."""
    async with asyncio.timeout(10):
        await verdicts(text + "\nDisallow: /" * 100_000, "/" + "a" * 2_000)
