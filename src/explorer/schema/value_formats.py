"""How the values of settings are written and read."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from explorer.schema.model_options import EVERY_ROLE, Effort

TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
NO_LIMIT = "none"
CONTACT_PATTERN = re.compile(r"[A-Za-z0-9][\w.+@:/?=&%~#;, -]{3,150}|/u/[\w-]{3,20}", re.ASCII)

Parse = Callable[[str], object]


@dataclass(frozen=True)
class ValueFormat:
    """How a value is read from the text that a person wrote."""

    parse: Parse
    """Raises ValueError when the text is not `allowed`."""
    allowed: str
    """What an error says is allowed."""


def text(raw: str) -> str:
    """Any words on one line."""
    if not raw.isprintable():
        raise ValueError(raw)
    return raw.strip()


def folder(raw: str) -> Path:
    """A path, with `~` expanded."""
    if "\0" in raw:
        raise ValueError(raw)
    return Path(raw).expanduser()


def absolute_folder(raw: str) -> Path:
    """The same from the root: a run that is resumed elsewhere means the same folder."""
    return folder(raw).absolute()


def whole(raw: str) -> int:
    """A whole number; `_` may separate its digits."""
    if re.fullmatch(r"[0-9][0-9_]*", raw) is None:
        raise ValueError(raw)
    return int(raw)


def whole_or_none(raw: str) -> int | None:
    """A whole number, or no limit."""
    return None if raw.lower() == NO_LIMIT else whole(raw)


def money_or_none(raw: str) -> float | None:
    """US dollars, or no limit."""
    return None if raw.lower() == NO_LIMIT else _amount(raw)


def time_or_none(raw: str) -> float | None:
    """Seconds of `90`, `90s`, `10m` or `2h`, or no limit."""
    if raw.lower() == NO_LIMIT:
        return None
    match = TIME.fullmatch(raw.lower())
    if match is None:
        raise ValueError(raw)
    return float(match[1]) * SECONDS[match[2]]


def price(raw: str) -> dict[str, float]:
    """`3/15`: US dollars per million tokens, in and out."""
    inward, slash, outward = raw.partition("/")
    if not slash:
        raise ValueError(raw)
    return {"input_usd": _amount(inward), "output_usd": _amount(outward)}


def efforts(raw: str) -> dict[str, str]:
    """`high`, `writer=high` or `low,writer=high`: how much models are to reason, for all roles or for one."""
    found: dict[str, str] = {}
    for part in raw.split(","):
        role, equals, word = part.strip().rpartition("=")
        if word not in get_args(Effort) or (equals and re.fullmatch(r"[a-z][a-z0-9_-]*", role) is None):
            raise ValueError(raw)
        found[role or EVERY_ROLE] = word
    return found


def hosts(raw: str) -> tuple[str, ...]:
    """Host names, separated by commas."""
    names = tuple(name.strip().lower() for name in raw.split(",") if name.strip())
    if any(re.fullmatch(r"[\w.:\[\]-]+", name) is None for name in names):
        raise ValueError(raw)
    return names


def url(raw: str) -> str:
    """A base URL, without a slash at its end."""
    parts = urlsplit(raw)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not raw.isprintable() or " " in raw:
        raise ValueError(raw)
    return raw.rstrip("/")


def url_or_none(raw: str) -> str:
    """A base URL, or none of them."""
    return NO_LIMIT if raw.lower() == NO_LIMIT else url(raw)


def contact(raw: str) -> str:
    """What may stand within the parentheses of a User-Agent."""
    if not CONTACT_PATTERN.fullmatch(raw) or not ("@" in raw or "." in raw or "u/" in raw):
        raise ValueError(raw)
    return raw


def secret(raw: str) -> str:
    """A key: printable, in one piece. Anything else would break, or smuggle, a header."""
    if not raw.isascii() or not raw.isprintable() or " " in raw:
        raise ValueError
    return raw


def headers(raw: str) -> str:
    """Headers as the OpenTelemetry specification has them; what is wrong in them is left out when they are sent."""
    if not raw.isascii() or not raw.isprintable():
        raise ValueError
    return raw


def _amount(raw: str) -> float:
    number = raw.strip().removeprefix("$")
    if re.fullmatch(r"\d+(\.\d+)?|\.\d+", number) is None:
        raise ValueError(raw)
    return float(number)


def timezone(raw: str) -> str:
    """A name of the IANA time zone database."""
    try:
        return ZoneInfo(raw).key
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(raw) from error


def one_of(*words: str) -> ValueFormat:
    """One of a few words."""

    def read(raw: str) -> str:
        if raw.lower() not in words:
            raise ValueError(raw)
        return raw.lower()

    return ValueFormat(read, f"one of {', '.join(words)}")


COUNT = "a whole number, 1 or more"
DURATION = f"a time above 0, like 90, 90s, 10m or 2h, or `{NO_LIMIT}`"
URL_FORM = "a URL that starts with http:// or https://"

TEXT = ValueFormat(text, "words on one line")
PATH = ValueFormat(folder, "a path")
ABSOLUTE_PATH = ValueFormat(absolute_folder, "a path")
WHOLE = ValueFormat(whole, COUNT)
WHOLE_OR_ZERO = ValueFormat(whole, "a whole number, 0 or more")
WHOLE_OR_NONE = ValueFormat(whole_or_none, f"{COUNT}, or `{NO_LIMIT}`")
TOKENS_OR_NONE = ValueFormat(whole_or_none, f"{COUNT}, or `{NO_LIMIT}`, or `auto`")
REPLY_TOKENS = ValueFormat(whole, "a whole number, 1024 or more")
MONEY_OR_NONE = ValueFormat(money_or_none, f"US dollars above 0, like 0.50, or `{NO_LIMIT}`, or `auto`")
TIME_OR_NONE = ValueFormat(time_or_none, DURATION)
PRICE = ValueFormat(price, "two amounts in US dollars, like 3/15")
EFFORTS = ValueFormat(
    efforts, f"one of {', '.join(get_args(Effort))}, for all roles or as ROLE=VALUE, separated by commas"
)
TIMEZONE = ValueFormat(timezone, "a name like Europe/Berlin")
CONTACT = ValueFormat(contact, "an e-mail address, a web address, or /u/name of Reddit")
HOSTS = ValueFormat(hosts, "host names separated by commas, like 127.0.0.1,intranet.example")
PUBLIC_HOSTS = ValueFormat(hosts, "host names separated by commas, like packages.example.org")
URL = ValueFormat(url, URL_FORM)
URL_OR_NONE = ValueFormat(url_or_none, f"{URL_FORM}, or `{NO_LIMIT}`")
KEY = ValueFormat(
    secret, "a key in one piece of ASCII characters: no spaces, no line breaks, no accents; copy it once more"
)
HEADERS = ValueFormat(headers, "name=value, separated by commas")
