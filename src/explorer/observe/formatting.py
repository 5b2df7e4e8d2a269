"""Text for people at a terminal: figures, outside text that cannot steer it, and calls that wait for approval."""

import re
import unicodedata
from collections.abc import Mapping
from typing import cast

from explorer.schema.approvals import ApprovalRequest
from explorer.schema.messages import Estimate
from explorer.text.sanitize import single_line, visible
from explorer.text.words import sentences

THOUSAND = 1_000
MILLION = 1_000_000
MINUTE_S = 60
HOUR_MINUTES = 60
TENTHS_BELOW_S = 9.95
SENTENCE_CHARS = 90
PARSED_INPUT = re.compile(r"\b(inputs/[^\s`]*?\.(?:pdf|html?|xhtml|docx|pptx|xlsx|epub))\.md\b", re.IGNORECASE)
"""The path of the text of one of the user's files, which the engine parsed."""


def money(usd: float | None) -> str:
    """Return an amount, such as `$0.0123`; `cost unknown` when no price is known."""
    if usd is None:
        return "cost unknown"
    return f"${usd:.4f}" if 0 < usd < 1 else f"${usd:.2f}"


def cost(usd: float | None) -> str:
    """Return an amount for a column of costs, such as `$0.0123`; `unknown` when no price is known."""
    return "unknown" if usd is None else money(usd)


def spent(usd: float | None, estimated: Estimate) -> str:
    """Return an amount with its estimated part, `$0.41, of which $0.12 estimated`; that in tokens without a price."""
    if not estimated:
        return money(usd)
    part = f"{money(estimated.cost_usd)}" if usd is not None and estimated.cost_usd else ""
    return f"{money(usd)}, of which {part or tokens(estimated.tokens) + ' tokens'} estimated"


def tokens(count: int) -> str:
    """Return a number of tokens, such as `950`, `12.3k` or `1.2M`."""
    if count < THOUSAND:
        return str(count)
    return f"{count / THOUSAND:.1f}k" if count < MILLION else f"{count / MILLION:.1f}M"


def duration(seconds: float) -> str:
    """Return a duration, such as `9s`, `2m05s` or `1h02m`."""
    whole = max(0, round(seconds))
    if whole < MINUTE_S:
        return f"{whole}s"
    minutes, rest = divmod(whole, MINUTE_S)
    if minutes < HOUR_MINUTES:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // HOUR_MINUTES}h{minutes % HOUR_MINUTES:02d}m"


def short_time(seconds: float) -> str:
    """Format seconds with a tenth below ten: `0.4s`, `12s`, `2m05s`."""
    return f"{max(0.0, seconds):.1f}s" if seconds < TENTHS_BELOW_S else duration(seconds)


def percent(part: float | None) -> str:
    """Return a share, such as `83 %`; `-` when there is nothing to take a part of."""
    return "-" if part is None else f"{100 * part:.0f} %"


def cached(part: int, whole: int) -> str:
    """Return how much of the input came from the provider's cache, ` (83 % from the cache)`; empty when nothing did."""
    return f" ({percent(part / whole)} from the cache)" if part and whole else ""


def cited(verdicts: Mapping[str, int], uncited: int) -> str:
    """Return `24 cited sentences (23 supported, 1 unchecked)`: the parts sum to the whole; uncited ones follow."""
    parts = [f"{number} {name.replace('_', ' ')}" for name, number in verdicts.items() if number]
    whole = counted(sum(verdicts.values()), "cited sentence")
    more = f", {uncited} uncited" if uncited else ""
    return f"{whole} ({', '.join(parts)}){more}" if parts else f"{whole}{more}"


def size(count: int) -> str:
    """Return a size, such as `950 B`, `12.3 kB` or `1.2 MB`."""
    if count < THOUSAND:
        return f"{count} B"
    return f"{count / THOUSAND:.1f} kB" if count < MILLION else f"{count / MILLION:.1f} MB"


def counted(number: int, word: str) -> str:
    """Return a number with its noun, such as `1 source` or `3 sources`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


# ECMA-48 control sequences (CSI), operating system commands (OSC), and the rest that an ESC begins.
SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|\x9d).*?(?:\x07|\x1b\\|\x9c|$)|\x1b.")

BIDI_CONTROLS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""The Unicode property Bidi_Control: they change the order in which a terminal shows what follows (CVE-2021-42574)."""
CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0), *BIDI_CONTROLS) if chr(code) not in "\n\t"}


def without_controls(text: str) -> str:
    """Drop terminal control sequences whole, then every other control, also of direction, but newline and tab."""
    return SEQUENCE.sub("", text).translate(CONTROLS)


def plain(text: str) -> str:
    """Drop terminal control sequences whole, then every other character that cannot be seen; newlines stay."""
    return visible(SEQUENCE.sub("", text))


def first_sentence(text: str) -> str:
    """Return what a description begins with, on one line that is not long."""
    return one_line(" ".join(sentences(one_line(text))[:1]), SENTENCE_CHARS)


def one_line(text: str, limit: int = 0) -> str:
    """Return text on one line, without control sequences and invisible characters; cut at `limit` unless it is 0."""
    return single_line(plain(text), limit)


def result_words(result: Mapping[str, object]) -> str:
    """Return a result in a few words for people: lists by their lengths."""
    shown = {
        name: len(cast("list[object]", one)) if isinstance(one, list | dict) else one for name, one in result.items()
    }
    return ", ".join(f"{name.replace('_', ' ')} {one_line(str(value), 40)}" for name, value in shown.items())


MAX_SHOWN_CHARS = 24_000
"""The characters of one argument that are shown: more than any command for a shell has."""


def approval_words(request: ApprovalRequest) -> str:
    """Return what exactly an agent wants to do: each argument whole, with what cannot be seen as an escape."""
    lines = [f"{request.agent} needs your approval: {request.tool} (your rule: {exact(request.rule)})"]
    for name, value in request.arguments.items():
        text = exact(value if isinstance(value, str) else repr(value))
        first, *more = text[:MAX_SHOWN_CHARS].split("\n")
        lines += [f"  {name}: {first}", *(f"  {'':<{len(name)}}| {line}" for line in more)]
        if len(text) > MAX_SHOWN_CHARS:
            lines.append(f"  and {counted(len(text) - MAX_SHOWN_CHARS, 'character')} more that are not shown")
    return "\n".join(lines)


def exact(text: str) -> str:
    """Return a text in which control, format and other unseen characters are escapes: what is shown is what is done."""
    return "".join(
        c if c == "\n" or unicodedata.category(c)[0] not in {"C", "Z"} or c == " " else _escaped(c) for c in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def as_given(text: str) -> str:
    """Return text with the user's files under the names that the user knows: `inputs/a.pdf`, not `inputs/a.pdf.md`.

    The engine writes the text of a PDF or an office file next to it, and agents read that.
    """
    return PARSED_INPUT.sub(r"\1", text)
