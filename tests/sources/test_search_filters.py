"""Sites and dates, for engines that cannot filter by them."""

import pytest

from explorer.sources.search.port import WebHit, WebQuery, answered, iso_date, window, with_sites
from sources.loopback import NOW


def hit(url: str, published: str = "") -> WebHit:
    """A result."""
    return WebHit("T", url, "s", "own", 1, published)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2026-08-01", "2026-08-01"),
        ("2026-08-01T10:00:00.000Z", "2026-08-01"),
        ("Sat, 01 Aug 2026 10:00:00 GMT", "2026-08-01"),
        ("August 1, 2026", "2026-08-01"),
        ("1 Aug 2026", "2026-08-01"),
        ("3 days ago", "2026-08-07"),
        ("22 Hours ago", "2026-08-09"),
        ("2 months ago", "2 months ago"),
        ("2026-13-01", "2026-13-01"),
        ("last  spring", "last spring"),
        ("", ""),
    ],
)
def test_dates(text: str, date: str) -> None:
    """A date that is known to the day becomes ISO; anything vaguer stays as it was said."""
    assert iso_date(text, NOW) == date


@pytest.mark.parametrize(
    ("since", "name"),
    [
        ("", None),
        ("2026-08-10", "day"),
        ("2026-08-09", "week"),
        ("2026-08-04", "week"),
        ("2026-08-03", "month"),
        ("2026-07-12", "month"),
        ("2025-09-01", "year"),
        ("2025-08-01", None),
    ],
)
def test_windows(since: str, name: str | None) -> None:
    """The window is the smallest that cuts nothing off: one of a day ends within the day before."""
    assert window(since, NOW) == name


def test_sites_in_words() -> None:
    """Sites become operators in the form that engines know, unless the query becomes too long for them."""
    assert with_sites(WebQuery("glue")) == "glue"
    named = WebQuery("glue", include_domains=("HTTPS://www.A.example/",), exclude_domains=("*.b.example",))
    assert with_sites(named) == "glue site:a.example -site:b.example"
    many = WebQuery("glue " * 40, include_domains=[f"site-number-{number}.example" for number in range(20)])
    assert with_sites(many) == ("glue " * 40).strip()


def test_what_is_left_out_is_told() -> None:
    """Other sites and older dates are left out and counted; no date is kept, and said so once it matters."""
    hits = [
        hit("https://a.example/1", "2026-08-02"),
        hit("https://a.example/2", "2026-07-31"),
        hit("https://a.example/3"),
    ]
    query = WebQuery("glue", include_domains=("a.example",), since="2026-08-01")
    answer = answered(query, "own", [*hits, hit("https://b.example/"), hit("https://a.example.evil.example/")])
    assert [found.url[-1] for found in answer.hits] == ["1", "3"]
    assert answer.notes == (
        "Left out: 2 of sites that were not wanted.",
        "Left out: 1 older than 2026-08-01.",
        "Without a date, perhaps older than 2026-08-01: 1 of 2.",
    )
    assert len(answered(query, "own", hits, dates_by_engine=True).notes) == 1
    assert answered(WebQuery("glue", max_results=1), "own", hits).hits == (hits[0],)
