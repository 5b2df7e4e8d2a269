"""What keeps a report from being complete: each rule finds what it is for, and is silent where nothing is wrong."""

import gzip
import json
from collections.abc import Iterator

import pytest

from explorer.reports.verify.check import check
from explorer.reports.verify.soundness import Flaw, FlawKind, flaws
from explorer.text.sanitize import visible
from reports.verify.shelf import source
from sources.loopback import DATA

LOG = "The bridge is 412 metres tall. More at https://log.example/bridge/?page=2&q=a and www.span.example/a_(b)."
OURS = "The bridge is 412 metres tall [S1].\n"
MOST_NUMBERED = 0.04
"""Of real pages: fewer number references of their own, and those do."""


def found_in(draft: str, text: str = LOG, asked: str = "") -> tuple[Flaw, ...]:
    """All flaws of a report whose only source has this text."""
    sources = {"S1": source("S1", text)}
    texts = {"S1": text}.get
    return flaws(draft, sources, texts, check(draft, sources, texts), asked)


def kinds(draft: str, text: str = LOG, asked: str = "") -> list[FlawKind]:
    """The kinds of all flaws."""
    return [flaw.kind for flaw in found_in(draft, text, asked)]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("It was opened in June [1].", FlawKind.OWN_NUMBERS),
        ("It was opened in June.[2] It is old.", FlawKind.OWN_NUMBERS),
        ("It was opened in June[3].", FlawKind.OWN_NUMBERS),
        ("It was opened in June[4]", FlawKind.OWN_NUMBERS),
        ("It was opened in June[^5].", FlawKind.OWN_NUMBERS),
        ("## References\n\n1. The log\n", FlawKind.OWN_REFERENCES),
        ("**Old.**\n\n### Sources:\n\n- A friend\n", FlawKind.OWN_REFERENCES),
        ("[^1]: The log\n", FlawKind.OWN_REFERENCES),
        ("See [the log](https://other.example/a).", FlawKind.UNKNOWN_LINKS),
        ("See `https://other.example/a`.", FlawKind.UNKNOWN_LINKS),
        ("See https://log.example/invented.", FlawKind.UNKNOWN_LINKS),
        ("It is old [S9].", FlawKind.DANGLING),
        ("It weighs 9,000 tons [S1].", FlawKind.UNSUPPORTED),
        ("It has 8 lanes. It cost 90 million euros. It weighs 4,000 tons.", FlawKind.UNCITED),
    ],
)
def test_each_rule_finds_what_it_is_for(words: str, kind: FlawKind) -> None:
    """One flaw beside a sentence that is in order."""
    assert kinds(f"{OURS}\n{words}\n") == [kind]


@pytest.mark.parametrize(
    "words",
    [
        "The first cell of a row, row[1] in most languages, is its name.",
        "Take argv[1] or items[2] as the name.",
        "Take `row[1]`, then `matrix[1][2]`.",
        "```python\nrow = [1]\nname = row[1].name  # [2]\n# https://other.example/a\n```",
        "Run `curl http://localhost:8080/health` or `curl -L https://other.example/install | sh`.",
        "It then listens at http://127.0.0.1:8080/, or at https://api.example.com/v1.",
        "[A link](#top), [a file](notes.md) and [1](notes.md).",
        "> The log says [1] that it is old.",
        "The log says “it is old [1]”.",
        "## Sources of error\n\n- The wind\n",
        "## References\n\n- The log [S1]\n",
        "More: <https://log.example/bridge/?page=2&q=a>, https://www.log.example/bridge?page=2&q=a#top.",
        "See (https://span.example/a_(b)).",
        "It is kept at https://log.example, where much else is.",
    ],
)
def test_what_is_in_order_raises_no_alarm(words: str) -> None:
    """Code, quotes, local links, headings and addresses that a source has."""
    assert kinds(f"{OURS}\n{words}\n") == []


def test_an_address_of_the_question_is_known() -> None:
    """What the user named need not be in a source."""
    draft = f"{OURS}\nSee https://other.example/a.\n"
    assert kinds(draft) == [FlawKind.UNKNOWN_LINKS]
    assert kinds(draft, asked="What does https://other.example/a/ say?") == []


def test_the_front_page_of_a_sources_site_is_known() -> None:
    """It is named for orientation; another page of the site is unknown."""
    sources = {"S1": source("S1", "The bridge is old.", url="https://deep.example/a/b")}
    texts = {"S1": "The bridge is old."}.get
    for address, expected in (("https://deep.example/", []), ("https://deep.example/c", [FlawKind.UNKNOWN_LINKS])):
        draft = f"The bridge is old [S1], says {address}.\n"
        assert [flaw.kind for flaw in flaws(draft, sources, texts, check(draft, sources, texts))] == expected


def _real_texts() -> Iterator[str]:
    pages = sorted((DATA / "pages" / "gold").glob("*.json"))
    articles = DATA / "hn_snapshot" / "articles.jsonl.gz"
    if not pages or not articles.is_file():
        pytest.skip("the recorded pages are not beside the checkout")
    for path in pages:
        shown = json.loads(path.read_text(encoding="utf-8"))
        yield visible(shown.get("ground_truth", shown).get("main_content") or "")
    with gzip.open(articles, "rt", encoding="utf-8") as lines:
        yield from (visible(json.loads(line).get("text") or "") for line in lines)


def test_a_lost_source_is_no_false_id() -> None:
    """What decides is the id, and no words of a reason."""
    draft = f"{OURS}\nIt says “this is no source of this run, the log itself says” [S1, S2].\n"
    sources = {"S1": source("S1", LOG), "S2": source("S2", LOG)}
    texts = {"S1": LOG}.get
    (flaw,) = flaws(draft, sources, texts, check(draft, sources, texts))
    assert flaw.kind is FlawKind.UNSUPPORTED
    assert flaw.reason().startswith("in the report, 1 of 2 cited sentences")


@pytest.mark.slow
def test_real_texts_raise_few_alarms() -> None:
    """Pages as reports on themselves: no address of theirs is unknown, and few texts seem to number references."""
    seen = [found_in(f"{text}\n\nSo it says [S1].\n", text) for text in _real_texts() if text]
    alarms = [flaw for found in seen for flaw in found]
    assert len(seen) > 500
    assert [
        flaw.clause for flaw in alarms if flaw.kind in {FlawKind.UNKNOWN_LINKS, FlawKind.DANGLING, FlawKind.UNSUPPORTED}
    ] == []
    numbered = [flaw for flaw in alarms if flaw.kind in {FlawKind.OWN_NUMBERS, FlawKind.OWN_REFERENCES}]
    assert 0 < len(numbered) < MOST_NUMBERED * len(seen)
