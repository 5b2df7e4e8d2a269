"""A folder that skills are found in, and whose it is: what counts first follows from that."""

from enum import StrEnum
from pathlib import Path

from explorer.schema.messages import Frozen


class SkillOrigin(StrEnum):
    """Whose skills a folder has."""

    BUILT_IN = "built-in"
    USER = "user"
    """The user's own folder, or one that the user names: its skills replace built-in ones of the same name."""
    PRESET = "preset"
    """The preset that the user names: its skills replace others of the same name."""
    PROJECT = "project"
    """The folder that explorer was started in, which the user trusts: its skills replace no other."""


class SkillFolder(Frozen):
    """A folder of skills."""

    path: Path
    origin: SkillOrigin
    sha256: str = ""
    """What the user trusts, as `folder_digest` gives it: with another content no skill of it counts; empty: any."""
