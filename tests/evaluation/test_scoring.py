"""What is measured of a report: answers as people write them, and honest intervals."""

import pytest

from explorer.evaluation.questions import EvalQuestion
from explorer.evaluation.scoring import Score, answer_part, is_in, pairs, score_text, share_of, shares


@pytest.mark.parametrize(
    ("answer", "text", "is_there"),
    [
        ("412 metres", "The towers are **412 metres** tall [S1].", True),
        ("412 metres", "The towers are 4,412 metres tall.", False),
        ("The Hague", "It sits in Hague, near the sea.", True),
        ("Ada Renn", "ADA RENN, an astronomer", True),
        ("Ada", "Adam was there", False),
        ("Malmo", "near Malmö", True),
        ("1200", "It has 1,200 seats.", True),
        ("5.5", "5.5 %", True),
        ("5.5", "15.5 %", False),
        ("", "anything", False),
        ("320 公里", "最高时速 320 公里 。", True),
    ],
)
def test_an_answer_is_found_as_whole_words(answer: str, text: str, is_there: bool) -> None:  # noqa: FBT001
    """Without case, accents, articles and marks; never inside of another word or number."""
    assert is_in(answer, text) is is_there


def test_an_answer_counts_where_a_reader_looks_first() -> None:
    """In the first paragraphs it is right; further down it is only found."""
    question = EvalQuestion(id="q", question="How tall?", answers=("412 metres", "412 m"))
    first = score_text(question, "# Bridge\n\n> **Partial:** cut off\n\nIt is 412 m tall.\n")
    assert (first.right, first.found) == (True, True)
    late = score_text(question, f"# Bridge\n\n{'It is old. ' * 80}\n\nIt is 412 m tall.\n")
    assert (late.right, late.found) == (False, True)
    assert score_text(question, "") == Score(id="q", status="complete", right=False, found=False)
    assert answer_part("# Title\n\n> **Partial:** x\n\nText.") == "Text."


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (263, 300, 0.8346, 0.9093)],
)
def test_intervals_are_those_of_wilson(count: int, n: int, low: float, high: float) -> None:
    """They stay between 0 and 1, and are never of no width."""
    share = share_of(count, n)
    assert (share.low, share.high) == (pytest.approx(low, abs=5e-4), pytest.approx(high, abs=5e-4))


def test_pairs_are_compared_question_by_question() -> None:
    """Only questions in which one side alone is right count; five to none is chance in one case of sixteen."""

    def scored(answers: str) -> list[Score]:
        rights = {"+": True, "-": False, "?": None}
        return [Score(id=str(number), status="complete", right=rights[one]) for number, one in enumerate(answers)]

    found = pairs(scored("+++++-?"), scored("------+"))
    assert (found.better, found.worse, found.chance) == (5, 0, pytest.approx(0.0625))
    assert pairs(scored("+"), scored("+")).chance == 1.0
    assert pairs(scored("+-"), scored("-+")).chance == 1.0


def test_what_does_not_apply_is_not_counted() -> None:
    """A question without a known answer is none that is answered wrong, and an empty sample has no share."""
    measured = shares([Score(id="a", status="complete"), Score(id="b", status="complete", right=True)])
    assert (measured["right"].count, measured["right"].n) == (1, 1)
    assert measured["documents cited"].n == 0
    assert (measured["documents cited"].low, measured["documents cited"].high) == (0.0, 1.0)
