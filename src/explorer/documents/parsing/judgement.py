"""The language of a page, and flags for problems with its text."""

import re

from explorer.documents.parsing.document import CHALLENGE, PAYWALL, SCRIPT_SHELL
from explorer.text.words import HAN_LETTER, HANGUL, KANA, THAI, count_words

FEW_WORDS = 50
"""The number of words below which an extraction may have missed the text."""

LINK_TARGET = re.compile(r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?: \"[^\"]*\")?\)")


def words(text: str) -> int:
    """Return the number of words in a text without the addresses of its links."""
    return count_words(without_targets(text))


def without_targets(text: str) -> str:
    """Return markdown without the addresses of its links; the labels remain."""
    return LINK_TARGET.sub("]", text)


ROOT = re.compile(r"<html\b[^>]*?\b(?:xml:)?lang\s*=\s*[\"']?\s*([A-Za-z]{2,3})\b", re.IGNORECASE)
META = re.compile(
    r"<meta\b(?=[^>]*\b(?:http-equiv|name|property|itemprop)\s*=\s*[\"']?"
    r"(?:content-language|language|dc\.language|og:locale|inlanguage)\b)"
    r"[^>]*\bcontent\s*=\s*[\"']?\s*([A-Za-z]{2,3})\b",
    re.IGNORECASE,
)
LANGUAGE = re.compile(r"[a-z]{2,3}|")
"""Matches the code of a language, or nothing; feeds and PDFs may have any text in its place."""
DECLARED_IN_CHARS = 50_000
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
"""Rows of a script's main language, its letters, their smallest share in a text, and the languages that use it."""


def declared_language(html: str) -> str:
    """Return the language code that a page declares, such as `en`; empty when it declares none."""
    head = html[:DECLARED_IN_CHARS]
    found = ROOT.search(head) or META.search(head)
    return found[1].lower() if found else ""


def language_of(declared: str, text: str) -> str:
    """Return the declared language, or the main language of the text's script if the declared one does not use it."""
    declared = declared if LANGUAGE.fullmatch(declared) else ""
    letters = [letter for letter in text[:SAMPLE_CHARS] if letter.isalpha()]
    if not letters:
        return declared
    sample = "".join(letters)
    for language, script, least, possible in SCRIPTS:
        if len(script.findall(sample)) >= least * len(letters):
            return declared if declared in possible else language
    return declared


SHORT_WORDS = 400
"""The number of words below which a phrase like "subscribe to continue" is about the whole page."""
CHALLENGE_WORDS = 150
HEAD_CHARS = 4_000
SOURCE_CHARS = 200_000

SAYS_PAID = re.compile(r'"isAccessibleForFree"\s*:\s*"?false', re.IGNORECASE)
ASKS_TO_PAY = re.compile(
    r"(subscribe|sign up|log in|sign in|register) (now )?to (continue|keep|read|unlock|access)"
    r"|already a (paid )?(subscriber|member)|for (paid |paying )?(subscribers|members) only|subscription required"
    r"|this (article|content|story|post) is for (paid|paying|subscribers|members)|to read the (full|rest)"
    r"|subscribers?-only|premium (article|content)",
    re.IGNORECASE,
)
ASKS_FOR_PROOF = re.compile(
    r"just a moment\.\.\.|checking (if the site connection is secure|your browser)"
    r"|verify(ing)? (that )?you are (a )?human|are you a robot|unusual traffic from your|press (&|and) hold"
    r"|enable javascript and cookies to continue|attention required! \| cloudflare|ddos protection by"
    r"|(complete|solve) the (captcha|security check)|cf-chl|challenge-platform|px-captcha|captcha-delivery",
    re.IGNORECASE,
)
NEEDS_SCRIPT = re.compile(r"(enable|requires?|need to enable|without) javascript", re.IGNORECASE)
EMPTY_ROOT = re.compile(r"<div id=[\"']?(root|app|__next|__nuxt)[\"']?[^>]*>\s*</div>", re.IGNORECASE)
SCRIPT = re.compile(r"<script\b.*?(</script>|$)", re.IGNORECASE | re.DOTALL)


def html_flags(html: str, text: str) -> tuple[str, ...]:
    """Return the flags that follow from a page's HTML and from the text extracted from it."""
    count = words(text)
    flags: list[str] = []
    if SAYS_PAID.search(html):
        flags.append(PAYWALL)
    if count < CHALLENGE_WORDS and ASKS_FOR_PROOF.search(html[:SOURCE_CHARS]):
        flags.append(CHALLENGE)
    elif _is_shell(html, count):
        flags.append(SCRIPT_SHELL)
    return tuple(flags)


def text_flags(title: str, text: str) -> tuple[str, ...]:
    """Return the flags that follow from the text alone: a request to pay, or a bot check instead of content."""
    head = f"{title}\n{text[:HEAD_CHARS]}\n{text[-HEAD_CHARS:]}"
    count = words(text)
    flags: list[str] = []
    if count < SHORT_WORDS and ASKS_TO_PAY.search(head):
        flags.append(PAYWALL)
    if count < CHALLENGE_WORDS and ASKS_FOR_PROOF.search(head):
        flags.append(CHALLENGE)
    return tuple(flags)


def _is_shell(html: str, count: int) -> bool:
    """Return whether scripts load the text: few words, and much script or a request to enable scripts."""
    script = sum(len(match[0]) for match in SCRIPT.finditer(html)) if count < FEW_WORDS else 0
    if not script:
        return False
    return count == 0 or script > len(html) / 3 or bool(NEEDS_SCRIPT.search(html) or EMPTY_ROOT.search(html))
