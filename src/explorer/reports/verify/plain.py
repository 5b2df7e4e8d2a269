"""Text brought to one form, so that what only looks different is the same; its words, and what their forms share."""

import html
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from explorer.text.sanitize import visible
from explorer.text.words import CJK_LETTER, HAN, HIRAGANA, KATAKANA, STOP_WORDS, stretches
from explorer.workspace.threads import RaiseIfStopped, never_stopped

SPACING_CONTROL = re.compile("[\r\x0b\x0c\x1c-\x1f\x85]")
WIDE_COMMA = re.compile("(?<=[0-9\uff10-\uff19])\uff0c(?=[0-9\uff10-\uff19]{3}(?![0-9\uff10-\uff19]))")
"""A full-width comma between figures groups thousands only when the figures are full-width too; see `_wide_comma`."""
THIN_GROUP = re.compile("(?<=\\d)[\u00a0\u2009\u202f\u2007](?=\\d{3}(?!\\d))")
"""Spaces that hold figures together: 38 400."""
RAISED = re.compile("[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+")
EN_DASH_RANGE = re.compile("(?<=[\\d%])\\s?[\u2013\u2012\u301c\uff5e~]\\s?(?=[$€£¥]?\\d)")
HALVES = {"\u00bd": ".5", "\u00bc": ".25", "\u00be": ".75"}
HALF = re.compile("(?:(?<=\\d)\\s?)?([\u00bd\u00bc\u00be])")
SAME = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d\u300e\u300f\u301d\u301e\uff02", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\uff07", "'"),
        **dict.fromkeys("\u2010\u2011\u2212\ufe63\uff0d", "-"),
        **dict.fromkeys("\u2012\u2013\u2014\u2015\u2e3a", " - "),
        "\uff0c": ", ",
        "\u3001": ", ",
        "\u2026": "...",
        "\u2044": "/",
    }
)
MIXED = re.compile(r"(?<![\d.,/])(\d{1,4})[ -]([1-9]\d?)/(2|3|4|5|6|8|16|32)(?![\d/])")
"""A whole number and a part: 57 5/8."""
INCH_SIGN = re.compile(r'(?<=\d\.\d)"|(?<=\d\.\d\d)"|(?<=\d\.\d{3})"|(?<=\d) "(?=\s*(?:[\n,;x)]|$))')
FEET_AND_INCHES = re.compile(
    r"(?<![\d.])(\d{1,3}) ?(?:ft|feet|foot)\.? (\d{1,2}(?:\.\d+)?) ?in\b|(?<![\d.'])(\d)'(\d{1,2})(?:\"|'')"
)
CIRCLED = re.compile("[\u2460-\u24ff\u2776-\u2793]")
"""Figures in circles count the parts of a text, and are none of its figures."""
CHINESE_FIGURES = "零一二三四五六七八九〇"
TEN = 10
CHINESE_YEAR = re.compile("(?<![零一二三四五六七八九〇百千万亿])[一二][零一二三四五六七八九〇]{3}(?=年)")
CHINESE_MONTH = re.compile("(?<![零一二三四五六七八九〇十百千万亿第])(?:十[一二]?|[一二三四五六七八九])(?=月)")
CHINESE_DAY = re.compile("(?<=月)(?:[二三]?十[一二三四五六七八九]?|[一二三四五六七八九])(?=[日号])")
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
LINK = re.compile(
    r"!?\[((?:[^\[\]\n]|\[[^\[\]\n]{0,40}\]){0,400})\]"
    r"\((?:<[^<>\n]{0,2000}>|[^()\s<>]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,200})?)(?:\s[^()\n]{0,200})?\)"
)
ADDRESS = re.compile(r"<?\bhttps?://[^\s<>()\"'\u3000-\u303f\uff00-\uffef]+>?")
NOTE_MARK = re.compile(r"\[(?:\d{1,3}|[a-z]|edit|citation needed|note \d+)\]")
EMPHASIS = re.compile(r"\*+(?!\d)|(?<!\d)\*+|~~|`+|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
HEAD_MARK = re.compile(r"^[ \t]{0,3}[#>]+[ \t]+", re.MULTILINE)
TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]{0,9}(?:\s[^<>\n]{0,300})?/?>")
SPACES = re.compile(r"[^\S\n]+")
PIECE_CHARS = 50_000
CUT = re.compile(r"^[\w .,:;'\"|$%/+-]*\n(?=[A-Za-z|\n])", re.ASCII | re.MULTILINE)
"""The end of a line over which no pattern above reaches: no link, address or tag is in it, and no figure goes on."""


def plain(text: str, raise_if_stopped: RaiseIfStopped = never_stopped) -> str:
    """Normalize a text: one kind of quote, dash and space, plain figures, no markdown, no addresses.

    Lines stay lines. Capital letters stay, since names are known by them.

    Args:
        text: Any text.
        raise_if_stopped: Called for each piece of a long one.
    """
    return "".join(_plain(piece) for piece in _pieces(text, raise_if_stopped))


def _pieces(text: str, raise_if_stopped: RaiseIfStopped) -> Iterator[str]:
    """Yield a text in pieces: the interpreter serves no other thread while a pattern is looked for in the whole."""
    start = 0
    while start < len(text):
        raise_if_stopped()
        found = CUT.search(text, start + PIECE_CHARS)
        end = found.end() if found else len(text)
        yield text[start:end]
        start = end


def _plain(text: str) -> str:
    if "&" in text:
        text = html.unescape(text)
    text = visible(SPACING_CONTROL.sub(" ", text))
    text = LINK.sub(r"\1", text)
    text = ADDRESS.sub(" ", text)
    text = NOTE_MARK.sub("", text)
    text = THIN_GROUP.sub(",", text)
    text = FEET_AND_INCHES.sub(_feet, INCH_SIGN.sub(" inches", MIXED.sub(_mixed, _figures(text))))
    text = TAG.sub(" ", text)
    text = HEAD_MARK.sub("", ESCAPED.sub(r"\1", text))
    return SPACES.sub(" ", EMPHASIS.sub("", text))


def _figures(text: str) -> str:
    """Return figures and signs as ASCII has them, without making `10⁹` into 109 or `2½` into 21/2."""
    if text.isascii():
        return text
    text = WIDE_COMMA.sub(_wide_comma, text)
    text = RAISED.sub(lambda found: "^" + unicodedata.normalize("NFKC", found[0]), text)
    text = HALF.sub(_half, text)
    text = CIRCLED.sub(" ", text)
    text = CHINESE_YEAR.sub(_chinese_digits, text)
    text = CHINESE_DAY.sub(_chinese_day, CHINESE_MONTH.sub(_chinese_day, text))
    text = EN_DASH_RANGE.sub("-", text)
    return unicodedata.normalize("NFKC", text.translate(SAME)).translate(SAME)


def _chinese_digits(found: "re.Match[str]") -> str:
    return "".join(str(CHINESE_FIGURES.index(one) % TEN) for one in found[0])


def _chinese_day(found: "re.Match[str]") -> str:
    """Return the number of a month or of a day in figures: 十二, 二十三."""
    tens, ten, ones = found[0].rpartition("十")
    value = (CHINESE_FIGURES.index(tens) if tens else 1) * TEN if ten else 0
    return str(value + (CHINESE_FIGURES.index(ones) if ones else 0))


def _feet(found: "re.Match[str]") -> str:
    return f"{found[1] or found[3]} feet {found[2] or found[4]} inches"


def _mixed(found: "re.Match[str]") -> str:
    whole, part, of = (int(one) for one in found.groups())
    return f"{whole + part / of:.4f}".rstrip("0") if part < of else found[0]


def _half(found: "re.Match[str]") -> str:
    is_behind = found.string[max(0, found.start() - 1) : found.start()].isdigit()
    return HALVES[found[1]] if is_behind else f"0{HALVES[found[1]]}"


def _wide_comma(found: "re.Match[str]") -> str:
    is_wide = not found.string[found.start() - 1].isascii()
    return "," if is_wide else ", "


GROUPED = re.compile(r"(?<=\d)[,'_](?=\d{3}(?!\d))")
BOUNDARY = "\n¤\n"
"""Between texts that are sought in together: no quote goes on from one into the next."""
WORD = re.compile(r"\d+(?:\.\d+)+|[^\W_]+|[%$€£¥¤]")


def words(text: str) -> list[str]:
    """Return the words of a plain text, small, without punctuation; a Chinese character is a word."""
    text = GROUPED.sub("", text.casefold())
    if not text.isascii():
        text = CJK_LETTER.sub(r" \g<0> ", text)
    return WORD.findall(text)


def spaced(text: str) -> str:
    """Return the words of a plain text with one space between, before and behind: the form that is searched."""
    return f" {' '.join(word for start, end in stretches(text) for word in words(text[start:end]))} "


TERM = re.compile(
    rf"(?P<cjk>[{HAN}{KATAKANA}]+)|(?P<number>\d+[号期版代季届號]线?|\d[\d.,]*(?:(?:st|nd|rd|th)\b)?)|(?P<word>[^\W\d_{HIRAGANA}{HAN}{KATAKANA}]+(?:\d+|(?:['-][^\W\d_]+)*))"
)
_MORE_STOPS = (
    "der die das den dem des ein eine einen einem einer eines und oder aber in im am an auf aus bei mit nach von vom zu"
    " zum zur für als wie ist sind war waren wird werden wurde wurden hat haben hatte es er sie nur noch auch sich"
    " rund etwa bis ende anfang mitte seit laut"
    " le la les un une des du de et ou mais dans en au aux sur par pour avec est sont a été ont qui que ce"
    " cette il elle se sa son ses leur plus environ mr mrs ms dr prof said says say told according would will may"
    " year years percent prozent million billion millionen thousand number total still also however"
)
STOPS = STOP_WORDS | frozenset(_MORE_STOPS.split())
KEY_CHARS = 6
ENDING = re.compile(r"(?:'s|s'|es|ed|s|d|e|'|en)$")
SHORT_CHARS = 3
DIMENSIONS = {
    "wide": "width", "deep": "depth", "tall": "height", "thick": "thickn", "weight": "weigh",
    "breit": "breite", "hoch": "höhe", "tief": "tiefe", "cost": "price", "costs": "price", "priced": "price",
}  # fmt: skip
"""Words of sentences, and the labels of tables that say the same."""


def key(word: str) -> str:
    """Return what the forms of a word have in common, roughly: its first letters."""
    small = word.casefold().removesuffix("'s")
    if small in DIMENSIONS:
        return DIMENSIONS[small]
    short = (ENDING.sub("", small) or small)[:KEY_CHARS]
    return f"{short[:-1]}i" if len(short) > SHORT_CHARS and short.endswith("y") else short


INNER_CAPITAL = re.compile(r"[a-z]{1,2}[A-Z][a-z]\w")
"""iPhone, eBay; not mAh."""


class TermSet(NamedTuple):
    """The words of a stretch of text that say what it is about."""

    words: frozenset[str]
    names: frozenset[str]
    """Those of them that are written with a capital letter within a sentence."""


CJK_STOP = re.compile("已经|没有|尚未|[的了也已尚未不没]")
"""What says nothing of what a text is about, between the characters that do."""
LABELS = "号期版代季届號"
LINE = "线"
"""A line of a metro, behind its number."""


def terms_of(text: str, start: int = 0, end: int | None = None, *, without: tuple[int, int] = (-1, -1)) -> TermSet:
    """Return the terms between two places of a text, but for a figure's own."""
    stop = len(text) if end is None else end
    pieces = (
        [(start, min(without[0], stop)), (max(without[1], start), stop)] if start <= without[0] else [(start, stop)]
    )
    all_words: set[str] = set()
    names: set[str] = set()
    for found in (one for piece in pieces for one in TERM.finditer(text, *piece)):
        word = found[0]
        if found["cjk"]:
            pieces_of_word = filter(None, CJK_STOP.split(word))
            all_words.update(one[place : place + 2] for one in pieces_of_word for place in range(max(1, len(one) - 1)))
        elif short := found_key(found):
            all_words.add(short)
            if found["number"] and word[-1] in LABELS + LINE:
                names.add(word)
            elif not found["number"] and (word[0].isupper() or INNER_CAPITAL.match(word)):
                names.add(short)
    return TermSet(frozenset(all_words), frozenset(names))


def term_key(word: str) -> str:
    """Return the key of a word; empty for one that says nothing."""
    return "" if word.lower() in STOPS or (len(word) == 1 and not word.isupper()) else key(word)


def found_key(found: "re.Match[str]") -> str:
    """Return a figure without its ending, or the key of a word, as `TERM` finds them; empty for what says nothing."""
    return found[0].rstrip(".,stndrh") if found["number"] else term_key(found[0])
