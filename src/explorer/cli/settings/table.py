"""All settings, as fields declare them: those of `Settings`, and those of search engines and other extensions."""

import re
from dataclasses import replace
from functools import cache

from explorer.schema.setting import Group, PerRole, Setting, declared_settings, one_of
from explorer.schema.settings import Settings

ROLE = re.compile(r"[a-z][a-z0-9_-]*")
ROLE_MODELS = next(item for item in Settings.model_fields["role_models"].metadata if isinstance(item, PerRole))
MODEL_VARIABLE = ROLE_MODELS.prefix
"""Followed by a role's name in capitals: the model of that role."""
MODELS_KEY = ROLE_MODELS.table
"""The table of models by role in a configuration file."""
CORE: tuple[Setting, ...] = declared_settings(Settings)
"""Those of explorer itself."""


@cache
def all_settings() -> tuple[Setting, ...]:
    """Return every setting there is, group by group."""
    from explorer.run.extensions import installed_extensions  # noqa: PLC0415 - flags must not pay for it

    extensions = installed_extensions()
    engines = [engine.name for engine in extensions.engines]
    core = (_of_engines(setting, engines) if setting.name == "search" else setting for setting in CORE)
    return tuple(sorted((*core, *extensions.settings), key=lambda setting: list(Group).index(setting.group)))


def _of_engines(setting: Setting, engines: list[str]) -> Setting:
    """Return the choice of a search engine with the engines that there are."""
    listed = ", ".join(f"`{name}`" for name in engines)
    return replace(setting, format=one_of("auto", *engines), help=f"{setting.help}, {listed}")
