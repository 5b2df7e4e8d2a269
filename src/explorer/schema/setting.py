"""What is known of one setting: metadata of its field, from which flags, help, documents and `config show` are made."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, SecretStr

from explorer.schema.value_formats import ValueFormat


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
