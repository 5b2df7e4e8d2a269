"""From what each origin says (flags, the environment, files) to `Settings`.

Values are kept as texts with the place where each was found, and parsed at the end. Approval rules of all origins add
to each other.
"""

import io
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dotenv import dotenv_values
from pydantic import ValidationError

from explorer.cli.settings.user_folders import config_folder
from explorer.cli.settings.values import (
    BY_MODEL,
    MODEL_VARIABLE,
    MODELS_KEY,
    ROLE,
    Origin,
    Raw,
    Value,
    all_settings,
    setting_named,
)
from explorer.cli.typo import closest
from explorer.schema.approvals import rule_texts
from explorer.schema.errors import ConfigError
from explorer.schema.limits import DEPENDENT_LIMITS
from explorer.schema.network import without_secrets
from explorer.schema.setting import Setting
from explorer.schema.settings import Settings

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


MACHINE = "this machine"
SHOWN_CHARS = 80
"""Length of a bad value in an error."""


@dataclass(frozen=True)
class Layer:
    """The raw values of one origin, by the setting's name in `Settings`."""

    values: Mapping[str, Raw]
    models: Mapping[str, Raw]
    """Models by role."""


@dataclass(frozen=True)
class Flags:
    """What the command line said: values by the setting's name, and models by role."""

    values: Mapping[str, str]
    models: Mapping[str, str]
    trusts_folder: bool | None = None
    """Whether this one command trusts the folder's files; None: if the user remembered it."""
    preset: str = ""
    """The preset's name or folder; empty: none."""


NO_FLAGS = Flags({}, {})


def user_file(environment: Mapping[str, str]) -> Path:
    """Return the user's own configuration file."""
    return config_folder(environment) / "config.toml"


def overlay(layers: Iterable[Mapping[str, Raw]]) -> dict[str, Raw]:
    """Return the first value of each name."""
    merged: dict[str, Raw] = {}
    for layer in layers:
        merged = {**layer, **merged}
    return merged


def machine_layer(environment: Mapping[str, str]) -> Layer:
    """Return what this machine says: its time zone."""
    name = machine_zone(environment)
    return Layer({"timezone": Raw(name, MACHINE, Origin.MACHINE)} if name else {}, {})


def flag_layer(flags: Flags) -> Layer:
    """Return what the command line says."""
    values = {
        setting.name: Raw(text, f"flag {_flag_name(setting, text)}", Origin.FLAG)
        for setting in all_settings()
        if (text := flags.values.get(setting.name)) is not None
    }
    models = {role: Raw(text, f"flag --model {role}=", Origin.FLAG) for role, text in flags.models.items()}
    return Layer(values, models)


def _flag_name(setting: Setting, text: str) -> str:
    return next((flag.name for flag in setting.flags if flag.value == text), setting.flags[0].name)


def variable_layer(variables: Mapping[str, str], place: str, origin: Origin) -> Layer:
    """Return what variables say; empty ones are not set: that is how a shell unsets one for a single command."""
    values = {
        setting.name: Raw(text, f"{place} {setting.variable}", origin)
        for setting in all_settings()
        if (text := variables.get(setting.variable, "").strip())
    }
    models = {
        name.removeprefix(MODEL_VARIABLE).lower(): Raw(text.strip(), f"{place} {name}", origin)
        for name, text in variables.items()
        if name.startswith(MODEL_VARIABLE) and text.strip()
    }
    return Layer(values, models)


def variables_in(path: Path, content: bytes) -> dict[str, str]:
    """Return the variables of a `.env` file; nothing in it is replaced by the value of another variable.

    Raises:
        ConfigError: It is not UTF-8.
    """
    try:
        pairs = dotenv_values(stream=io.StringIO(content.decode()), interpolate=False)
    except UnicodeDecodeError as error:
        raise unreadable(path, error) from error
    return {name: value for name, value in pairs.items() if value is not None}


def user_layer(path: Path) -> Layer:
    """Return what the user's own file says; nothing where there is none.

    Raises:
        ConfigError: It cannot be read, or names something that is no setting.
    """
    if not path.is_file():
        return Layer({}, {})
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    return toml_layer(path, content, str(path), Origin.USER)


def toml_layer(path: Path, content: bytes, place: str, origin: Origin) -> Layer:
    """Return what a configuration file says.

    Raises:
        ConfigError: It is not TOML, or names something that is no setting.
    """
    try:
        table = tomllib.loads(content.decode())
        table.pop("mcp", None)  # read by `mcp_servers.py`
        return table_layer(path, table, place, origin)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise unreadable(path, error) from error


def table_layer(path: Path, table: Mapping[str, Any], place: str, origin: Origin) -> Layer:
    """Return what a table of settings says.

    Raises:
        ConfigError: It names something that is no setting; the message names the file.
    """
    models = table.get(MODELS_KEY, {})
    if not isinstance(models, dict):
        raise ConfigError(f"{path}: `{MODELS_KEY}` must be a table of models by role")
    names = {setting.key: setting.name for setting in all_settings() if setting.key}
    values: dict[str, Raw] = {}
    for key, value in _flat({name: value for name, value in table.items() if name != MODELS_KEY}).items():
        if key not in names:
            raise _unknown_key(path, key, list(names))
        values[names[key]] = Raw(_written(path, key, value), f"{place} {key}", origin)
    roles = cast("dict[str, Any]", models)
    by_role = {
        role: Raw(_written(path, f"{MODELS_KEY}.{role}", name), f"{place} {MODELS_KEY}.{role}", origin)
        for role, name in roles.items()
    }
    return Layer(values, by_role)


def unreadable(path: Path, error: Exception) -> ConfigError:
    """Return the error for a file that cannot be read."""
    return ConfigError(f"{path} cannot be read: {error}", hint="fix the file or remove it")


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested tables as one, with dotted keys."""
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
    return ConfigError(f"{path}: there is no setting `{short(key)}`", hint=hint)


def _written(path: Path, key: str, value: object) -> str:
    """Return a TOML value as the text one would write in a variable."""
    if isinstance(value, list):
        return ",".join(_written(path, key, item) for item in cast("list[object]", value))
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"{path}: `{key}` must be a text or a number")
    return str(value).strip()


def short(text: str, limit: int = SHOWN_CHARS) -> str:
    """Return a text as an error shows it."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters)"


BY_MODEL_NAMES = frozenset(f"limits.{name}" for name in DEPENDENT_LIMITS)


def settings_of(found: Mapping[str, Raw], models: Mapping[str, Raw]) -> Settings:
    """Return the settings of the values that were found.

    Raises:
        ConfigError: A value is not allowed; the message names where it was found.
    """
    fields: dict[str, Any] = {"role_models": {role: _model(role, raw) for role, raw in models.items()}}
    for setting in all_settings():
        raw = found.get(setting.name)
        if raw is not None and not is_left_open(setting, raw):
            _place(fields, setting.name, parsed(setting, raw))
    try:
        return Settings.model_validate(fields)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        setting = next(s for s in all_settings() if place.startswith(s.name))
        raise _not_allowed(setting, found[setting.name]) from error


def is_left_open(setting: Setting, raw: Raw) -> bool:
    """Return whether a limit is to be the one that the models of a run call for."""
    return setting.name in BY_MODEL_NAMES and raw.text.lower() in {"", BY_MODEL}


def parsed(setting: Setting, raw: Raw) -> object:
    """Return the value of a text.

    Raises:
        ConfigError: It is not allowed.
    """
    if not raw.text:
        # An empty text in a file, or `--lang ""`, asks for the default.
        return setting.initial
    try:
        return setting.parse(raw.text)
    except ValueError as error:
        raise _not_allowed(setting, raw) from error


def _place(fields: dict[str, Any], name: str, value: object) -> None:
    group, dot, leaf = name.rpartition(".")
    (fields.setdefault(group, {}) if dot else fields)[leaf] = value


def _not_allowed(setting: Setting, raw: Raw) -> ConfigError:
    value = "its value" if setting.is_secret else repr(short(without_secrets(raw.text)))
    return ConfigError(f"{raw.origin}: {value} is not allowed", hint=f"allowed is {setting.format.allowed}")


def _model(role: str, raw: Raw) -> str:
    if ROLE.fullmatch(role) is None or not raw.text.isprintable():
        raise ConfigError(f"{raw.origin}: `{short(role)}` is not the name of a role", hint="see `explorer agents`")
    return raw.text


RULES, TIGHTENING = "approval_rules", "tightening_rules"


@dataclass(frozen=True)
class RuleLayers:
    """The layers with the user's rules as one value, and the rules of a folder that is not trusted."""

    layers: list[Layer]
    tightening: tuple[str, ...]
    rows: tuple[Value, ...]
    """The folder's rules, for people."""


def joined_rules(layers: Sequence[Layer], *, is_trusted: bool, strangers: Sequence[Raw] = ()) -> RuleLayers:
    """Join the rules of all layers, in the order in which the layers count.

    Args:
        layers: What each origin says, the one that counts first.
        is_trusted: Whether the folder's files may set everything.
        strangers: Rules of others that only tighten, whatever the folder may.

    Raises:
        ConfigError: A rule is not one.
    """
    setting = setting_named(RULES)
    found = [layer.values[RULES] for layer in layers if RULES in layer.values]
    own = [raw for raw in found if raw not in strangers and (is_trusted or raw.level is not Origin.FOLDER)]
    rest = [Layer({name: raw for name, raw in one.values.items() if name != RULES}, one.models) for one in layers]
    if own:
        texts = (rule for raw in own for rule in _rules(raw))
        one = Raw("; ".join(texts), ", ".join(raw.origin for raw in own), own[0].level)
        rest = [Layer({RULES: one}, {}), *rest]
    folder = [raw for raw in found if raw not in own]
    tightening = tuple(rule for raw in folder for rule in _rules(raw))
    rows = tuple(
        Value(TIGHTENING, setting.variable, raw.text, raw.origin, "Rules of this folder, which only tighten yours")
        for raw in folder
    )
    return RuleLayers(rest, tightening, rows)


def _rules(raw: Raw) -> tuple[str, ...]:
    parsed(setting_named(RULES), raw)  # with an error that says where it is written
    return rule_texts(raw.text)
