"""What is checked: the report as a reader has it, with its references turned back into ids."""

import re
from typing import NamedTuple

from explorer.errors import NotFoundError, ToolError
from explorer.report import HEADING_REFERENCES, MISSING
from explorer.verify.claims import MISSING_ID
from explorer.workspace import Workspace

REPORT = "report.md"
DRAFT = ".explorer/draft.md"
HEADING = re.compile(rf"^## (?:{'|'.join(HEADING_REFERENCES.values())})[ \t]*$", re.MULTILINE)
REFERENCE = re.compile(r"^(\d+)\. .*`(S\d+)`[ \t]*$", re.MULTILINE)
NUMBERED = re.compile(
    rf"^(?P<fence>```+|~~~+).*?^(?P=fence)|`[^`\n]+`|\[(?P<number>\d+)\](?![(:])|(?P<missing>{re.escape(MISSING)})",
    re.MULTILINE | re.DOTALL,
)


class Draft(NamedTuple):
    """A text with `[S12]` citations, and the file whose lines it has."""

    path: str
    text: str


def draft_of(workspace: Workspace) -> Draft:
    """The report of a run: as it was rendered, as an agent just wrote it, or its draft when there is no other.

    Raises:
        NotFoundError: There is none.
    """
    for path in (REPORT, DRAFT):
        try:
            return Draft(path, unrendered(workspace.read_text(path)))
        except ToolError:
            continue
    name = workspace.folder.name
    raise NotFoundError(f"run {name} has no report to check", hint=f"finish it: explorer resume {name}")


def unrendered(report: str) -> str:
    """A report with `[S12]` in the place of `[3]`, line by line the same; one that was not rendered stays as it is."""
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
