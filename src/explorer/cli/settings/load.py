"""From a command's flags to the configuration it works with."""

import os
from pathlib import Path

from explorer.cli.secrecy import keep_secret
from explorer.cli.settings.configuration import Configuration, Flags, read_configuration, refuse_unknown
from explorer.cli.settings.options import AskOptions, CommonOptions, ModelOptions, RunOptions
from explorer.cli.settings.table import ROLE
from explorer.journal.listing import journal_path
from explorer.schema.errors import ConfigError


def configured(options: CommonOptions) -> Configuration:
    """The settings after the flags of a command, the environment and the files.

    Raises:
        ConfigError: A value is not allowed, or a variable of ours is not known.
    """
    configuration = inspected(options)
    refuse_unknown(configuration)
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


def _shell(options: RunOptions) -> str | None:
    if options.no_shell and options.unsafe_shell:
        raise ConfigError("a shell cannot be both absent and unsafe", hint="give one of --no-shell and --unsafe-shell")
    return "off" if options.no_shell else "unsafe" if options.unsafe_shell else None


def flags_of(options: CommonOptions) -> Flags:
    """Flags by the names of the settings they set."""
    given = {"workspace": options.workspace, "roles_dir": options.roles}
    models: dict[str, str] = {}
    if isinstance(options, RunOptions):
        given |= {
            "limits.max_steps": options.max_steps,
            "limits.max_cost_usd": options.max_cost,
            "limits.max_tokens": options.max_tokens,
            "limits.max_tool_calls": options.max_tool_calls,
            "limits.max_time_s": options.max_time,
            "limits.max_outage_s": options.max_outage,
            "limits.max_agents": options.max_agents,
            "language": options.lang,
            "judge": options.judge,
            "shell": _shell(options),
        }
    if isinstance(options, AskOptions):
        given["corpus"] = options.corpus
    if isinstance(options, ModelOptions):
        given["effort"] = ",".join(options.effort) if options.effort else None
        for model in options.model:
            role, equals, name = model.partition("=")
            if equals and ROLE.fullmatch(role):
                models[role] = name
            else:
                given["model"] = model
    return Flags({name: text for name, text in given.items() if text is not None}, models)
