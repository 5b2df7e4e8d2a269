"""However a number, a date or a text is written, it is itself; and nothing makes the check fail or take for ever."""

import time
from datetime import date
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from date_forms import forms_of
from explorer.reports.verify.check import check
from explorer.reports.verify.claims import Verdict
from explorer.reports.verify.figures import quantities
from explorer.reports.verify.numerals import chinese_value, values_of, word_value
from explorer.reports.verify.plain import PIECE_CHARS, plain, spaced
from reports.verify.shelf import source

FEW = settings(max_examples=25, deadline=None)
CHINESE = "零一二三四五六七八九"


def _verdict(claim: str, text: str, **facts: str) -> str:
    (found,) = check(f"{claim} [S1].", {"S1": source("S1", text, **facts)}, {"S1": text}.get).claims
    return str(found.verdict)


@FEW
@given(st.text(max_size=200))
def test_plain_text_stays_as_it_is(text: str) -> None:
    """What is sought in is the same, however often it is brought to its form."""
    assert spaced(plain(plain(text))) == spaced(plain(plain(plain(text))))


@pytest.mark.parametrize(
    "lines",
    [
        "5\n½ cups",
        '[a](https://a.example\n"b") c',
        "<a\nhref=b> c",
        "3 –\n5",
        "3\n– 5",
    ],
)
def test_a_long_text_is_cut_nowhere_within_a_form(lines: str) -> None:
    """A page is brought to plain text in pieces; what goes over the end of a line is in one of them."""
    long = "words of it " * 4_000 + "and all\n" * 250
    assert len(long) == PIECE_CHARS
    assert plain(long + lines) == plain(long) + plain(lines)


@pytest.mark.parametrize(
    ("written", "value"), [("12'34'567", 1_234_567), ("624'89,440", 62_489_440), ("12_34_567", 1_234_567)]
)
def test_figures_in_groups_of_two_are_numbers(written: str, value: int) -> None:
    """As Indian figures are grouped, whatever the sign between them is; nothing that is read ends the check."""
    assert values_of(written) == (value,)
    assert _verdict(f"It has {written} members", f"Members: {value}.") == "supported"


def test_what_nobody_sees_is_no_part_of_a_quote() -> None:
    """Invisible marks, tags and selectors are dropped from both sides; every line end separates words."""
    hidden = "The ro\u2062pes of the har\U000e0041bour\ufe0e were mea\u00adsured"
    assert _verdict(f"“{hidden}”", "The ropes of the harbour\r\nwere measured.") == "supported"
    assert _verdict("“The ropes of the harbour were measured”", f"{hidden}.") == "supported"
    assert plain("one\x0ctwo\rthree") == "one two three"


@FEW
@given(st.integers(1, 10**12))
def test_a_number_equals_itself_in_every_form(number: int) -> None:
    """Separators of thousands, scale words and Chinese scales change nothing."""
    forms = [f"{number:,}", f"{number:_}", f"{number:,}".replace(",", "\u202f"), f"{number:,}".replace(",", "'")]
    forms += [f"{number / 10**6:.6f} million", f"{number / 10**8:.8f}亿", f"{number / 10**4:.4f} 万"]
    for form in forms:
        (found,) = quantities(plain(f"it had {form} things"))
        assert found.values[0] == number, form
        assert _verdict(f"It had {number} things", f"There were {form} things in it.") == "supported"


@FEW
@given(st.integers(0, 9_999_999), st.integers(1, 3))
def test_another_number_is_not_found(number: int, change: int) -> None:
    """A number that differs in one figure is not taken for the same."""
    digits = list(str(number + 1_000_000))
    digits[-change] = str((int(digits[-change]) + 1) % 10)
    assert _verdict(f"It had {''.join(digits)} things", f"There were {number + 1_000_000:,} things.") == "not_found"


@pytest.mark.slow
@FEW
@given(st.dates(date(1990, 1, 1), date(2099, 12, 31)))
def test_a_date_equals_itself_in_every_form(day: date) -> None:
    """English and Chinese, long and short, with the month as a word or a number."""
    forms = forms_of(day)
    for form in forms:
        assert _verdict(f"It began on {form}", f"It began on {day.isoformat()}.") == "supported"
    later = date.fromordinal(day.toordinal() + 1)
    assert _verdict(f"It began on {forms[2]}", f"It began on {later.isoformat()}.") == "not_found"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("二十四", 24), ("十一", 11), ("一百零五", 105), ("两千三百", 2300), ("一百二十万", 1_200_000),
        ("十五亿", 1_500_000_000), ("一万两千", 12_000), ("三万亿", 3 * 10**12), ("二〇二六", 2026),
    ],
)  # fmt: skip
def test_chinese_numbers(written: str, value: int) -> None:
    """Numbers in characters have their value."""
    assert chinese_value(written) == value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("twelve", 12), ("twenty-four", 24), ("two hundred and five", 205), ("three thousand", 3000),
        ("half a million", 500_000), ("a dozen", 12), ("two hundred thousand", 200_000),
    ],
)  # fmt: skip
def test_english_numbers(written: str, value: int) -> None:
    """Numbers in words have their value."""
    assert word_value(written) == value


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("1,234", ["1234"]), ("12,5", ["12.5"]), ("1.234.567,89", ["1234567.89"]), ("3.12.4", []),
        ("1,50,000", ["150000"]), ("0.5", ["0.5"]), ("1e6", ["1000000"]), ("1.234.567", ["1234567"]),
    ],
)  # fmt: skip
def test_separators(written: str, values: list[str]) -> None:
    """Points and commas are read as people of different countries write them; a version is no number."""
    assert values_of(written) == tuple(Fraction(value) for value in values)


@FEW
@given(st.text(max_size=300), st.text(max_size=300))
def test_no_text_makes_it_fail(draft: str, text: str) -> None:
    """Whatever stands in a report or in a source, there is an answer, with one of the four verdicts each."""
    verification = check(f"{draft}\n{text} [S1] {draft} [S2]", {"S1": source("S1", text)}, {"S1": text}.get)
    assert all(claim.verdict in Verdict for claim in verification.claims)


PIECES = "“”\"'[]()*_`#>|-:;,.!?。！？…«»「」$€%123456789 \nab S1[S1][S2]万亿年月日两十vx/\\"


@FEW
@given(st.text(alphabet=PIECES, max_size=400))
@example("万_1S")
def test_no_marks_make_it_fail(text: str) -> None:
    """Neither do the very characters that it looks for, in any order."""
    check(text + " [S1]", {"S1": source("S1", text)}, {"S1": text}.get)


HARD = {
    "figures": "1" * 100_000,
    "points": "1." * 25_000,
    "commas": "123," * 12_000,
    "quotes": "“a 'b \"c " * 4_000,
    "links": ("[x](" + "a" * 2000) * 40,
    "brackets": "[" * 50_000,
    "numerals": "十二万三千四百五十六亿" * 4_000,
    "spaces": " " * 100_000,
    "halves": "1" * 100_000 + "½",
    "capitals": "A" * 100_000,
    "hyphens": "-A" * 50_000,
    "counters": "12号" * 15_000,
    "hashes": "#" * 100_000,
    "pairs": "12," * 30_000,
    "backticks": "`" * 100_000,
    "comments": "<!--" * 25_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HARD)
def test_time_grows_with_length_only(name: str) -> None:
    """Texts made to hurt a pattern are read in the time of any text of their length, as source and as report."""
    began = time.process_time()
    text = HARD[name]
    check("It cost 12,345 dollars, “as nobody ever wrote it down” [S1].", {"S1": source("S1", text)}, {"S1": text}.get)
    check(text + " 5 [S1]", {"S1": source("S1", "x")}, {"S1": "x"}.get)
    assert time.process_time() - began < 5


@pytest.mark.slow
@pytest.mark.parametrize("text", ["1 ", "1,000 ", "12, ", "1-", "10:00 ", "\n", "Mill 1 ", "In 2024, 1 ton and 5% "])
def test_a_page_of_figures_without_a_sentence_is_read_in_the_time_of_its_length(text: str) -> None:
    """What it says of each of its figures is not read from the whole page, whichever rule asks for it."""
    draft = "The mill ground 4,200 tons in 2024 [S1]. It rose by 35% to 12 in all [S1]. Mill 1 costs 1,000 [S1]."
    spent: list[float] = []
    for size in (10_000, 40_000):
        page = (text * size)[:size]
        began = time.process_time()
        check(draft, {"S1": source("S1", page)}, {"S1": page}.get)
        spent.append(time.process_time() - began)
    assert spent[1] < 2 + 8 * spent[0]


@pytest.mark.slow
def test_a_quote_that_stands_in_very_many_places_is_read_in_the_time_of_the_page() -> None:
    """Who speaks is not looked for in the whole page once more for each place."""
    said = '"The old quay of Arvik is closed," said Ida Holm, with 4,120 tons on it. '
    spent: list[float] = []
    for count in (1_000, 8_000):
        page = said * count + "Later Jon Halden came."
        began = time.process_time()
        (claim,) = check(
            "“The old quay of Arvik is closed,” said Jon Halden [S1].", {"S1": source("S1", page)}, {"S1": page}.get
        ).claims
        spent.append(time.process_time() - began)
        assert claim.verdict is Verdict.ELSEWHERE
    assert spent[1] < 1 + 16 * spent[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The arm had 3 million customers a year earlier", "It has 2 million customers, doubling. "),
        ("Owners pay $77 a month", "Owners pay $1,200 annually, or $23 weekly. "),
        ("The probe arrives in 2040", "Launched in 2026 after 14 tests, a 7-year journey begins "),
    ],
)
def test_figures_that_nearly_follow_cost_no_more_than_others(claim: str, text: str) -> None:
    """A page that repeats what a figure could follow from is read in the time of any page of its length."""
    source_text, spent = text * 10_000, list[float]()
    for sentence in ("It rained", claim):
        began = time.process_time()
        _verdict(sentence, source_text)
        spent.append(time.process_time() - began)
    assert spent[1] < 5 + 4 * spent[0]


@pytest.mark.slow
def test_a_megabyte_is_read_at_once() -> None:
    """A source of a megabyte of prose with many figures takes seconds, and the time is that of its length."""
    prose = "The dam of 1,234 metres was built on 3 May 2024 for $1.5 billion, said v2.3 of GPT-4o with 45 boards. "
    spent: list[float] = []
    for times in (1_250, 10_000):
        text = prose * times
        began = time.process_time()
        assert _verdict("It cost $1.5 billion in 2024", text) == "supported"
        spent.append(time.process_time() - began)
    assert spent[1] < 20 * max(spent[0], 0.1)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("It lasted for 220 minutes", "It lasted for 3 hours and 40 minutes."),
        ("It lasted for a year and two months", "It lasted for 14 months."),
        ("全体学生的 12% 来自国外", "国际学生占全体学生的百分之十二，比五年前多。"),
        ("It began at 10:17 (UTC+8)", "It began at 02:17 UTC."),
        ("She served from 1903 to 1931, that is for 28 years", "She served from 1903 to 1931."),
        ("About 12,300 of the 24,600 volunteers got none", "There were 24,600 volunteers. Half of them got none."),
        ("Der See fasst 46 Milliarden Liter", "Der See fasst 46 Millionen Kubikmeter."),
        ("Homeowners pay about $100 a month on average", "Homeowners pay around $1,200 annually, on average."),
        (
            "A year earlier the arm had one million customers",
            "The arm grew to 2 million customers, doubling from a year prior.",
        ),
        ("The probe should arrive in 2033", "The probe will launch in 2026 to begin a 7-year journey."),
        ("The worker was late for roughly three shifts in four", "The worker was late for 17 of 23 shifts."),
        (
            "The centre was 22 call takers short of its ideal",
            "The centre had 42 call takers and 35 dispatchers, against an ideal of 64 call takers and 68 dispatchers.",
        ),
        (
            "It may fly eight times as high as normally",
            "It cruises at a normal altitude of 500 m but may fly as high as 4 km.",
        ),
        (
            "Ada mixed up a higher and a lower ratio",
            "Ada: I think that the ratio would get higher. No, it gets smaller.",
        ),
        ("It is the largest of the three parks, with 2,085 square kilometres", "| Cleave | 2,085 km2 |"),
    ],
)
def test_what_follows_from_a_figure_is_no_other_figure(claim: str, text: str) -> None:
    """Times in two parts, zones, cubic metres, years between two years, parts of a whole, sets that are known."""
    assert _verdict(claim, text) in {"supported", "unchecked"}


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Homeowners pay about $200 a month on average", "Homeowners pay around $1,200 annually, on average."),
        ("Homeowners pay $1,200 a month", "Homeowners pay $100 annually."),
        (
            "A year earlier the arm had 3 million customers",
            "The arm grew to 2 million customers, doubling from a year prior.",
        ),
        ("The probe should arrive in 2035", "The probe will launch in 2026 to begin a 7-year journey."),
        (
            "The probe should arrive in 2033",
            "The probe will launch in 2026. It was seven years in the making, says Ada.",
        ),
        (
            "It may fly six times as high as normally",
            "It cruises at a normal altitude of 500 m but may fly as high as 4 km.",
        ),
    ],
)
def test_what_does_not_follow_is_not_found(claim: str, text: str) -> None:
    """Another factor, the other way round, a number of years in another sentence."""
    assert _verdict(claim, text) in {"not_found", "elsewhere"}
