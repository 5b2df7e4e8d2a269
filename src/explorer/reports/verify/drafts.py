"""What is checked: the report as a reader has it, with its references turned back into ids."""

from typing import NamedTuple

from explorer.schema.errors import NotFoundError, ToolError
from explorer.text.citations import with_source_ids
from explorer.workspace.workspace import Workspace

REPORT = "report.md"
DRAFT = ".explorer/draft.md"


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
            return Draft(path, with_source_ids(workspace.read_text(path)))
        except ToolError:
            continue
    name = workspace.folder.name
    raise NotFoundError(f"run {name} has no report to check", hint=f"finish it: explorer resume {name}")
