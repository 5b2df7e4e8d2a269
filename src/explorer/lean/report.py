"""The report of lean mode: made by the engine of the facts and the answer that the model filled in.

The model chooses the source of each fact from those there are. Whether the source says it is checked as in any report.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

from explorer.lean.progress import FINISH, WRITE, LeanProgress
from explorer.schema.messages import JsonObject
from explorer.text.citations import IDS
from explorer.text.sanitize import single_line
from explorer.text.words import words_of

REPORT_FILE = "report.md"
TITLE_CHARS = 200
MAX_CITED = 4
"""The sources of one answer."""
MARKUP = re.compile(rf"\s*{IDS}|[\[\]<>`|]|^(?:[#*]+\s*|-\s+)")
"""Citations, and characters with a meaning in markdown that a fact in words does not need."""

QUOTES = re.compile('["“”„«»]')


class Fact(NamedTuple):
    """A statement, and the id of the source that says it."""

    words: str
    source: str


def report_calls(action: JsonObject, progress: LeanProgress) -> list[tuple[str, JsonObject]]:
    """Return the calls that write the report and end the run; empty for a report without words.

    Args:
        action: The facts and the answer, as the model filled them in.
        progress: The question, and the sources there are.
    """
    facts = list(_facts(action.get("facts"), progress))
    answer = _plain(action.get("answer"))
    if not answer:
        return []
    is_found = action.get("found", "yes") != "no" and bool(facts)
    text = _text(progress.question, facts, answer, () if is_found else tuple(progress.known))
    return [
        (WRITE, {"filepath": REPORT_FILE, "content": text, "mode": "overwrite"}),
        (FINISH, {"summary": answer, "nothing_found": not is_found}),
    ]


def _facts(value: Any, progress: LeanProgress) -> Iterable[Fact]:  # noqa: ANN401 - a model's JSON
    """Yield each fact once: a sentence that was read, or a statement with a source there is."""
    seen: set[str] = set()
    for one in cast("list[object]", value) if isinstance(value, list) else []:
        fields = cast("JsonObject", one) if isinstance(one, dict) else {"fact": one}
        said = fields.get("fact")
        source = progress.sentences.get(said) if isinstance(said, str) else None
        plain = _plain(said)
        words = f"“{plain}”" if source and plain == said and not QUOTES.search(plain) else plain
        source = source or fields.get("source")
        if words and source in progress.known and words.casefold() not in seen:
            seen.add(words.casefold())
            yield Fact(words, str(source))


def _text(question: str, facts: Sequence[Fact], answer: str, looked_at: Sequence[str]) -> str:
    cited = looked_at[:MAX_CITED] or _sources_of(answer, facts)
    title = single_line(question, TITLE_CHARS)
    lines = [f"# {title}", "", _cited(answer, cited), "", *(f"- {_cited(one.words, [one.source])}" for one in facts)]
    return "\n".join(lines).strip() + "\n"


def _sources_of(answer: str, facts: Sequence[Fact]) -> list[str]:
    """Return the sources of the facts that the answer shares a word with; of all facts, where it shares none."""
    words = set(words_of(answer))
    shared = [fact.source for fact in facts if words.intersection(words_of(fact.words))]
    return list(dict.fromkeys(shared or [fact.source for fact in facts]))[:MAX_CITED]


def _cited(words: str, sources: Iterable[str]) -> str:
    """Return a text with its citations before the last full stop."""
    marks = "".join(f" [{source}]" for source in sources)
    if words.endswith("”"):
        return f"{words}{marks}"
    end = words[-1:] if words[-1:] in {".", "!", "?"} else "."
    return f"{words.rstrip('.!?')}{marks}{end}"


def _plain(value: object) -> str:
    """Return a text of the model's on one line, without markup and without citations of its own."""
    return single_line(MARKUP.sub("", single_line(value))) if isinstance(value, str) else ""
