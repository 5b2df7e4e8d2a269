"""When two addresses are the same."""

import pytest

from explorer.text.urls import canonical_url, host_of, page_key, site_of, url_key, with_hosts_only


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://Example.org/a/", "https://example.org/a"),
        ("https://example.org/a#part", "https://example.org/a"),
        ("https://example.org/a?utm_source=x&b=1", "https://example.org/a?b=1"),
    ],
)
def test_spellings_of_one_address_are_equal(one: str, other: str) -> None:
    """The host's case, fragments, tracking and a trailing slash do not count."""
    assert canonical_url(one) == canonical_url(other)
    assert url_key(one) == url_key(other)


def test_what_is_no_address_is_its_own_key() -> None:
    """Sources may have a file's name, or a broken address, where an address is expected."""
    assert url_key("http://[broken") == "http://[broken"
    assert page_key("http://[broken") == "[broken"


def test_a_page_has_one_key_with_and_without_www() -> None:
    """As do http and https; another query is another page."""
    assert page_key(" http://www.example.org/a/ ") == page_key("https://example.org/a")
    assert page_key("https://example.org/a?b=1") != page_key("https://example.org/a")


@pytest.mark.parametrize(
    ("url", "host", "site"),
    [
        ("https://www.a.example:8080/x", "www.a.example", "a.example:8080"),
        ("https://[half/of/an/address", "", ""),
        ("file:notes.md", "", ""),
    ],
)
def test_what_is_no_address_has_no_host(url: str, host: str, site: str) -> None:
    """Outsiders give what they like as an address, and Python's own parser raises on some of it."""
    assert (host_of(url), site_of(url)) == (host, site)


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (
            "Could not reach https://hn.example/api/search?query=a+b&n=20: no route.",
            "Could not reach hn.example: no route.",
        ),
        ("see http://127.0.0.1:9/a, then (https://a.example/b?c=1) and `https://b.example`", None),
        ("no address at all: 3 of 4", "no address at all: 3 of 4"),
    ],
)
def test_addresses_in_an_error_become_hosts(output: str, shown: str | None) -> None:
    """What is said of a failed lookup is short, and holds nothing that looks like a link of the report's."""
    assert with_hosts_only(output) == (shown or "see 127.0.0.1:9, then (a.example) and `b.example`")
