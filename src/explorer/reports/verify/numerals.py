"""Numbers as they are written: figures with separators, English words, Chinese characters."""

import re
from collections.abc import Iterator
from fractions import Fraction

from explorer.reports.verify.units import CHINESE_DIGITS, CHINESE_SCALES, CHINESE_TENS, SCALES, SMALL_NUMBERS, TENS

FIGURES = re.compile(
    r"(?<![A-Za-z0-9_^])(?:"
    r"\d{1,3}(?:[,'_]\d{2,3})*[,'_]\d{3}(?!\d)(?:\.\d+)?"  # 1,234,567.8 and 12,34,567
    r"|(?<!\d )(?<![.,])\d{1,3}(?: \d{3})+(?![\d.,]\d|\d| \d)"  # 38 400
    r"|\d+\.\d+[eE][+-]?\d{1,2}(?!\w)|\d+[eE][+-]?\d{1,2}(?!\w)"  # 1.5e6
    r"|\d+(?:\.\d+)*(?:,\d{1,2}(?![\d,]))?"  # 12, 12.5, 3.12.4, 12,5 and 1.234.567,89
    r")"
)
PARTS = {"half": Fraction(1, 2), "quarter": Fraction(1, 4)}
MAX_DIGITS = 40
"""Longer ones are no numbers of a report; they are compared as 0, which nothing claims."""
POWER = re.compile(r"\^([+-]?\d{1,2})(?!\d)")
GROUPED_BY_DOTS = re.compile(r"\d{1,3}(?:\.\d{3})+")
_UNIT_WORDS = "|".join(sorted(SMALL_NUMBERS, key=len, reverse=True))
_TEN_WORDS = "|".join(TENS)
_SCALE_WORDS = "hundred|thousand|million|billion|trillion|dozen"
WORDS = re.compile(
    rf"\b(?:(?:(?:{_TEN_WORDS})(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?|(?:{_UNIT_WORDS}))\b"
    rf"(?:[- ](?:{_SCALE_WORDS})\b(?: and)?(?: (?:(?:{_TEN_WORDS})(?:-[a-z]+)?|(?:{_UNIT_WORDS}))\b)?)*"
    rf"|(?:(?:half|quarter of) )?an? (?:{_SCALE_WORDS})\b)",
    re.IGNORECASE,
)
CHINESE = re.compile(r"[零〇一二两兩三四五六七八九十百千万萬亿億]+")
CHINESE_BEHIND = re.compile(
    r" ?(?:个|個|名|位|人|家|台|次|条|條|项|項|款|篇|则|則|种|種|倍|年|天|周|星期|小时|分钟|秒"
    r"|元|美元|欧元|块|台|辆|座|艘|层|架|支"
    r"|万|亿|度|米|公里|公斤|吨|票|分之|起|件|头|只|所|部|场|轮|岁|点|处|代|组|类|大)"
)
"""What a Chinese numeral counts: without it, most characters for small numbers are parts of other words."""
NOT_COUNTED = re.compile(r"[第星期统单专唯同某每任万逐之周]$")
"""Before a numeral, this makes it an ordinal or a part of a word."""
CHINESE_WORDS = frozenset(["一", "万一", "千万", "万", "千", "百", "十分", "亿", "百万", "万万"])
"""What is no number, or none that says much, when it stands alone."""


def values_of(figures: str, *, is_dotted: bool = False) -> tuple[Fraction, ...]:
    """What figures with separators may mean; nothing for those that are no number, like 3.12.4.

    Args:
        figures: As `FIGURES` finds them.
        is_dotted: The text's language groups by dots: 1.234 is a thousand.
    """
    if len(figures) > MAX_DIGITS:
        return (Fraction(0),)
    bare = re.sub(r"[,'_ ](?=\d{3}(?!\d))|(?<=\d),(?=\d\d,)", "", figures)
    if "e" in bare.lower():
        return (Fraction(bare),)
    if "," in bare:
        return (Fraction(bare.replace(".", "").replace(",", ".")),)
    if bare.count(".") > 1:
        return (Fraction(bare.replace(".", "")),) if GROUPED_BY_DOTS.fullmatch(bare) else ()
    if is_dotted and GROUPED_BY_DOTS.fullmatch(bare):
        return (Fraction(bare.replace(".", "")), Fraction(bare))
    return (Fraction(bare),)


def word_value(words: str) -> Fraction:
    """The value of `twenty-four`, `two hundred`, `half a million`."""
    total = current = Fraction(0)
    for word in re.findall(r"[a-z]+", words.lower()):
        if word in SMALL_NUMBERS or word in TENS:
            current += SMALL_NUMBERS.get(word, 0) + TENS.get(word, 0)
        elif word in {"a", "an"}:
            current = current or Fraction(1)
        elif word in PARTS:
            current = PARTS[word]
        elif word in SCALES:
            current = (current or Fraction(1)) * SCALES[word]
            if word != "hundred":
                total, current = total + current, Fraction(0)
    return total + current


def chinese_numbers(text: str) -> Iterator[tuple[int, int, Fraction]]:
    """Start, end and value of numbers in Chinese characters that count something."""
    for found in CHINESE.finditer(text):
        numeral = found[0]
        before = text[max(0, found.start() - 1) : found.start()]
        is_long = len(numeral) > 2 and any(c in numeral for c in "十百千")  # noqa: PLR2004 - 二十四
        if numeral in CHINESE_WORDS or len(numeral) > MAX_DIGITS or NOT_COUNTED.search(before) or before.isdigit():
            continue
        if is_long or CHINESE_BEHIND.match(text, found.end()):
            yield found.start(), found.end(), chinese_value(numeral)


def chinese_value(numeral: str) -> Fraction:
    """The value of 二十四, 一百二十万, 十五亿; also of figures read one by one, 二〇二六."""
    if len(numeral) > 1 and all(digit in CHINESE_DIGITS for digit in numeral):
        return Fraction(int("".join(str(CHINESE_DIGITS[digit]) for digit in numeral[:MAX_DIGITS])))
    total = section = digit = 0
    for character in numeral:
        if character in CHINESE_DIGITS:
            digit = CHINESE_DIGITS[character]
        elif character in CHINESE_TENS:
            section, digit = section + (digit or 1) * CHINESE_TENS[character], 0
        else:
            whole = (section + digit) or (0 if total else 1)
            # 万亿 is one scale: what stands before is multiplied, too.
            total = (total + whole if whole else total) * CHINESE_SCALES[character]
            section = digit = 0
    return Fraction(total + section + digit)
