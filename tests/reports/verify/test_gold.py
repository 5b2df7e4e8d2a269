"""The gold set: clean sentences raise no alarm, every planted fault is found, and what no program sees is said so."""

from collections import Counter

import pytest

from explorer.reports.verify.check import check
from explorer.reports.verify.claims import Verdict
from reports.verify.shelf import gold_shelf, rows

SOURCES, TEXTS = gold_shelf()
CLEAN, PLANTED, HONEST = rows("clean.jsonl"), rows("planted.jsonl"), rows("honest.jsonl")


def _verdicts(text: str) -> list[str]:
    return [str(claim.verdict) for claim in check(text, SOURCES, TEXTS.get).claims]


def _is_chinese(text: str) -> bool:
    return any("\u4e00" <= character <= "\u9fff" for character in text)


def test_the_gold_set_is_large_enough() -> None:
    """Sixty clean sentences and thirty faults at least, a good part of each in Chinese."""
    assert len(CLEAN) >= 60
    assert len(PLANTED) >= 30
    assert sum(_is_chinese(row["text"]) for row in CLEAN) >= 15
    assert sum(_is_chinese(row["text"]) for row in PLANTED) >= 10


@pytest.mark.parametrize("row", CLEAN, ids=lambda row: row["text"][:60])
def test_a_clean_sentence_raises_no_alarm(row: dict[str, str]) -> None:
    """It has the verdict that a careful reader would give it."""
    found = _verdicts(row["text"])
    assert found
    assert set(found) == {row["verdict"]}


@pytest.mark.parametrize("row", PLANTED, ids=lambda row: row["fault"] + ": " + row["text"][:50])
def test_a_planted_fault_is_found(row: dict[str, str]) -> None:
    """What the source does not say is told as not found; an id that no source has as missing."""
    assert _verdicts(row["text"]) == [row.get("verdict", "not_found")]


@pytest.mark.parametrize("row", HONEST, ids=lambda row: row["why"][:60])
def test_what_no_program_sees_is_not_claimed(row: dict[str, str]) -> None:
    """Where meaning, not words, decides, the verdict says no more than what was looked up."""
    assert _verdicts(row["text"]) == [row["verdict"]]


@pytest.mark.slow
def test_a_fault_is_explained() -> None:
    """Every finding that is not there says in which sources it was sought, for the writer to mend it."""
    for row in PLANTED:
        for claim in check(row["text"], SOURCES, TEXTS.get).claims:
            assert claim.reason
            for finding in claim.findings:
                if finding.verdict is Verdict.NOT_FOUND:
                    assert finding.reason.startswith("not in S")


def test_counts_of_the_whole_set() -> None:
    """The counts of one report with all sentences are those of the sentences, and add up."""
    draft = "\n\n".join(row["text"] for row in [*CLEAN, *PLANTED])
    verification = check(draft, SOURCES, TEXTS.get)
    counts = verification.counts
    assert counts["total"] == sum(counts[str(verdict)] for verdict in Verdict)
    assert (
        counts["not_found"] + counts["elsewhere"] + counts["source_missing"] == len(PLANTED) == len(verification.faults)
    )
    shown = Counter(str(claim.verdict) for claim in verification.claims)
    assert shown == Counter({name: number for name, number in counts.items() if name != "total" and number})
