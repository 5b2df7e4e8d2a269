"""The language that a text is written in, by its letters and its commonest words."""

import re
from collections.abc import Mapping

from explorer.text.words import CJK_LETTER, HANGUL, HIRAGANA, LETTER

UNKNOWN = "und"
"""The standard code of a language that was not recognised (ISO 639-2)."""
_COMMONEST = {
    "en": "the of and to is in that was with are have from by at for it on were has a an this but not as be will than",
    "de": "der die das und ist nicht mit von den dem ein eine im auf für sich sagte als um zu des bei aus wird wurde"
    " hat hatte war waren wurden werden sind nach jedes jahr prozent aber nur",
    "fr": "le la les des du et est dans une un en que qui sur par pour au a ont",
    "es": "el los las y es en que una del por con para se su al fue",
}
LANGUAGE_WORDS: Mapping[str, frozenset[str]] = {name: frozenset(words.split()) for name, words in _COMMONEST.items()}
HIRAGANA_LETTER = re.compile(f"[{HIRAGANA}]")
HANGUL_LETTER = re.compile(f"[{HANGUL}]")
READ_CHARS = 2_000
LEAST_KANA = 2
LEAST_COMMON = 2
"""Fewest common words from which a language is recognised: `a` alone is French, too."""


def language_of(text: str) -> str:
    """Return the code of a text's language, by what it begins with; empty when that is not plain.

    Known are English, German, French, Spanish, Chinese, Japanese and Korean.
    """
    beginning = text[:READ_CHARS]
    if sum(1 for _ in HIRAGANA_LETTER.finditer(beginning)) >= LEAST_KANA:
        return "ja"
    letters = sum(1 for _ in LETTER.finditer(beginning))
    if len(CJK_LETTER.findall(beginning)) * 3 > letters:
        return "ko" if len(HANGUL_LETTER.findall(beginning)) * 3 > letters else "zh"
    words = re.findall(r"[^\W\d_]+", beginning.lower())
    counts = {name: sum(word in known for word in words) for name, known in LANGUAGE_WORDS.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] >= LEAST_COMMON and sorted(counts.values())[-2] < counts[best] else ""
