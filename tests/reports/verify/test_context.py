"""Whether a source says a figure, a quote or a statement of the same: who, when, and which way round."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from explorer.reports.verify.check import check
from explorer.reports.verify.claims import (
    Claim,
    Judgements,
    Opinion,
    Verdict,
    with_unsupported_marks,
    without_unsupported_marks,
    words_for_writer,
)
from reports.verify.shelf import source

TEXT = (
    "Asker Ferries carried 2.4 million passengers in 2024, up from 1.9 million in 2023. Brandal Lines carried "
    "3.1 million passengers in 2024.\n\nThe crossing takes 90 minutes. A third of the ships are new. “Cars follow the "
    "bridge,” said Ida Holm of Asker Ferries. Brandal's director, Peter Strand, said the bridge did not reduce traffic."
)


def _bench() -> Any:  # noqa: ANN401 - a script's module, which no package holds
    path = Path(__file__).resolve().parents[3] / "bench" / "citations.py"
    spec = importlib.util.spec_from_file_location("bench_citations", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def _one(sentence: str) -> Claim:
    (claim,) = check(sentence, {"S1": source("S1", TEXT)}, {"S1": TEXT}.get).claims
    return claim


@pytest.mark.parametrize(
    "sentence",
    [
        "Brandal Lines carried 2.4 million passengers [S1].",
        "Asker's passenger numbers fell from 2.4 million to 1.9 million [S1].",
        "“Cars follow the bridge,” said Peter Strand [S1].",
        "Peter Strand said the bridge reduced traffic [S1].",
    ],
)
def test_what_a_source_says_otherwise(sentence: str) -> None:
    """Another company, another direction, another speaker, a negation: elsewhere, with the source's own sentences."""
    claim = _one(sentence)
    assert claim.verdict is Verdict.ELSEWHERE
    (finding,) = [one for one in claim.findings if one.verdict is Verdict.ELSEWHERE][:1]
    assert finding.passages
    assert all(passage in " ".join(TEXT.translate({0x201C: '"', 0x201D: '"'}).split()) for passage in finding.passages)


@pytest.mark.parametrize(
    "sentence",
    [
        "Asker Ferries carried 2.4 million passengers [S1].",
        "The crossing takes an hour and a half, or 1.5 hours [S1].",
        "About 33 percent of the ships are new [S1].",
        "Two and a half years ago nobody knew this; 2.4 million passengers came in 2024 [S1].",
        "阿斯克渡轮 2024 年运送乘客 240 万人次 [S1]。",
        "“Cars follow the bridge,” Ida Holm said [S1].",
    ],
)
def test_what_a_source_says_in_other_words(sentence: str) -> None:
    """Other units, parts, languages and word order raise no alarm."""
    assert _one(sentence).verdict is not Verdict.ELSEWHERE


def test_the_writer_sees_both_passages() -> None:
    """What the source says there, and of the sentence's own subject, fenced as an outsider's."""
    found = check("Brandal Lines carried 2.4 million passengers [S1].", {"S1": source("S1", TEXT)}, {"S1": TEXT}.get)
    words = words_for_writer(found)
    assert "<<untrusted " in words
    assert "Asker Ferries carried 2.4 million" in words
    assert "Brandal Lines carried 3.1 million" in words


def test_unsupported_sentences_carry_a_mark() -> None:
    """The mark is at the end of the line, in a row before its last bar; a check of the marked text finds the same."""
    wrong = "Asker carried 9.9 million passengers [S1].\n\n| Asker | 8.8 million [S1] |"
    draft = f"{wrong}\n\nThe crossing takes 90 minutes [S1]."
    shelf = {"S1": source("S1", TEXT)}
    found = check(draft, shelf, {"S1": TEXT}.get)
    marked = with_unsupported_marks(draft, found)
    assert marked.split("\n")[0].endswith("[S1]. ⚠")
    assert marked.split("\n")[2].endswith("[S1] ⚠ |")
    assert marked.count("⚠") == 2
    assert check(marked, shelf, {"S1": TEXT}.get) == found
    assert with_unsupported_marks(marked, found) == marked
    assert without_unsupported_marks(marked) == draft


def test_agreement_counts_what_both_decide() -> None:
    """What a judge leaves open, and what the rules leave open, is not compared."""
    verdicts = [Verdict.SUPPORTED, Verdict.ELSEWHERE, Verdict.SUPPORTED, Verdict.UNCHECKED, Verdict.SUPPORTED]
    claims = [Claim(sentence="x", line=1, ids=("S1",), verdict=verdict) for verdict in verdicts]
    answers = (Opinion.CARRIED, Opinion.NOT_CARRIED, Opinion.NOT_CARRIED, Opinion.CARRIED, None)
    assert Judgements(model="m", answers=answers).agreement(claims) == {"compared": 3, "agreed": 2}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least_found", "most_alarms"), [("dev", 0.9, 0.05), ("heldout", 0.8, 0.12)])
def test_the_shares_of_both_sets(name: str, least_found: float, most_alarms: float) -> None:
    """The check does not fall behind the shares that docs/citation_check.md gives."""
    bench = _bench()
    *_, false, true = bench.rows(bench.answers(name))
    assert false.alarms >= least_found * false.n
    assert true.alarms <= most_alarms * true.n
