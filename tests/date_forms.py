"""A date as texts write it, for the tests of what reads dates."""

from datetime import date


def forms_of(day: date) -> list[str]:
    """Return it in English and Chinese, long and short, with the month as a word or a number."""
    return [
        day.isoformat(),
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%B} {day.year}",
        f"{day:%b} {day.day}, {day.year}",
        f"{day.year}年{day.month}月{day.day}日",
        f"{day.year} 年 {day.month} 月 {day.day} 日",
        f"{day:%Y/%m/%d}",
    ]
