"""Names and addresses of Reddit: subreddits, posts and comments, in all the forms people write them."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from explorer.schema.errors import RefusedCallError
from explorer.text.sanitize import single_line

ID = r"[0-9a-z]{1,13}"
HOSTS = re.compile(r"(?:(?:www|old|new|np|i|m|amp|sh|[a-z]{2})\.)?reddit\.com")
SHORT_HOSTS = frozenset({"redd.it", "www.redd.it"})
SUBREDDIT = re.compile(r"\w{2,24}(?:\+\w{2,24}){0,9}", re.ASCII)
POST_PATH = re.compile(
    rf"/(?:(?:r|u|user)/[\w-]+/)?(?:comments|gallery)/(?P<post>{ID})(?:/[^/]*/(?P<comment>{ID}))?(?:/|$)", re.IGNORECASE
)
PAIR = re.compile(rf"(?:t3_)?(?P<post>{ID})(?:/(?:t1_)?(?P<comment>{ID}))?", re.IGNORECASE)
EVERYWHERE = "all"


@dataclass(frozen=True)
class PostName:
    """Which post, and which comment of it if one is meant."""

    post: str
    """In Reddit's base 36."""
    comment: str = ""


def post_named(text: str) -> PostName:
    """A post from its id, its full name (`t3_abc`), `post/comment`, or an address.

    Raises:
        RefusedCallError: It is none of these.
    """
    words = text.strip()
    if name := post_at(words):
        return name
    if match := PAIR.fullmatch(words):
        return PostName(match["post"].lower(), (match["comment"] or "").lower())
    raise RefusedCallError(
        f'"{single_line(words, 80)}" names no Reddit post: give its id as get_reddit_posts shows it, or its '
        "address with /comments/ in it."
    )


def post_at(url: str) -> PostName | None:
    """The post at an address of Reddit's; None for any other address."""
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
    except ValueError:
        return None
    host = (parts.hostname or "").rstrip(".")
    if host in SHORT_HOSTS and (match := re.fullmatch(rf"/({ID})/?", parts.path)):
        return PostName(match[1])
    if not HOSTS.fullmatch(host):
        return None
    match = POST_PATH.match(parts.path)
    return PostName(match["post"].lower(), (match["comment"] or "").lower()) if match else None


def subreddit_named(text: str) -> str:
    """A subreddit's bare name, or several joined by `+`; `all` is Reddit as a whole.

    Raises:
        RefusedCallError: It is no such name.
    """
    words = re.sub(r"^(?:https?://)?(?:[a-z]+\.)?reddit\.com", "", text.strip(), flags=re.IGNORECASE)
    name = re.sub(r"^/?r/", "", words, flags=re.IGNORECASE).strip("/")
    if not SUBREDDIT.fullmatch(name):
        raise RefusedCallError(f'"{single_line(text, 80)}" is no subreddit\'s name: write e.g. python, or python+rust.')
    return name
