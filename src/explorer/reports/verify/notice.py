"""The notice at the top of a report: what its reader has to know first, made by the engine and never checked."""

import re

from explorer.schema.status import Status
from explorer.text.sanitize import single_line

LABELS = {
    "en": {
        Status.PARTIAL: "Partial",
        Status.FAILED: "Failed",
        Status.NOTHING_FOUND: "Nothing found",
        Status.SOURCES_UNAVAILABLE: "Sources unavailable",
    },
    "zh": {
        Status.PARTIAL: "不完整",
        Status.FAILED: "失败",
        Status.NOTHING_FOUND: "未找到",
        Status.SOURCES_UNAVAILABLE: "来源不可用",
    },
}
LOOKUPS = {"en": "Lookups", "zh": "检索"}
MOVED = {"en": "Moved", "zh": "已移动"}
_WORDS = "|".join([*(word for words in LABELS.values() for word in words.values()), *LOOKUPS.values(), *MOVED.values()])
NOTICE = re.compile(rf"\A\s*(?:> \*\*(?:{_WORDS}):\*\* [^\n]*\n(?:>\n)?)+")
"""At the beginning of a text."""


def notice_of(status: Status, reason: str, lookups: str, language: str, moved: str = "") -> str:
    """The lines at the top of a report, each with a label; empty when there is nothing to say.

    Args:
        status: How the run ended.
        reason: Why it is not complete.
        lookups: What is to be said of lookups that failed; empty for nothing.
        language: Of the labels.
        moved: What is to be said of things that stood in the report's place; empty for nothing.
    """
    labels = LABELS.get(language, LABELS["en"])
    lines: list[str] = []
    if status is not Status.COMPLETE:
        lines.append(_line(labels[status], reason))
    if lookups:
        lines.append(_line(LOOKUPS.get(language, LOOKUPS["en"]), lookups))
    if moved:
        lines.append(_line(MOVED.get(language, MOVED["en"]), moved))
    return "\n>\n".join(lines) + "\n\n" if lines else ""


def _line(label: str, words: str) -> str:
    shown = single_line(words)
    end = "" if shown.endswith((".", "!", "?", "…", "。")) else "."
    return f"> **{label}:** {shown[:1].upper()}{shown[1:]}{end}"


def without_notice(body: str) -> str:
    """A report's body with empty lines in the place of its notice."""
    return NOTICE.sub(lambda found: "\n" * found[0].count("\n"), body, count=1)
