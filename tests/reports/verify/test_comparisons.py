"""Comparisons whose figures say the opposite, and short statements with a word in another form."""

import pytest

from explorer.reports.verify.check import check
from reports.verify.shelf import source

ARAL = "The Aral pump moves 60 litres a minute. It uses 450 watts. It weighs 11 kilograms and costs 310 euros."
BELT = "The Belt pump moves 55 litres a minute. It uses 380 watts. It weighs 13 kilograms and costs 355 euros."
MUSEUM = "In 2022 the museum had 41,750 visitors. In 2023 it had 48,200 visitors. The entrance fee stayed at 9 euros."
LIGHTHOUSE = (
    "The lighthouse at Sandvik was built for the fishing harbour. It was designed by Ingrid Moberg, who also drew the "
    "town's school. The builder was the firm Hallen & Sons."
)


def verdict(claim: str, *texts: str) -> str:
    """The verdict on a sentence that cites all of the texts."""
    by_id = {f"S{number}": text for number, text in enumerate(texts, start=1)}
    marks = " ".join(f"[{name}]" for name in by_id)
    sources = {name: source(name, text) for name, text in by_id.items()}
    (found,) = check(f"{claim} {marks}.", sources, by_id.get).claims
    return str(found.verdict)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("The Belt pump uses less power than the Aral pump", "The Aral pump uses less power than the Belt pump"),
        ("The Aral pump costs less than the Belt pump", "The Belt pump costs less than the Aral pump"),
        ("The Aral moves more litres a minute than the Belt", "The Belt moves more litres a minute than the Aral"),
    ],
)
def test_two_figures_decide_a_comparison(right: str, wrong: str) -> None:
    """They may be in two sources; without one of them, nothing is said."""
    assert verdict(right, ARAL, BELT) != "elsewhere"
    assert verdict(wrong, ARAL, BELT) == "elsewhere"
    assert verdict(wrong, ARAL) == verdict(wrong, BELT) == "unchecked"


def test_two_years_are_compared_as_two_names_are() -> None:
    """Their figures are those of the sentences that name them."""
    assert verdict("The museum had more visitors in 2023 than in 2022", MUSEUM) == "supported"
    assert verdict("The museum had fewer visitors in 2023 than in 2022", MUSEUM) == "elsewhere"


@pytest.mark.parametrize(
    ("claim", "texts"),
    [
        ("The Aral pump is no more expensive than the Belt pump", (ARAL, BELT)),
        ("The Aral pump is more popular than the Belt pump", (ARAL, BELT)),
        ("The Aral pump is heavier than the Belt pump", (ARAL, BELT)),
        ("The Belt pump costs less than the Aral pump", (ARAL + " The larger Aral pump costs 290 euros.", BELT)),
        ("The Belt pump costs less than the Aral pump", (ARAL, BELT, "The Belt costs less than the Aral in Norway.")),
        ("More than 400 museums bought an Aral pump", (ARAL, BELT)),
    ],
)
def test_where_it_is_not_plain_which_figures_count_nothing_is_said(claim: str, texts: tuple[str, ...]) -> None:
    """A negation, no amount, no word in common, two figures of one of them, a source that compares them itself."""
    assert verdict(claim, *texts) != "elsewhere"


def test_another_form_of_a_word_nearby_is_nobody_else() -> None:
    """`The builder was Hallen & Sons` says who built it; of Ingrid Moberg the source says something else."""
    assert verdict("Hallen & Sons built the lighthouse", LIGHTHOUSE) != "elsewhere"
    assert verdict("The lighthouse was built by Hallen & Sons", LIGHTHOUSE) != "elsewhere"
    assert verdict("Ingrid Moberg built the lighthouse", LIGHTHOUSE) == "elsewhere"
