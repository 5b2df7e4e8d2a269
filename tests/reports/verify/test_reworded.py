"""Sentences that say in other words what a source says, and those that turn one word of it round."""

import pytest

from explorer.reports.verify.check import check
from explorer.reports.verify.claims import FAULTS, Verdict
from reports.verify.shelf import source

CLUB = (
    "Sales of the club. The Heron seat costs $1,099 and the Heron table $1,699. Members make up 12 percent of all "
    "guests; five years before it was three percentage points more. Ane Rud (born 4 May 1965) is a rower. Ola Vik "
    "(born 2 July 1985) is a rower. The peak came in the fifth week, with 810 guests. The club won 31 races and "
    "lost 8. The old boat does 431 kilometers per hour. It weighs 58gr. By ferry the trip takes 4.5 hours, by "
    "train 5.5 hours and by air 3.5 hours. Grants of $7 billion, $6.6 billion and $1.5 billion were paid. Holt "
    "was founded in 1964. The lake covers 770,000 hectares. Rud has been a finalist 24 times. The pull of a "
    "magnet is 100 times weaker than the pull of a crane. It scored 73.5 at Vik.\n"
)
POWER = "江东省二〇二五年风电装机容量达到一千二百三十万千瓦。青源有奶牛十八万头，三分之一的牛奶来自合作牧场。"
RIVERS = (
    "Rivers of the north. The Aldra is 310 kilometres long; the Brann is 185 kilometres long. The dam at Holt was "
    "opened on 12 May 1961 and torn down on 3 October 1998. It cost $48.6 million, against a budget of $31.2 million. "
    "Kestrel Energy built the dam at Holt, and Vale Power runs the smaller one at Vik. The water of the Aldra is above "
    "the average in May. Nobody may not weigh more than others. Her team of 46 people has 17 women. The tank holds 55 "
    "gallons, its walls are 6 ft 3 in tall and it is locked. Mara Oden (born 1951 in Vik) is a judge from Holt. Ilse "
    "Brandt moved her office from Holt to Vik. The council also joined the plan. Sales were 540 tonnes in spring and "
    "610 tonnes in autumn. One in six boats is new. The mill used the Novice 1 wheel for three years.\n"
)
YEAR = "清河市二〇二四年接待游客三千六百四十万人次，工程推迟到二〇二五年九月完工，七成八的景点免费。"


def _verdict(sentence: str, text: str = RIVERS, language: str = "en") -> Verdict:
    (claim,) = check(f"{sentence} [S1].", {"S1": source("S1", text, language=language)}, {"S1": text}.get).claims
    return claim.verdict


@pytest.mark.parametrize(
    "sentence",
    [
        "The Aldra is about 125 kilometres longer than the Brann",
        "The dam at Holt stood for 37 years",
        "The dam went $17.4 million over its budget",
        "The dam cost about 56 percent more than planned",
        "Of the 46 people, 29 are men",
        "Together, 1,150 tonnes were sold",
        "The tank holds about 208 litres",
        "The walls are 1.91 metres tall",
        "Der Damm kostete 48,6 Millionen Dollar",
        "The dam cost almost $50 million",
        "Mara Oden is a judge from Holt",
        "About one boat in six is new",
    ],
)
def test_what_is_worked_out_or_converted_is_no_fault(sentence: str) -> None:
    """Differences, years between dates, percentages, complements, sums, units, languages, brackets behind a name."""
    assert _verdict(sentence) in {Verdict.SUPPORTED, Verdict.UNCHECKED}


@pytest.mark.parametrize(
    "sentence",
    [
        "The Heron table is $600 dearer than the Heron seat",
        "Members were 15 percent of the guests then, 3 points up",
        "Ane Rud is about twenty years older than Ola Vik",
        "The peak, with 810 guests, was in week 5",
        "The club won 31 of 39 races",
        "The old boat does 268 miles per hour",
        "It weighs 58 g",
        "By air one saves an hour against the ferry and two against the train",
        "Together, grants of $15.1 billion were paid",
        "The lake covers roughly three quarters of a million hectares",
        "Rud has been in two dozen finals",
        "The pull of a crane is a hundred times stronger than the pull of a magnet",
        "It scored 73.5 points at Vik",
        "Der See umfasst 770.000 Hektar",
    ],
)
def test_what_follows_from_several_places_is_no_fault(sentence: str) -> None:
    """Prices, births and shares of different sentences, ordinals, sums of three, units, comparisons turned round."""
    assert _verdict(sentence, CLUB) in {Verdict.SUPPORTED, Verdict.UNCHECKED}


@pytest.mark.parametrize("sentence", ["江东省风电装机达1230万千瓦", "青源约33%的牛奶来自合作牧场"])
def test_chinese_numbers_before_a_unit_are_read(sentence: str) -> None:
    """The thousand of a kilowatt is no part of the number, and a share at the beginning of a clause is no subject."""
    assert _verdict(sentence, POWER, "zh") is Verdict.SUPPORTED


@pytest.mark.parametrize(
    "sentence",
    [
        "The Heron table is $700 dearer than the Heron seat",
        "Members were 19 percent of the guests then, 3 points up",
        "Ane Rud is about thirty years older than Ola Vik",
        "The club won 31 of 47 races",
        "Together, grants of $16.1 billion were paid",
        "The old boat does 310 miles per hour",
    ],
)
def test_what_does_not_follow_from_several_places_is_not_found(sentence: str) -> None:
    """The same forms, with results that do not follow."""
    assert _verdict(sentence, CLUB) is Verdict.NOT_FOUND


@pytest.mark.parametrize(
    "sentence",
    [
        "The Aldra is about 165 kilometres longer than the Brann",
        "The dam went $27.4 million over its budget",
        "Together, 1,350 tonnes were sold",
        "The tank holds about 260 litres",
    ],
)
def test_what_is_worked_out_wrongly_is_not_found(sentence: str) -> None:
    """The same forms, with results that do not follow from the source."""
    assert _verdict(sentence) is Verdict.NOT_FOUND


@pytest.mark.parametrize(
    ("sentence", "right"),
    [
        ("The water of the Aldra is below the average in May", "The water of the Aldra is above its average in May"),
        ("The council did not join the plan", "The council, too, joined the plan"),
        (
            "The tank is 55 gallons large and unlocked, its walls are 6 ft tall",
            "The tank holds 55 gallons and is locked",
        ),
        ("Vale Power built the dam at Holt", "The dam at Holt was built by Kestrel Energy"),
        ("Ilse Brandt moved her office from Vik to Holt", "Ilse Brandt moved her office to Vik from Holt"),
        ("The mill used the Novice 2 wheel for three years", "For three years, the mill used the Novice 1 wheel"),
    ],
)
def test_one_word_that_turns_a_sentence_round(sentence: str, right: str) -> None:
    """A direction, a negation, a prefix, the one who did it, a way there and back, a number in a name."""
    assert _verdict(sentence) in FAULTS
    assert _verdict(right) not in FAULTS


ROUTES = (
    "Routes of the coast. From Holt to Vik it takes about 4.5 hours by ferry, about 5.5 hours by coach and 3.5 "
    "hours with the new train. Ostrow was first to report the figure of $7 million. The council of Brandal, which "
    "has high rents (the highest in the country), is poor. The H-2 and the Kestrel flew over Brandal. But the "
    "Kestrel was hard to see, being the first boat to have sails of steel. Doran Pike wrote that most of the "
    "ferries are optimized for calm water. Nobody replied to that. Ida Lund wrote of rents. Reports say that Lund "
    "lives in Vik, and that Ostrow and Pike were there.\n"
)


@pytest.mark.parametrize(
    ("sentence", "right"),
    [
        ("By the new train the trip to Vik takes 4.5 hours", "By ferry the trip to Vik takes 4.5 hours"),
        ("It takes 5.5 hours by ferry and 4.5 hours by coach", "It takes 4.5 hours by ferry and 5.5 hours by coach"),
        ("Brandal has the lowest rents in the country", "Brandal has the highest rents in the country"),
        ("The H-2 was the first boat to have sails of steel", "The Kestrel was the first boat to have sails of steel"),
        (
            "According to Ida Lund, most of the ferries are optimized for calm water",
            "According to Doran Pike, most of the ferries are optimized for calm water",
        ),
    ],
)
def test_parts_of_lists_superlatives_and_subjects(sentence: str, right: str) -> None:
    """What a figure of a list is of, the opposite superlative, another one's predicate, `according to`."""
    assert _verdict(sentence, ROUTES) is Verdict.ELSEWHERE
    assert _verdict(right, ROUTES) not in FAULTS


PIERS = (
    "Piers of the coast. Holt's fish market, the world's largest, is old. The Mole of Vik was below average in "
    "July. As one gate is raised, the other falls. The rising gate lets boats enter the basin. Scan for leaks: "
    "Re-Pier reports exactly what has survived. Ships grow faster than piers, and the Ferry Fund also joined.\n"
)


@pytest.mark.parametrize(
    ("sentence", "right"),
    [
        ("Holt's fish market is the world's second largest", "Holt's fish market is the world's largest"),
        ("The Mole of Vik was above average in July", "The Mole of Vik was below average in July, too"),
        ("Piers grow faster than ships", "Ships grow faster than the piers"),
        ("The Ferry Fund did not join, as ships grow", "The Ferry Fund joined, as ships grow"),
    ],
)
def test_ranks_and_comparisons(sentence: str, right: str) -> None:
    """The largest and the second largest, both sides of `than`, a verb in another form."""
    assert _verdict(sentence, PIERS) is Verdict.ELSEWHERE
    assert _verdict(right, PIERS) not in FAULTS


@pytest.mark.parametrize(
    "sentence",
    [
        "As one gate is raised, the other falls, and the rising gate lets boats enter the basin",
        "Scan for leaks: Re-Pier reports what has survived",
    ],
)
def test_a_shortened_sentence_raises_no_alarm(sentence: str) -> None:
    """Two sentences of the source as one, and one without a word."""
    assert _verdict(sentence, PIERS) not in FAULTS


@pytest.mark.parametrize("sentence", ["2024年清河接待游客3640万人次", "工程推迟到2025年9月完工", "78%的景点免费"])
def test_years_and_shares_in_chinese_numerals(sentence: str) -> None:
    """Years, months and tenths are read in figures and in characters."""
    assert _verdict(sentence, YEAR, "zh") is not Verdict.NOT_FOUND


@pytest.mark.slow
@pytest.mark.parametrize("text", ["(" * 20_000, "a (" * 9_000, "not " * 9_000, "Ab " * 9_000, "one half of a " * 3_000])
def test_hostile_text_takes_no_longer_than_its_length(text: str) -> None:
    """Brackets, negations and names without an end are checked like any other text."""
    draft = f"The dam at Holt was not opened from Vik to Holt in 1961, {text[:3_000]} [S1]."
    assert check(draft, {"S1": source("S1", text)}, {"S1": text}.get).claims
