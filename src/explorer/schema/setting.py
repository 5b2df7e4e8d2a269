"""How a setting is declared on its field, and how the text of its value is read."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, SecretStr

from explorer.schema.model_options import EVERY_ROLE, Effort

TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
NO_LIMIT = "none"
CONTACT_PATTERN = re.compile(r"[A-Za-z0-9][\w.+@:/?=&%~#;, -]{3,150}|/u/[\w-]{3,20}", re.ASCII)

Parse = Callable[[str], object]
Value = TypeVar("Value")


@dataclass(frozen=True)
class ValueFormat:
    """How a value is read from the text that a person wrote."""

    parse: Parse
    """Return the value of a text; raise ValueError when the text is not `allowed`."""
    allowed: str
    """The allowed texts, for error messages."""


def text(raw: str) -> str:
    """Read a text on one line."""
    if not raw.isprintable():
        raise ValueError(raw)
    return raw.strip()


def folder(raw: str) -> Path:
    """Read a path, with `~` expanded."""
    if "\0" in raw:
        raise ValueError(raw)
    return Path(raw).expanduser()


def absolute_folder(raw: str) -> Path:
    """Read a path as an absolute one: a run that is resumed in another folder uses the same path."""
    return folder(raw).absolute()


def whole(raw: str) -> int:
    """Read a whole number; `_` may separate its digits."""
    if re.fullmatch(r"[0-9][0-9_]*", raw) is None:
        raise ValueError(raw)
    return int(raw)


def or_none(parse: Callable[[str], Value], none: Value | None = None) -> Callable[[str], Value | None]:
    """Return a parser that reads the text `none` as the value `none`, and any other one as `parse` does."""
    return lambda raw: none if raw.lower() == NO_LIMIT else parse(raw)


def seconds(raw: str) -> float:
    """Read the seconds of `90`, `90s`, `10m` or `2h`."""
    match = TIME.fullmatch(raw.lower())
    if match is None:
        raise ValueError(raw)
    return float(match[1]) * SECONDS[match[2]]


def price(raw: str) -> dict[str, float]:
    """Read `3/15`: US dollars per million tokens, input and output."""
    inward, slash, outward = raw.partition("/")
    if not slash:
        raise ValueError(raw)
    return {"input_usd": amount_usd(inward), "output_usd": amount_usd(outward)}


def efforts(raw: str) -> dict[str, str]:
    """Read `high`, `writer=high` or `low,writer=high`: how much models are to reason, for all roles or for one."""
    found: dict[str, str] = {}
    for part in raw.split(","):
        role, equals, word = part.strip().rpartition("=")
        if word not in get_args(Effort) or (equals and re.fullmatch(r"[a-z][a-z0-9_-]*", role) is None):
            raise ValueError(raw)
        found[role or EVERY_ROLE] = word
    return found


def hosts(raw: str) -> tuple[str, ...]:
    """Read host names, separated by commas."""
    names = tuple(name.strip().lower() for name in raw.split(",") if name.strip())
    if any(re.fullmatch(r"[\w.:\[\]-]+", name) is None for name in names):
        raise ValueError(raw)
    return names


def url(raw: str) -> str:
    """Read a base URL, to whose end paths are added; keys have settings of their own. A slash at its end is dropped."""
    parts = urlsplit(raw)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(raw)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not raw.isprintable() or " " in raw:
        raise ValueError(raw)
    return raw.rstrip("/")


def contact(raw: str) -> str:
    """Read what may be inside the parentheses of a User-Agent."""
    if not CONTACT_PATTERN.fullmatch(raw) or not ("@" in raw or "." in raw or "u/" in raw):
        raise ValueError(raw)
    return raw


def secret(raw: str) -> str:
    """Read a key: printable, in one piece. Anything else would break, or smuggle, a header."""
    if not raw.isascii() or not raw.isprintable() or " " in raw:
        raise ValueError
    return raw


def headers(raw: str) -> str:
    """Read headers in the form of the OpenTelemetry specification; wrong ones are left out when they are sent."""
    if not raw.isascii() or not raw.isprintable():
        raise ValueError
    return raw


def amount_usd(raw: str) -> float:
    """Read an amount of US dollars."""
    number = raw.strip().removeprefix("$")
    if re.fullmatch(r"\d+(\.\d+)?|\.\d+", number) is None:
        raise ValueError(raw)
    return float(number)


def _share(raw: str) -> float:
    """Read a share of a whole."""
    if re.fullmatch(r"0?\.\d+", raw.strip()) is None:
        raise ValueError(raw)
    return float(raw)


def timezone(raw: str) -> str:
    """Read a name of the IANA time zone database."""
    try:
        return ZoneInfo(raw).key
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(raw) from error


def one_of(*words: str) -> ValueFormat:
    """Return the format of a value that is one of a few words."""

    def read(raw: str) -> str:
        if raw.lower() not in words:
            raise ValueError(raw)
        return raw.lower()

    return ValueFormat(read, f"one of {', '.join(words)}")


def one_or_some_of(alone: str, *words: str) -> ValueFormat:
    """Return the format of a value that is `alone`, or some of a few words with commas between them."""

    def read(raw: str) -> str:
        named = [word.strip().lower() for word in raw.split(",")]
        if named != [alone] and not {*words}.issuperset(named):
            raise ValueError(raw)
        return ",".join(dict.fromkeys(named))

    return ValueFormat(
        read, f"one of {', '.join((alone, *words))}, or several of these engines, like {','.join(words[:2])}"
    )


COUNT = "a whole number, 1 or more"
DURATION = f"a time above 0, like 90, 90s, 10m or 2h, or `{NO_LIMIT}`"
URL_FORM = "a URL that starts with http:// or https:// without user name, password or query"

TEXT = ValueFormat(text, "words on one line")
PATH = ValueFormat(folder, "a path")
ABSOLUTE_PATH = ValueFormat(absolute_folder, "a path")
WHOLE = ValueFormat(whole, COUNT)
WHOLE_OR_ZERO = ValueFormat(whole, "a whole number, 0 or more")
WHOLE_OR_NONE = ValueFormat(or_none(whole), f"{COUNT}, or `{NO_LIMIT}`")
TOKENS_OR_NONE = ValueFormat(or_none(whole), f"{COUNT}, or `{NO_LIMIT}`, or `auto`")
REPLY_TOKENS = ValueFormat(whole, "a whole number, 1024 or more")
MONEY_OR_NONE = ValueFormat(or_none(amount_usd), f"US dollars above 0, like 0.50, or `{NO_LIMIT}`, or `auto`")
TIME_OR_NONE = ValueFormat(or_none(seconds), DURATION)
SHARE = ValueFormat(_share, "a share between 0.3 and 0.95, like 0.8")
PRICE = ValueFormat(price, "two amounts in US dollars, like 3/15")
EFFORTS = ValueFormat(
    efforts, f"one of {', '.join(get_args(Effort))}, for all roles or as ROLE=VALUE, separated by commas"
)
TIMEZONE = ValueFormat(timezone, "a name like Europe/Berlin")
CONTACT = ValueFormat(contact, "an e-mail address, a web address, or /u/name of Reddit")
HOSTS = ValueFormat(hosts, "host names separated by commas, like 127.0.0.1,intranet.example")
PUBLIC_HOSTS = ValueFormat(hosts, "host names separated by commas, like packages.example.org")
URL = ValueFormat(url, URL_FORM)
URL_OR_NONE = ValueFormat(or_none(url, NO_LIMIT), f"{URL_FORM}, or `{NO_LIMIT}`")
KEY = ValueFormat(
    secret, "a key in one piece of ASCII characters: no spaces, no line breaks, no accents; copy it once more"
)
HEADERS = ValueFormat(headers, "name=value, separated by commas")


class Group(StrEnum):
    """The heading under which a setting is listed."""

    MODELS = "Models and roles"
    LIMITS = "Limits"
    PLANS = "Plans"
    FILES = "Input and output"
    SOURCES = "Sources"
    TRACES = "OpenTelemetry"


class WithoutTrust(StrEnum):
    """What a value in a file of the current folder does while the user does not trust the folder."""

    NO_EFFECT = "no effect"
    """It needs trust: it names a host or a path, opens something, or decides where text goes."""
    LOWERS = "lowers"
    """It takes effect where it does not allow more than the settings without the folder."""
    WORDS = "words"
    """It takes effect where it can be the name of a language: a model reads it as the user's words."""
    MODEL = "model"
    """It takes effect where it is a model of the vendor that is asked without the folder."""
    TIGHTENS = "tightens"
    """It takes effect next to the user's own values, and only where it allows less than they do."""
    KEY = "key"
    """It takes effect where it does not put another service in the place of the one that the user set up."""
    FULL = "full"
    """It takes effect."""


@dataclass(frozen=True)
class Flag:
    """How a setting is written on the command line."""

    name: str
    metavar: str = ""
    note: str = ""
    """A remark on the flag only, such as that it may be repeated."""
    value: str = ""
    """The value that a flag without an argument sets; such a flag has its own help."""
    help: str = ""


@dataclass(frozen=True)
class Setting:
    """A setting on its field, `Annotated[TYPE, Setting(...)]`: where it can be set, how it is read, what it means."""

    variable: str
    format: ValueFormat
    help: str
    """One line of markdown without a full stop, for every place that explains the setting."""
    group: Group
    flags: tuple[Flag, ...] = ()
    key: str = ""
    """The key in a configuration file, with dots; empty: the dotted name of the field."""
    details: str = ""
    """More on it for the documentation."""
    default: str = ""
    """The default for people, where the value is not clear."""
    anchor: str = ""
    """The section of docs/configuration.md with more."""
    without_trust: WithoutTrust = WithoutTrust.NO_EFFECT
    """What it does in a file of a folder that is not trusted."""
    name: str = ""
    """Its place in `Settings`, with dots; taken from the field."""
    initial: object = None
    """Its default value; taken from the field."""
    is_secret: bool = False
    """Whether its value is never shown; taken from the field's type. A secret has no key in a file, either."""

    @property
    def plain_help(self) -> str:
        """The help without backticks."""
        return self.help.replace("`", "")

    def parse(self, raw: str) -> object:
        """Return the value of a text.

        Raises:
            ValueError: The text is not what `format.allowed` says.
        """
        return self.format.parse(raw)


def address_of(variable: str, words: str, group: Group = Group.SOURCES, default: str = "the public one") -> Setting:
    """Return the setting of a service's address."""
    return Setting(variable, URL, words, group, default=default)


def key_of(variable: str, words: str, group: Group = Group.SOURCES) -> Setting:
    """Return the setting of a key, which no file of a folder that is not trusted can replace."""
    return Setting(variable, KEY, words, group, without_trust=WithoutTrust.KEY)


@dataclass(frozen=True)
class PerRole:
    """A setting that has a value for each role: a variable per role, and a table in a file."""

    prefix: str
    """The beginning of the variables; a role's name in capitals follows."""
    table: str
    """The name of the table in a configuration file."""
    help: str
    group: Group
    without_trust: WithoutTrust = WithoutTrust.NO_EFFECT
    """What it does in a file of a folder that is not trusted."""


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
    """Base of the settings that an extension declares: fields of texts and keys, each annotated with `Setting`."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NoSettings(ExtensionSettings):
    """The settings of an extension without any."""


def extension_settings(extension: str, model: type[ExtensionSettings]) -> tuple[Setting, ...]:
    """Return the settings that an extension declares, each with its place in `Settings`."""
    return tuple(
        replace(setting, name=place, key="" if setting.is_secret else _own_key(setting) or place)
        for setting in _declared(model, "")
        for place in [extension_place(extension, setting.name, is_secret=setting.is_secret)]
    )


def _own_key(setting: Setting) -> str:
    """Return the key that a setting names for itself; empty where its key is its name."""
    return setting.key if setting.key != setting.name else ""


def extension_place(extension: str, field: str, *, is_secret: bool) -> str:
    """Return the place of an extension's setting: keys are among the secrets, all else among the services."""
    return f"{'secrets' if is_secret else 'services'}.{extension}_{field}"


def declared_setting(model: type[BaseModel], field: str) -> Setting:
    """Return the setting that a field declares.

    Raises:
        KeyError: The model has no such setting.
    """
    return {setting.name: setting for setting in _declared(model, "")}[field]
