"""From a command's flags to the configuration it works with."""

import os
from pathlib import Path

from explorer.cli.configuration import Configuration, Flags, read_configuration
from explorer.cli.options import AskOptions, CommonOptions, ModelOptions, RunOptions
from explorer.cli.setting_table import ROLE


def configured(options: CommonOptions) -> Configuration:
    """The settings after the flags of a command, the environment and the files."""
    return read_configuration(flags_of(options), os.environ, Path.cwd())


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
            "limits.max_agents": options.max_agents,
            "language": options.lang,
            "judge": options.judge,
        }
    if isinstance(options, AskOptions):
        given["corpus"] = options.corpus
    if isinstance(options, ModelOptions):
        for model in options.model:
            role, equals, name = model.partition("=")
            if equals and ROLE.fullmatch(role):
                models[role] = name
            else:
                given["model"] = model
    return Flags({name: text for name, text in given.items() if text is not None}, models)
