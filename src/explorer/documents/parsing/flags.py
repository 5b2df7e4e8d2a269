"""What is wrong with a page: a wall instead of words, a check for robots, a shell that scripts were to fill."""

import re

from explorer.documents.parsing.document import CHALLENGE, PAYWALL, SCRIPT_SHELL
from explorer.documents.parsing.word_count import FEW_WORDS, words

SHORT_WORDS = 400
"""Below, words like "subscribe to continue" mean the page and not a line in it."""
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
    """What the page's source says about itself, seen beside the text that was found in it."""
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
    """What the words alone say: a request to pay or a bot check instead of content."""
    head = f"{title}\n{text[:HEAD_CHARS]}\n{text[-HEAD_CHARS:]}"
    count = words(text)
    flags: list[str] = []
    if count < SHORT_WORDS and ASKS_TO_PAY.search(head):
        flags.append(PAYWALL)
    if count < CHALLENGE_WORDS and ASKS_FOR_PROOF.search(head):
        flags.append(CHALLENGE)
    return tuple(flags)


def _is_shell(html: str, count: int) -> bool:
    """Whether scripts were to write the text: few words, and much script or a plea for it."""
    script = sum(len(match[0]) for match in SCRIPT.finditer(html)) if count < FEW_WORDS else 0
    if not script:
        return False
    return count == 0 or script > len(html) / 3 or bool(NEEDS_SCRIPT.search(html) or EMPTY_ROOT.search(html))
