"""The role files of this package: the entry point `explorer.roles` is a function that returns their folder."""

from pathlib import Path


def folder() -> Path:
    """Return the folder."""
    return Path(__file__).parent
