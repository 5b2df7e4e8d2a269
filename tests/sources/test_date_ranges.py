"""Times as a model writes them, in the asker's zone."""

from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from explorer.cli.settings.layers import machine_zone
from explorer.schema.errors import ConfigError, ToolError
from explorer.sources.date_ranges import day_window, days_in, since_time, window, zone_named

NOW = datetime(2026, 8, 10, 20, 0, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-08-01", datetime(2026, 8, 1, tzinfo=UTC)),
        ("2026-08-01T10:00:00Z", datetime(2026, 8, 1, 10, tzinfo=UTC)),
        ("24h", datetime(2026, 8, 9, 20, 0, tzinfo=UTC)),
        ("last 24 hours", datetime(2026, 8, 9, 20, 0, tzinfo=UTC)),
        (" 7 days ", datetime(2026, 8, 3, 20, 0, tzinfo=UTC)),
        ("7 days ago", datetime(2026, 8, 3, 20, 0, tzinfo=UTC)),
        ("2W", datetime(2026, 7, 27, 20, 0, tzinfo=UTC)),
        ("today", datetime(2026, 8, 10, tzinfo=UTC)),
        ("Last week", datetime(2026, 8, 3, tzinfo=UTC)),
        ("2025", datetime(2025, 1, 1, tzinfo=UTC)),
        ("", None),
    ],
)
def test_since_time(text: str, moment: datetime | None) -> None:
    """Dates, calendar words and spans are understood, nothing is nothing."""
    assert since_time(text, NOW) == moment


@pytest.mark.parametrize("text", ["some day", "24", "h", "2026-13-01", "2026-13", "7m", "0000", "last fortnight"])
def test_not_understood(text: str) -> None:
    """Anything else is told, with what would be understood."""
    with pytest.raises(ToolError, match=r'since=".*" is not understood: .*like 24h or 7d'):
        since_time(text, NOW)


@pytest.mark.parametrize("text", ["0001-01-01", "9999-12-31", "9999", "9999-12"])
def test_the_ends_of_the_calendar(text: str) -> None:
    """Days that cannot be told in every zone are not understood, and nothing overflows."""
    with pytest.raises(ToolError, match="is not understood"):
        window(text, text, NOW, SHANGHAI if text.startswith("0") else UTC)


@pytest.mark.parametrize(
    ("words", "now", "zone", "start", "hours"),
    [
        # Clocks go forward in Berlin on 29 March 2026 and back on 25 October; Shanghai has changed none since 1991.
        ("today", "2026-03-29T12:00Z", BERLIN, "2026-03-28T23:00Z", 23),
        ("today", "2026-10-25T12:00Z", BERLIN, "2026-10-24T22:00Z", 25),
        ("yesterday", "2026-03-30T00:30Z", BERLIN, "2026-03-28T23:00Z", 23),
        ("today", "2026-08-10T21:59Z", BERLIN, "2026-08-09T22:00Z", 24),
        ("today", "2026-08-10T22:00Z", BERLIN, "2026-08-10T22:00Z", 24),
        ("last week", "2026-03-30T12:00Z", BERLIN, "2026-03-22T23:00Z", 7 * 24 - 1),
        ("this month", "2026-10-02T12:00Z", BERLIN, "2026-09-30T22:00Z", 31 * 24 + 1),
        ("today", "2026-03-29T12:00Z", SHANGHAI, "2026-03-28T16:00Z", 24),
        ("today", "2026-08-10T16:00Z", SHANGHAI, "2026-08-10T16:00Z", 24),
        ("last week", "2026-08-09T16:00Z", SHANGHAI, "2026-08-02T16:00Z", 7 * 24),
        ("last month", "2026-01-05T00:00Z", SHANGHAI, "2025-11-30T16:00Z", 31 * 24),
        ("last year", "2026-01-05T00:00Z", SHANGHAI, "2024-12-31T16:00Z", 365 * 24),
        ("monday", "2026-03-31T12:00Z", BERLIN, "2026-03-29T22:00Z", 24),
        ("Sunday", "2026-03-29T12:00Z", BERLIN, "2026-03-28T23:00Z", 23),
        ("tuesday", "2026-03-30T12:00Z", UTC, "2026-03-24T00:00Z", 24),
        ("2026-08-10", "2026-08-12T00:00Z", SHANGHAI, "2026-08-09T16:00Z", 24),
        ("2026-12", "2026-08-12T00:00Z", SHANGHAI, "2026-11-30T16:00Z", 31 * 24),
    ],
)
def test_windows_in_a_zone(words: str, now: str, zone: tzinfo, start: str, hours: int) -> None:
    """A calendar word begins at the asker's midnight and ends, itself included, at another, whatever clocks do."""
    meant = window(words, words, datetime.fromisoformat(now), zone)
    assert meant.start == datetime.fromisoformat(start)
    assert meant.end == datetime.fromisoformat(start) + timedelta(hours=hours)


def test_a_midnight_that_is_skipped() -> None:
    """Where the change of clocks skips midnight, the day begins with the change."""
    start, end = day_window(date(2018, 11, 4), ZoneInfo("America/Sao_Paulo"))
    assert start == datetime(2018, 11, 4, 3, tzinfo=UTC)
    assert end - start == timedelta(hours=23)


def test_an_end_before_the_beginning() -> None:
    """A window without room is told."""
    with pytest.raises(ToolError, match="is before"):
        window("2026-08-10", "2026-08-09", NOW)


def test_a_span_as_the_end() -> None:
    """A span at the end is that long ago, so that the last day can be left out."""
    assert window("7d", "24h", NOW).end == NOW - timedelta(hours=24)


@pytest.mark.parametrize(
    ("text", "first", "count"),
    [
        ("2026-08-08", "2026-08-08", 1),
        ("2026-08-08..2026-08-10", "2026-08-08", 3),
        ("2026-08-08 .. 2026-09-01", "2026-08-08", 4),
        ("today", "2026-08-11", 1),
        ("last week", "2026-08-03", 7),
        ("7d", "2026-08-05", 7),
        ("2w", "2026-07-29", 14),
        ("24h", "2026-08-10", 2),
        ("yesterday..today", "2026-08-10", 2),
    ],
)
def test_days(text: str, first: str, count: int) -> None:
    """One time or two mean days of the asker's, none of them still to come."""
    days = days_in(text, NOW, SHANGHAI, 14)
    assert days == tuple(date.fromisoformat(first) + timedelta(days=number) for number in range(count))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-08-12", "still to come"),
        ("2026-07", "31 days"),
        ("2026-08-10..2026-08-08", "ends before"),
        ("..2026-08-08", "is not understood"),
        ("soon", "date="),
    ],
)
def test_days_that_are_none(text: str, words: str) -> None:
    """Too many, none, or not understood: each is told."""
    with pytest.raises(ToolError, match=words):
        days_in(text, NOW, SHANGHAI, 14)


def test_zones() -> None:
    """A zone is found by name, none is UTC, and a wrong one is the user's to mend."""
    assert zone_named("") is UTC
    assert zone_named("Asia/Shanghai") == SHANGHAI
    for wrong in ("Mars/Base", "../etc", "x" * 300):
        with pytest.raises(ConfigError, match="knows no time zone"):
            zone_named(wrong)


def test_the_zone_of_this_machine(tmp_path: Path) -> None:
    """TZ decides alone when set; else a link into the database, else a file with the name; else nothing is known."""
    target = tmp_path / "zoneinfo" / "Asia" / "Shanghai"
    target.parent.mkdir(parents=True)
    target.write_bytes(b"")
    link, written, absent = tmp_path / "localtime", tmp_path / "timezone", tmp_path / "absent"
    link.symlink_to(target)
    written.write_text("Europe/Berlin\n")
    assert machine_zone({"TZ": "Europe/Berlin"}, link, written) == "Europe/Berlin"
    assert machine_zone({"TZ": ":/usr/share/zoneinfo/posix/Asia/Tokyo"}, link, written) == "Asia/Tokyo"
    assert machine_zone({"TZ": "CET-1CEST"}, link, written) == ""
    assert machine_zone({"TZ": " "}, link, written) == "Asia/Shanghai"
    assert machine_zone({}, target, written) == "Asia/Shanghai"
    assert machine_zone({}, absent, written) == "Europe/Berlin"
    assert machine_zone({}, absent, absent) == ""
