"""The text of an HTML page as markdown, with title, author and date, and what is wrong with it."""

import logging
import re
from dataclasses import dataclass, replace

FEW_WORDS = 50
"""Below, an extraction is suspected of having missed the text."""
SHORT_WORDS = 400
"""Below, words like "subscribe to continue" mean the page and not a line in it."""
CHALLENGE_WORDS = 150
HEAD_CHARS = 4_000

TRUNCATED = "truncated"
PAYWALL = "paywall"
CHALLENGE = "challenge"
SCRIPT_SHELL = "script_shell"

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
HEADER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


@dataclass(frozen=True)
class Extracted:
    """What was read out of a page."""

    text: str
    title: str = ""
    author: str = ""
    published: str = ""
    """ISO date, when the page tells one."""
    flags: tuple[str, ...] = ()


def extract_html(html: str, url: str) -> Extracted:
    """Markdown of the main content; where that is little, of more, and at last all words of the page."""
    import trafilatura  # noqa: PLC0415 - slow to import

    # What it cannot parse is told by the flags; its own lines would stand between ours on the terminal.
    for name in ("trafilatura", "htmldate", "courlan"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    best = Extracted("")
    for favor_recall in (False, True):
        found = trafilatura.extract_with_metadata(
            html, url=url, output_format="markdown", include_links=True, favor_recall=favor_recall
        )
        if found:
            text = HEADER.sub("", found.text or "").strip()
            if words(text) >= words(best.text):
                best = Extracted(text, found.title or "", found.author or "", found.date or "")
        if words(best.text) >= FEW_WORDS:
            break
    if words(best.text) < FEW_WORDS:
        best = _with_all_words(best, html)
    title = best.title or _title(html)
    return replace(best, title=title, flags=(*html_flags(html, best.text), *text_flags(title, best.text)))


def plain_html(html: str) -> Extracted:
    """All words of a page without any judgement: for pages too large to be judged in time."""
    found = _with_all_words(Extracted(""), html)
    title = _title(html)
    return replace(found, title=title, flags=(*html_flags(html, found.text), *text_flags(title, found.text)))


def words(text: str) -> int:
    """How many words a text has."""
    return len(text.split())


def html_flags(html: str, text: str) -> tuple[str, ...]:
    """What the page's source says about itself, seen beside the text that was found in it."""
    count = words(text)
    flags: list[str] = []
    if SAYS_PAID.search(html):
        flags.append(PAYWALL)
    if count < CHALLENGE_WORDS and ASKS_FOR_PROOF.search(html[:200_000]):
        flags.append(CHALLENGE)
    elif _is_shell(html, count):
        flags.append(SCRIPT_SHELL)
    return tuple(flags)


def _is_shell(html: str, count: int) -> bool:
    """Whether scripts were to write the text: few words, and much script or a plea for it."""
    script = sum(len(match[0]) for match in SCRIPT.finditer(html)) if count < FEW_WORDS else 0
    if not script:
        return False
    return count == 0 or script > len(html) / 3 or bool(NEEDS_SCRIPT.search(html) or EMPTY_ROOT.search(html))


def text_flags(title: str, text: str) -> tuple[str, ...]:
    """What the words alone say: a request to pay or a bot check instead of content."""
    head = f"{title}\n{text[:HEAD_CHARS]}\n{text[-HEAD_CHARS:]}"
    count = words(text)
    flags: list[str] = []
    if count < SHORT_WORDS and ASKS_TO_PAY.search(head):
        flags.append(PAYWALL)
    if count < CHALLENGE_WORDS and ASKS_FOR_PROOF.search(head):
        flags.append(CHALLENGE)
    return tuple(flags)


def _with_all_words(found: Extracted, html: str) -> Extracted:
    import trafilatura  # noqa: PLC0415 - slow to import

    everything = trafilatura.html2txt(html)
    text = re.sub(r"[ \t]+", " ", everything or "").strip()
    return replace(found, text=text) if words(text) > words(found.text) else found


def _title(html: str) -> str:
    found = re.search(r"<title[^>]*>(.*?)</title>", html, re.IGNORECASE | re.DOTALL)
    return " ".join(found[1].split()) if found else ""
