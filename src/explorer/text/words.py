"""What a word is, in scripts with spaces and without."""

import re

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3040-\u30ff"
HANGUL = "\uac00-\ud7af"
THAI = "\u0e00-\u0e7f"
CJK = KANA + HAN + HANGUL
"""Chinese, Japanese and Korean letters, as the inside of a regular expression's `[...]`."""
UNSPACED = KANA + HAN + THAI
"""Scripts that put no spaces between words. Each letter counts as a word: more than the truth, and near enough."""
CJK_LETTER = re.compile(f"[{CJK}]")
CJK_SHARE = 0.3
HAN_LETTER = re.compile(f"[{HAN}]")
LETTER = re.compile(r"[^\W\d_]")
WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+(?:['\u2019.,:-][^\W_{UNSPACED}]+)*")


def count_words(text: str) -> int:
    """Count words; a letter of a script without spaces is one, and marks that stand alone are none."""
    return sum(1 for _ in WORD.finditer(text))


def is_mostly_cjk(text: str) -> bool:
    """Return whether more than three in ten letters are Chinese, Japanese or Korean."""
    letters = sum(1 for _ in LETTER.finditer(text))
    return letters > 0 and len(CJK_LETTER.findall(text)) > CJK_SHARE * letters


def phrase_language(text: str) -> str:
    """Return the language of the few phrases that the engine adds: `zh` to a text with a third of Han, else `en`."""
    return "zh" if len(HAN_LETTER.findall(text)) * 3 > sum(1 for _ in LETTER.finditer(text)) else "en"
