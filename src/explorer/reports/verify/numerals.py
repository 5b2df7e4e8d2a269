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
    "兆": 10**12, "tausend": 10**3, "millionen": 10**6, "mio.": 10**6, "milliarde": 10**9, "milliarden": 10**9,
    "mrd": 10**9, "mrd.": 10**9, "billionen": 10**12, "mille": 10**3, "milliers": 10**3, "milliard": 10**9,
    "milliards": 10**9, "mil": 10**3, "millón": 10**6, "millones": 10**6, "milioni": 10**6, "miliardi": 10**9,
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
    "歐元": "eur", "英镑": "gbp", "英鎊": "gbp", "日元": "jpy", "日圆": "jpy", "日円": "jpy", "港元": "hkd",
    "港币": "hkd", "韩元": "krw",
    "pounds": "gbp|lb", "pound": "gbp|lb", "円": "jpy", "ドル": "usd", "ユーロ": "eur", "franken": "chf",
    "人民币": "cny", "元人民币": "cny", "元": "cny|usd", "块钱": "cny", "美分": "cent", "$": "usd",
}  # fmt: skip

PERCENT = "%"
POINTS_OF_PERCENT = "pp"
BASIS_POINTS = "bp"
"""Hundredths of a percentage point."""
PERCENT_WORDS: Mapping[str, str] = {
    "%": PERCENT, "percent": PERCENT, "per cent": PERCENT, "pct": PERCENT, "percentage points": POINTS_OF_PERCENT,
    "percentage point": POINTS_OF_PERCENT, "percentage-point": POINTS_OF_PERCENT, "percent points": POINTS_OF_PERCENT,
    "% points": POINTS_OF_PERCENT, "pp": POINTS_OF_PERCENT, "ppt": POINTS_OF_PERCENT, "个百分点": POINTS_OF_PERCENT,
    "個百分點": POINTS_OF_PERCENT, "百分点": POINTS_OF_PERCENT, "per mille": "‰", "‰": "‰",
    "prozent": PERCENT, "pour cent": PERCENT, "por ciento": PERCENT, "per cento": PERCENT, "パーセント": PERCENT,
    "prozentpunkte": POINTS_OF_PERCENT, "prozentpunkten": POINTS_OF_PERCENT,
    "basis points": BASIS_POINTS, "basis point": BASIS_POINTS, "bps": BASIS_POINTS,
    "basispunkte": BASIS_POINTS, "个基点": BASIS_POINTS, "基点": BASIS_POINTS,
}  # fmt: skip


class Measure(NamedTuple):
    """A unit: what is measured, and how many of the smallest unit of that it has."""

    of: str
    size: Fraction


_MEASURES: Mapping[str, Mapping[str, int | str]] = {
    "time": {
        "ns nanosecond nanoseconds": 1,
        "µs us μs microsecond microseconds 微秒": 10**3,
        "ms msec millisecond milliseconds 毫秒": 10**6,
        "s sec secs second seconds 秒 秒钟 秒間 Sekunden secondes": 10**9,
        "min mins minute minutes 分钟 分鐘 分間 Minuten": 60 * 10**9,
        "h hr hrs hour hours 小时 小時 个小时 個小時 時間 Stunden heures": 3600 * 10**9,
        "day days 天 日間 Tage Tagen jours": 86400 * 10**9,
        "fortnight fortnights": 14 * 86400 * 10**9,
        "week weeks 周 星期 个星期 週 週間 Wochen semaines": 7 * 86400 * 10**9,
    },
    "months": {
        "month months 个月 個月 か月 ヶ月 Monate Monaten mois": 1,
        "year years yr yrs 年 年間 Jahre Jahren ans années": 12,
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
        "m metre metres meter meters Meter Metern mètres 米 メートル": 10**9,
        "km kilometer kilometers kilometre kilometres Kilometer Kilometern kilomètres 公里 千米 キロメートル": 10**12,
        "inch inches Zoll 英寸": 25_400_000,
        "ft foot feet Fuß 英尺": 304_800_000,
        "yard yards": 914_400_000,
        "mile miles miler mi Meilen 英里": 1_609_344_000_000,
        "light-year light-years light_years light_year Lichtjahre Lichtjahren 光年": 9_460_730_472_580_800_000_000_000,
        "light-minute light-minutes light_minutes": 17_987_547_480_000_000_000,
        "parsec parsecs": 30_856_775_814_913_700_000_000_000,
    },
    "area": {
        "m^2 m2 square_metres square_meters Quadratmeter mètres_carrés 平方米": 1,
        "hectare hectares Hektar 公顷": 10**4,
        "acre acres": 4_047,
        "km^2 km2 square_kilometres square_kilometers Quadratkilometer kilomètres_carrés 平方公里": 10**6,
        "square_miles": 2_589_988,
        "square_feet square_foot sq_ft sqft": "0.09290304",
    },
    "speed": {
        "mm/s": 3_600,
        "m/s": 3_600_000,
        "km/h kph kmh Stundenkilometer kilometers_per_hour kilometres_per_hour km_per_hour kilometers_an_hour"
        " kilometres_an_hour km_an_hour Kilometer_pro_Stunde 公里/小时 千米/小时": 10**6,
        "mph miles_per_hour miles_an_hour miles/hour": 1_609_344,
        "knot knots": 1_852_000,
    },
    "mass": {
        "µg microgram micrograms": 1,
        "mg milligram milligrams Milligramm 毫克": 10**3,
        "g gr gram grams Gramm grammes 克": 10**6,
        "kg kilo kilos kilogram kilograms Kilogramm kilogrammes 公斤 千克": 10**9,
        "ton tons tonne tonnes Tonnen 吨 トン": 10**12,
        "oz ounce ounces": 28_349_523,
        "lb lbs": 453_592_370,
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
        "kWh kilowatt-hours kilowatt_hours Kilowattstunden 千瓦时": 10**3,
        "MWh megawatt-hours megawatt_hours Megawattstunden 兆瓦时": 10**6,
        "GWh gigawatt-hours gigawatt_hours Gigawattstunden 吉瓦时": 10**9,
        "TWh terawatt-hours terawatt_hours Terawattstunden": 10**12,
    },
    "frequency": {"Hz hz hertz 赫兹": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9},
    "volume": {
        "ml milliliters millilitres 毫升": 1,
        "cl centilitres centiliters": 10,
        "gallon gallons gal": 3_785,
        "litre litres liter liters Liter Litern litros L 升": 10**3,
        "m^3 m3 cubic_metres cubic_meters cubic_metre Kubikmeter Kubikmetern mètres_cubes 立方米": 10**6,
    },
    "degrees": {"° degrees degree Grad degrés 度": 1},
    "celsius": {"°C degrees_Celsius degree_Celsius Celsius celsius Grad_Celsius 摄氏度 度C": 1},
    "fahrenheit": {"°F degrees_Fahrenheit degree_Fahrenheit Fahrenheit fahrenheit 华氏度": 1},
    "volts": {"V volt volts 伏": 1},
    "times": {"x X \u00d7 times fold 倍": 1},
    "points": {"points point pts upvotes upvote votes 分 票": 1},
    "comments": {"comments comment replies 条评论 个评论 则评论 條評論 条留言 评论 条回复": 1},
}
"""Spellings of units and their size in the smallest one of the table, by what they measure."""

MEASURES: Mapping[str, Measure] = {
    word.replace("_", " "): Measure(name, Fraction(size))
    for name, spellings in _MEASURES.items()
    for names, size in spellings.items()
    for word in names.split()
}
"""Units by their spelling, which separates MB from Mb."""
CLOSE_ONLY = frozenset(["x", "X", "V", "W", "°", "g", "s", "m", "L"])
"""Read as a unit only when it is directly after its figure: `5x`, not `5 x 3`."""

_SMALL_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
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
    r"\d{1,3}(?:[,'_]\d{2,3}){0,20}[,'_]\d{3}(?!\d)(?:\.\d+)?"  # 1,234,567.8 and 12,34,567
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
    rf"\b(?:(?:{_UNIT_WORDS}) and a half(?: (?:{_SCALE_WORDS})\b)?"
    rf"|(?:(?:{_TEN_WORDS})(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?|(?:{_UNIT_WORDS}))\b"
    rf"(?:[- ](?:{_SCALE_WORDS})\b(?: and)?(?: (?:(?:{_TEN_WORDS})(?:-[a-z]+)?|(?:{_UNIT_WORDS}))\b)?)*"
    rf"|an? (?:hundred|thousand) and (?:(?:{_TEN_WORDS})(?:-[a-z]+)?|(?:{_UNIT_WORDS}))\b"
    rf"|(?:(?:half|quarter of) )?an? (?:{_SCALE_WORDS})\b|a half (?:{_SCALE_WORDS})\b)",
    re.IGNORECASE,
)
CHINESE = re.compile(
    r"[零〇一二两兩三四五六七八九十百千万萬亿億]+(?:[点點][零〇一二三四五六七八九]+[十百千万萬亿億]*)?"
)
CHINESE_BEHIND = re.compile(
    r" ?(?:个|個|名|位|人|家|台|次|条|條|项|項|款|篇|则|則|种|種|倍|年|天|周|星期|小时|分钟|秒"
    r"|元|美元|欧元|块|台|辆|座|艘|层|架|支"
    r"|万|亿|度|摄氏|華氏|华氏|平方|立方|厘米|毫米|千米|千克|米|公里|公斤|吨|票|分之|起|件|头|只|所|部|场|轮|岁|点|处|代|组|类|大)"
)
"""What a Chinese numeral counts: without it, most characters for small numbers are parts of other words."""
OF_UNIT = re.compile("千[瓦米克卡赫]")
"""A thousand that is a part of a unit."""
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
    if figures.isdecimal():  # most are, and a page may have a hundred thousand
        return (Fraction(int(figures)),)
    bare = re.sub(r"[,'_ ](?=\d{3}(?!\d))|(?<=\d),(?=\d\d,)", "", figures).replace("'", "")
    if "," in bare:
        return (Fraction(bare.replace(".", "").replace(",", ".")),)
    if bare.count(".") > 1:
        return (Fraction(bare.replace(".", "")),) if GROUPED_BY_DOTS.fullmatch(bare) else ()
    if is_dotted and GROUPED_BY_DOTS.fullmatch(bare):
        return (Fraction(bare.replace(".", "")), Fraction(bare))
    return (Fraction(bare),)


def word_value(words: str) -> Fraction:
    """Return the value of `twenty-four`, `two hundred`, `half a million`, `one and a half million`."""
    more = Fraction(1, 2) if " and a half" in words.lower() else Fraction(0)
    words = words.lower().replace(" and a half", " more")
    total = current = Fraction(0)
    for word in re.findall(r"[a-z]+", words):
        if word == "more":
            current += more
        elif word in SMALL_NUMBERS or word in TENS:
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
        if OF_UNIT.match(text, found.end() - 1):  # 三十万千瓦: the last is a part of the unit
            numeral = numeral[:-1]
        end = found.start() + len(numeral)
        before = text[max(0, found.start() - 1) : found.start()]
        is_share = text.endswith("百分之", 0, found.start())
        is_long = len(numeral) > 2 and any(c in numeral for c in "十百千")  # noqa: PLR2004 - 二十四
        is_part = NOT_COUNTED.search(before) and not is_share
        if not numeral or numeral in CHINESE_WORDS or len(numeral) > MAX_DIGITS or is_part or before.isdigit():
            continue
        if is_long or is_share or CHINESE_BEHIND.match(text, end):
            yield found.start(), end, chinese_value(numeral)


def chinese_value(numeral: str) -> Fraction:
    """Return the value of 二十四, 三亿二千万, 四点六亿; also of figures read one by one, 二〇二六."""
    whole, point, places = numeral.replace("點", "点").partition("点")
    if point:
        digits = places.rstrip("十百千万萬亿億")
        figure = Fraction(f"{int(chinese_value(whole))}.{''.join(str(CHINESE_DIGITS[digit]) for digit in digits)}")
        return figure * (chinese_value("一" + places[len(digits) :]) if len(digits) < len(places) else 1)
    if len(numeral) > 1 and all(digit in CHINESE_DIGITS for digit in numeral):
        return Fraction(int("".join(str(CHINESE_DIGITS[digit]) for digit in numeral[:MAX_DIGITS])))
    total = section = digit = 0
    for character in numeral:
        if character in CHINESE_DIGITS:
            digit = CHINESE_DIGITS[character]
        elif character in CHINESE_TENS:
            section, digit = section + (digit or 1) * CHINESE_TENS[character], 0
        else:
            scale, part = CHINESE_SCALES[character], section + digit
            # 万亿 is one scale: what is before it is multiplied, too; in 三亿二千万 only the second part is.
            total = (total + part or 1) * scale if total < scale else total + part * scale
            section = digit = 0
    return Fraction(total + section + digit)
