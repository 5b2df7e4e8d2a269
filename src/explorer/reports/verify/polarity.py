"""Words that turn a sentence round: negations, directions, superlatives, ordinals, in five languages.

Tables, and one comparison of two stretches of text. Where both sides of a pair are in a stretch, it says nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_UP = (
    "elevat~ rose risen rise rises rising increas~ grew grow grows growing grown gain gained gains gaining climb~"
    " jump~ surg~ soar~ up higher improv~ raise raises raised raising lengthen~ extend~ expand~ widen~ boost~ doubl~"
    " tripl~ advanc~ accelerat~ swell~ swelled rebound~ upward upwards gain"
    " stieg stiegen steigt gestiegen steigert~ erhöht~ wuchs wuchsen gewachsen zunahm~ zugenommen höher"
    " augment~ progress~ hausse croiss~ accru~ grimp~"
)
_DOWN = (
    "fell fall falls falling fallen drop~ declin~ decreas~ shrank shrink~ shrunk lose loses lost lower lowered"
    " lowers cut cuts down reduc~ slump~ plung~ sank sink~ slid slip~ eased shorten~ weaken~ narrow~ loss"
    " sank sanken sinkt gesunken fiel fielen gefallen zurückging~ zurückgegangen schrumpf~ niedriger gesenkt"
    " baiss~ recul~ diminu~ chut~ perdu"
)
AXES: dict[str, tuple[str, str]] = {
    "change": (_UP, _DOWN),
    "more": ("more mehr plus", "fewer less weniger moins"),
    "approval": (
        "approv~ accept~ adopted backed endors~ genehmigt~ angenommen adopté~ approuvé~",
        "reject~ refus~ turned_down vetoed abgelehnt~ rejeté~",
    ),
    "speed": (
        "faster quicker fastest quickest schneller fast quick quickly speed_up speeds_up sped_up",
        "slower slowest langsamer langsamste~ slow slowly slows slowed slow_down",
    ),
    "strength": ("stronger strongest stärker~ strong", "weaker weakest schwächer~ weak"),
    "size": (
        "larger largest bigger biggest größer~ größte~ large big huge",
        "smaller smallest kleiner kleinere kleinste~ small tiny",
    ),
    "share": ("majority Mehrheit majorité", "minority Minderheit minorité"),
    "sign": ("positive positiv~ positif", "negative negativ~ négatif"),
    "level": ("above exceed~ über", "below unter"),
    "money": ("profit~ surplus~ Gewinn~", "loss losses deficit~ Verlust~"),
    "outcome": ("succeed~ success~", "failed failure fails fail"),
    "side": ("support~ favour~ favor~ back backs backed", "oppos~"),
    "begin": ("began begins started starts", "ended ends finished stopped"),
    "height": ("highest tallest höchste~", "lowest niedrigste~ tiefste~"),
    "length": ("longer longest länger~ längste~", "shorter shortest kürzer~ kürzeste~"),
    "age": ("older oldest älter~ älteste~", "newer newest younger youngest jünger~ jüngste~"),
    "count": ("most meisten", "fewest least wenigsten"),
    "time": ("earlier before früher vor", "later after später nach"),
    "first": ("earliest", "latest"),
    "quality": ("better best besser beste", "worse worst schlechter schlechteste"),
    "heat": ("warmer hotter warmest hottest wärmer warm hot", "colder cooler coldest coolest kälter cold cool"),
    "light": ("brighter brightest heller", "dimmer darker fainter dunkler"),
    "mass": ("heavier heaviest schwerer", "lighter lightest leichter"),
    "price": ("dearer pricier teurer", "cheaper cheapest billiger"),
    "bustle": ("busier busiest", "quieter quietest"),
    "win": ("won wins winning gewann", "lost loses losing verlor"),
    "part": ("includ~ includes umfass~", "exclud~ omit~"),
    "vote": ("voted_for in_favour_of in_favor_of stimmte~_für", "voted_against against stimmte~_gegen"),
    "certainty": (
        "will certainly definitely undoubtedly proven auf_jeden_Fall sicher~ bestimmt",
        "may might could probably perhaps possibly maybe voraussichtlich könnte~ vermutlich wahrscheinlich vielleicht",
    ),
    "open": ("open opened opens opening", "close closed closes closing shut"),
    "arrival": ("arriv~ enter entered enters joined joins", "depart~ left leaves leaving exit exited exits quit"),
    "ease": ("easy easier easiest simple simpler einfach~", "hard harder hardest difficult schwierig~ schwer"),
    "safety": ("safe safer safest sicherer", "dangerous risky gefährlich~"),
    "depth": ("deep deeper deepest", "shallow shallower shallowest"),
    "width": ("wide wider widest broad broader", "narrower narrowest"),
    "thickness": ("thick thicker thickest", "thin thinner thinnest"),
    "duty": ("mandatory compulsory obligatory required verpflichtend", "optional voluntary freiwillig"),
    "permission": ("allow~ permit~ erlaubt", "forbid~ forbade banned bans prohibit~ verboten verbietet"),
    "stay": ("permanent~", "temporar~ provisional~"),
    "finality": ("final definitive endgültig~", "preliminary provisional tentative vorläufig~"),
    "inside": ("internal indoors indoor inner", "external outdoors outdoor outer"),
    "public": ("public publicly öffentlich~", "private privately confidential~"),
    "hope": ("optimis~ hopeful confident", "pessimis~ worried concerned sceptical skeptical"),
    "praise": ("prais~ welcomed", "criticis~ criticiz~ condemn~"),
    "confirm": ("confirm~ admitted admits", "deny denies denied"),
    "trade": ("import imports imported importing", "export exports exported exporting"),
    "build": ("build builds built erected", "demolish~ tore_down torn_down destroy~"),
    "frequency": ("often frequent~ always usually", "rare rarely seldom never"),
    "reveal": ("reveal~ disclos~ publish~", "hide hides hid hidden conceal~ withheld"),
    "tighten": ("tighten~ strict stricter", "loosen~ relax~ lenient"),
    "harm": ("benefit~ helps helped", "harm~ hurts hurt damag~"),
    "well": ("improv~", "worsen~ deteriorat~"),
    "top": ("top upper", "bottom"),
    "rich": ("rich richer richest wealthy", "poor poorer poorest"),
    "full": ("full", "empty"),
    "quantity": ("many much", "few little"),
}
"""Pairs of words of which a text means either one or the other. Some words are on two axes: `lost`.

`~` is any ending, `_` a space.
"""
CJK_AXES: dict[str, tuple[str, str]] = {
    "change": (
        "增长|增長|增加|上升|上涨|上漲|提高|攀升|增至|升至|涨至|高于|增え|増え|増加|上昇|伸び|扩大|回升|增多|超过|超出",
        "下降|下跌|减少|減少|降低|下滑|缩减|降至|跌至|减至|低于|減っ|減り|下がっ|縮小|回落|萎缩|缩小|不到|不足|低於",
    ),
    "height": ("最高|最多|最大", "最低|最少|最小"),
    "order": ("第一|首次|最早|最初", "最后|最後|末次|最晚|最新"),
    "approval": ("批准|通过|接受|承認|可決", "否决|拒绝|驳回|否決|却下"),
}
BOUND = re.compile(
    r"\b(?:(?:more|less|fewer|higher|lower|better|mehr|weniger|plus|moins|later|earlier) (?:than|als|d[e']) ?(?:an? )?"
    r"(?:[$€£¥\d]|(?:half|an?|one|two|three|four|five|six|seven|eight|nine|ten)\b)"
    r"|(?:down|up) to (?=(?-i:[A-Z]))|at (?:most|least)|most of|up to|(?:no|any) longer|later this|(?:best|most) known"
    r"|once more)",
    re.IGNORECASE,
)
"""Rounding and set phrases, in which the words of the tables say something else."""
NO_NEGATION = re.compile(
    r"\b(?:not (?:only|least|just|simply|merely|necessarily)"
    r"|not (?:\w+ )?(?:more|less|fewer|later|earlier|higher|lower) than|no (?:fewer|less|more|later|earlier) than"
    r"|(?:and|,) not (?=(?:the|an?|his|her|its|their|in|on|by|for|from|with|at|to)\b)"
    r"|nicht nur|non seulement|no doubt|no\.)",
    re.IGNORECASE,
)
MONTH = re.compile(r"(?<=\d )May\b|\bMay(?= \d)|\b(?:in|of|since|until|by|last|next|this) May\b")
_ENTRIES = [
    (word.lower(), (name, side))
    for name, pair in AXES.items()
    for side, words in zip(("up", "down"), pair, strict=True)
    for word in words.split()
]
"""Words of the tables; of one that is on two axes, the first counts."""
EXACT: Mapping[str, tuple[str, str]] = {
    word: side for word, side in reversed(_ENTRIES) if "_" not in word and "~" not in word
}
BEGUN: Mapping[str, tuple[str, str]] = {
    word.removesuffix("~"): side for word, side in reversed(_ENTRIES) if "_" not in word and "~" in word
}
BEGUN_CHARS = sorted({len(word) for word in BEGUN})
PHRASES = [
    (re.compile(r"\b" + word.replace("_", " ").replace("~", r"\w*") + r"\b"), side)
    for word, side in _ENTRIES
    if "_" in word
]
WORD = re.compile(r"[^\W\d_]+")
LOST = re.compile(r"\b(?:lost|loses)\b", re.IGNORECASE)
CJK_AXIS = re.compile(
    "|".join(
        f"(?P<{name}_{side}>{words})"
        for name, pair in CJK_AXES.items()
        for side, words in zip(("up", "down"), pair, strict=True)
    )
)
NEGATION = re.compile(
    r"\b(?:not|never|no|nobody|none|neither|nor|nothing|nowhere|cannot|no longer|no one"
    r"|rather than|instead of|(?:refus|declin)\w* to|fail(?:s|ed|ing)? to|unable to"
    r"|nicht|kein\w*|nie|niemals|niemand|weder|ne|jamais|aucune?|ni)\b"
    r"|n't\b|\b(?:do|does|did|is|are|was|were|has|have|had|would|could|should|ca|wo)nt\b|\bn'(?=[aeiouéèêhy])"
    r"|不(?![同仅但断少过足久错妨如论管得]|到(?=\d))|没有|没能|未(?![来知必])|从未|并非|无法|ない|なかっ|ません|せず",
    re.IGNORECASE,
)
IMPLICIT = re.compile(
    r"\b(?:reject|refus|den(?:y|ie)|dropp|drops|discontinu|abolish|ban(?:s|n)|prohibit|forbid|lack|absent|absence"
    r"|missing|unsupported|unchanged|unlikely|impossible|oppos|disagree|disput|rul(?:e|ed|es|ing) out|withdr"
    r"|prevent|cancel|halt|stop|end(?:s|ed)\b|quit|only|few\b|little\b|hardly|barely|rarely|seldom|free of|exempt|remov"
    r"|away|exclud|omit|without|against|except|outstanding|pending|await|yet to"
    r"|ohne|sans|kaum|ablehn|abgelehnt|verbot|rejet|interdi)\w*|un[a-z]{4,}ed\b|dis(?:trust|approv|lik|satisf|allow)\w*|mistrust\w*|拒绝|反对|禁止|取消|停止|否认",
    re.IGNORECASE,
)
"""Words that negate without a negation; a claim that uses another of them than its source is not compared."""
ORDINAL = re.compile(
    r"\b(first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|1st|2nd|3rd|[4-9]th|10th)[ -](\w{4,6})",
    re.IGNORECASE,
)
SAME_ORDINAL = {"1st": "first", "2nd": "second", "3rd": "third", "4th": "fourth", "5th": "fifth", "6th": "sixth"}


@dataclass(frozen=True)
class Polarity:
    """What turns a stretch of text round."""

    sides: frozenset[tuple[str, str]]
    """Pairs of an axis and `up` or `down`."""
    is_negated: bool
    implicit: frozenset[str]
    ordinals: frozenset[tuple[str, str]]
    """Pairs of what is counted and the ordinal before it."""

    @property
    def is_denial(self) -> bool:
        """Whether it negates, in whatever way."""
        return self.is_negated or bool(self.implicit)

    def contradicts(self, other: "Polarity") -> str:
        """Return what one text says and the other one turns round; empty when they agree or it is not plain."""
        if self.is_negated != other.is_negated:
            is_plain = self.implicit == other.implicit and ("part", "down") not in self.sides | other.sides
            return "negation" if is_plain else ""
        mine, its = dict(self.ordinals), dict(other.ordinals)
        if any(its.get(noun, order) != order for noun, order in mine.items()):
            return "order"
        return "" if self.is_negated else self._opposite(other)

    def _opposite(self, other: "Polarity") -> str:
        for axis, side in self.sides:
            opposite = (axis, "down" if side == "up" else "up")
            is_plain = opposite not in self.sides and (axis, side) not in other.sides
            if is_plain and opposite in other.sides:
                return "direction"
        return ""


def polarity(text: str) -> Polarity:
    """Return the words of a stretch of text that turn it round."""
    clear = MONTH.sub(" ", NO_NEGATION.sub(" ", text))
    return Polarity(
        sides=frozenset(_sides(BOUND.sub(" ", clear))),
        is_negated=NEGATION.search(clear) is not None,
        implicit=frozenset(found[0].lower()[:5] for found in IMPLICIT.finditer(NEGATION.sub(" ", clear))),
        ordinals=frozenset(
            (found[2].lower(), SAME_ORDINAL.get(found[1].lower(), found[1].lower()))
            for found in ORDINAL.finditer(clear)
        ),
    )


class AxisWord(NamedTuple):
    """A word or phrase of a pair of opposites, in a text."""

    start: int
    end: int
    axis: str
    side: str


def axis_words(text: str) -> Iterator[AxisWord]:
    """Yield the words of pairs of opposites.

    Each word is looked up in a table: one pattern of all of them would try hundreds at every place.
    """
    small = text.lower()
    if len(small) != len(text):  # a letter such as İ, which has two small ones
        small = text
    for found in WORD.finditer(small):
        if (side := _side_of(found[0])) is not None:
            yield AxisWord(*found.span(), *side)
    for pattern, side in PHRASES:
        for found in pattern.finditer(small):
            yield AxisWord(*found.span(), *side)


def _side_of(word: str) -> tuple[str, str] | None:
    if word in EXACT:
        return EXACT[word]
    for chars in BEGUN_CHARS:
        if chars > len(word):
            return None
        if word[:chars] in BEGUN:
            return BEGUN[word[:chars]]
    return None


def _sides(text: str) -> Iterator[tuple[str, str]]:
    for one in axis_words(text):
        yield one.axis, one.side
    for found in () if text.isascii() else CJK_AXIS.finditer(text):
        axis, _, side = (found.lastgroup or "").rpartition("_")
        yield axis, side
    if LOST.search(text):
        yield "win", "down"
