"""Citations and sentences with their evidence as HTML; the text of sources and reports is escaped in it."""

from collections.abc import Iterable
from html import escape

from explorer.reports.evidence import Card, CitingSentence, Evidence, MatchedPassage, Piece
from explorer.reports.formats.document import WEB_LINK
from explorer.reports.verify.claims import Claim, Finding, Verdict

VERDICT_WORDS = {
    Verdict.SUPPORTED: "supported",
    Verdict.NOT_FOUND: "not found",
    Verdict.ELSEWHERE: "said otherwise",
    Verdict.SOURCE_MISSING: "source missing",
    Verdict.UNCHECKED: "unchecked",
}
CLASSES = frozenset(
    [*(f"verdict {verdict}" for verdict in Verdict), "card", "claim", "passage", "facts", "claims", "reason"]
)
"""The classes of what is made here."""
TAGS = frozenset(["article", "details", "dd", "div", "dl", "dt", "mark", "section", "span", "summary"])
DATE_FORMAT = "%Y-%m-%d %H:%M UTC"


def folded_card(card: Card) -> str:
    """Return a card that unfolds, with its verdicts in the line that is always shown."""
    verdicts = ", ".join(f"{number} {VERDICT_WORDS[verdict]}" for verdict, number in card.counts.items())
    return f"<details><summary>Evidence: {verdicts or 'cited in no sentence'}</summary>\n{card_html(card)}</details>\n"


def card_html(card: Card, source_page: str = "") -> str:
    """Return a card: the source, then each sentence that cites it with verdicts and passages.

    Args:
        card: The citation.
        source_page: The address of the page with the whole stored text; empty for none.
    """
    whole = f'<p><a href="{escape(source_page)}">The whole stored text</a></p>\n' if source_page else ""
    problem = f'<p class="reason">{escape(card.id)}: {escape(card.problem)}</p>\n' if card.problem else ""
    shown = "".join(map(_sentence, card.sentences)) or "<p>No sentence cites it.</p>\n"
    return (
        f'<article class="card">\n<p><strong>{escape(card.title)}</strong></p>\n'
        f"{_facts(card)}{problem}{whole}{shown}</article>\n"
    )


def claims_html(evidence: Evidence) -> str:
    """Return all sentences that cite, folded, with what was found of each; empty when none does."""
    if not evidence.claims and not evidence.uncited:
        return ""
    counts = evidence.verification.counts
    shown = [f"{counts[verdict]} {words}" for verdict, words in VERDICT_WORDS.items() if counts[verdict]]
    if evidence.uncited:
        shown.append(f"{len(evidence.uncited)} uncited")
    entries = "".join(map(claim_html, (*evidence.claims, *evidence.uncited)))
    return (
        f'<section class="claims">\n<h2>Every checked sentence</h2>\n<details><summary>{", ".join(shown)}</summary>\n'
        f"{entries}</details>\n</section>\n"
    )


def claim_html(claim: Claim) -> str:
    """Return a sentence of the report with its verdict, and one line for each quote and figure."""
    verdict = verdict_mark(claim.verdict) if claim.ids else '<span class="verdict unchecked">uncited</span>'
    cited = f" {escape(', '.join(claim.ids))}" if claim.ids else ""
    return (
        f'<div class="claim">\n<p>{verdict} line {claim.line}{cited}</p>\n'
        f"<blockquote>{escape(claim.sentence)}</blockquote>\n{_findings(claim)}</div>\n"
    )


def passage_html(passage: MatchedPassage) -> str:
    """Return a passage of a stored text, with its matching words marked."""
    head = "" if passage.is_match else "<p>Not there as it is cited. The passage with most words in common:</p>\n"
    return f'{head}<blockquote class="passage">{pieces_html(passage.pieces)}</blockquote>\n'


def pieces_html(pieces: Iterable[Piece]) -> str:
    """Return a text in pieces, with the matching ones marked."""
    return "".join(f"<mark>{escape(piece.text)}</mark>" if piece.is_match else escape(piece.text) for piece in pieces)


def verdict_mark(verdict: Verdict) -> str:
    """Return a verdict in words, with its class."""
    return f'<span class="verdict {verdict}">{VERDICT_WORDS[verdict]}</span>'


def _facts(card: Card) -> str:
    address = escape(card.url)
    is_web = WEB_LINK.match(card.url) is not None
    rows = [
        ("source", escape(" · ".join(filter(None, [card.id, card.site, card.kind.replace("_", " ")])))),
        ("address", f'<a href="{address}" rel="noreferrer">{address}</a>' if is_web else address),
        ("author", escape(card.author)),
        ("published", escape(card.published)),
        ("fetched", f"{card.retrieved:{DATE_FORMAT}}, {escape(card.via)}" if card.retrieved else ""),
        ("note", escape(", ".join(card.flags))),
    ]
    return "<dl>\n" + "".join(f"<dt>{name}</dt><dd>{value}</dd>\n" for name, value in rows if value) + "</dl>\n"


def _sentence(citing: CitingSentence) -> str:
    return claim_html(citing.claim) + "".join(map(passage_html, citing.passages))


def _findings(claim: Claim) -> str:
    if not claim.findings:
        return f'<p class="reason">{escape(claim.reason)}</p>\n' if claim.reason else ""
    return "<ul>\n" + "".join(f"<li>{_finding(one)}</li>\n" for one in claim.findings) + "</ul>\n"


def _finding(finding: Finding) -> str:
    reason = f": {escape(finding.reason)}" if finding.reason else ""
    return f"{verdict_mark(finding.verdict)} “{escape(finding.text)}”{reason}"
