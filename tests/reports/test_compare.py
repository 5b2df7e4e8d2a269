import re
from dataclasses import replace
from pathlib import Path

import pytest

from engine_stage import compare_with_golden
from explorer.reports.compare import Comparison, cited_sentences, compare_runs, comparison_page, snapshot_on_disk
from explorer.schema.errors import JournalDamagedError, NotFoundError
from explorer.schema.events import Source
from explorer.text.urls import url_key
from made_runs import A, B, make_run, page, two_runs

ENOUGH = "A report needs a few words more than this before it is taken for one at all."


async def compared(workspace: Path) -> Comparison:
    """The two runs beside each other."""
    first, second = await two_runs(workspace)
    return compare_runs(snapshot_on_disk(first), snapshot_on_disk(second))


async def test_what_is_new_gone_and_changed_is_told_by_claim_and_source(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The whole page: both texts of a changed claim with their lines, and the figures that differ."""
    page_of_both = comparison_page(await compared(tmp_path))
    # Counted from the title: frontmatters grow.
    title = (tmp_path / A / "report.md").read_text().splitlines().index("# The plant in May") + 1
    shown = re.sub(r"line (\d+)", lambda found: f"line title+{int(found[1]) - title}", page_of_both)
    compare_with_golden(request, "diff.md", shown)


@pytest.mark.slow
async def test_claims_are_matched_by_address_and_words(tmp_path: Path) -> None:
    """Wherever in the report they stand; a changed number, quote or numeral makes a changed claim."""
    found = await compared(tmp_path)
    changed = {one.after.text[:12]: one.changes for one in found.changed_claims if one.after is not None}
    assert changed["The story ab"] == ("points 120 → 340", "comments 33 → 88")
    assert changed["The harbour "] == ("12 → 21",)
    assert changed["电站发电量增长了百分之二"] == ("十二 → 二十",)
    (quote,) = (one for one in found.changed_claims if "Keller" in str(one.after))
    assert any(change.startswith("“Nobody wanted") and "→ “Everybody" in change for change in quote.changes)
    assert [str(one.after and one.after.text)[:14] for one in found.new_claims] == ["A second field"]
    assert [str(one.before and one.before.text)[:11] for one in found.gone_claims] == ["The council"]
    assert found.same_claims == 1


async def test_lines_are_those_of_the_report_as_it_stands(tmp_path: Path) -> None:
    """Also below the frontmatter, and where a sentence begins in the middle of a line."""
    found = await compared(tmp_path)
    report = (tmp_path / B / "report.md").read_text().splitlines()
    for one in found.changed_claims:
        assert one.after is not None
        assert one.after.text[:12] in report[one.after.line - 1]


@pytest.mark.slow
async def test_sources_are_matched_by_canonical_address(tmp_path: Path) -> None:
    """Tracking and slashes do not count; a search's passage of the same page is no change; cited ones come first."""
    found = await compared(tmp_path)
    assert [one.url for one in found.new_sources] == ["https://plant.example/decision"]
    assert [one.url for one in found.gone_sources] == ["https://plant.example/old-hit"]
    assert [(one.kind, one.before, one.after, one.changes) for one in found.changed_sources] == [
        ("page", "S1", "S1", ("12 → 21",)),
        ("story", "S2", "S2", ("points 120 → 340", "comments 33 → 88")),
        ("page", "S5", "S6", ()),
    ]
    assert found.same_sources == 3


async def test_each_changed_text_is_read_and_compared_once(tmp_path: Path) -> None:
    """Comparing texts takes most of the time of two large runs."""
    first, second = map(snapshot_on_disk, await two_runs(tmp_path))
    read: list[str] = []

    def reading(source: Source) -> str:
        read.append(source.id)
        return first.read(source)

    found = compare_runs(replace(first, read=reading), second)
    assert sorted(read) == sorted(one.before for one in found.changed_sources)


async def test_a_run_that_found_the_same_does_not_differ(tmp_path: Path) -> None:
    """In another order, under other ids, with other words around the same claims."""
    pages = [page("https://a.example/1", "One."), page("https://a.example/2", "Two.")]
    output = "It rose by 12 % in May, as the log has it [S{}]. The battery was replaced on 3 June [S{}]. " + ENOUGH
    first = await make_run(tmp_path, A, pages, output.format(1, 2))
    second = await make_run(tmp_path, B, pages[::-1], "# More\n\n" + output.format(2, 1))
    found = compare_runs(snapshot_on_disk(first), snapshot_on_disk(second))
    assert not found.differs
    assert (found.same_claims, found.same_sources) == (2, 2)


async def test_the_same_claim_on_another_source_is_a_change(tmp_path: Path) -> None:
    """Nothing in its words differs, but what it rests on does."""
    pages = [page("https://a.example/1", "One."), page("https://a.example/2", "Two.")]
    output = "It rose by twelve percent in May, as the log of the plant has it [S{}]. " + ENOUGH
    sides = [snapshot_on_disk(await make_run(tmp_path, run, pages, output.format(n))) for run, n in ((A, 1), (B, 2))]
    (one,) = compare_runs(*sides).changed_claims
    assert one.changes == ("cites another source",)


async def test_a_run_without_a_report_has_sources_to_compare(tmp_path: Path) -> None:
    """All claims of the other are new; a stored text that was damaged has no figures to tell of."""
    first, second = await two_runs(tmp_path)
    (first / "report.md").unlink()
    stored = first / ".explorer" / "sources" / "S2.md"
    stored.write_text(stored.read_text().replace("120 points", "999 points"))
    found = compare_runs(snapshot_on_disk(first), snapshot_on_disk(second))
    assert (len(found.new_claims), found.gone_claims, found.same_claims) == (6, (), 0)
    assert next(one.changes for one in found.changed_sources if one.kind == "story") == ()


async def test_what_is_no_run_cannot_be_compared(tmp_path: Path) -> None:
    """A folder without a journal, and a journal that is damaged in the middle, are told as such."""
    with pytest.raises(NotFoundError):
        snapshot_on_disk(tmp_path)
    first, _ = await two_runs(tmp_path)
    journal = first / ".explorer" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"question":"How', b'"question":"Now', 1))
    with pytest.raises(JournalDamagedError):
        snapshot_on_disk(first)


@pytest.mark.slow
async def test_a_list_that_is_too_long_is_cut_on_the_page(tmp_path: Path) -> None:
    """The page says how many more there are."""
    found = await compared(tmp_path)
    many = found.model_copy(update={"new_sources": found.new_sources * 60})
    assert "- ... and 20 more" in comparison_page(many)


def test_marks_that_are_no_references_cite_nothing() -> None:
    """A number in brackets is a citation only when the references have it."""
    text = "# T\n\nSee [2] and [7] here.\n\nPlain [9].\n\n## References\n\n2. Title. a.example `S4`\n"
    (one,) = cited_sentences(text, {}, url_key)
    assert (one.line, one.ids, one.addresses) == (3, ("S4",), ())
