"""Numbers and units as they are written: figures with separators, English words, Chinese characters, signs, scales."""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

SCALES: Mapping[str, int] = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "hundreds": 100, "thousands": 10**3, "millions": 10**6, "billions": 10**9, "trillions": 10**12,
    "dozen": 12, "mn": 10**6, "mln": 10**6, "mio": 10**6, "bn": 10**9, "bln": 10**9, "tn": 10**12, "lakh": 10**5,
    "crore": 10**7, "十": 10, "百": 100, "千": 10**3, "万": 10**4, "萬": 10**4, "十万": 10**5, "百万": 10**6,
    "千万": 10**7, "亿": 10**8, "億": 10**8, "十亿": 10**9, "百亿": 10**10, "千亿": 10**11, "万亿": 10**12,
    "兆": 10**12,
}  # fmt: skip
"""Written behind a figure, with or without a space."""
LETTER_SCALES: Mapping[str, int] = {"k": 10**3, "K": 10**3, "M": 10**6, "m": 10**6, "B": 10**9, "b": 10**9, "T": 10**12}
"""Written close behind a figure."""
AMBIGUOUS = frozenset("mbBT")
"""Letters that may as well be a unit: metres, bytes, tonnes."""

CURRENCY_SIGNS: Mapping[str, str] = {
    "US$": "usd", "USD": "usd", "C$": "cad", "CA$": "cad", "CAD": "cad", "A$": "aud", "AU$": "aud", "AUD": "aud",
    "HK$": "hkd", "HKD": "hkd", "NT$": "twd", "S$": "sgd", "R$": "brl", "$": "usd", "€": "eur", "EUR": "eur",
    "£": "gbp", "GBP": "gbp", "¥": "cny|jpy", "CNY": "cny", "RMB": "cny", "JPY": "jpy",
    "₹": "inr", "INR": "inr", "Rs": "inr",
    "₩": "krw", "KRW": "krw", "CHF": "chf", "₽": "rub", "₿": "btc", "BTC": "btc",
}  # fmt: skip
CURRENCY_WORDS: Mapping[str, str] = {
    "us dollars": "usd", "us dollar": "usd", "u.s. dollars": "usd", "dollars": "usd", "dollar": "usd", "usd": "usd",
    "bucks": "usd", "euros": "eur", "euro": "eur", "eur": "eur", "€": "eur", "pounds sterling": "gbp", "gbp": "gbp",
    "£": "gbp", "yuan": "cny", "renminbi": "cny", "rmb": "cny", "cny": "cny", "yen": "jpy", "jpy": "jpy",
    "rupees": "inr", "swiss francs": "chf", "chf": "chf", "bitcoin": "btc",
    "bitcoins": "btc", "btc": "btc", "cents": "cent", "cent": "cent", "美元": "usd", "美金": "usd", "欧元": "eur",
    "歐元": "eur", "英镑": "gbp", "英鎊": "gbp", "日元": "jpy", "日圆": "jpy", "港元": "hkd",
    "港币": "hkd", "韩元": "krw",
    "人民币": "cny", "元人民币": "cny", "元": "cny|usd", "块钱": "cny", "美分": "cent", "$": "usd",
}  # fmt: skip

PERCENT = "%"
POINTS_OF_PERCENT = "pp"
PERCENT_WORDS: Mapping[str, str] = {
    "%": PERCENT, "percent": PERCENT, "per cent": PERCENT, "pct": PERCENT, "percentage points": POINTS_OF_PERCENT,
    "percentage point": POINTS_OF_PERCENT, "percentage-point": POINTS_OF_PERCENT, "percent points": POINTS_OF_PERCENT,
    "% points": POINTS_OF_PERCENT, "pp": POINTS_OF_PERCENT, "ppt": POINTS_OF_PERCENT, "个百分点": POINTS_OF_PERCENT,
    "個百分點": POINTS_OF_PERCENT, "百分点": POINTS_OF_PERCENT, "per mille": "‰", "‰": "‰",
}  # fmt: skip


class Measure(NamedTuple):
    """A unit: what is measured, and how many of the smallest unit of that it has."""

    of: str
    size: Fraction


_MEASURES: Mapping[str, Mapping[str, int]] = {
    "time": {
        "ns nanosecond nanoseconds": 1,
        "µs us μs microsecond microseconds 微秒": 10**3,
        "ms msec millisecond milliseconds 毫秒": 10**6,
        "s sec secs second seconds 秒 秒钟": 10**9,
        "min mins minute minutes 分钟 分鐘": 60 * 10**9,
        "h hr hrs hour hours 小时 小時 个小时 個小時": 3600 * 10**9,
        "day days 天": 86400 * 10**9,
        "week weeks 周 星期 个星期 週": 7 * 86400 * 10**9,
    },
    "months": {
        "month months 个月 個月": 1,
        "year years yr yrs 年": 12,
        "decade decades": 120,
        "century centuries 世纪": 1200,
    },
    "bits": {
        "bit bits": 1,
        "byte bytes 字节": 8,
        "KB kB kb kilobyte kilobytes": 8 * 10**3,
        "MB mb megabyte megabytes": 8 * 10**6,
        "GB gb gigabyte gigabytes gig gigs": 8 * 10**9,
        "TB tb terabyte terabytes": 8 * 10**12,
        "PB pb petabyte petabytes": 8 * 10**15,
        "KiB kibibyte kibibytes": 8 * 2**10,
        "MiB mebibyte mebibytes": 8 * 2**20,
        "GiB gibibyte gibibytes": 8 * 2**30,
        "TiB tebibyte tebibytes": 8 * 2**40,
        "kbit Kbit Kbps kbps Kb": 10**3,
        "Mbit Mbps mbps Mb": 10**6,
        "Gbit Gbps gbps Gb": 10**9,
    },
    "length": {
        "nm nanometers nanometres 纳米": 1,
        "µm micron microns micrometers 微米": 10**3,
        "mm millimeter millimeters millimetre millimetres 毫米": 10**6,
        "cm centimeter centimeters centimetre centimetres 厘米": 10**7,
        "metre metres meter meters 米": 10**9,
        "km kilometer kilometers kilometre kilometres 公里 千米": 10**12,
    },
    "feet": {
        "inch inches 英寸": 1,
        "ft foot feet 英尺": 12,
        "mile miles 英里": 63360,
    },
    "mass": {
        "mg milligram milligrams 毫克": 1,
        "g gram grams 克": 10**3,
        "kg kilo kilos kilogram kilograms 公斤 千克": 10**6,
        "ton tons tonne tonnes 吨": 10**9,
    },
    "pounds": {
        "lb lbs": 1,
    },
    "power": {
        "mW milliwatts": 1,
        "W watt watts 瓦": 10**3,
        "kW kilowatt kilowatts 千瓦": 10**6,
        "MW megawatt megawatts 兆瓦": 10**9,
        "GW gigawatt gigawatts 吉瓦": 10**12,
    },
    "energy": {
        "Wh": 1,
        "kWh 千瓦时": 10**3,
        "MWh": 10**6,
        "GWh": 10**9,
    },
    "frequency": {
        "Hz hz hertz 赫兹": 1,
        "kHz": 10**3,
        "MHz": 10**6,
        "GHz": 10**9,
    },
    "volume": {
        "ml milliliters millilitres 毫升": 1,
        "litre litres liter liters 升": 10**3,
    },
    "degrees": {
        "°C °F ° degrees degree 度 摄氏度 华氏度": 1,
    },
    "volts": {
        "V volt volts 伏": 1,
    },
    "times": {
        "x X \u00d7 times fold 倍": 1,
    },
    "points": {
        "points point pts upvotes upvote votes 分 票": 1,
    },
    "comments": {
        "comments comment replies 条评论 个评论 则评论 條評論 条留言 评论 条回复": 1,
    },
}
"""Spellings of units and their size in the smallest one of the table, by what they measure."""

MEASURES: Mapping[str, Measure] = {
    word: Measure(name, Fraction(size))
    for name, spellings in _MEASURES.items()
    for names, size in spellings.items()
    for word in names.split()
}
"""Units by their spelling, which separates MB from Mb."""
CLOSE_ONLY = frozenset(["x", "X", "V", "W", "°", "g", "s"])
"""Read as a unit only when it is directly after its figure: `5x`, not `5 x 3`."""

_SMALL_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
SMALL_NUMBERS: Mapping[str, int] = {word: number for number, word in enumerate(_SMALL_NUMBERS.split())}
TENS: Mapping[str, int] = {word: 10 * number for number, word in enumerate(_TENS.split(), 2)}
CHINESE_DIGITS: Mapping[str, int] = {
    **{digit: number for number, digit in enumerate("零一二三四五六七八九")},
    "\u3007": 0,
    "两": 2,
    "兩": 2,
}  # fmt: skip
CHINESE_TENS: Mapping[str, int] = {"十": 10, "百": 100, "千": 1000}
CHINESE_SCALES: Mapping[str, int] = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}


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
"""What is no number, or none that says much, when it is alone."""


def values_of(figures: str, *, is_dotted: bool = False) -> tuple[Fraction, ...]:
    """Return what figures with separators may mean; nothing for those that are no number, like 3.12.4.

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
    """Return the value of `twenty-four`, `two hundred`, `half a million`."""
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
    """Return the value of 二十四, 一百二十万, 十五亿; also of figures read one by one, 二〇二六."""
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
            # 万亿 is one scale: what is before it is multiplied, too.
            total = (total + whole if whole else total) * CHINESE_SCALES[character]
            section = digit = 0
    return Fraction(total + section + digit)
