"""What keeps a report from being complete, besides single quotes and figures: where its references lead, if anywhere.

Each rule is conservative: headings, introductions, quoted passages, code and local links raise no alarm.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from explorer.reports.render import OWN_NUMBER
from explorer.reports.verify.claims import TextOf, Verdict, Verification, without_notice
from explorer.reports.verify.sentences import HEADING, QUOTED, REFERENCES
from explorer.schema.events import Source
from explorer.text.citations import CITATION, MISSING_ID, cited_ids
from explorer.text.frontmatter import without_frontmatter
from explorer.text.rendering import ModelText, own
from explorer.text.urls import SCHEME_AND_WWW, host_of, page_key

NO_ADVICE = own("")
MAX_NAMED = 3
"""Limit for numbers, addresses and the like in one reason."""
LEAST_UNCITED = 3
"""Fewer sentences without a citation may be remarks of the writer's."""
ENTRY = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]|\[\^?\w{1,20}(?:: no source)?\]:?)\s*\S")
DEFINITION = re.compile(r" {0,3}\[\^?\d{1,3}(?:: no source)?\]:?\s+\S")
KNOWN_ID = re.compile(r"\[S\d+|`S\d+`")
ADDRESS = re.compile(r"https?://[^\s<>\"“”`|\\^{}\[\]]+", re.IGNORECASE)
ADDRESS_ALONE = re.compile(r"`<?https?://\S+>?`", re.IGNORECASE)
NOBODYS_HOSTS = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1", "example.com", "example.org", "example.net"})  # noqa: S104 - a name, nothing is bound
AFTER_ADDRESS = ".,;:!?*_~'\u2019\u201d。，；：！？、）」』"


class FlawKind(StrEnum):
    """What is wrong with a report."""

    DANGLING = "dangling"
    """The text cites ids that no source has."""
    UNSUPPORTED = "unsupported"
    """Quotes or figures are not in the sources that are cited for them."""
    OWN_NUMBERS = "own_numbers"
    """The text numbers references itself; the numbers lead to no stored source."""
    OWN_REFERENCES = "own_references"
    """The text has a list of references of its own."""
    UNKNOWN_LINKS = "unknown_links"
    """The text links to pages that no stored source is or names."""
    UNCITED = "uncited"
    """Nothing, or the smaller part of what needs it, has a citation."""


@dataclass(frozen=True)
class Flaw:
    """One thing that keeps a report from being complete."""

    kind: FlawKind
    clause: str
    """What is wrong, for readers, with `{it}` for what the text is."""
    advice: ModelText = NO_ADVICE
    """What to do, for the model that wrote the text; empty where it is said before, or sentence by sentence."""

    def reason(self, subject: str = "the report") -> str:
        """Return the flaws in words for readers."""
        return self.clause.replace("{it}", subject)


def flaws(
    draft: str, sources: Mapping[str, Source], text_of: TextOf, verification: Verification, asked: str = ""
) -> tuple[Flaw, ...]:
    """Return what keeps a text from being complete, the worst first.

    Args:
        draft: Markdown with `[S12]` citations.
        sources: All of the run's, by id.
        text_of: Their stored texts.
        verification: What was found out about its sentences.
        asked: The user's own words: addresses in them are known.
    """
    body = without_notice(without_frontmatter(draft))
    found = (
        _dangling(body, sources),
        _unsupported(verification, sources),
        _own_numbers(body),
        _own_references(body),
        _unknown_links(body, sources, text_of, asked),
        _uncited(body, sources, verification),
    )
    return tuple(filter(None, found))


def _dangling(body: str, sources: Mapping[str, Source]) -> Flaw | None:
    ids = sorted({one for one in cited_ids(body) if one not in sources and one != MISSING_ID})
    is_said = MISSING_ID in cited_ids(body)
    if not ids and not is_said:
        return None
    named = f": {', '.join(ids)}" if ids else ""
    return Flaw(FlawKind.DANGLING, f"{{it}} cites sources that do not exist{named}")


def _unsupported(verification: Verification, sources: Mapping[str, Source]) -> Flaw | None:
    """Return the flaw of unsupported sentences; those whose ids do not exist are another flaw's."""
    missing = Verdict.SOURCE_MISSING
    faults = [one for one in verification.faults if one.verdict is not missing or sources.keys() >= set(one.ids)]
    if not faults:
        return None
    count, total = len(faults), len(verification.claims)
    is_otherwise = any(one.verdict is Verdict.ELSEWHERE for one in faults)
    missing = "have a quote or a figure that their sources do not have"
    what = "say what their sources do not say" if is_otherwise else missing
    return Flaw(FlawKind.UNSUPPORTED, f"in {{it}}, {count} of {total} cited sentences {what}")


def _own_numbers(body: str) -> Flaw | None:
    numbers = list(dict.fromkeys(found["number"] for found in OWN_NUMBER.finditer(_prose(body))))
    if not numbers:
        return None
    named = _named([f"[{number}]" for number in numbers])
    return Flaw(
        FlawKind.OWN_NUMBERS,
        f"{{it}} numbers references of its own ({named}), which lead to no stored source",
        own(
            "report.md numbers references itself ({named}). Cite sources by the ids that tools showed, such as [S12]: "
            "numbers and the list of references are made from them.",
            named=named,
        ),
    )


def _own_references(body: str) -> Flaw | None:
    entries = list(_entries(body))
    if not entries:
        return None
    return Flaw(
        FlawKind.OWN_REFERENCES,
        f"{{it}} has a list of references of its own ({len(entries)} entries), which leads to no stored source",
        own(
            "report.md has a list of references of its own. Take it out: the list is made from the ids you cite, such "
            "as [S12]."
        ),
    )


def _entries(body: str) -> Iterator[str]:
    """Yield entries below a heading that announces references, and footnotes; those with an id are ours."""
    level = 0
    for line in _without_code(body).split("\n"):
        heading = HEADING.match(line)
        if heading and level and len(heading[1]) <= level:
            level = 0
        title = re.sub(r"[*_]", "", (heading[2] or "") if heading else "").strip()
        if heading and REFERENCES.fullmatch(title):
            level = len(heading[1])
        is_entry = (level and not heading and ENTRY.match(line)) or DEFINITION.match(line)
        if is_entry and not KNOWN_ID.search(line):
            yield line


def _unknown_links(body: str, sources: Mapping[str, Source], text_of: TextOf, asked: str) -> Flaw | None:
    keys = {page_key(address): address for address in _addresses(_without_commands(body)) if not _is_nobodys(address)}
    known = {page_key(source.url) for source in sources.values()} | {page_key(one) for one in _addresses(asked)}
    # The front page of a site that a source is from: named for orientation, not as evidence.
    known |= {key.partition("/")[0] for key in known}
    unknown = {key: address for key, address in keys.items() if key not in known}
    for identifier in sources if unknown else ():
        unknown = dict(_not_named(unknown, text_of(identifier) or ""))
        if not unknown:
            break
    if not unknown:
        return None
    named = _named(list(unknown.values()))
    pages = "a page" if len(unknown) == 1 else f"{len(unknown)} pages"
    return Flaw(
        FlawKind.UNKNOWN_LINKS,
        f"{{it}} links to {pages} that no stored source has ({named})",
        own(
            "report.md links to addresses that no stored source has: {named}. Link only to addresses that a source is "
            "or names, exactly as it names them; take the others out.",
            named=named,
        ),
    )


def _addresses(text: str) -> Iterator[str]:
    for found in ADDRESS.finditer(text):
        address = found[0].rstrip(AFTER_ADDRESS)
        # A bracket that was opened before the address is not a part of it.
        while address.endswith(")") and address.count(")") > address.count("("):
            address = address[:-1].rstrip(AFTER_ADDRESS)
        yield address


def _not_named(unknown: Mapping[str, str], text: str) -> Iterator[tuple[str, str]]:
    """Yield those of the addresses that a source's text does not name, in whatever spelling."""
    named, lowered = {page_key(one) for one in _addresses(text)}, text.lower()
    for key, address in unknown.items():
        if key not in named and key.lower() not in lowered and SCHEME_AND_WWW.sub("", address).lower() not in lowered:
            yield key, address


def _is_nobodys(address: str) -> bool:
    """Return whether an address leads to the reader's own machine or to a domain reserved for examples (RFC 2606)."""
    host = host_of(address).removeprefix("www.")
    return host in NOBODYS_HOSTS or host.endswith((".localhost", ".example.com", ".example.org", ".example.net"))


def _without_commands(body: str) -> str:
    """Return a text without code, but with code that is an address alone: so do some writers name a source."""
    return CITATION.sub(lambda found: found[0] if _is_ours(found) or ADDRESS_ALONE.fullmatch(found[0]) else " ", body)


def _uncited(body: str, sources: Mapping[str, Source], verification: Verification) -> Flaw | None:
    uncited, cited = len(verification.uncited), len(verification.claims)
    if not any(one in sources for one in cited_ids(body)):
        facts = f", although {_sentences(uncited)} a quote or a figure" if uncited else ""
        return Flaw(
            FlawKind.UNCITED,
            f"{{it}} cites no source{facts}",
            own(
                "report.md cites no source. Put the id of its source, such as [S12], after each claim; take out what "
                "no source says."
            ),
        )
    if uncited < LEAST_UNCITED or uncited <= cited:
        return None
    first = "; ".join(f"line {one.line}: {one.sentence[:120]}" for one in verification.uncited[:MAX_NAMED])
    return Flaw(
        FlawKind.UNCITED,
        f"in {{it}}, {_sentences(uncited)} a quote or a figure without a citation, and only {cited} cite a source",
        own(
            "{count} of the sentences in report.md have a quote or a figure and no citation ({first}). Put the id of "
            "its source after each, or take the statement out.",
            count=uncited,
            first=first,
        ),
    )


def _sentences(count: int) -> str:
    return "1 sentence has" if count == 1 else f"{count} sentences have"


def _named(items: Iterable[str]) -> str:
    listed = list(items)
    more = ", ..." if len(listed) > MAX_NAMED else ""
    return ", ".join(listed[:MAX_NAMED]) + more


def _without_code(body: str) -> str:
    """Return a text without code; its citations and lines stay, and comments, which a report shows as text."""
    return CITATION.sub(lambda found: found[0] if _is_ours(found) else "\n" * found[0].count("\n"), body)


def _is_ours(found: "re.Match[str]") -> bool:
    """Return whether a text is a citation, or an id as the engine's references name it."""
    return found["ids"] is not None or KNOWN_ID.fullmatch(found[0]) is not None


def _prose(body: str) -> str:
    """Return what the writer says: no code, no quotes of others, which may bring numbers of their own."""
    lines = [line for line in _without_code(body).split("\n") if not line.lstrip().startswith(">")]
    return QUOTED.sub(" ", CITATION.sub(" ", "\n".join(lines)))
