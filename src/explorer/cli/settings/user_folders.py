"""The user's own folders, after the XDG rules: what they configure, what explorer remembers, what can be made again."""

import os
from collections.abc import Mapping
from pathlib import Path

from explorer.schema.settings import Settings

NO_FOLDER = Path(os.devnull)
"""In the place of a folder that there is none of: nothing is in it, and nothing can be written there."""


def config_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the user's configuration; `NO_FOLDER` when the user has no home folder."""
    return _folder(environment, "XDG_CONFIG_HOME", ".config") or NO_FOLDER


def state_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder: never one of a run or of a checkout; None when the user has no home folder.

    It is not the folder of the configuration, because people publish that one.
    """
    return _folder(environment, "XDG_STATE_HOME", ".local/state")


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the user's own folder for what can be made again; None: the user has no home."""
    return _folder(environment, "XDG_CACHE_HOME", ".cache")


def _folder(environment: Mapping[str, str], variable: str, default: str) -> Path | None:
    base = environment.get(variable, "")
    # The XDG rules have relative paths ignored.
    if base and Path(base).is_absolute():
        return Path(base) / "explorer"
    try:
        home = Path(environment.get("HOME") or "~").expanduser()
    except RuntimeError:  # no user of this number is known, as in a container
        return None
    return home / default / "explorer" if home.is_absolute() else None


def with_state_folder(settings: Settings) -> Settings:
    """Return settings that a program made, with the folder of the user who runs it."""
    if settings.state_dir is not None:
        return settings
    own = {"state_dir": state_folder(os.environ), "cache_dir": settings.cache_dir or cache_folder(os.environ)}
    return settings.model_copy(update=own)
