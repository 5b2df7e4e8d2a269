"""All settings as fields declare them, and each with its value and its origin, as people are shown it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import cast

from pydantic import SecretStr

from explorer.schema.network import CA_DIR, CA_FILE, NO_PROXY, Network, without_secrets
from explorer.schema.setting import Group, PerRole, Setting, declared_settings, one_or_some_of
from explorer.schema.settings import Settings

ROLE = re.compile(r"[a-z][a-z0-9_-]*")
ROLE_MODELS = next(item for item in Settings.model_fields["role_models"].metadata if isinstance(item, PerRole))
MODEL_VARIABLE = ROLE_MODELS.prefix
"""Followed by a role's name in capitals: the model of that role."""
MODELS_KEY = ROLE_MODELS.table
"""The table of models by role in a configuration file."""
CORE: tuple[Setting, ...] = declared_settings(Settings)
"""Settings of explorer itself."""


@cache
def all_settings() -> tuple[Setting, ...]:
    """Return every setting there is, group by group."""
    from explorer.run.extensions import installed_extensions  # noqa: PLC0415 - flags must not pay for it

    extensions = installed_extensions()
    engines = [engine.name for engine in extensions.engines]
    core = (_of_engines(setting, engines) if setting.name == "search" else setting for setting in CORE)
    return tuple(sorted((*core, *extensions.settings), key=lambda setting: list(Group).index(setting.group)))


def setting_named(name: str) -> Setting:
    """Return the setting of a field, by its path in `Settings`."""
    return next(setting for setting in all_settings() if setting.name == name)


def _of_engines(setting: Setting, engines: list[str]) -> Setting:
    """Return the choice of a search engine with the engines that there are."""
    listed = ", ".join(f"`{name}`" for name in engines)
    return replace(setting, format=one_or_some_of("auto", *engines), help=f"{setting.help}, {listed}")


DEFAULT = "default"
BY_MODEL = "auto"
"""The value of a limit whose default depends on the models of a run."""


class Origin(StrEnum):
    """Kinds of places where a value can be written. The folder's files are somebody else's until they are trusted."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    PRESET = "preset"
    """The preset that the user names for this run."""
    USER = "user"
    """The user's own configuration file."""
    FOLDER = "folder"
    """`.env` or `explorer.toml` in the current folder."""
    MACHINE = "machine"
    DEFAULT = "default"


@dataclass(frozen=True)
class Raw:
    """A value as it was written, and where."""

    text: str
    origin: str
    """The place, for people: `.env ANTHROPIC_BASE_URL`."""
    level: Origin


@dataclass(frozen=True)
class Ignored:
    """A value that is written somewhere and not in force."""

    origin: str
    value: str
    why: str


@dataclass(frozen=True)
class Value:
    """A resolved setting, for people; a secret is only `set` or `not set`."""

    name: str
    """Path of the field in `Settings`."""
    variable: str
    value: object
    origin: str
    help: str
    key: str = ""
    """Name in a configuration file; empty for a secret, which must not be in one."""
    level: Origin = Origin.DEFAULT
    """The kind of its origin."""
    ignored: tuple[Ignored, ...] = ()
    """Values that are not in force: the folder is not trusted, or they are written where they are not read."""


def with_ignored(values: Sequence[Value], ignored: Sequence[tuple[str, Ignored]]) -> tuple[Value, ...]:
    """Return the values, each with those of its name that are not in force."""
    by_name: dict[str, tuple[Ignored, ...]] = {}
    for name, one in ignored:
        by_name[name] = (*by_name.get(name, ()), one)
    rows = [replace(value, ignored=by_name.pop(value.name, ())) for value in values]
    # Of a role's model, or the network, there is a row only where it is set.
    rows += [
        Value(name, found[0].origin.rpartition(" ")[2], None, DEFAULT, "", ignored=found)
        for name, found in by_name.items()
    ]
    return tuple(rows)


def values_of(settings: Settings, found: Mapping[str, Raw], models: Mapping[str, Raw]) -> tuple[Value, ...]:
    """Return every setting with its value and origin; keys only as `set` or `not set`."""
    public = settings.public()
    unset = Raw("", DEFAULT, Origin.DEFAULT)
    rows = [
        Value(
            setting.name,
            setting.variable,
            _shown(setting, settings, public),
            raw.origin,
            setting.plain_help,
            setting.key,
            raw.level,
        )
        for setting in all_settings()
        for raw in [found.get(setting.name, unset)]
    ]
    rows = [_reader(row, settings) if row.name == "services.reader_url" else row for row in rows]
    rows += [
        Value(
            f"role_models.{role}",
            f"{MODEL_VARIABLE}{role.upper()}",
            raw.text,
            raw.origin,
            f"Model of {role}",
            f"{MODELS_KEY}.{role}",
            raw.level,
        )
        for role, raw in sorted(models.items())
    ]
    return (*rows, *_network_values(settings.network))


def _network_values(network: Network) -> tuple[Value, ...]:
    """Return what the environment says about the network; no row for what it does not say."""
    rows = [
        (f"network.{name}", proxy.variable, without_secrets(proxy.url.get_secret_value()), words)
        for name, proxy, words in (
            ("http_proxy", network.http_proxy, "Proxy for http:// addresses"),
            ("https_proxy", network.https_proxy, "Proxy for https:// addresses"),
        )
        if proxy is not None
    ]
    if network.no_proxy:
        rows.append(("network.no_proxy", NO_PROXY[-1], ",".join(network.no_proxy), "Hosts that need no proxy"))
    if network.ca_file:
        rows.append(("network.ca_file", CA_FILE, network.ca_file, "Certificate authorities to trust"))
    if network.ca_dir:
        rows.append(("network.ca_dir", CA_DIR, network.ca_dir, "Folder of certificate authorities to trust"))
    place = Origin.ENVIRONMENT
    return tuple(
        Value(name, variable, value, "environment", words, level=place) for name, variable, value, words in rows
    )


def _reader(row: Value, settings: Settings) -> Value:
    """Show the reader that a key alone brings, and that it is the key which brings it."""
    is_brought = not row.value and settings.reader_address
    return replace(row, value=settings.reader_address, origin="JINA_API_KEY is set") if is_brought else row


def _shown(setting: Setting, settings: Settings, public: Mapping[str, object]) -> object:
    group, _, leaf = setting.name.rpartition(".")
    if setting.is_secret:
        return "set" if getattr(settings.secrets, leaf, SecretStr("")).get_secret_value() else "not set"
    table = cast("Mapping[str, object]", public[group]) if group else public
    # A limit that is not set depends on the models.
    return table.get(leaf, BY_MODEL if group == "limits" else setting.initial)
