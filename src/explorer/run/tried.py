"""What a report says of the lookups of its run, in its own language: English or Chinese."""

from collections.abc import Mapping
from dataclasses import dataclass

from explorer.schema.events import Lookup


@dataclass(frozen=True)
class TriedWords:
    """The phrases of one language."""

    title: str
    outcomes: Mapping[Lookup, str]
    more: str
    failed: str
    """With `{failed}`, `{total}` and `{tools}`."""
    nothing: str
    """With `{total}`, `{found}`, `{empty}` and `{failed}`; empty where the reason of the end says it."""


ENGLISH = TriedWords(
    title="What was tried",
    outcomes={Lookup.FOUND: "found something", Lookup.EMPTY: "nothing found", Lookup.FAILED: "failed"},
    more="and {count} more",
    failed="{failed} of {total} lookups failed ({tools}); what they would have found is missing here",
    nothing="",
)
CHINESE = TriedWords(
    title="做过的检索",
    outcomes={Lookup.FOUND: "有结果", Lookup.EMPTY: "没有结果", Lookup.FAILED: "失败"},
    more="另有 {count} 次",
    failed="{total} 次检索中有 {failed} 次失败（{tools}），本应查到的内容这里没有",
    nothing="没有找到相关内容（共 {total} 次检索：{found} 次有结果，{empty} 次没有结果，{failed} 次失败）",
)


def tried_words(language: str) -> TriedWords:
    """Return the phrases of a language: `zh`, or English for any other."""
    return CHINESE if language == "zh" else ENGLISH
