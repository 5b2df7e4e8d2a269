"""What is checked is what a reader reads: the rendered report, with its references turned back."""

from pathlib import Path

import pytest

from explorer.reports.render import render
from explorer.reports.verify.check import check
from explorer.reports.verify.results import cited_in, draft_of
from explorer.schema.errors import NotFoundError
from explorer.text.citations import with_source_ids
from explorer.text.frontmatter import with_frontmatter
from explorer.workspace.workspace import Workspace
from reports.verify.shelf import source

TEXTS = {"S4": "It weighs 40 kg.", "S7": "它重 40 公斤。"}
SOURCES = {name: source(name, text) for name, text in TEXTS.items()}
DRAFT = "# T\n\nIt weighs 40 kg [S7, S4]. See `list[1]` and [a link](x).\n\n```\nx[1]\n```\n\nIt is heavy [S9].\n"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_rendered_report_is_turned_back(language: str) -> None:
    """Numbers become ids again, line by line; code and links stay; a missing source stays missing."""
    report = with_frontmatter({"question": "q"}, render(DRAFT, SOURCES, language).text)
    back = with_source_ids(report)
    assert "It weighs 40 kg [S7][S4]. See `list[1]` and [a link](x)." in back
    assert "x[1]" in back
    assert back.count("\n") == report.count("\n")
    found = check(back, SOURCES, TEXTS.get)
    assert [str(claim.verdict) for claim in found.claims] == ["supported", "source_missing"]
    assert report.splitlines()[found.claims[0].line - 1].startswith("It weighs 40 kg")


def test_which_file_is_checked(tmp_path: Path) -> None:
    """report.md as it stands, before the draft that is kept beside it; without both there is nothing to check."""
    workspace = Workspace(tmp_path)
    with pytest.raises(NotFoundError):
        draft_of(workspace)
    workspace.write_own(".explorer/draft.md", "The draft weighs 40 kg [S4].")
    assert draft_of(workspace).path == ".explorer/draft.md"
    workspace.write_own("report.md", "It weighs 40 kg [S4].")
    assert draft_of(workspace) == ("report.md", "It weighs 40 kg [S4].")


def test_which_files_cite_a_source(tmp_path: Path) -> None:
    """Findings and the report are told for each id, in order; code cites nothing."""
    workspace = Workspace(tmp_path)
    workspace.write_own("report.md", render(DRAFT, SOURCES, "en").text)
    workspace.write_own("notes/b.md", "a [S4], `x[S7]`")
    workspace.write_own("notes/a.md", "b [S4]")
    assert cited_in(workspace, draft_of(workspace)) == {
        "S4": ["notes/a.md", "notes/b.md", "report.md"],
        "S7": ["report.md"],
        "S0": ["report.md"],
    }
