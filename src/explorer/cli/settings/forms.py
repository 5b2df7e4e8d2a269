"""How one setting is written and read: the forms that the table of settings is made of."""

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
CONTACT = re.compile(r"[A-Za-z0-9][\w.+@:/?=&%~#;, -]{3,150}|/u/[\w-]{3,20}", re.ASCII)

Parse = Callable[[str], object]


@dataclass(frozen=True)
class Setting:
    """Where one setting can be written, and how it is read."""

    name: str
    """Its place in `Settings`, with dots."""
    variable: str
    key: str
    """In a configuration file, with dots; empty for what must not stand in one."""
    help: str
    parse: Parse
    """Raises ValueError when the text is not `allowed`."""
    allowed: str
    flag: str = ""

    @property
    def is_secret(self) -> bool:
        """Whether its value is never shown."""
        return self.name.startswith("secrets.")


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
    """A whole number; `_` may part its digits."""
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
    """Host names, parted by commas."""
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
    if not CONTACT.fullmatch(raw) or not ("@" in raw or "." in raw or "u/" in raw):
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


def one_of(*words: str) -> Parse:
    """One of a few words."""

    def read(raw: str) -> str:
        if raw.lower() not in words:
            raise ValueError(raw)
        return raw.lower()

    return read


ANY_TEXT = "words on one line"
A_PATH = "a path"
COUNT = "a whole number, 1 or more"
COUNT_OR_NONE = f"{COUNT}, or `{NO_LIMIT}`"
A_URL = "a URL that starts with http:// or https://"
AN_EFFORT = f"one of {', '.join(get_args(Effort))}, for all roles or as ROLE=VALUE, parted by commas"
A_URL_OR_NONE = f"{A_URL}, or `{NO_LIMIT}`"
A_CONTACT = "an e-mail address, a web address, or /u/name of Reddit"
A_KEY = "a key in one piece of ASCII characters: no spaces, no line breaks, no accents; copy it once more"
