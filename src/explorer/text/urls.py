"""Equality of web addresses, and addresses within a text."""

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

TRACKING_PARAMETERS = re.compile(r"^(utm_\w+|fbclid|gclid|ref_src)$")
SCHEME_AND_WWW = re.compile(r"^https?://(?:www\.)?")
ADDRESS_IN_WORDS = re.compile(r"https?://([^\s/?#<>`\"')]+)[^\s<>`\"')]*?(?=[:,;.]?(?:[\s<>`\"')]|$))", re.IGNORECASE)


def canonical_url(url: str) -> str:
    """Return the form in which two spellings of one address are equal: no fragment, tracking or trailing slash.

    Raises:
        ValueError: It is not an address.
    """
    parts = urlsplit(url)
    query = [(k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if not TRACKING_PARAMETERS.match(k)]
    path = parts.path.rstrip("/")
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, urlencode(query), ""))


def site_of(url: str) -> str:
    """Return the host of an address without `www.`; empty for what is no address, as outsiders may give."""
    try:
        return urlsplit(url).netloc.removeprefix("www.")
    except ValueError:
        return ""


def host_of(url: str) -> str:
    """Return the host of an address without port and login; empty for what is no address."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def url_key(url: str) -> str:
    """Return a key that equal addresses share; a text that is not an address, such as a file's name, is its own key."""
    try:
        return canonical_url(url)
    except ValueError:
        return url


def page_key(url: str) -> str:
    """Return a key that all addresses of one page share, with `http` or `https`, with or without `www`."""
    return SCHEME_AND_WWW.sub("", url_key(url.strip()))


def with_hosts_only(text: str) -> str:
    """Return a text with each web address shortened to its host, so that an error message adds no link to a report."""
    return ADDRESS_IN_WORDS.sub(r"\1", text)
