"""The quotes of a sentence looked up, and all of its look-ups together."""

from collections.abc import Iterator

from explorer.reports.verify.claims import Verdict
from explorer.reports.verify.figure_lookup import look_up_figures
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.lookup_outcome import Cited, LookupOutcome, found, not_found, unchecked
from explorer.reports.verify.quotes import Quote, has_quote, is_short, is_translated, likeness
from explorer.reports.verify.sentences import Sentence, part_of, parts, passages

UNCITED_PART = "stands behind the citation, in a part of its own that cites nothing"
TRANSLATED = "a translation cannot be looked up word for word"


def look_up(sentence: Sentence, cited: Cited) -> list[LookupOutcome]:
    """One answer for each quote and figure."""
    looks: list[LookupOutcome] = []
    for quote in passages(sentence):
        looks += _quote(quote, sentence, cited)
    for part in parts(sentence):
        answers = look_up_figures(part, cited)
        looks += [_in_tail(outcome) for outcome in answers] if part.is_tail else answers
    return looks


def _in_tail(outcome: LookupOutcome) -> LookupOutcome:
    """What no citation covers is not held against the citation, unless the source contradicts it."""
    finding = outcome.finding
    if finding.verdict is not Verdict.NOT_FOUND or outcome.is_contradicted:
        return outcome
    return unchecked(finding.kind, finding.text, UNCITED_PART, is_own=True)


def _quote(quote: Quote, sentence: Sentence, cited: Cited) -> Iterator[LookupOutcome]:
    shown = " ".join(quote.text.split())

    def has(indexed: IndexedSource) -> str:
        return "word for word" if has_quote(indexed, quote.text) else ""

    source, how = cited.first(has)
    if source:
        yield found("quote", shown, source, how)
    elif is_short(quote.text):
        return  # a word or two may be the writer's own; see `parts`
    elif all(is_translated(quote.text, indexed) for indexed in cited):
        yield unchecked("quote", shown, TRANSLATED, is_own=False)
        # The figures in it are the same in every language.
        yield from look_up_figures(part_of(quote.text), cited)
    elif quote.start >= sentence.tail:
        yield unchecked("quote", shown, UNCITED_PART, is_own=True)
    else:
        yield not_found("quote", shown, cited, _alike(quote.text, cited))


def _alike(quote: str, cited: Cited) -> str:
    """How far the source goes along with an altered quote."""
    alike = [(likeness(quote, indexed), indexed.source.id) for indexed in cited]
    words, source = max(alike, key=lambda pair: len(pair[0]))
    return f"{source} goes on otherwise after “{words}”" if words else ""
