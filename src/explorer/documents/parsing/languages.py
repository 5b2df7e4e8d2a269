"""The language of a page: what it says, unless its letters say otherwise."""

import re

from explorer.text.words import HAN_LETTER, HANGUL, KANA, THAI

ROOT = re.compile(r"<html\b[^>]*?\b(?:xml:)?lang\s*=\s*[\"']?\s*([A-Za-z]{2,3})\b", re.IGNORECASE)
META = re.compile(
    r"<meta\b(?=[^>]*\b(?:http-equiv|name|property|itemprop)\s*=\s*[\"']?"
    r"(?:content-language|language|dc\.language|og:locale|inlanguage)\b)"
    r"[^>]*\bcontent\s*=\s*[\"']?\s*([A-Za-z]{2,3})\b",
    re.IGNORECASE,
)
HEAD_CHARS = 50_000
SAMPLE_CHARS = 5_000
SCRIPTS = (
    ("ja", re.compile(f"[{KANA}]"), 0.1, frozenset({"ja"})),
    ("ko", re.compile(f"[{HANGUL}]"), 0.3, frozenset({"ko"})),
    ("zh", HAN_LETTER, 0.3, frozenset({"zh", "yue", "ja"})),
    ("ru", re.compile("[\u0400-\u04ff]"), 0.5, frozenset({"ru", "uk", "be", "bg", "sr", "mk", "kk", "ky", "mn", "tg"})),
    ("ar", re.compile("[\u0600-\u06ff]"), 0.5, frozenset({"ar", "fa", "ur", "ps", "ug", "ckb"})),
    ("he", re.compile("[\u0590-\u05ff]"), 0.5, frozenset({"he", "yi", "iw"})),
    ("el", re.compile("[\u0370-\u03ff]"), 0.5, frozenset({"el"})),
    ("th", re.compile(f"[{THAI}]"), 0.5, frozenset({"th"})),
)
"""The language a script mostly stands for, its letters, the least share of them, and the languages it can be."""


def declared_language(html: str) -> str:
    """The code a page gives of itself, like `en`; empty when it gives none."""
    head = html[:HEAD_CHARS]
    found = ROOT.search(head) or META.search(head)
    return found[1].lower() if found else ""


def language_of(declared: str, text: str) -> str:
    """What is declared, unless the text is written in letters that language has not: templates often lie."""
    letters = [letter for letter in text[:SAMPLE_CHARS] if letter.isalpha()]
    if not letters:
        return declared
    sample = "".join(letters)
    for language, script, least, possible in SCRIPTS:
        if len(script.findall(sample)) >= least * len(letters):
            return declared if declared in possible else language
    return declared
