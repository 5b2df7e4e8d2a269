"""The folder of the user's own for what explorer remembers about them, after the XDG rules."""

import os
from collections.abc import Mapping
from pathlib import Path

from explorer.schema.settings import Settings


def state_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder: never one of a run or of a checkout; None when the user has no home folder.

    It is not the folder of the configuration, because people publish that one.
    """
    base = environment.get("XDG_STATE_HOME", "")
    # The XDG rules have relative paths ignored.
    if base and Path(base).is_absolute():
        return Path(base) / "explorer"
    try:
        home = Path(environment.get("HOME") or "~").expanduser()
    except RuntimeError:  # no user of this number is known, as in a container
        return None
    return home / ".local" / "state" / "explorer" if home.is_absolute() else None


def with_state_folder(settings: Settings) -> Settings:
    """Return settings that a program made, with the folder of the user who runs it."""
    if settings.state_dir is not None:
        return settings
    return settings.model_copy(update={"state_dir": state_folder(os.environ)})
