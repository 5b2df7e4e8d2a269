"""Citations in a draft, `[S12]`, and in a finished report, `[3]` with a list of references."""

import re

IDS = r"\[S\d+(?:\s*[,;]\s*S\d+)*\]"
CITATION = re.compile(
    rf"^(?P<fence>`{{3,}}+(?![^\n]*`)|~{{3,}}+).*?^(?P=fence)|`(?!{IDS}`)[^`\n]+`|(?P<tick>`?)(?P<ids>{IDS})(?P=tick)",
    re.MULTILINE | re.DOTALL,
)
"""`[S12]` and `[S12, S13]`. Code matches too, without ids, so that `row[S1]` in code cites nothing."""
HEADING_REFERENCES = {"en": "References", "zh": "参考来源", "de": "Quellenverzeichnis"}
MISSING = "[source missing]"
MISSING_ID = "S0"
"""The id of a citation whose source is missing in the report; ids of sources begin at 1."""
HEADING = re.compile(rf"^## (?:{'|'.join(HEADING_REFERENCES.values())})[ \t]*$", re.MULTILINE)
REFERENCE = re.compile(r"^(\d+)\. .*`(S\d+)`[ \t]*$", re.MULTILINE)
NUMBERED = re.compile(
    rf"^(?P<fence>`{{3,}}+(?![^\n]*`)|~{{3,}}+).*?^(?P=fence)|`[^`\n]+`|\[(?P<number>\d+)\](?![(:])|(?P<missing>{re.escape(MISSING)})",
    re.MULTILINE | re.DOTALL,
)


def cited_ids(text: str) -> list[str]:
    """Return all ids cited in a text, in order, with repetitions."""
    return [identifier for found in CITATION.finditer(text) for identifier in re.findall(r"S\d+", found["ids"] or "")]


def listed_references(report: str) -> list[tuple[str, str]]:
    """Return the number and the id of each entry of a finished report's list of references; none of a draft."""
    headings = list(HEADING.finditer(report))
    return REFERENCE.findall(report, headings[-1].start()) if headings else []


def without_references(report: str) -> str:
    """Return a finished report without the list of references and what follows it; a draft is returned as it is."""
    headings = list(HEADING.finditer(report))
    if not headings or not REFERENCE.search(report, headings[-1].start()):
        return report
    return report[: headings[-1].start()].rstrip() + "\n"


def with_source_ids(report: str) -> str:
    """Return a finished report with `[S12]` in the place of `[3]`, on the same lines; a draft is returned as it is."""
    headings = list(HEADING.finditer(report))
    if not headings:
        return report
    place = headings[-1].start()
    ids = dict(REFERENCE.findall(report, place))
    if not ids:
        return report

    def cited(found: "re.Match[str]") -> str:
        if found["missing"]:
            return f"[{MISSING_ID}]"
        return f"[{ids[found['number']]}]" if found["number"] in ids else found[0]

    return NUMBERED.sub(cited, report[:place]) + report[place:]
