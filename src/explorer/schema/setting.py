"""How a setting is declared on its field, and how the text of its value is read."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, SecretStr

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


class Group(StrEnum):
    """Under which heading a setting is listed."""

    MODELS = "Models and roles"
    LIMITS = "Limits"
    FILES = "Input and output"
    SOURCES = "Sources"
    TRACES = "OpenTelemetry"


@dataclass(frozen=True)
class Flag:
    """How a setting is written on the command line."""

    name: str
    metavar: str = ""
    note: str = ""
    """What holds for the flag only: that it may be repeated."""
    value: str = ""
    """The value that a flag without a value of its own stands for; such a flag has its own help."""
    help: str = ""


@dataclass(frozen=True)
class Setting:
    """Where one setting can be written, how it is read, and what it is: `Annotated[TYPE, Setting(...)]`."""

    variable: str
    format: ValueFormat
    help: str
    """One line of markdown without a full stop, for every place that explains the setting."""
    group: Group
    flags: tuple[Flag, ...] = ()
    key: str = ""
    """In a configuration file, with dots; empty: the dotted name of the field."""
    details: str = ""
    """Further words for the documents."""
    default: str = ""
    """The default in words, where the value does not say it."""
    anchor: str = ""
    """The section of docs/configuration.md with more."""
    name: str = ""
    """Its place in `Settings`, with dots; known from the field."""
    initial: object = None
    """Its default value; known from the field."""
    is_secret: bool = False
    """Whether its value is never shown; known from the field's type. It has no key in a file, either."""

    @property
    def plain_help(self) -> str:
        """The help without marks of code."""
        return self.help.replace("`", "")

    def parse(self, raw: str) -> object:
        """Read a text.

        Raises:
            ValueError: It is not what `format.allowed` says.
        """
        return self.format.parse(raw)


@dataclass(frozen=True)
class PerRole:
    """A setting that has a value for each role: a variable per role, and a table in a file."""

    prefix: str
    """Of the variables; a role's name in capitals follows."""
    table: str
    """In a configuration file."""
    help: str
    group: Group


def declared_settings(model: type[BaseModel], prefix: str = "") -> tuple[Setting, ...]:
    """Return the settings that the fields of a model and of its models declare, group by group."""
    found = list(_declared(model, prefix))
    return tuple(sorted(found, key=lambda setting: list(Group).index(setting.group)))


def _declared(model: type[BaseModel], prefix: str) -> Iterator[Setting]:
    models: dict[str, type[BaseModel]] = {}
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            models[name] = kind
        for setting in field.metadata:
            if isinstance(setting, Setting):
                is_secret = kind is SecretStr
                key = "" if is_secret else setting.key or prefix + name
                initial = field.get_default(call_default_factory=True)
                yield replace(setting, name=prefix + name, is_secret=is_secret, key=key, initial=initial)
    for name, kind in models.items():
        yield from _declared(kind, f"{prefix}{name}.")


class ExtensionSettings(BaseModel):
    """Base of what an extension lets the user set: fields of texts and keys, each annotated with `Setting`."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NoSettings(ExtensionSettings):
    """Nothing to set."""


def extension_settings(extension: str, model: type[ExtensionSettings]) -> tuple[Setting, ...]:
    """Return the settings that an extension declares, each with its place in `Settings`."""
    return tuple(
        replace(setting, name=place, key="" if setting.is_secret else place)
        for setting in _declared(model, "")
        for place in [extension_place(extension, setting.name, is_secret=setting.is_secret)]
    )


def extension_place(extension: str, field: str, *, is_secret: bool) -> str:
    """Return the place of an extension's setting: keys are among the secrets, all else among the services."""
    return f"{'secrets' if is_secret else 'services'}.{extension}_{field}"


def declared_setting(model: type[BaseModel], field: str) -> Setting:
    """Return what a field declares.

    Raises:
        KeyError: The model has no such setting.
    """
    return {setting.name: setting for setting in _declared(model, "")}[field]
