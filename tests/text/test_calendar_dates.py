"""Dates and times of day, as several languages write them."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from date_forms import forms_of
from explorer.text.calendar_dates import Day, dates, dates_of, fits, near, times, utc_minutes


@settings(max_examples=25, deadline=None)
@given(st.dates(date(1990, 1, 1), date(2099, 12, 31)))
def test_a_date_is_the_same_in_every_form(day: date) -> None:
    """English and Chinese, long and short, with the month as a word or a number."""
    for form in forms_of(day):
        assert [one.day for one in dates(f"on {form} it began")] == [Day(day.year, day.month, day.day)], form


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("in August 2026", [Day(2026, 8, 0)]),
        ("on 3 May", [Day(0, 5, 3)]),
        ("im Jahr 2026", [Day(2026, 0, 0)]),
        ("8月12日", [Day(0, 8, 12)]),
        ("20/08/2026", [Day(2026, 8, 20)]),
        ("version 2026.1, 2,026 boards, $2026 and 1026", []),
    ],
)
def test_a_date_has_what_the_text_gives(text: str, days: list[Day]) -> None:
    """What is left out is 0; a figure that is no year is no date."""
    assert [one.day for one in dates(text)] == days


def test_a_date_with_two_readings_is_both() -> None:
    """The tenth of August in one country is the eighth of October in another."""
    assert {one.day for one in dates("10/08/2026")} == {Day(2026, 8, 10), Day(2026, 10, 8)}


def test_times_are_on_one_clock() -> None:
    """Halves of the day become hours of 24, and zones become UTC."""
    assert [clock for _, _, clock in times("at 3:20 pm, 12:05 a.m. and 15:20")] == ["15:20", "00:05", "15:20"]
    assert utc_minutes("10:17", " (UTC+8)") == 2 * 60 + 17
    assert utc_minutes("00:30", " CET") == 23 * 60 + 30
    assert utc_minutes("10:17", " of them") is None


def test_words_for_days_are_near_the_day_of_the_text() -> None:
    """A weekday is the last or the next one."""
    tuesday = Day(2026, 11, 24)
    assert near("It failed yesterday.", tuesday) == {Day(2026, 11, 23)}
    assert near("on Friday", tuesday) == {Day(2026, 11, 27), Day(2026, 11, 20)}
    assert near("明天", tuesday) == {Day(2026, 11, 25)}


def test_a_date_fits_one_that_says_more() -> None:
    """What the claim leaves out may be anything."""
    assert fits(Day(2026, 8, 0), Day(2026, 8, 12))
    assert not fits(Day(2026, 8, 12), Day(2026, 8, 0))
    assert dates_of("2026-08-12T10:00:00Z") == Day(2026, 8, 12)
    assert dates_of("last week") is None
