"""The evidence behind a report: each citation with its source, the verdicts, and passages with marked words."""

import re

import pytest

from explorer.reports.evidence import MAX_PASSAGE_CHARS, Card, Evidence, MatchedPassage, StoredText, evidence_of
from explorer.reports.formats.document import ReportDocument
from explorer.reports.formats.html_page import html_page
from explorer.reports.verify.check import check
from explorer.reports.verify.claims import Verdict
from explorer.schema.events import Source
from explorer.text.citations import with_source_ids
from reports.verify.shelf import source

MILL = """\
# The mill of Aldern

Visitors come in summer. The mill ground 4,200 tons of flour in 2024, more than ever.
“Flour is [patience](https://mill.example/patience),” says Ida Brand, who runs it with 12 people.

It burned down on 5 May 1911 & was built again.
"""
HOSTILE = '</blockquote><script>alert(1)</script><img src="http://evil.example/x.png" onerror=alert(2)>'
REPORT = """\
# The mill

It ground 4.2 thousand tons [1]. “Flour is patience,” says Ida Brand [1].
Its fire was on 1911-05-05 [1]. It has 90 people [1]. It is old [1].
The harbour has 7 cranes [2]. It cost 31 dollars.

## References

1. The mill. mill.example, https://mill.example/ `S1`
2. Gone. gone.example, https://gone.example/ `S2`
"""


def evidence(report: str, texts: dict[str, str], **facts: str) -> Evidence:
    """The evidence of a report over sources with these texts."""
    sources: dict[str, Source] = {name: source(name, text, **facts) for name, text in texts.items()}
    stored = {name: text for name, text in texts.items() if text}
    return evidence_of(report, check(with_source_ids(report), sources, stored.get), sources, stored.get)


def mill() -> Evidence:
    """The evidence of the report on the mill; the text of its second source is lost."""
    return evidence(REPORT, {"S1": MILL, "S2": ""})


def marked(passages: tuple[MatchedPassage, ...]) -> list[str]:
    """The marked words."""
    return [piece.text for passage in passages for piece in passage.pieces if piece.is_match]


def card(found: Evidence, number: int) -> Card:
    """The card of a number, which is there."""
    shown = found.card(number)
    assert shown is not None
    return shown


def test_each_citation_has_its_source_and_the_verdicts_of_verify() -> None:
    """What the ledger has of the source, and each sentence that cites it; the verdicts are those of the check."""
    found = mill()
    first = card(found, 1)
    assert (first.id, first.site, first.problem) == ("S1", "s1.example", "")
    assert first.retrieved is not None
    assert [one.claim.verdict for one in first.sentences] == [
        claim.verdict for claim in found.claims if "S1" in claim.ids
    ]
    assert first.counts[Verdict.NOT_FOUND] == 1
    assert [claim.sentence for claim in found.uncited] == ["It cost 31 dollars."]
    assert found.card(3) is None


def test_passages_are_of_the_stored_text_with_the_matching_words_marked() -> None:
    """A figure in another form, a quote over a link and a date in another form are marked as the source writes them."""
    figure, quote, fire, *_ = card(mill(), 1).sentences
    assert (figure.claim.verdict, marked(figure.passages)) == (Verdict.SUPPORTED, ["4,200 tons"])
    assert marked(quote.passages)[0] == "Flour is [patience"
    assert marked(fire.passages) == ["5 May 1911"]
    for citing in (figure, quote, fire):
        for passage in citing.passages:
            assert "".join(piece.text for piece in passage.pieces) == MILL[passage.start : passage.end]


def test_what_is_not_found_shows_the_closest_passage_and_says_so() -> None:
    """No word is marked as if it carried the sentence, and a text with nothing in common shows no passage."""
    wrong = next(one for one in card(mill(), 1).sentences if one.claim.verdict is Verdict.NOT_FOUND)
    assert "90" not in marked(wrong.passages)
    assert not any(passage.is_match for passage in wrong.passages)
    nothing = StoredText(source("S1", "Rain fell."), "Rain fell.")
    assert nothing.passages("The mill has 90 people", ()) == ()


def test_a_source_without_its_text_says_so() -> None:
    """A lost text, an altered one and an id that no source has are three different sentences."""
    lost = card(mill(), 2)
    assert lost.problem == "its stored text is missing or cannot be read"
    assert [one.claim.verdict for one in lost.sentences] == [Verdict.SOURCE_MISSING]
    sources = {"S1": source("S1", MILL)}
    draft = "It ground 4,200 tons [S1]. It is old [S7]."
    cards = evidence_of(draft, check(draft, sources, lambda _id: "other"), sources, lambda _id: "other").cards
    assert [(one.number, one.id, one.problem) for one in cards] == [
        (1, "S1", "its stored text is not as it was stored (sha256)"),
        (2, "S7", "it is not a source of this run"),
    ]


def test_of_several_places_the_one_about_the_sentence_is_shown() -> None:
    """The same figure stands in the text twice; the words around it decide."""
    text = f"The bakery has 12 ovens. {'Rain fell on the town. ' * 40}The mill employs 12 people, says Ida Brand."
    stored = StoredText(source("S1", text), text)
    claim = check("The mill employs 12 people [S1].", {"S1": source("S1", text)}, {"S1": text}.get).claims[0]
    (passage,) = stored.passages(claim.sentence, claim.findings)
    shown = "".join(piece.text for piece in passage.pieces)
    assert "employs 12 people" in shown
    assert "bakery" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7 " * 1_000,
        pytest.param("7 " * 50_000, marks=pytest.mark.slow),
        "7\u202f000" * 9,
        "[a](b" * 5_000,
        "“" * 5_000,
        "水" * 5_000,
    ],
)
def test_odd_texts_have_passages_of_bounded_length(text: str) -> None:
    """Whatever a page is made of, a card stays a card."""
    claim = check("It has 7 of “the very thing” [S1].", {"S1": source("S1", text)}, {"S1": text}.get).claims[0]
    for passage in StoredText(source("S1", text), text).passages(claim.sentence, claim.findings):
        assert passage.end - passage.start <= 2 * MAX_PASSAGE_CHARS


def test_the_html_file_unfolds_each_reference() -> None:
    """The card is in the entry of the list that the citation leads to; every checked sentence is listed at the end."""
    page = html_page(ReportDocument(REPORT, look_up=mill))
    entry = page.partition('<li id="ref-1">')[2].partition('<li id="ref-2">')[0]
    assert "<details>" in entry
    assert "<mark>4,200 tons</mark>" in entry
    assert '<span class="verdict not_found">not found</span>' in entry
    assert page.count("<details>") == 3
    assert "1 uncited" in page
    assert html_page(ReportDocument(REPORT)).count("<details>") == 0


def test_hostile_sources_and_titles_show_as_text() -> None:
    """A script in a title, an address or a passage becomes words; a title that closes its element closes nothing."""
    text = f"The mill has 12 people. {HOSTILE}"
    report = f"The mill has 12 people {HOSTILE} [1].\n\n## References\n\n1. X. https://mill.example/ `S1`\n"
    facts = {"title": HOSTILE, "author": HOSTILE, "url": f"javascript:alert(3)//{HOSTILE}", "published": HOSTILE}
    page = html_page(ReportDocument(report, look_up=lambda: evidence(report, {"S1": text}, **facts)))
    body = page.partition("<body>")[2]
    assert not re.search(r"<(?:script|img|iframe|svg)\b", body)
    assert not re.search(r"<[^>]*(?:javascript:|\son\w+=)", body)
    assert body.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5
