"""From flags, environment and files to one frozen `Settings`, with the origin of every value.

Precedence: flags > environment > `.env` > `explorer.toml` > the user's `config.toml` > defaults.

The default time zone is that of this machine, by its name in the IANA database.
"""

import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dotenv import dotenv_values
from pydantic import ValidationError

from explorer.cli.secrecy import keep_secret
from explorer.cli.settings.options import CommonOptions, RunOptions
from explorer.cli.settings.values import (
    BY_MODEL,
    CORE,
    DEFAULT,
    MODEL_VARIABLE,
    MODELS_KEY,
    ROLE,
    Raw,
    Value,
    all_settings,
    values_of,
)
from explorer.cli.typo import closest
from explorer.run.extensions import installed_extensions
from explorer.schema.errors import ConfigError
from explorer.schema.limits import DEPENDENT_LIMITS
from explorer.schema.network import network_of, without_secrets
from explorer.schema.setting import Setting
from explorer.schema.settings import Settings
from explorer.workspace.access import journal_path

LOCALTIME = Path("/etc/localtime")
TIMEZONE_FILE = Path("/etc/timezone")
DATABASE = "zoneinfo/"
MAX_NAME_CHARS = 64


def machine_zone(
    environment: Mapping[str, str], localtime: Path = LOCALTIME, timezone_file: Path = TIMEZONE_FILE
) -> str:
    """Return what `TZ`, /etc/localtime or /etc/timezone name; empty, which stands for UTC, when none names a zone.

    `TZ` decides alone when it is set, also when it names no zone: rules written out (`CET-1CEST`) have no name.
    """
    if name := environment.get("TZ", "").strip():
        return _known(_in_database(name.removeprefix(":")))
    return _known(_linked(localtime)) or _known(_in_file(timezone_file))


def _linked(path: Path) -> str:
    """Return the zone that a link into the database leads to."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return ""
    return _in_database(str(target))


def _in_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _in_database(name: str) -> str:
    """Return a path into the database as the zone's name; a name stays."""
    if not name.startswith("/"):
        return name
    return name.partition(DATABASE)[2].removeprefix("posix/").removeprefix("right/")


def _known(name: str) -> str:
    if not name or len(name) > MAX_NAME_CHARS:
        return ""
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ""


SHOWN_CHARS = 80
"""Length of a bad value in an error."""
BY_MODEL_NAMES = frozenset(f"limits.{name}" for name in DEPENDENT_LIMITS)
MACHINE = "this machine"


@dataclass(frozen=True)
class Layer:
    """The raw values of one origin, by the setting's name in `Settings`."""

    origin: str
    values: Mapping[str, "Raw"]
    models: Mapping[str, "Raw"]
    """Models by role."""


@dataclass(frozen=True)
class Unknown:
    """A variable that looks like one of ours and is none."""

    place: str
    """`environment EXPLORER_MAX_STEP`."""
    near: str | None
    """The closest one there is."""


@dataclass(frozen=True)
class Configuration:
    """What the outside said, resolved."""

    settings: Settings
    values: tuple[Value, ...]
    unknown: tuple[Unknown, ...]
    """Variables that look like ours and are not."""

    @property
    def origins(self) -> dict[str, str]:
        """Where each setting that is not the default was set, by its name."""
        return {value.name: value.origin for value in self.values if value.origin != DEFAULT}

    def with_origin(self, name: str, origin: str) -> "Configuration":
        """Return this configuration with the origin of a value that a command set itself."""
        values = (replace(value, origin=origin) if value.name == name else value for value in self.values)
        return replace(self, values=tuple(values))

    def origin(self, name: str) -> str:
        """Return where a setting's value comes from."""
        return next((value.origin for value in self.values if value.name == name), DEFAULT)


@dataclass(frozen=True)
class Flags:
    """What the command line said: values by the setting's name, and models by role."""

    values: Mapping[str, str]
    models: Mapping[str, str]


NOT_SETTINGS = frozenset({"EXPLORER_CRASH"})
"""Variables of ours that set nothing: tests end the process with this one."""
NO_FLAGS = Flags({}, {})


def read_configuration(flags: Flags, environment: Mapping[str, str], folder: Path) -> Configuration:
    """Resolve all settings; `folder` is where `.env` and `explorer.toml` are looked for.

    Raises:
        ConfigError: A value is not allowed, or a file cannot be read; it names where it stands.
    """
    dotenv = _dotenv(folder / ".env")
    layers = [
        _flag_layer(flags),
        _variable_layer(environment, "environment"),
        _variable_layer(dotenv, ".env"),
        _file_layer(folder / "explorer.toml", "explorer.toml"),
        _file_layer(user_file(environment), str(user_file(environment))),
        _machine_layer(environment),
    ]
    found = _overlay([layer.values for layer in layers])
    models = _overlay([layer.models for layer in layers])
    # Of the environment alone: a folder's files must not lead connections elsewhere.
    settings = _settings(found, models).model_copy(update={"network": network_of(environment)})
    unknown = (*_unknown_variables(environment, "environment"), *_unknown_variables(dotenv, ".env"))
    return Configuration(settings, values_of(settings, found, models), unknown)


def _machine_layer(environment: Mapping[str, str]) -> Layer:
    name = machine_zone(environment)
    return Layer(MACHINE, {"timezone": Raw(name, MACHINE)} if name else {}, {})


def user_file(environment: Mapping[str, str]) -> Path:
    """Return the user's own configuration file, after the XDG rules."""
    home = Path(environment.get("HOME") or "~").expanduser()
    base = environment.get("XDG_CONFIG_HOME", "")
    # The XDG rules have relative paths ignored.
    root = Path(base) if base and Path(base).is_absolute() else home / ".config"
    return root / "explorer" / "config.toml"


def _overlay(layers: list[Mapping[str, Raw]]) -> dict[str, Raw]:
    merged: dict[str, Raw] = {}
    for layer in reversed(layers):
        merged.update(layer)
    return merged


def _flag_layer(flags: Flags) -> Layer:
    values = {
        setting.name: Raw(flags.values[setting.name], f"flag {_flag_name(setting, flags.values[setting.name])}")
        for setting in all_settings()
        if setting.name in flags.values
    }
    models = {role: Raw(text, f"flag --model {role}=") for role, text in flags.models.items()}
    return Layer("flag", values, models)


def _flag_name(setting: Setting, text: str) -> str:
    return next((flag.name for flag in setting.flags if flag.value == text), setting.flags[0].name)


def _variable_layer(variables: Mapping[str, str], origin: str) -> Layer:
    """Empty variables count as unset: that is how a shell unsets one for a single command."""
    values = {
        setting.name: Raw(variables[setting.variable].strip(), f"{origin} {setting.variable}")
        for setting in all_settings()
        if variables.get(setting.variable, "").strip()
    }
    models = {
        name.removeprefix(MODEL_VARIABLE).lower(): Raw(text.strip(), f"{origin} {name}")
        for name, text in variables.items()
        if name.startswith(MODEL_VARIABLE) and text.strip()
    }
    return Layer(origin, values, models)


def _dotenv(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        pairs = dotenv_values(path, interpolate=False, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", hint="fix the file or remove it") from error
    return {name: value for name, value in pairs.items() if value is not None}


def _file_layer(path: Path, origin: str) -> Layer:
    if not path.is_file():
        return Layer(origin, {}, {})
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", hint="fix the file or remove it") from error
    models = content.pop(MODELS_KEY, {})
    if not isinstance(models, dict):
        raise ConfigError(f"{path}: `{MODELS_KEY}` must be a table of models by role")
    names = {setting.key: setting.name for setting in all_settings() if setting.key}
    values: dict[str, Raw] = {}
    for key, value in _flat(content).items():
        if key not in names:
            raise _unknown_key(path, key, list(names))
        values[names[key]] = Raw(_written(path, key, value), f"{origin} {key}")
    roles = cast("dict[str, Any]", models)
    by_role = {
        role: Raw(_written(path, f"{MODELS_KEY}.{role}", name), f"{origin} {MODELS_KEY}.{role}")
        for role, name in roles.items()
    }
    return Layer(origin, values, by_role)


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(cast("dict[str, Any]", value), f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _unknown_key(path: Path, key: str, known: list[str]) -> ConfigError:
    secrets = {setting.variable.lower(): setting.variable for setting in all_settings() if setting.is_secret}
    variable = secrets.get(key.lower())
    if variable is not None:
        message = f"{path}: `{key}` is not allowed here"
        return ConfigError(message, hint=f"keys belong into the environment or into .env, as {variable}")
    near = closest(key, known, 3) or next((name for name in known if name.rpartition(".")[2] == key), None)
    hint = f"did you mean `{near}`?" if near else f"known are: {', '.join([*known, f'{MODELS_KEY}.<role>'])}"
    return ConfigError(f"{path}: there is no setting `{_short(key)}`", hint=hint)


def _written(path: Path, key: str, value: object) -> str:
    """Return a TOML value as the text one would write in a variable."""
    if isinstance(value, list):
        return ",".join(_written(path, key, item) for item in cast("list[object]", value))
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"{path}: `{key}` must be a text or a number")
    return str(value).strip()


def _settings(found: Mapping[str, Raw], models: Mapping[str, Raw]) -> Settings:
    fields: dict[str, Any] = {"role_models": {role: _model(role, raw) for role, raw in models.items()}}
    for setting in all_settings():
        raw = found.get(setting.name)
        if raw is not None and not _is_left_open(setting, raw):
            _place(fields, setting.name, _parsed(setting, raw))
    try:
        return Settings.model_validate(fields)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        setting = next(s for s in all_settings() if place.startswith(s.name))
        raise _not_allowed(setting, found[setting.name]) from error


def _is_left_open(setting: Setting, raw: Raw) -> bool:
    """Return whether a limit is to be the one that the models of a run call for."""
    return setting.name in BY_MODEL_NAMES and raw.text.lower() in {"", BY_MODEL}


def _place(fields: dict[str, Any], name: str, value: object) -> None:
    group, dot, leaf = name.rpartition(".")
    (fields.setdefault(group, {}) if dot else fields)[leaf] = value


def _parsed(setting: Setting, raw: Raw) -> object:
    if not raw.text:
        # An empty text in a file, or `--lang ""`, asks for the default.
        return setting.initial
    try:
        return setting.parse(raw.text)
    except ValueError as error:
        raise _not_allowed(setting, raw) from error


def _not_allowed(setting: Setting, raw: Raw) -> ConfigError:
    value = "its value" if setting.is_secret else repr(_short(without_secrets(raw.text)))
    return ConfigError(f"{raw.origin}: {value} is not allowed", hint=f"allowed is {setting.format.allowed}")


def _model(role: str, raw: Raw) -> str:
    if ROLE.fullmatch(role) is None or not raw.text.isprintable():
        raise ConfigError(f"{raw.origin}: `{_short(role)}` is not the name of a role", hint="see `explorer agents`")
    return raw.text


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}... ({len(text):,} characters)"


def refuse_unknown(configuration: Configuration) -> None:
    """Refuse variables that look like ours and are not: a mistyped limit would be none.

    Raises:
        ConfigError: There is one; the hint names the closest there is.
    """
    if not configuration.unknown:
        return
    first, more = configuration.unknown[0], len(configuration.unknown) - 1
    place, _, name = first.place.rpartition(" ")
    others = f" (and {more} more: explorer doctor)" if more else ""
    near = f"did you mean {first.near}?" if first.near else "all names: explorer config show"
    way = f"unset {name}" if place == "environment" else f"take it out of {place}"
    raise ConfigError(f"{first.place}: there is no such setting{others}", hint=f"{near} To go without it: {way}")


def _unknown_variables(variables: Mapping[str, str], origin: str) -> tuple[Unknown, ...]:
    known = [setting.variable for setting in all_settings()]
    strangers = [
        name
        for name in sorted(variables)
        if name.startswith("EXPLORER_")
        and name not in known
        and not name.startswith(MODEL_VARIABLE)
        and name not in NOT_SETTINGS
    ]
    return tuple(Unknown(f"{origin} {name}", closest(name, known, 4)) for name in strangers)


def configured(options: CommonOptions) -> Configuration:
    """Return the settings after the flags of a command, the environment and the files.

    Raises:
        ConfigError: A value is not allowed, or a variable of ours is not known.
    """
    configuration = inspected(options)
    refuse_unknown(configuration)
    if not options.quiet:
        for failure in installed_extensions().failures:
            print(failure, file=sys.stderr)
    return configuration


def inspected(options: CommonOptions) -> Configuration:
    """Return the settings without refusing unknown variables, for `config show` and `doctor`, which report them."""
    configuration = read_configuration(flags_of(options), os.environ, settings_folder(Path.cwd()))
    keep_secret(configuration.settings, os.environ)
    return configuration


def settings_folder(here: Path) -> Path:
    """Return the folder of `.env` and `explorer.toml`: this one, or above a run, whose folder agents can write in."""
    runs = [folder for folder in (here, *here.parents) if journal_path(folder).exists()]
    return runs[-1].parent if runs else here


def flags_of(options: CommonOptions) -> Flags:
    """Flags by the names of the settings they set.

    Raises:
        ConfigError: Two flags say opposite things.
    """
    if isinstance(options, RunOptions) and options.no_shell and options.unsafe_shell:
        raise ConfigError("a shell cannot be both absent and unsafe", hint="give one of --no-shell and --unsafe-shell")
    given: dict[str, str] = {}
    models: dict[str, str] = {}
    for setting in CORE:
        for flag in setting.flags:
            value: str | bool | tuple[str, ...] | None = getattr(options, flag.name[2:].replace("-", "_"), None)
            if isinstance(value, bool):
                given |= {setting.name: flag.value} if value else {}
            elif isinstance(value, str):
                given[setting.name] = value
            elif value and setting.name == "effort":
                given[setting.name] = ",".join(value)
            else:
                _take_models(value or (), given, models)
    return Flags(given, models)


def _take_models(values: tuple[str, ...], given: dict[str, str], models: dict[str, str]) -> None:
    """Sort `NAME` and `ROLE=NAME` of repeated flags."""
    for value in values:
        role, equals, name = value.partition("=")
        if equals and ROLE.fullmatch(role):
            models[role] = name
        else:
            given["model"] = value


def settings_of_process() -> Settings:
    """Return the settings of the process's environment and the files of its folder, as for a command without flags.

    Raises:
        ConfigError: A value is not allowed, or a variable of ours is not known.
    """
    configuration = read_configuration(NO_FLAGS, os.environ, settings_folder(Path.cwd()))
    refuse_unknown(configuration)
    return configuration.settings
