"""The cited sentences of a finished report, with their lines and what they cite."""

import re
from collections.abc import Callable, Mapping

from explorer.reports.verify.sentences import sentences
from explorer.schema.events import Source
from explorer.schema.messages import Frozen
from explorer.text.citations import with_source_ids

QUOTE = re.compile('[“"「]([^“”"「」]{12,})[”"」]')


class CitedSentence(Frozen):
    """A sentence with at least one citation."""

    line: int
    """Of report.md, from 1."""
    text: str
    """Without its citations."""
    ids: tuple[str, ...]
    addresses: tuple[str, ...]

    def shares(self, other: "CitedSentence") -> bool:
        """Whether both cite one address."""
        return not set(self.addresses).isdisjoint(other.addresses)


def cited_sentences(report: str, sources: Mapping[str, Source], address: Callable[[str], str]) -> list[CitedSentence]:
    """The sentences of a report.md that cite, in order.

    Args:
        report: Its whole text, with frontmatter and references.
        sources: Of its run, by id.
        address: Brings an address into the form in which two are compared.
    """
    return [
        CitedSentence(
            line=one.line,
            text=_without_spaces(one.text),
            ids=one.ids,
            addresses=tuple(dict.fromkeys(address(sources[name].url) for name in one.ids if name in sources)),
        )
        for one in sentences(with_source_ids(report))
        if one.ids
    ]


def quotes_in(text: str) -> list[str]:
    """What stands in quotation marks, long enough to be somebody's words."""
    return [" ".join(quote.split()) for quote in QUOTE.findall(text)]


def _without_spaces(text: str) -> str:
    """On one line, without the gaps that citations leave."""
    return re.sub(r" (?=[.,;:!?。，；：！？])", "", " ".join(text.split()))
