"""What may stand behind or before a figure: scales, units, currencies, words for numbers."""

from collections.abc import Mapping
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
"""By what they measure: spellings, and how many of the smallest unit in the table one has."""

MEASURES: Mapping[str, Measure] = {
    word: Measure(name, Fraction(size))
    for name, spellings in _MEASURES.items()
    for names, size in spellings.items()
    for word in names.split()
}
"""By their spelling, which tells MB from Mb."""
CLOSE_ONLY = frozenset(["x", "X", "V", "W", "°", "g", "s"])
"""Read as a unit only when it stands close behind its figure: `5x`, not `5 x 3`."""

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
