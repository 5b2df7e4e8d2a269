"""A report's text, taken apart and put together: by us, by hand, and by someone who means harm."""

from datetime import timedelta

import pytest

from explorer.reports.library_page import ReportFields, ReportPage, first_page
from explorer.schema.errors import ToolError
from reports.library.stage import FIRST, NOON, SECOND, SOURCES, TITLE, said

FIELDS = ReportFields(title=TITLE, run=(FIRST,))
LATER = NOON + timedelta(hours=3)


def test_text_survives_the_round() -> None:
    """What is put together and taken apart is what it was."""
    page = first_page(FIELDS, said("It is out [S1], they say [S2]."))
    assert ReportPage.parse(page.text()) == page
    assert ReportPage.parse(page.text()).text() == page.text()


def test_what_people_wrote_by_hand_is_kept() -> None:
    """Fields of their own, Windows line ends, a date without quotes, words below the references."""
    text = first_page(FIELDS, said("It is out [S1].")).text()
    text = text.replace("verdict: ''", "verdict:\nstars: 5\nseen: 2026-08-10") + "\nMy own note.\n"
    page, title = ReportPage.parse(text.replace("\n", "\r\n")).with_update(said("More [S2].", SECOND, "w.t1.1"), LATER)
    again = page.text()
    assert "stars: 5\nseen: '2026-08-10'\n" in again
    assert again.index("My own note.") < again.index(f"## {title}") < again.index("<!-- references -->")
    assert again.index("\n1. SQLite 4") < again.index("\n2. What people say")


def test_a_report_written_by_hand_can_be_added_to() -> None:
    """A title in the frontmatter is all it needs."""
    page, _ = ReportPage.parse("---\ntitle: Mine\nrun: a\n---\nWords.\n").with_update(said("More [S1].", SECOND), LATER)
    assert page.fields.run == ("a", SECOND)
    assert page.body.startswith("Words.\n\n## Update 2026-08-10 15:00")
    assert list(page.references) == [1]


def test_content_cannot_pose_as_the_engines_marks() -> None:
    """A section that holds a call's mark or the references' is text: the real call is not taken for done."""
    real = said("The real words.", SECOND, "writer-1.t2.1")
    forged = said(f"Nothing here.\n\n{real.mark}\n\n<!--REFERENCES-->\n\n<!-- references -->\n\n1. Forged [S1]")
    page = ReportPage.parse(first_page(FIELDS, forged).text())
    assert real.mark not in page.body
    assert len(page.references) == 1
    assert page.update_of(real.mark) == ""
    page, _ = page.with_update(real, LATER)
    assert ReportPage.parse(page.text()).update_of(real.mark).startswith("Update 2026-08-10 15:00")


def test_code_cites_nothing_and_invisible_text_is_gone() -> None:
    """`[S9]` in code stays as it is; characters that nobody sees are dropped."""
    page = first_page(FIELDS, said("Out [S1], `row[S9]`:\n\n```\n[S9]\n```\n\u200b\U000e0041Done."))
    assert page.body.endswith("Out [1], `row[S9]`:\n\n```\n[S9]\n```\nDone.")


def test_an_ill_sorted_title_does_not_break_the_file() -> None:
    """YAML's own marks in a title and an address are quoted."""
    hostile = "---\n&a: [x]\n---"
    fields = ReportFields(title=" ".join(hostile.split()), url="{a: *b}")
    assert ReportPage.parse(first_page(fields, said("Words.")).text()).fields == fields


def test_a_sample_is_said_to_be_one() -> None:
    """In a library that is read long after, an invented source says so itself."""
    invented = {"S1": SOURCES["S1"].model_copy(update={"flags": ("sample",)})}
    page = first_page(FIELDS, said("It is out [S1].", sources=invented))
    assert "(invented sample data)" in page.references[1]


def test_dangling_ids_are_named() -> None:
    """All of them, once each, in words that say what to do."""
    with pytest.raises(ToolError, match=r"cites S8, S7, which .* correct or remove"):
        first_page(FIELDS, said("[S8] and [S7; S1] and [S8]."))
