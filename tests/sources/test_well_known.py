"""Well-known addresses: what may be opened when nobody named anything, and what that can say to whom."""

import math

import pytest

from explorer.schema.errors import RefusedCallError, ToolError
from explorer.sources.http.url_allowlist import LINK_BITS, UrlAllowlist, host_of, key_of, registrable_domain
from explorer.sources.http.well_known import FRONT_PAGES, NAMED, well_known_addresses


def allowlist() -> UrlAllowlist:
    """What a run begins with, when its question names no address."""
    seen = UrlAllowlist()
    for url in well_known_addresses():
        seen.saw_url(url, is_page=True)
    return seen


async def test_front_pages_are_open_and_nothing_else() -> None:
    """A front page is opened in either spelling; a path, a query or another host that a model adds is refused."""
    seen = allowlist()
    for url in ("https://www.bbc.com/", "https://bbc.com", "www.bbc.com", "https://en.wikipedia.org/"):
        assert (await seen.check(url)).startswith("http")
    for url in (
        "https://www.bbc.com/news?q=SECRET",
        "https://SECRET.bbc.com/",
        "https://www.bbc.com/SECRET",
        "https://bbc.com.evil.example/",
        "https://www.bbc.com:8443/",
        "https://evil.example/",
    ):
        with pytest.raises(RefusedCallError, match=r"Front pages of well-known sites may be opened, such as www\.bbc"):
            await seen.check(url)


async def test_they_count_as_links_of_their_domain() -> None:
    """All addresses of one domain together say less than what a page's links may say to it."""
    domains: dict[str, set[str]] = {}
    for url in well_known_addresses():
        key = key_of(url)
        assert key
        domains.setdefault(registrable_domain(host_of(key)), set()).update({key, host_of(key)})
    assert all(len(keys) * math.log2(len(keys)) < LINK_BITS for keys in domains.values())
    # The budget of a domain is used up by them as by other links, so nobody gets a second one.
    seen = allowlist()
    for number in range(2_000):
        seen.saw_url(f"https://lwn.net/{number}", is_page=True)
    followed = [number for number in range(40) if await _is_open(seen, f"https://lwn.net/{number}")]
    assert 0 < len(followed) < 12


async def _is_open(seen: UrlAllowlist, url: str) -> bool:
    try:
        await seen.check(url)
    except ToolError:
        return False
    return True


def test_the_list_is_plain() -> None:
    """Each is a host by itself, named once; those that a model is told are in it."""
    assert len(FRONT_PAGES) == len(set(FRONT_PAGES))
    assert set(NAMED.split(", ")) <= set(FRONT_PAGES)
    assert all(host == host_of(key_of(f"https://{host}/")) for host in FRONT_PAGES)
