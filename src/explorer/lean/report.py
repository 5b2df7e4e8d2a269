"""The report of lean mode: made by the engine of the facts and the answer that the model filled in.

The model chooses the source of each fact from those there are. Whether the source says it is checked as in any report.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from explorer.lean.progress import FINISH, WRITE, Fact, LeanProgress
from explorer.schema.messages import JsonObject
from explorer.text.citations import IDS
from explorer.text.sanitize import single_line
from explorer.text.words import phrase_language, words_of

REPORT_FILE = "report.md"
TITLE_CHARS = 200
MAX_CITED = 4
"""The sources of one answer."""
MARKUP = re.compile(rf"\s*{IDS}|[\[\]<>`|]|^(?:[#*]+\s*|-\s+)")
"""Citations, and characters with a meaning in markdown that a fact in words does not need."""

QUOTES = re.compile('["“”„«»]')
FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
NOT_SAID = {"en": "The sources that were read do not say this.", "zh": "所读的来源没有说明这一点。"}
"""The answer where the model finds none: its own words for that are often about something else."""


def report_calls(action: JsonObject, progress: LeanProgress) -> list[tuple[str, JsonObject]]:
    """Return the calls that write the report and end the run; empty for a report without words.

    Args:
        action: The facts and the answer, as the model filled them in.
        progress: The question, and the sources there are.
    """
    facts = list(dict.fromkeys(_facts(action.get("facts"), progress)))
    answer = _plain(action.get("answer"))
    if not answer:
        return []
    is_found = action.get("found", "yes") != "no" and bool(facts)
    if not is_found:
        answer = NOT_SAID[phrase_language(progress.question)]
    cited = _sources_of(answer, facts, progress) if is_found else list(progress.known)
    lines = [_cited(answer, cited[:MAX_CITED]), "", *(f"- {_cited(_quoted(one.words), [one.source])}" for one in facts)]
    text = "\n".join([f"# {single_line(progress.question, TITLE_CHARS)}", "", *lines]).strip() + "\n"
    return [
        (WRITE, {"filepath": REPORT_FILE, "content": text, "mode": "overwrite"}),
        (FINISH, {"summary": answer, "nothing_found": not is_found}),
    ]


def _facts(value: Any, progress: LeanProgress) -> Iterable[Fact]:  # noqa: ANN401 - a model's JSON
    """Yield the facts: sentences that were read; of a server that knows no forms also statements with a source."""
    for one in cast("list[object]", value) if isinstance(value, list) else []:
        fields = cast("JsonObject", one) if isinstance(one, dict) else {"fact": one}
        said, source = fields.get("fact"), fields.get("source")
        if isinstance(said, str) and (known := progress.fact_of(said)):
            yield known
        elif _plain(said) and source in progress.known:
            yield Fact(_plain(said), str(source))


def _sources_of(answer: str, facts: Sequence[Fact], progress: LeanProgress) -> list[str]:
    """Return the sources of the facts that share a word with the answer, and of sentences with a figure of it."""
    words, figures = set(words_of(answer)), set(FIGURE.findall(answer))
    shared = [fact.source for fact in facts if words.intersection(words_of(fact.words))]
    named = [fact.source for fact in progress.facts.values() if figures.intersection(FIGURE.findall(fact.words))]
    return list(dict.fromkeys([*shared, *named] or [fact.source for fact in facts]))


def _quoted(words: str) -> str:
    """Return a sentence in quotation marks; without markup and without the marks where it has some of its own."""
    plain = _plain(words)
    return f"“{plain}”" if plain == words and not QUOTES.search(words) else plain


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
