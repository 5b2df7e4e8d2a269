"""Citations as their writer made them, out of a finished report."""

from explorer.reports.compare import cited_sentences
from explorer.reports.verify.sentences import sentences
from explorer.text.citations import cited_ids, with_source_ids, without_references

REPORT = """---
status: complete
---

# May

Output rose by 12 % [1]. See `row[1]` and [1](https://example.org/a). It fell in June [2].

## References

1. Log. https://example.org/log `S3`
2. Note. https://example.org/note `S7`

## Update of June

Nothing new.
"""


def test_numbers_become_ids_where_they_cite() -> None:
    """Not in code and not as a link's words; lines stay where they are, and a heading below does not matter."""
    back = with_source_ids(REPORT)
    assert "12 % [S3]. See `row[1]` and [1](https://example.org/a). It fell in June [S7]." in back
    assert len(back.splitlines()) == len(REPORT.splitlines())


def test_a_draft_is_returned_as_it_is() -> None:
    """It has ids already, and may have numbers in brackets of its own."""
    draft = "# May\n\nOutput rose [S3] in area [1].\n"
    assert with_source_ids(draft) == draft
    assert cited_ids(draft) == ["S3"]


def test_checking_and_comparing_read_one_report_alike() -> None:
    """`verify` and `diff` find the same citations in the same sentences."""
    checked = [(one.line, one.ids) for one in sentences(with_source_ids(REPORT)) if one.ids]
    compared = [(one.line, one.ids) for one in cited_sentences(REPORT, {}, str)]
    assert compared == checked
    assert {name for _, ids in checked for name in ids} == {"S3", "S7"}


def test_a_report_without_its_references() -> None:
    """The list and the links below it are cut off; a draft, and a section of that name without a list, stay."""
    report = "# A\n\nText [1].\n\n## References\n\n1. [A](<https://a.example>) `S1`\n\nFurther links\n"
    assert without_references(report) == "# A\n\nText [1].\n"
    for draft in ("# A\n\nText [S1].\n", "# A\n\n## References\n\nSee the archive.\n"):
        assert without_references(draft) == draft
