"""From a command's flags to the configuration it works with."""

import os
import sys
from pathlib import Path

from explorer.cli.secrecy import keep_secret
from explorer.cli.settings.configuration import (
    NO_FLAGS,
    Configuration,
    Flags,
    read_configuration,
    refuse_unknown,
)
from explorer.cli.settings.options import CommonOptions, RunOptions
from explorer.cli.settings.table import CORE, ROLE
from explorer.run.extensions import installed_extensions
from explorer.schema.errors import ConfigError
from explorer.schema.settings import Settings
from explorer.workspace.access import journal_path


def configured(options: CommonOptions) -> Configuration:
    """The settings after the flags of a command, the environment and the files.

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
    """The same, for the command that reports unknown variables itself."""
    configuration = read_configuration(flags_of(options), os.environ, settings_folder(Path.cwd()))
    keep_secret(configuration.settings, os.environ)
    return configuration


def settings_folder(here: Path) -> Path:
    """Where `.env` and `explorer.toml` are looked for: here, but above a run, in whose folder agents can write."""
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
    """The settings that the process's environment and the files of its folder give, as for a command without flags.

    Raises:
        ConfigError: A value is not allowed, or a variable of ours is not known.
    """
    configuration = read_configuration(NO_FLAGS, os.environ, settings_folder(Path.cwd()))
    refuse_unknown(configuration)
    return configuration.settings
