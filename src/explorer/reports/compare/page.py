"""A comparison as a page of markdown."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from explorer.reports.compare.cited_sentences import CitedSentence
from explorer.reports.compare.comparison import ClaimDifference, Comparison, RunSummary, SourceDifference
from explorer.text.sanitize import single_line

MAX_SHOWN = 40
"""Of each list; JSON has all."""
MAX_CHARS = 600
"""Of one sentence."""

Found = TypeVar("Found")


def comparison_page(found: Comparison) -> str:
    """What is new, gone and changed, claims before sources."""
    lines = [
        "# What changed",
        "",
        f"- A: {_run(found.first)}",
        f"- B: {_run(found.second)}",
        "",
        _title("Claims", (found.new_claims, found.gone_claims, found.changed_claims), found.same_claims),
        *_block("New in B", found.new_claims, lambda one: _claim("B", one.after)),
        *_block("Gone since A", found.gone_claims, lambda one: _claim("A", one.before)),
        *_block("Changed", found.changed_claims, _changed_claim),
        "",
        _title("Sources", (found.new_sources, found.gone_sources, found.changed_sources), found.same_sources),
        *_block("New in B", found.new_sources, lambda one: [f"- {_source(one)} `{one.after}`"]),
        *_block("Gone since A", found.gone_sources, lambda one: [f"- {_source(one)} `{one.before}`"]),
        *_block("Changed", found.changed_sources, _changed_source),
    ]
    return "\n".join(lines) + "\n"


def _run(head: RunSummary) -> str:
    started = f"{head.started:%Y-%m-%d %H:%M} UTC" if head.started is not None else "?"
    return f"`{head.run_id}`, {started}, {head.status or 'not ended'}: {single_line(head.question, MAX_CHARS)}"


def _title(name: str, lists: tuple[Sequence[object], Sequence[object], Sequence[object]], same: int) -> str:
    new, gone, changed = map(len, lists)
    return f"## {name}: {new} new, {gone} gone, {changed} changed, {same} the same"


def _block(name: str, found: Sequence[Found], show: Callable[[Found], list[str]]) -> Iterator[str]:
    if not found:
        return
    yield from ("", f"{name}:", "")
    for one in found[:MAX_SHOWN]:
        yield from show(one)
    if len(found) > MAX_SHOWN:
        yield f"- ... and {len(found) - MAX_SHOWN} more"


def _claim(snapshot: str, claim: CitedSentence | None) -> list[str]:
    return [f"- {snapshot} line {claim.line}: {single_line(claim.text, MAX_CHARS)}"] if claim is not None else []


def _changed_claim(one: ClaimDifference) -> list[str]:
    lines = [*_claim("A", one.before), *(f"  {line[2:]}" for line in _claim("B", one.after))]
    return [*lines, f"  differs: {single_line('; '.join(one.changes), MAX_CHARS)}"]


def _source(one: SourceDifference) -> str:
    kind = "" if one.kind == "page" else f" ({one.kind.replace('_', ' ')})"
    return f"{single_line(one.title, MAX_CHARS)}{kind}, {single_line(one.url, MAX_CHARS)}"


def _changed_source(one: SourceDifference) -> list[str]:
    words = single_line("; ".join(one.changes), MAX_CHARS) or "its text, but no number or name"
    return [f"- {_source(one)} A `{one.before}`, B `{one.after}`", f"  differs: {words}"]
